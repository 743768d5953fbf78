//! Follows the reply to one command and finds its end, without holding rows or packets.
//!
//! A client may send its next command before the last is answered. A relay that has to match replies to commands must
//! therefore follow the protocol's state: the same first byte means different things at different points.
//! [`ReplyFollower`] follows the reply to a command, [`AuthFollower`] the dialogue after a login, and
//! [`LocalInfileFollower`] the packets a client sends when the server requests a local file.
//!
//! A packet that must be read (OK, ERR, EOF, counts) is read in place when it is complete in the given bytes; otherwise
//! up to [`MAX_HELD_BYTES`] of it are held. Column definitions and rows are skipped by their headers.

mod auth;
pub mod layout;
mod local_data;
mod scanner;

#[cfg(test)]
mod reply_generator;
#[cfg(test)]
mod tests;

pub use auth::{AuthEvent, AuthFollower, AuthStep};
pub use local_data::LocalInfileFollower;
pub use scanner::MAX_HELD_BYTES;
pub use scanner::{ReplyScanner, ScannedPiece, SentColumnDefinitions};

use crate::capability::Capabilities;
use crate::command::{Command, ReplyKind};
use crate::response::{ErrPacket, OkPacket};

/// The reply to one command, as it arrives.
///
/// Feed it the server's bytes in any pieces until it says [`ReplyEvent::Done`]:
///
/// ```
/// use headwater_wire::capability::Capabilities;
/// use headwater_wire::command::Command;
/// use headwater_wire::reply::{ReplyEvent, ReplyFollower, ReplyOutcome};
///
/// let mut reply = ReplyFollower::new(Command::Ping, Capabilities::PROTOCOL_41);
/// let step = reply.feed(b"\x07\0\0\x01\0\0\0\x02\0\0\0 behind it");
/// assert_eq!(step.consumed, 11);
/// assert!(matches!(step.event, Some(ReplyEvent::Done(ReplyOutcome::Ok(ok))) if ok.status == 2));
/// ```
#[derive(Debug, Clone)]
pub struct ReplyFollower {
    scanner: ReplyScanner,
}

/// The result of [`ReplyFollower::feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowerStep {
    /// Bytes of this reply at the front of the given ones.
    pub consumed: usize,
    /// The event after them. `None`: all bytes were consumed, except those after the end.
    pub event: Option<ReplyEvent>,
}

/// An event that the relay has to handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyEvent {
    /// The reply is complete; [`ReplyFollower::feed`] consumes nothing more.
    Done(ReplyOutcome),
    /// The server requests a local file: the client sends packets up to an empty one (see [`LocalInfileFollower`]), then the
    /// server continues.
    ClientData,
    /// The authentication dialogue of COM_CHANGE_USER waits for the client. As with [`AuthFollower`], rely on
    /// [`ReplyEvent::Done`] alone and relay both directions at once.
    ClientAuth,
    /// The reply cannot be followed: from here on bytes must be relayed unread. All of them are consumed.
    Unfollowable,
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// The last OK packet, or the EOF after the last rows; its `schema` and `truncated` are those of the last packet
    /// in the chain that has either.
    Ok(OkPacket),
    /// An ERR packet; it has no status flags, so the session's state is partly unknown.
    Err(ErrPacket),
    /// A statement was prepared; the reply has no session state.
    Prepared(PrepareOkPacket),
    /// The command has no reply.
    Silent,
    /// One packet of another kind.
    Text,
}

impl ReplyOutcome {
    /// The code of the error that ended the reply.
    #[must_use]
    pub fn error_code(&self) -> Option<u16> {
        match self {
            ReplyOutcome::Err(error) => Some(error.code),
            ReplyOutcome::Ok(_)
            | ReplyOutcome::Prepared(_)
            | ReplyOutcome::Silent
            | ReplyOutcome::Text => None,
        }
    }
}

/// The first packet of the reply to COM_STMT_PREPARE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareOkPacket {
    /// Statement id, for this connection.
    pub statement_id: u32,
    /// Columns of its result set, 0 for none.
    pub columns: u16,
    /// Number of its parameters.
    pub parameters: u16,
    /// Number of warnings.
    pub warnings: u16,
}

impl ReplyFollower {
    /// Waits for the reply to `command`, under the `capabilities` both sides agreed on.
    #[must_use]
    pub fn new(command: Command, capabilities: Capabilities) -> Self {
        Self {
            scanner: ReplyScanner::new(command, capabilities),
        }
    }

    /// False for the commands without a reply.
    #[must_use]
    pub fn expects_reply(command: Command) -> bool {
        command.reply_kind() != ReplyKind::Silent
    }

    /// Takes the server's next bytes; stops after the packet that causes an event.
    pub fn feed(&mut self, bytes: &[u8]) -> FollowerStep {
        let mut consumed = 0;
        loop {
            consumed += self
                .scanner
                .skip_rows(bytes.get(consumed..).unwrap_or_default());
            let scanned = self.scanner.next(bytes.get(consumed..).unwrap_or_default());
            consumed += scanned.consumed;
            match scanned.piece {
                ScannedPiece::Event(event) => {
                    return FollowerStep {
                        consumed,
                        event: Some(event),
                    };
                }
                // Nothing is consumed after the end, or without bytes.
                _ if scanned.consumed == 0 => {
                    return FollowerStep {
                        consumed,
                        event: None,
                    };
                }
                _ => {}
            }
        }
    }

    /// How many of the next bytes may be skipped: those of a row, except the last one of its packet.
    #[must_use]
    pub fn skippable_row_bytes(&self) -> usize {
        self.scanner.skippable_row_bytes()
    }

    /// Counts `bytes` of the [skippable](Self::skippable_row_bytes) bytes as passed; they were relayed elsewhere.
    pub fn skip_row_bytes(&mut self, bytes: usize) {
        self.scanner.skip_row_bytes(bytes);
    }

    /// After an event: sequence number of the packet that caused it.
    #[must_use]
    pub fn seq(&self) -> u8 {
        self.scanner.seq()
    }

    /// Takes the column definitions received so far, for a session whose client caches them.
    #[must_use]
    pub fn take_columns(&mut self) -> SentColumnDefinitions {
        self.scanner.take_columns()
    }

    /// Status flags of the EOF after the columns of the last result set; 0 without one.
    #[must_use]
    pub fn status_after_columns(&self) -> u16 {
        self.scanner.status_after_columns()
    }

    /// Rows so far, of all result sets.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.scanner.rows()
    }

    /// Responses so far, including the current one. A procedure, or a command with several statements, has several.
    #[must_use]
    pub fn responses(&self) -> u32 {
        self.scanner.responses()
    }

    /// Result sets so far, including the current one.
    #[must_use]
    pub fn results(&self) -> u32 {
        self.scanner.results()
    }

    /// The last database that the reply named, even if it ended with an ERR; an OK contains it too.
    #[must_use]
    pub fn schema(&self) -> Option<&[u8]> {
        self.scanner.schema()
    }
}
