//! Follows the reply to one command and says where it ends, without holding rows or packets.
//!
//! A client may send its next command before the last is answered, so a relay that wants to know which bytes answer
//! what has to follow the protocol's own state: the same first byte means different things in different places.
//! [`ReplyFollower`] does that for the answer of a command, [`AuthFollower`] for the dialogue behind a login, and [`LocalInfileFollower`]
//! for the packets a client sends when the server asks for a local file.
//!
//! A packet that must be read (OK, ERR, EOF, counts) is read in place when it lies whole in the bytes given, else up
//! to [`MAX_HELD_BYTES`] of it are kept. Column definitions and rows are walked by their headers.

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

/// What [`ReplyFollower::feed`] made of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowerStep {
    /// Bytes of this reply at the front of what was given.
    pub consumed: usize,
    /// What happened behind the last of them. With `None`, everything was consumed, but for bytes behind the end.
    pub event: Option<ReplyEvent>,
}

/// Something the relay has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyEvent {
    /// The reply is complete; [`ReplyFollower::feed`] consumes nothing more.
    Done(ReplyOutcome),
    /// The server asks for a local file: the client sends packets up to an empty one (see [`LocalInfileFollower`]), then the
    /// server goes on.
    ClientData,
    /// The authentication dialogue of COM_CHANGE_USER waits for the client. As in [`AuthFollower`], better rely on
    /// [`ReplyEvent::Done`] alone and relay both directions at once.
    ClientAuth,
    /// The reply cannot be followed: from here on bytes must be pumped unread. All that follows is consumed.
    Unfollowable,
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// The last OK packet, or the EOF behind the last rows; its `schema` and `truncated` are those of the last packet
    /// in the chain that has either.
    Ok(OkPacket),
    /// An ERR packet; it carries no status flags, so the session's state is unknown in part.
    Err(ErrPacket),
    /// A statement was prepared; nothing was said about the session's state.
    Prepared(PrepareOkPacket),
    /// The command has no reply.
    Silent,
    /// One packet whose content is nothing of the above.
    Text,
}

impl ReplyOutcome {
    /// The error that it ended with.
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

/// The head of the answer to COM_STMT_PREPARE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareOkPacket {
    /// Statement id, for this connection.
    pub statement_id: u32,
    /// Columns of its result set, 0 for none.
    pub columns: u16,
    /// Parameters it takes.
    pub parameters: u16,
    /// Warnings of its text.
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

    /// False for the commands that are not answered at all.
    #[must_use]
    pub fn expects_reply(command: Command) -> bool {
        command.reply_kind() != ReplyKind::Silent
    }

    /// Takes the server's next bytes; stops behind the packet that caused an event.
    pub fn feed(&mut self, bytes: &[u8]) -> FollowerStep {
        let mut consumed = 0;
        loop {
            consumed += self
                .scanner
                .skip_rows(bytes.get(consumed..).unwrap_or_default());
            let walked = self.scanner.next(bytes.get(consumed..).unwrap_or_default());
            consumed += walked.consumed;
            match walked.piece {
                ScannedPiece::Event(event) => {
                    return FollowerStep {
                        consumed,
                        event: Some(event),
                    };
                }
                // Nothing is consumed behind the end, and with no bytes.
                _ if walked.consumed == 0 => {
                    return FollowerStep {
                        consumed,
                        event: None,
                    };
                }
                _ => {}
            }
        }
    }

    /// How many of the next bytes may go by unseen: those of a row, but for the last one of its packet.
    #[must_use]
    pub fn skippable_row_bytes(&self) -> usize {
        self.scanner.skippable_row_bytes()
    }

    /// So many of the bytes [ahead](Self::skippable_row_bytes) were relayed elsewhere.
    pub fn skip_row_bytes(&mut self, bytes: usize) {
        self.scanner.skip_row_bytes(bytes);
    }

    /// Behind an event: sequence number of the packet that caused it.
    #[must_use]
    pub fn seq(&self) -> u8 {
        self.scanner.seq()
    }

    /// What was told of the columns of a prepared statement, where the client keeps that: taken out.
    #[must_use]
    pub fn take_columns(&mut self) -> SentColumnDefinitions {
        self.scanner.take_columns()
    }

    /// Status flags behind the columns of the last result set, where an EOF stands there; else none.
    #[must_use]
    pub fn status_after_columns(&self) -> u16 {
        self.scanner.status_after_columns()
    }

    /// Rows so far, of all result sets.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.scanner.rows()
    }

    /// Responses so far, begun ones included: several of a command with several statements, or of a procedure.
    #[must_use]
    pub fn responses(&self) -> u32 {
        self.scanner.responses()
    }

    /// Result sets so far, begun ones included.
    #[must_use]
    pub fn results(&self) -> u32 {
        self.scanner.results()
    }

    /// The last database the reply named, also where an ERR ended it; an OK brings it along.
    #[must_use]
    pub fn schema(&self) -> Option<&[u8]> {
        self.scanner.schema()
    }
}
