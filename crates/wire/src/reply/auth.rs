//! Follows the server's side of a login: packets up to the final OK or ERR.

use super::scanner::{ReplyScanner, ScannedPiece};
use super::{ReplyEvent, ReplyOutcome};
use crate::capability::Capabilities;
use crate::command::Command;

/// Follows the server's packets after the client's login.
///
/// Which side sends next depends on the plugin, which may be unknown here: relay both directions at once, and rely on
/// [`AuthEvent::Done`] alone. `01 03` of caching_sha2_password is the only packet known to be followed by another one
/// of the server.
#[derive(Debug, Clone)]
pub struct AuthFollower {
    scanner: ReplyScanner,
}

/// The result of [`AuthFollower::feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthStep {
    /// Bytes of the dialogue at the front of the given ones.
    pub consumed: usize,
    /// The event after them. `None`: all bytes were consumed.
    pub event: Option<AuthEvent>,
}

/// What a packet of the server means for the dialogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthEvent {
    /// The login succeeded ([`ReplyOutcome::Ok`]) or failed ([`ReplyOutcome::Err`]); nothing more is consumed.
    Done(ReplyOutcome),
    /// The client sends next.
    AwaitClient,
    /// The server sends another packet.
    AwaitServer,
    /// The packet is not of the protocol: from here on bytes must be relayed unread.
    Unfollowable,
}

impl AuthFollower {
    /// Waits for the server's first packet after the login.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            scanner: ReplyScanner::new(Command::ChangeUser, capabilities),
        }
    }

    /// Takes the server's next bytes; stops after each packet.
    pub fn feed(&mut self, bytes: &[u8]) -> AuthStep {
        let mut consumed = 0;
        loop {
            let scanned = self.scanner.next(bytes.get(consumed..).unwrap_or_default());
            consumed += scanned.consumed;
            let event = match scanned.piece {
                ScannedPiece::Event(ReplyEvent::Done(outcome)) => Some(AuthEvent::Done(outcome)),
                ScannedPiece::Event(ReplyEvent::ClientAuth) => Some(AuthEvent::AwaitClient),
                ScannedPiece::Event(_) => Some(AuthEvent::Unfollowable),
                ScannedPiece::AwaitServer => Some(AuthEvent::AwaitServer),
                _ => None,
            };
            if event.is_some() || scanned.consumed == 0 {
                return AuthStep { consumed, event };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a dialogue, fed byte by byte.
    fn events(bytes: &[u8]) -> Vec<AuthEvent> {
        let mut auth = AuthFollower::new(Capabilities::PROTOCOL_41);
        bytes
            .chunks(1)
            .filter_map(|byte| auth.feed(byte).event)
            .collect()
    }

    fn ok() -> AuthEvent {
        AuthEvent::Done(ReplyOutcome::Ok(crate::response::OkPacket {
            status: 2,
            ..Default::default()
        }))
    }

    #[test]
    fn caching_sha2_password_from_the_cache_continues_by_itself() {
        let bytes = b"\x02\0\0\x02\x01\x03\x07\0\0\x03\0\0\0\x02\0\0\0";
        assert_eq!(events(bytes), [AuthEvent::AwaitServer, ok()]);
    }

    #[test]
    fn a_switch_and_more_data_ask_the_client() {
        let bytes = b"\x05\0\0\x02\xfeabc\0\x02\0\0\x04\x01\x04\x07\0\0\x06\0\0\0\x02\0\0\0";
        assert_eq!(
            events(bytes),
            [AuthEvent::AwaitClient, AuthEvent::AwaitClient, ok()]
        );
    }

    #[test]
    fn after_the_end_nothing_is_consumed() {
        let mut auth = AuthFollower::new(Capabilities::PROTOCOL_41);
        let bytes = b"\x07\0\0\x02\0\0\0\x02\0\0\0more";
        assert_eq!(
            auth.feed(bytes),
            AuthStep {
                consumed: 11,
                event: Some(ok())
            }
        );
        assert_eq!(
            auth.feed(b"more"),
            AuthStep {
                consumed: 0,
                event: None
            }
        );
    }
}
