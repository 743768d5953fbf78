//! The client side of a login.

use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use mysql_common::scramble::{scramble_native, scramble_sha256};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

use super::error::AccountError;
use headwater_wire::capability::Capabilities;
use headwater_wire::cursor::{MalformedPacket, PacketCursor, put_lenenc_bytes};
use headwater_wire::handshake::ServerGreeting;
use headwater_wire::response::{EOF, ERR, ErrPacket, OK};

/// Plugin of MariaDB, and of MySQL before 8.
const NATIVE_PLUGIN: &[u8] = b"mysql_native_password";
/// Plugin of MySQL since 8.
const SHA2_PLUGIN: &[u8] = b"caching_sha2_password";
/// utf8mb4_general_ci, which has this number on both servers.
const CHARSET: u8 = 45;
const MAX_PACKET: u32 = 16 << 20;
/// First byte of a plugin's own data.
const AUTH_MORE_DATA: u8 = 0x01;
/// caching_sha2_password: the server knows the account and the password was right.
const FAST_AUTH_OK: u8 = 3;
/// The server asks for the password itself.
const FULL_AUTH: u8 = 4;
/// A client without TLS asks for the public key first.
const REQUEST_PUBLIC_KEY: u8 = 2;

/// Capabilities requested if the server has them: nothing slower, and nothing that stock clients lack.
const WANTED: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .union(Capabilities::DEPRECATE_EOF);

/// Who logs in, and where.
#[derive(Clone, Copy)]
pub struct LoginCredentials<'a> {
    /// User name.
    pub user: &'a str,
    /// Password; may be empty.
    pub password: &'a str,
    /// Database to start in.
    pub database: Option<&'a str>,
}

impl std::fmt::Debug for LoginCredentials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({:?} in {:?})", self.user, self.database)
    }
}

/// Builds the reply to a greeting (HandshakeResponse41); returns its payload and the negotiated capabilities.
#[must_use]
pub fn handshake_response(
    greeting: &ServerGreeting,
    login: &LoginCredentials<'_>,
) -> (Vec<u8>, Capabilities) {
    let wanted = match login.database {
        Some(_) => WANTED.union(Capabilities::CONNECT_WITH_DB),
        None => WANTED,
    };
    let capabilities =
        wanted.intersection(greeting.capabilities.union(Capabilities::LONG_PASSWORD));
    let plugin = match greeting.auth_plugin.as_slice() {
        known @ (NATIVE_PLUGIN | SHA2_PLUGIN) => known,
        // The server then requests the account's own plugin.
        _ => NATIVE_PLUGIN,
    };
    let proof = auth_proof(plugin, &greeting.scramble, login.password).unwrap_or_default();
    let [a, b, c, d, ..] = capabilities.0.to_le_bytes();
    let mut payload = vec![a, b, c, d];
    payload.extend(MAX_PACKET.to_le_bytes());
    payload.push(CHARSET);
    payload.extend([0; 23]);
    put_nul(login.user.as_bytes(), &mut payload);
    put_lenenc_bytes(&proof, &mut payload);
    if let Some(database) = login.database {
        put_nul(database.as_bytes(), &mut payload);
    }
    put_nul(plugin, &mut payload);
    (payload, capabilities)
}

/// Builds the reply to an AuthSwitchRequest; `None` if the plugin is not supported.
///
/// # Errors
/// When the request is malformed.
pub fn auth_switch_response(
    request: &[u8],
    password: &str,
) -> Result<Option<Vec<u8>>, MalformedPacket> {
    let (plugin, scramble) = parse_auth_switch(request)?;
    Ok(auth_proof(plugin, scramble, password))
}

fn parse_auth_switch(request: &[u8]) -> Result<(&[u8], &[u8]), MalformedPacket> {
    let mut cursor = PacketCursor::new(request);
    cursor.u8()?;
    let plugin = cursor.nul_bytes()?;
    let scramble = cursor.rest();
    Ok((plugin, scramble.strip_suffix(&[0]).unwrap_or(scramble)))
}

fn auth_proof(plugin: &[u8], scramble: &[u8], password: &str) -> Option<Vec<u8>> {
    match plugin {
        _ if password.is_empty() => Some(Vec::new()),
        NATIVE_PLUGIN => scramble_native(scramble, password.as_bytes()).map(|proof| proof.to_vec()),
        SHA2_PLUGIN => scramble_sha256(scramble, password.as_bytes()).map(|proof| proof.to_vec()),
        _ => None,
    }
}

/// The authentication exchange after the first login packet.
#[derive(Debug)]
pub(super) struct AuthDialogue<'a> {
    password: &'a str,
    /// The link cannot be wiretapped: TLS, or a local socket.
    secure: bool,
    scramble: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum AuthAction {
    Authenticated,
    Wait,
    Send(Vec<u8>),
}

