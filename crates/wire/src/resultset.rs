//! Collects the answer to one of our own text queries: OK, ERR or the rows, up to named limits.

pub mod column;
mod rows;
#[cfg(test)]
mod tests;
mod told;

pub use rows::{Row, Rows};
#[doc(hidden)]
pub use told::{told, told_with};

use thiserror::Error;

use crate::capability::Capabilities;
use crate::command::Command;
use crate::reply::{Event, Outcome, Walk, What};
use crate::response::{ErrPacket, OkPacket};
use rows::Builder;

/// How much an answer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Rows.
    pub max_rows: usize,
    /// Bytes of column definitions and rows as they are on the wire; 4 GiB whenever more is given.
    pub max_bytes: usize,
}

/// MAX_FIELDS of both servers: no statement has more columns.
const MAX_COLUMNS: usize = 4_096;

/// Takes the reply to a COM_QUERY in any pieces and keeps it.
#[derive(Debug)]
pub struct Collector {
    walk: Walk,
    builder: Builder,
    state: State,
}

#[derive(Debug)]
enum State {
    Collecting,
    /// The answer is of no use, but its end is still to come.
    Spoilt(CollectError),
    Done(Result<Outcome, CollectError>),
    Lost(CollectError),
}

/// What [`Collector::feed`] made of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Bytes of this reply at the front of what was given.
    pub consumed: usize,
    /// True behind the last byte of the reply.
    pub done: bool,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done, no rows.
    Ok(OkPacket),
    /// Refused, at once or in the middle of the rows.
    Err(ErrPacket),
    /// A result set; may have no rows.
    Rows(Rows),
}

/// Why there is no answer.
///
/// From [`Collector::finish`], the reply was followed to its end and the connection is in step. From
/// [`Collector::feed`], nobody knows where the reply ends: the connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CollectError {
    /// More rows than [`Limits::max_rows`].
    #[error("more than {max} rows")]
    TooManyRows {
        /// The limit.
        max: usize,
    },
    /// More columns than a statement can have.
    #[error("more than {MAX_COLUMNS} columns")]
    TooManyColumns,
    /// More bytes than [`Limits::max_bytes`].
    #[error("more than {max} bytes of columns and rows")]
    TooManyBytes {
        /// The limit.
        max: usize,
    },
    /// A row does not hold as many cells as there are columns.
    #[error("row {row} is malformed")]
    BadRow {
        /// The row, counted from 0.
        row: usize,
    },
    /// More than one response came.
    #[error("more than one result")]
    SeveralResults,
    /// The reply is not complete yet.
    #[error("the reply is not complete")]
    Unfinished,
    /// The server asks for a local file.
    #[error("the server asks for a local file")]
    LocalInfile,
    /// A packet is none of the protocol.
    #[error("a packet is malformed")]
    Malformed,
}

impl Collector {
    /// Waits for the reply to a COM_QUERY.
    #[must_use]
    pub fn new(capabilities: Capabilities, limits: Limits) -> Self {
        Self {
            walk: Walk::new(Command::Query, capabilities),
            builder: Builder::new(limits),
            state: State::Collecting,
        }
    }

    /// Takes the server's next bytes; stops behind the reply.
    ///
    /// # Errors
    /// [`CollectError::LocalInfile`] and [`CollectError::Malformed`], and the same again from then on.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Fed, CollectError> {
        let mut consumed = 0;
        loop {
            if let State::Lost(error) = self.state {
                return Err(error);
            }
            let walked = self.walk.next(bytes.get(consumed..).unwrap_or_default());
            consumed += walked.consumed;
            match walked.what {
                What::Column { body, end } => {
                    let collected = self.builder.column(body, end);
                    self.spoil(collected);
                }
                What::Row { body, end } => {
                    let collected = self.builder.row(body, end, self.walk.columns());
                    self.spoil(collected);
                }
                What::Event(event) => self.event(event),
                What::Nothing | What::ServerAgain => {}
            }
            if walked.consumed == 0 && !matches!(self.state, State::Lost(_)) {
                return Ok(Fed {
                    consumed,
                    done: matches!(self.state, State::Done(_)),
                });
            }
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// Every [`CollectError`] but the two of [`Collector::feed`].
    pub fn finish(self) -> Result<Answer, CollectError> {
        match self.state {
            State::Done(Ok(Outcome::Err(packet))) => Ok(Answer::Err(packet)),
            State::Done(Ok(Outcome::Ok(packet))) if self.walk.results() == 0 => {
                Ok(Answer::Ok(packet))
            }
            State::Done(Ok(Outcome::Ok(packet))) => Ok(Answer::Rows(
                self.builder.finish(packet, self.walk.columns()),
            )),
            State::Done(Ok(_)) => Err(CollectError::Malformed),
            State::Done(Err(error)) | State::Lost(error) => Err(error),
            State::Collecting | State::Spoilt(_) => Err(CollectError::Unfinished),
        }
    }

    fn spoil(&mut self, collected: Result<(), CollectError>) {
        if let (Err(error), State::Collecting) = (collected, &self.state) {
            self.builder.clear();
            self.state = State::Spoilt(error);
        }
    }

    fn event(&mut self, event: Event) {
        self.state = match (event, &self.state) {
            (Event::Done(_), State::Spoilt(error)) => State::Done(Err(*error)),
            (Event::Done(_), _) if self.walk.responses() > 1 => {
                State::Done(Err(CollectError::SeveralResults))
            }
            (Event::Done(outcome), _) => State::Done(Ok(outcome)),
            (Event::ClientData, _) => State::Lost(CollectError::LocalInfile),
            (Event::ClientAuth | Event::Unfollowable, _) => State::Lost(CollectError::Malformed),
        };
    }
}
