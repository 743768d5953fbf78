//! What a client of the project's own says when it logs in.

use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use mysql_common::scramble::{scramble_native, scramble_sha256};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

use super::error::AccountError;
use crate::wire::capability::Capabilities;
use crate::wire::cursor::{Cursor, Malformed, put_lenenc_bytes};
use crate::wire::handshake::Greeting;
use crate::wire::response::{EOF, ERR, ErrPacket, OK};

/// Plugin of MariaDB, and of MySQL before 8.
const NATIVE: &[u8] = b"mysql_native_password";
/// Plugin of MySQL since 8.
const SHA2: &[u8] = b"caching_sha2_password";
/// utf8mb4_general_ci, which both servers have under this number.
const CHARSET: u8 = 45;
const MAX_PACKET: u32 = 16 << 20;
/// First byte of what a plugin says of its own.
const MORE: u8 = 0x01;
/// caching_sha2_password: the server knows the account and the password was right.
const FAST_AUTH_OK: u8 = 3;
/// The server wants the password itself.
const FULL_AUTH: u8 = 4;
/// A client without TLS wants the key first that it is enciphered with.
const WANT_KEY: u8 = 2;

/// What the client uses where the server has it. Nothing that makes it slower, and nothing that stock clients lack.
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
pub struct Login<'a> {
    /// User name.
    pub user: &'a str,
    /// Password; may be empty.
    pub password: &'a str,
    /// Database to start in.
    pub database: Option<&'a str>,
}

impl std::fmt::Debug for Login<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({:?} in {:?})", self.user, self.database)
    }
}

/// The payload of the answer to a greeting (HandshakeResponse41), and what both sides will use.
#[must_use]
pub fn response(greeting: &Greeting, login: &Login<'_>) -> (Vec<u8>, Capabilities) {
    let wanted = match login.database {
        Some(_) => WANTED.union(Capabilities::CONNECT_WITH_DB),
        None => WANTED,
    };
    let capabilities =
        wanted.intersection(greeting.capabilities.union(Capabilities::LONG_PASSWORD));
    let plugin = match greeting.auth_plugin.as_slice() {
        known @ (NATIVE | SHA2) => known,
        // The server asks again with the account's own.
        _ => NATIVE,
    };
    let proof = prove(plugin, &greeting.scramble, login.password).unwrap_or_default();
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

/// The answer to AuthSwitchRequest; `None` for a plugin that is not known here.
///
/// # Errors
/// When the request is malformed.
pub fn switched(request: &[u8], password: &str) -> Result<Option<Vec<u8>>, Malformed> {
    let (plugin, scramble) = asked(request)?;
    Ok(prove(plugin, scramble, password))
}

/// The plugin and the scramble of an AuthSwitchRequest.
fn asked(request: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut cursor = Cursor::new(request);
    cursor.u8()?;
    let plugin = cursor.nul_bytes()?;
    let scramble = cursor.rest();
    Ok((plugin, scramble.strip_suffix(&[0]).unwrap_or(scramble)))
}

fn prove(plugin: &[u8], scramble: &[u8], password: &str) -> Option<Vec<u8>> {
    match plugin {
        _ if password.is_empty() => Some(Vec::new()),
        NATIVE => scramble_native(scramble, password.as_bytes()).map(|proof| proof.to_vec()),
        SHA2 => scramble_sha256(scramble, password.as_bytes()).map(|proof| proof.to_vec()),
        _ => None,
    }
}

/// The dialogue behind a login.
#[derive(Debug)]
pub(super) struct Dialogue<'a> {
    password: &'a str,
    /// Nobody between the two sides can listen.
    secure: bool,
    scramble: Vec<u8>,
}

/// What the client does about a packet of the server's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is in.
    In,
    /// It waits for the next one.
    Wait,
    /// It answers.
    Say(Vec<u8>),
}

impl<'a> Dialogue<'a> {
    pub(super) fn new(greeting: &Greeting, password: &'a str, secure: bool) -> Dialogue<'a> {
        Dialogue {
            password,
            secure,
            scramble: greeting.scramble.clone(),
        }
    }

    /// Takes the server's next packet.
    ///
    /// # Errors
    /// When the server refuses, asks by a plugin that is not known here, or says what is none of the protocol.
    pub(super) fn hear(&mut self, packet: &[u8]) -> Result<Turn, AccountError> {
        match packet {
            [OK, ..] => Ok(Turn::In),
            [ERR, ..] => Err(AccountError::Server(ErrPacket::parse(packet)?)),
            [EOF, ..] => {
                let (plugin, scramble) = asked(packet)?;
                self.scramble = scramble.to_vec();
                let proof = prove(plugin, scramble, self.password);
                // Whose it is is known to who logs in.
                let unknown = || AccountError::Plugin {
                    user: String::new(),
                    plugin: String::from_utf8_lossy(plugin).into_owned(),
                };
                proof.map(Turn::Say).ok_or_else(unknown)
            }
            [MORE, FAST_AUTH_OK] => Ok(Turn::Wait),
            [MORE, FULL_AUTH] if self.secure => Ok(Turn::Say(self.in_clear())),
            [MORE, FULL_AUTH] => Ok(Turn::Say(vec![WANT_KEY])),
            [MORE, key @ ..] => self.enciphered(key).map(Turn::Say),
            _ => Err(AccountError::Unexpected),
        }
    }

    fn in_clear(&self) -> Vec<u8> {
        let mut password = Vec::new();
        put_nul(self.password.as_bytes(), &mut password);
        password
    }

    /// The password as only the server can read it (MySQL manual, "Caching SHA-2 Pluggable Authentication": RSA with OAEP).
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
    use crate::wire::handshake::{Login as Parsed, LoginResponse};

    fn greeting(plugin: &[u8]) -> Greeting {
        Greeting {
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
        for (plugin, used) in [(SHA2, SHA2), (NATIVE, NATIVE), (b"ed25519", NATIVE)] {
            for database in [Some("tl"), None] {
                let login = Login {
                    user: "u",
                    password: "p",
                    database,
                };
                let (payload, capabilities) = response(&greeting(plugin), &login);
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
        assert_eq!(switched(request, "").unwrap(), Some(Vec::new()));
        assert_eq!(switched(request, "p").unwrap(), None);
        assert_eq!(
            switched(b"\xfemysql_native_password\0aaaaaaaaaaaaaaaaaaaa\0", "p")
                .unwrap()
                .unwrap()
                .len(),
            20
        );
    }

    #[test]
    fn the_password_itself_is_said_only_where_nobody_can_listen() {
        let greeting = greeting(SHA2);
        let mut plain = Dialogue::new(&greeting, "secret", false);
        assert_eq!(plain.hear(b"\x01\x04").unwrap(), Turn::Say(vec![WANT_KEY]));
        let mut secure = Dialogue::new(&greeting, "secret", true);
        let said = secure.hear(b"\x01\x04").unwrap();
        assert_eq!(said, Turn::Say(b"secret\0".to_vec()));
        assert_eq!(plain.hear(b"\x01\x03").unwrap(), Turn::Wait);
        assert_eq!(plain.hear(b"\0\0\0\x02\0\0\0").unwrap(), Turn::In);
    }

    #[test]
    fn what_is_no_key_and_no_packet_of_a_login_is_refused() {
        let greeting = greeting(SHA2);
        let mut dialogue = Dialogue::new(&greeting, "secret", false);
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
            assert!(dialogue.hear(packet).is_err(), "{packet:?}");
        }
    }
}
