//! Whom a server takes a client for that comes over a socket of the machine.
//!
//! The server asks the operating system who is at the other end, and that is Headwater. Accounts that are identified by it
//! (`unix_socket` on MariaDB, `auth_socket` on MySQL: no password) would be open to every client of Headwater.

use std::sync::Arc;

use super::tls_policy::error_bytes;
use headwater_wire::capability::Capabilities;
use headwater_wire::handshake::ChangeUserRequest;
use headwater_wire::response::ErrPacket;

/// ER_ACCESS_DENIED_NO_PASSWORD_ERROR: what the server says to others than the operating system's user.
const DENIED: u16 = 1698;

/// MySQL cuts names behind so many characters, MariaDB behind more.
const NAME_CHARACTERS: usize = 32;

/// The operating system's user that Headwater runs as, whose accounts are not for a session's client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessUser(Arc<str>);

impl ProcessUser {
    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> ProcessUser {
        ProcessUser(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The refusal of a login by this name, or by one that a server may take for it: servers leave out quotes around a name and what is
    /// too long of it, and read it in a character set of the client's choice, in some of which bytes from 0x80 on are of ASCII.
    pub(super) fn refuses(&self, user: &[u8], seq: u8) -> Option<Vec<u8>> {
        let own = self.0.as_bytes();
        let cut = own.len() >= NAME_CHARACTERS && user.starts_with(own);
        let foreign = !user.is_ascii() || user.contains(&b'\'');
        (user == own || cut || foreign).then(|| self.refusal(seq))
    }

    /// The refusal of a COM_CHANGE_USER to this name, or to one that cannot be read.
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

    /// What a client is told in place of the server's word.
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
    fn names_that_a_server_may_take_for_the_own_one_are_refused() {
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
