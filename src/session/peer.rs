//! Whom a server takes a client for that comes over a socket of the machine.
//!
//! The server asks the operating system who is at the other end, and that is Headwater. Accounts that are identified by it
//! (`unix_socket` on MariaDB, `auth_socket` on MySQL: no password) would be open to every client of Headwater.

use std::sync::Arc;

use super::legs::told;
use crate::wire::capability::Capabilities;
use crate::wire::handshake::ChangeUser;
use crate::wire::response::ErrPacket;

/// ER_ACCESS_DENIED_NO_PASSWORD_ERROR: what the server says to others than the operating system's user.
const DENIED: u16 = 1698;

/// The operating system's user that Headwater runs as, whose accounts are not for a session's client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnUser(Arc<str>);

impl OwnUser {
    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> OwnUser {
        OwnUser(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The refusal of a login by this name.
    pub(super) fn refuses(&self, user: &[u8], seq: u8) -> Option<Vec<u8>> {
        (user == self.0.as_bytes()).then(|| self.refusal(seq))
    }

    /// The refusal of a COM_CHANGE_USER to this name, or to one that cannot be read.
    pub(super) fn refuses_change(
        &self,
        payload: &[u8],
        capabilities: Capabilities,
    ) -> Option<Vec<u8>> {
        match ChangeUser::parse(payload, capabilities) {
            Ok(change) => self.refuses(change.user, 1),
            Err(_) => Some(self.refusal(1)),
        }
    }

    /// What a client is told in place of the server's word.
    pub(super) fn refusal(&self, seq: u8) -> Vec<u8> {
        let message = format!(
            "Access denied for user '{0}': Headwater's upstream is a socket, where the server takes its clients for the operating \
             system's user {0} that Headwater runs as; have upstream be the server's HOST:PORT, or log in as that user of the \
             machine over Headwater's own socket (--socket)",
            self.0
        );
        let error = ErrPacket {
            code: DENIED,
            sqlstate: Some(*b"28000"),
            message: message.into_bytes(),
        };
        told(seq, &error)
    }
}