impl<'a> AuthDialogue<'a> {
    pub(super) fn new(
        greeting: &ServerGreeting,
        password: &'a str,
        secure: bool,
    ) -> AuthDialogue<'a> {
        AuthDialogue {
            password,
            secure,
            scramble: greeting.scramble.clone(),
        }
    }

    /// Processes the server's next packet.
    ///
    /// # Errors
    /// When the server refuses, requests an unsupported plugin, or sends an invalid packet.
    pub(super) fn receive(&mut self, packet: &[u8]) -> Result<AuthAction, AccountError> {
        match packet {
            [OK, ..] => Ok(AuthAction::Authenticated),
            [ERR, ..] => Err(AccountError::Server(ErrPacket::parse(packet)?)),
            [EOF, ..] => {
                let (plugin, scramble) = parse_auth_switch(packet)?;
                self.scramble = scramble.to_vec();
                let proof = auth_proof(plugin, scramble, self.password);
                // The caller adds the user name.
                let unknown = || AccountError::Plugin {
                    user: String::new(),
                    plugin: String::from_utf8_lossy(plugin).into_owned(),
                };
                proof.map(AuthAction::Send).ok_or_else(unknown)
            }
            [AUTH_MORE_DATA, FAST_AUTH_OK] => Ok(AuthAction::Wait),
            [AUTH_MORE_DATA, FULL_AUTH] if self.secure => Ok(AuthAction::Send(self.in_clear())),
            [AUTH_MORE_DATA, FULL_AUTH] => Ok(AuthAction::Send(vec![REQUEST_PUBLIC_KEY])),
            [AUTH_MORE_DATA, key @ ..] => self.enciphered(key).map(AuthAction::Send),
            _ => Err(AccountError::Unexpected),
        }
    }

    fn in_clear(&self) -> Vec<u8> {
        let mut password = Vec::new();
        put_nul(self.password.as_bytes(), &mut password);
        password
    }

    /// Encrypts the password for the server (MySQL manual, "Caching SHA-2 Pluggable Authentication": RSA with OAEP).
    fn enciphered(&self, key: &[u8]) -> Result<Vec<u8>, AccountError> {
        let unfit = |_| AccountError::Key;
        let key = SubjectPublicKeyInfoDer::from_pem_slice(key).map_err(|_| AccountError::Key)?;
        let key = PublicEncryptingKey::from_der(&key).map_err(|_| AccountError::Key)?;
        let key = OaepPublicEncryptingKey::new(key).map_err(unfit)?;
        let secret: Vec<u8> = self
            .in_clear()
            .iter()
            .zip(self.scramble.iter().cycle())
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        let mut enciphered = vec![0; key.ciphertext_size()];
        let length = key
            .encrypt(&OAEP_SHA1_MGF1SHA1, &secret, &mut enciphered, None)
            .map_err(unfit)?
            .len();
        enciphered.truncate(length);
        Ok(enciphered)
    }
}

fn put_nul(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(0);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use headwater_wire::handshake::{LoginRequest as Parsed, LoginResponse};

    fn greeting(plugin: &[u8]) -> ServerGreeting {
        ServerGreeting {
            server_version: b"9.7.4".to_vec(),
            thread_id: 1,
            capabilities: Capabilities(u64::MAX),
            charset: CHARSET,
            status: 2,
            scramble: vec![7; 20],
            auth_plugin: plugin.to_vec(),
        }
    }

    #[test]
    fn the_login_is_one_that_headwater_reads() {
        for (plugin, used) in [
            (SHA2_PLUGIN, SHA2_PLUGIN),
            (NATIVE_PLUGIN, NATIVE_PLUGIN),
            (b"ed25519", NATIVE_PLUGIN),
        ] {
            for database in [Some("tl"), None] {
                let login = LoginCredentials {
                    user: "u",
                    password: "p",
                    database,
                };
                let (payload, capabilities) = handshake_response(&greeting(plugin), &login);
                let Parsed::Response(LoginResponse {
                    user,
                    database: told,
                    auth_plugin,
                    ..
                }) = Parsed::parse(&payload).unwrap()
                else {
                    unreachable!("no login")
                };
                assert_eq!(
                    (user, told, auth_plugin),
                    (&b"u"[..], database.map(str::as_bytes), Some(used))
                );
                assert!(!capabilities.intersects(Capabilities::SSL.union(Capabilities::COMPRESS)));
            }
        }
    }

    #[test]
    fn an_unknown_plugin_is_answered_only_without_a_password() {
        let request = b"\xfeed25519\0abcdefgh\0";
        assert_eq!(auth_switch_response(request, "").unwrap(), Some(Vec::new()));
        assert_eq!(auth_switch_response(request, "p").unwrap(), None);
        assert_eq!(
            auth_switch_response(b"\xfemysql_native_password\0aaaaaaaaaaaaaaaaaaaa\0", "p")
                .unwrap()
                .unwrap()
                .len(),
            20
        );
    }

    #[test]
    fn the_password_is_sent_in_clear_only_over_a_secure_link() {
        let greeting = greeting(SHA2_PLUGIN);
        let mut plain = AuthDialogue::new(&greeting, "secret", false);
        assert_eq!(
            plain.receive(b"\x01\x04").unwrap(),
            AuthAction::Send(vec![REQUEST_PUBLIC_KEY])
        );
        let mut secure = AuthDialogue::new(&greeting, "secret", true);
        let said = secure.receive(b"\x01\x04").unwrap();
        assert_eq!(said, AuthAction::Send(b"secret\0".to_vec()));
        assert_eq!(plain.receive(b"\x01\x03").unwrap(), AuthAction::Wait);
        assert_eq!(
            plain.receive(b"\0\0\0\x02\0\0\0").unwrap(),
            AuthAction::Authenticated
        );
    }

    #[test]
    fn invalid_keys_and_login_packets_are_refused() {
        let greeting = greeting(SHA2_PLUGIN);
        let mut dialogue = AuthDialogue::new(&greeting, "secret", false);
        for packet in [
            &b""[..],
            b"\x01",
            b"\x01no key",
            b"\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            b"\x05",
            b"\xfe",
            b"\xfesha256_password\0abc\0",
            b"\xff\x15\x04#28000Access denied",
        ] {
            assert!(dialogue.receive(packet).is_err(), "{packet:?}");
        }
    }
}
