//! The account that a server assigns to a client on a local socket.
//!
//! The server asks the operating system who is at the other end, and that is Headwater. Accounts that are identified that way
//! (`unix_socket` on MariaDB, `auth_socket` on MySQL: no password) would be open to every client of Headwater.

use std::sync::Arc;

use super::tls_policy::error_bytes;
use headwater_wire::capability::Capabilities;
use headwater_wire::handshake::ChangeUserRequest;
use headwater_wire::response::ErrPacket;

/// ER_ACCESS_DENIED_NO_PASSWORD_ERROR: the server's refusal of other operating system users.
const DENIED: u16 = 1698;

/// MySQL truncates names to this many characters, MariaDB to more.
const NAME_CHARACTERS: usize = 32;

/// The operating system's user that runs Headwater, whose accounts are closed to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessUser(Arc<str>);

impl ProcessUser {
    /// From the user's name.
    #[must_use]
    pub fn named(name: &str) -> ProcessUser {
        ProcessUser(name.into())
    }

    /// The user's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Refuses a login by this name, or by one that a server may take for it: servers remove quotes around a name, truncate it, and read
    /// it in the client's character set, in some of which bytes from 0x80 on are ASCII letters.
    pub(super) fn refuses(&self, user: &[u8], seq: u8) -> Option<Vec<u8>> {
        let process_name = self.0.as_bytes();
        let may_be_truncated =
            process_name.len() >= NAME_CHARACTERS && user.starts_with(process_name);
        let foreign = !user.is_ascii() || user.contains(&b'\'');
        (user == process_name || may_be_truncated || foreign).then(|| self.refusal(seq))
    }

    /// Refuses a COM_CHANGE_USER to this name, or to one that cannot be read.
    pub(super) fn refuses_change(
        &self,
        payload: &[u8],
        capabilities: Capabilities,
    ) -> Option<Vec<u8>> {
        match ChangeUserRequest::parse(payload, capabilities) {
            Ok(change) => self.refuses(change.user, 1),
            Err(_) => Some(self.refusal(1)),
        }
    }

    /// The error for the client, in place of the server's reply.
    pub(super) fn refusal(&self, seq: u8) -> Vec<u8> {
        let message = format!(
            "Access denied for a user that may be '{0}': Headwater's upstream is a socket, where the server takes its clients for the operating \
             system's user {0} that Headwater runs as; have upstream be the server's HOST:PORT, or log in as that user of the \
             machine over Headwater's own socket (--socket)",
            self.0
        );
        let error = ErrPacket {
            code: DENIED,
            sqlstate: Some(*b"28000"),
            message: message.into_bytes(),
        };
        error_bytes(seq, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_server_may_take_for_the_process_users_are_refused() {
        let own = ProcessUser::named("www-data");
        for refused in [
            &b"www-data"[..],
            b"'www-data'",
            b"'www-data",
            b"www\xacdata",
            b"\xffwww-data\xff",
        ] {
            assert!(own.refuses(refused, 2).is_some(), "{refused:?}");
        }
        for passed in [&b"www-dat"[..], b"www-data2", b"WWW-DATA", b"", b"app"] {
            assert!(own.refuses(passed, 2).is_none(), "{passed:?}");
        }
        let long = "a".repeat(NAME_CHARACTERS);
        let own = ProcessUser::named(&long);
        assert!(own.refuses(format!("{long}b").as_bytes(), 2).is_some());
        let whole = own.refuses_change(b"\x11app\0\0\0", Capabilities::SECURE_CONNECTION);
        assert_eq!(whole, None);
        let cut = own.refuses_change(b"\x11app", Capabilities::SECURE_CONNECTION);
        assert!(cut.is_some());
    }
}
