//! Collects the reply to an internal text query: OK, ERR or the rows, up to given limits.

pub mod column;
mod fixture;
mod rows;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use fixture::{result_set_of, result_set_with_status};
pub use rows::{ResultRow, ResultSet};

use thiserror::Error;

use crate::capability::Capabilities;
use crate::command::Command;
use crate::reply::{ReplyEvent, ReplyOutcome, ReplyScanner, ScannedPiece};
use crate::response::{ErrPacket, OkPacket};
use rows::ResultSetBuilder;

/// Limits on a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectLimits {
    /// Maximum rows.
    pub max_rows: usize,
    /// Maximum bytes of column definitions and rows on the wire; 4 GiB at most.
    pub max_bytes: usize,
}

/// MAX_FIELDS of both servers: no statement has more columns.
const MAX_COLUMNS: usize = 4_096;

/// Collects the reply to a COM_QUERY from pieces of any size.
#[derive(Debug)]
pub struct ReplyCollector {
    scanner: ReplyScanner,
    builder: ResultSetBuilder,
    state: CollectorState,
}

#[derive(Debug)]
enum CollectorState {
    Collecting,
    /// The reply is of no use, but its end is still to come.
    Discarding(CollectError),
    Done(Result<ReplyOutcome, CollectError>),
    Unfollowable(CollectError),
}

/// The result of [`ReplyCollector::feed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectorStep {
    /// Bytes of this reply at the front of the given ones.
    pub consumed: usize,
    /// True after the last byte of the reply.
    pub done: bool,
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryReply {
    /// Success without rows.
    Ok(OkPacket),
    /// An error, at once or in the middle of the rows.
    Err(ErrPacket),
    /// A result set; may have no rows.
    Rows(ResultSet),
}

/// Why there is no reply.
///
/// From [`ReplyCollector::finish`], the reply was followed to its end and the connection is in step. From
/// [`ReplyCollector::feed`], the end of the reply is unknown: the connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CollectError {
    /// More rows than [`CollectLimits::max_rows`].
    #[error("more than {max} rows")]
    TooManyRows {
        /// The limit.
        max: usize,
    },
    /// More columns than a statement can have.
    #[error("more than {MAX_COLUMNS} columns")]
    TooManyColumns,
    /// More bytes than [`CollectLimits::max_bytes`].
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
    /// More than one response was sent.
    #[error("more than one result")]
    SeveralResults,
    /// The reply is not complete yet.
    #[error("the reply is not complete")]
    Unfinished,
    /// The server requests a local file.
    #[error("the server asks for a local file")]
    LocalInfile,
    /// A packet is not of the protocol.
    #[error("a packet is malformed")]
    Malformed,
}

impl ReplyCollector {
    /// Waits for the reply to a COM_QUERY.
    #[must_use]
    pub fn new(capabilities: Capabilities, limits: CollectLimits) -> Self {
        Self {
            scanner: ReplyScanner::new(Command::Query, capabilities),
            builder: ResultSetBuilder::new(limits),
            state: CollectorState::Collecting,
        }
    }

    /// Takes the server's next bytes; stops after the reply.
    ///
    /// # Errors
    /// [`CollectError::LocalInfile`] and [`CollectError::Malformed`], and the same again from then on.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<CollectorStep, CollectError> {
        let mut consumed = 0;
        loop {
            if let CollectorState::Unfollowable(error) = self.state {
                return Err(error);
            }
            let scanned = self.scanner.next(bytes.get(consumed..).unwrap_or_default());
            consumed += scanned.consumed;
            match scanned.piece {
                ScannedPiece::Column { body, end } => {
                    let collected = self.builder.column(body, end);
                    self.discard_on_error(collected);
                }
                ScannedPiece::Row { body, end } => {
                    let collected = self.builder.row(body, end, self.scanner.columns());
                    self.discard_on_error(collected);
                }
                ScannedPiece::Event(event) => self.handle_event(event),
                ScannedPiece::Nothing | ScannedPiece::AwaitServer => {}
            }
            if scanned.consumed == 0 && !matches!(self.state, CollectorState::Unfollowable(_)) {
                return Ok(CollectorStep {
                    consumed,
                    done: matches!(self.state, CollectorState::Done(_)),
                });
            }
        }
    }

    /// Returns the reply.
    ///
    /// # Errors
    /// Every [`CollectError`] except the two of [`ReplyCollector::feed`].
    pub fn finish(self) -> Result<QueryReply, CollectError> {
        match self.state {
            CollectorState::Done(Ok(ReplyOutcome::Err(packet))) => Ok(QueryReply::Err(packet)),
            CollectorState::Done(Ok(ReplyOutcome::Ok(packet))) if self.scanner.results() == 0 => {
                Ok(QueryReply::Ok(packet))
            }
            CollectorState::Done(Ok(ReplyOutcome::Ok(packet))) => Ok(QueryReply::Rows(
                self.builder.finish(packet, self.scanner.columns()),
            )),
            CollectorState::Done(Ok(_)) => Err(CollectError::Malformed),
            CollectorState::Done(Err(error)) | CollectorState::Unfollowable(error) => Err(error),
            CollectorState::Collecting | CollectorState::Discarding(_) => {
                Err(CollectError::Unfinished)
            }
        }
    }

    fn discard_on_error(&mut self, collected: Result<(), CollectError>) {
        if let (Err(error), CollectorState::Collecting) = (collected, &self.state) {
            self.builder.clear();
            self.state = CollectorState::Discarding(error);
        }
    }

    fn handle_event(&mut self, event: ReplyEvent) {
        self.state = match (event, &self.state) {
            (ReplyEvent::Done(_), CollectorState::Discarding(error)) => {
                CollectorState::Done(Err(*error))
            }
            (ReplyEvent::Done(_), _) if self.scanner.responses() > 1 => {
                CollectorState::Done(Err(CollectError::SeveralResults))
            }
            (ReplyEvent::Done(outcome), _) => CollectorState::Done(Ok(outcome)),
            (ReplyEvent::ClientData, _) => CollectorState::Unfollowable(CollectError::LocalInfile),
            (ReplyEvent::ClientAuth | ReplyEvent::Unfollowable, _) => {
                CollectorState::Unfollowable(CollectError::Malformed)
            }
        };
    }
}
