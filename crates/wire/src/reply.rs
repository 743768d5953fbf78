//! Follows the reply to one command and says where it ends, without holding rows or packets.
//!
//! A client may send its next command before the last is answered, so a relay that wants to know which bytes answer
//! what has to follow the protocol's own state: the same first byte means different things in different places.
//! [`Reply`] does that for the answer of a command, [`AuthLoop`] for the dialogue behind a login, and [`LocalData`]
//! for the packets a client sends when the server asks for a local file.
//!
//! A packet that must be read (OK, ERR, EOF, counts) is read in place when it lies whole in the bytes given, else up
//! to [`HELD_BYTES`] of it are kept. Column definitions and rows are walked by their headers.

mod auth;
pub mod layout;
mod local_data;
mod walk;

#[cfg(test)]
mod generate;
#[cfg(test)]
mod tests;

pub use auth::{AuthEvent, AuthLoop, AuthStep};
pub use local_data::LocalData;
pub use walk::HELD_BYTES;
pub use walk::{ToldColumns, Walk, What};

use crate::capability::Capabilities;
use crate::command::{Command, ReplyKind};
use crate::response::{ErrPacket, OkPacket};

/// The reply to one command, as it arrives.
///
/// Feed it the server's bytes in any pieces until it says [`Event::Done`]:
///
/// ```
/// use headwater_wire::capability::Capabilities;
/// use headwater_wire::command::Command;
/// use headwater_wire::reply::{Event, Outcome, Reply};
///
/// let mut reply = Reply::new(Command::Ping, Capabilities::PROTOCOL_41);
/// let step = reply.feed(b"\x07\0\0\x01\0\0\0\x02\0\0\0 behind it");
/// assert_eq!(step.consumed, 11);
/// assert!(matches!(step.event, Some(Event::Done(Outcome::Ok(ok))) if ok.status == 2));
/// ```
#[derive(Debug, Clone)]
pub struct Reply {
    walk: Walk,
}

/// What [`Reply::feed`] made of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Bytes of this reply at the front of what was given.
    pub consumed: usize,
    /// What happened behind the last of them. With `None`, everything was consumed, but for bytes behind the end.
    pub event: Option<Event>,
}

/// Something the relay has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The reply is complete; [`Reply::feed`] consumes nothing more.
    Done(Outcome),
    /// The server asks for a local file: the client sends packets up to an empty one (see [`LocalData`]), then the
    /// server goes on.
    ClientData,
    /// The authentication dialogue of COM_CHANGE_USER waits for the client. As in [`AuthLoop`], better rely on
    /// [`Event::Done`] alone and relay both directions at once.
    ClientAuth,
    /// The reply cannot be followed: from here on bytes must be pumped unread. All that follows is consumed.
    Unfollowable,
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The last OK packet, or the EOF behind the last rows; its `schema` and `truncated` are those of the last packet
    /// in the chain that has either.
    Ok(OkPacket),
    /// An ERR packet; it carries no status flags, so the session's state is unknown in part.
    Err(ErrPacket),
    /// A statement was prepared; nothing was said about the session's state.
    Prepared(Prepared),
    /// The command has no reply.
    Silent,
    /// One packet whose content is nothing of the above.
    Text,
}

impl Outcome {
    /// The error that it ended with.
    #[must_use]
    pub fn error_code(&self) -> Option<u16> {
        match self {
            Outcome::Err(error) => Some(error.code),
            Outcome::Ok(_) | Outcome::Prepared(_) | Outcome::Silent | Outcome::Text => None,
        }
    }
}

/// The head of the answer to COM_STMT_PREPARE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// Statement id, for this connection.
    pub statement: u32,
    /// Columns of its result set, 0 for none.
    pub columns: u16,
    /// Parameters it takes.
    pub parameters: u16,
    /// Warnings of its text.
    pub warnings: u16,
}

impl Reply {
    /// Waits for the reply to `command`, under the `capabilities` both sides agreed on.
    #[must_use]
    pub fn new(command: Command, capabilities: Capabilities) -> Self {
        Self {
            walk: Walk::new(command, capabilities),
        }
    }

    /// False for the commands that are not answered at all.
    #[must_use]
    pub fn expects_reply(command: Command) -> bool {
        command.reply_kind() != ReplyKind::Silent
    }

    /// Takes the server's next bytes; stops behind the packet that caused an event.
    pub fn feed(&mut self, bytes: &[u8]) -> Step {
        let mut consumed = 0;
        loop {
            consumed += self
                .walk
                .skip_rows(bytes.get(consumed..).unwrap_or_default());
            let walked = self.walk.next(bytes.get(consumed..).unwrap_or_default());
            consumed += walked.consumed;
            match walked.what {
                What::Event(event) => {
                    return Step {
                        consumed,
                        event: Some(event),
                    };
                }
                // Nothing is consumed behind the end, and with no bytes.
                _ if walked.consumed == 0 => {
                    return Step {
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
    pub fn row_ahead(&self) -> usize {
        self.walk.row_ahead()
    }

    /// So many of the bytes [ahead](Self::row_ahead) were relayed elsewhere.
    pub fn row_passed(&mut self, bytes: usize) {
        self.walk.row_passed(bytes);
    }

    /// Behind an event: sequence number of the packet that caused it.
    #[must_use]
    pub fn seq(&self) -> u8 {
        self.walk.seq()
    }

    /// What was told of the columns of a prepared statement, where the client keeps that: taken out.
    #[must_use]
    pub fn take_columns(&mut self) -> ToldColumns {
        self.walk.take_columns()
    }

    /// Status flags behind the columns of the last result set, where an EOF stands there; else none.
    #[must_use]
    pub fn behind_columns(&self) -> u16 {
        self.walk.behind_columns()
    }

    /// Rows so far, of all result sets.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.walk.rows()
    }

    /// Responses so far, begun ones included: several of a command with several statements, or of a procedure.
    #[must_use]
    pub fn responses(&self) -> u32 {
        self.walk.responses()
    }

    /// Result sets so far, begun ones included.
    #[must_use]
    pub fn results(&self) -> u32 {
        self.walk.results()
    }

    /// The last database the reply named, also where an ERR ended it; an OK brings it along.
    #[must_use]
    pub fn schema(&self) -> Option<&[u8]> {
        self.walk.schema()
    }
}
