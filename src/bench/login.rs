//! What the measuring client says when it logs in.

use mysql_common::scramble::{scramble_native, scramble_sha256};

use crate::wire::capability::Capabilities;
use crate::wire::cursor::{Cursor, Malformed, put_lenenc_bytes};
use crate::wire::handshake::Greeting;

/// Plugin of MariaDB, and of MySQL before 8.
const NATIVE: &[u8] = b"mysql_native_password";
/// Plugin of MySQL since 8.
const SHA2: &[u8] = b"caching_sha2_password";
/// utf8mb4_general_ci, which both servers have under this number.
const CHARSET: u8 = 45;
const MAX_PACKET: u32 = 16 << 20;

/// What the client uses where the server has it. Nothing that makes it slower, and nothing that stock clients lack.
const WANTED: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::CONNECT_WITH_DB)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .union(Capabilities::DEPRECATE_EOF);

/// Who logs in, and where.
#[derive(Clone)]
pub struct Account {
    /// User name.
    pub user: String,
    /// Password; may be empty.
    pub password: String,
    /// Database to start in.
    pub database: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({:?} in {:?})", self.user, self.database)
    }
}

/// The payload of the answer to a greeting (HandshakeResponse41), and what both sides will use.
#[must_use]
pub fn response(greeting: &Greeting, account: &Account) -> (Vec<u8>, Capabilities) {
    let capabilities =
        WANTED.intersection(greeting.capabilities.union(Capabilities::LONG_PASSWORD));
    let plugin = match greeting.auth_plugin.as_slice() {
        known @ (NATIVE | SHA2) => known,
        // The server asks again with the account's own.
        _ => NATIVE,
    };
    let proof = prove(plugin, &greeting.scramble, &account.password).unwrap_or_default();
    let [a, b, c, d, ..] = capabilities.0.to_le_bytes();
    let mut payload = vec![a, b, c, d];
    payload.extend(MAX_PACKET.to_le_bytes());
    payload.push(CHARSET);
    payload.extend([0; 23]);
    put_nul(account.user.as_bytes(), &mut payload);
    put_lenenc_bytes(&proof, &mut payload);
    put_nul(account.database.as_bytes(), &mut payload);
    put_nul(plugin, &mut payload);
    (payload, capabilities)
}

/// The answer to AuthSwitchRequest; `None` for a plugin that is not known here.
///
/// # Errors
/// When the request is malformed.
pub fn switched(request: &[u8], password: &str) -> Result<Option<Vec<u8>>, Malformed> {
    let mut cursor = Cursor::new(request);
    cursor.u8()?;
    let plugin = cursor.nul_bytes()?;
    let scramble = cursor.rest();
    let scramble = scramble.strip_suffix(&[0]).unwrap_or(scramble);
    Ok(prove(plugin, scramble, password))
}

fn prove(plugin: &[u8], scramble: &[u8], password: &str) -> Option<Vec<u8>> {
    match plugin {
        _ if password.is_empty() => Some(Vec::new()),
        NATIVE => scramble_native(scramble, password.as_bytes()).map(|proof| proof.to_vec()),
        SHA2 => scramble_sha256(scramble, password.as_bytes()).map(|proof| proof.to_vec()),
        _ => None,
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
    use crate::wire::handshake::{Login, LoginResponse};

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
        let account = Account {
            user: "u".into(),
            password: "p".into(),
            database: "tl".into(),
        };
        for (plugin, used) in [(SHA2, SHA2), (NATIVE, NATIVE), (b"ed25519", NATIVE)] {
            let (payload, capabilities) = response(&greeting(plugin), &account);
            let Login::Response(LoginResponse {
                user,
                database,
                auth_plugin,
                ..
            }) = Login::parse(&payload).unwrap()
            else {
                unreachable!("no login")
            };
            assert_eq!(
                (user, database, auth_plugin),
                (&b"u"[..], Some(&b"tl"[..]), Some(used))
            );
            assert!(!capabilities.intersects(Capabilities::SSL.union(Capabilities::COMPRESS)));
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
}
