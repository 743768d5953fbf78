//! Follows the server's side of a login: packets up to the final OK or ERR.

use super::scanner::{ReplyScanner, ScannedPiece};
use super::{ReplyEvent, ReplyOutcome};
use crate::capability::Capabilities;
use crate::command::Command;

/// The server's packets behind the client's login.
///
/// Who speaks next follows from the plugin, which may be one that nobody here knows: relay both directions at once,
/// and rely on [`AuthEvent::Done`] alone. `01 03` of caching_sha2_password is the one packet known to be followed by
/// another of the server.
#[derive(Debug, Clone)]
pub struct AuthFollower {
    scanner: ReplyScanner,
}

/// What [`AuthFollower::feed`] made of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthStep {
    /// Bytes of the dialogue at the front of what was given.
    pub consumed: usize,
    /// What happened behind the last of them. With `None`, everything was consumed.
    pub event: Option<AuthEvent>,
}

/// What a packet of the server means for the dialogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthEvent {
    /// The login succeeded ([`ReplyOutcome::Ok`]) or failed ([`ReplyOutcome::Err`]); nothing more is consumed.
    Done(ReplyOutcome),
    /// The client answers.
    AwaitClient,
    /// The server goes on.
    AwaitServer,
    /// No packet of the protocol: everything from here must be pumped unread.
    Unfollowable,
}

impl AuthFollower {
    /// Waits for the server's first packet behind the login.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            scanner: ReplyScanner::new(Command::ChangeUser, capabilities),
        }
    }

    /// Takes the server's next bytes; stops behind each packet.
    pub fn feed(&mut self, bytes: &[u8]) -> AuthStep {
        let mut consumed = 0;
        loop {
            let walked = self.scanner.next(bytes.get(consumed..).unwrap_or_default());
            consumed += walked.consumed;
            let event = match walked.piece {
                ScannedPiece::Event(ReplyEvent::Done(outcome)) => Some(AuthEvent::Done(outcome)),
                ScannedPiece::Event(ReplyEvent::ClientAuth) => Some(AuthEvent::AwaitClient),
                ScannedPiece::Event(_) => Some(AuthEvent::Unfollowable),
                ScannedPiece::AwaitServer => Some(AuthEvent::AwaitServer),
                _ => None,
            };
            if event.is_some() || walked.consumed == 0 {
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
    fn caching_sha2_password_from_the_cache_goes_on_by_itself() {
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
    fn behind_the_end_nothing_is_consumed() {
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
