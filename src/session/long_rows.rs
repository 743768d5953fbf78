//! Long rows go from the server to the client without being read: only where each ends is looked at.

use super::driver::{Ended, Session};
use crate::link::{Stopped, carry};
use crate::wire::frame::HEADER_BYTES;

/// A row of which at least so much is to come is not read any more, but carried.
const LONG_ROW_BYTES: usize = 64 * 1024;
/// The end of a row, and of the next one as much as it takes to know that it is long as well.
const BETWEEN_ROWS_BYTES: usize = 1 + HEADER_BYTES + 1;

/// How the long rows of a reply go from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongRows {
    /// As all else, until there is one.
    Read,
    /// The last one was carried: the next may be as long.
    Carried,
    /// These two connections have to be read from.
    Unfit,
}

impl LongRows {
    /// How many bytes are to be read now, if not as many as there are.
    pub(super) fn room(&mut self) -> Option<usize> {
        let carried = *self == LongRows::Carried;
        if carried {
            *self = LongRows::Read;
        }
        carried.then_some(BETWEEN_ROWS_BYTES)
    }
}

impl Session {
    /// Moves what has come of a long row; false where what comes has to be read.
    pub(super) fn carry_row(&mut self) -> Result<bool, Ended> {
        let least = match self.long_rows {
            LongRows::Read => LONG_ROW_BYTES,
            LongRows::Carried => 1,
            LongRows::Unfit => return Ok(false),
        };
        let Some(commands) = self.machine.commands() else {
            return Ok(false);
        };
        let ahead = commands.row_ahead();
        if ahead < least || !self.backend.inbox.is_empty() {
            return Ok(false);
        }
        match carry(&mut self.backend.link, &mut self.client, ahead) {
            Ok(moved) => {
                commands.row_passed(moved);
                self.long_rows = LongRows::Carried;
            }
            Err(Stopped::Empty) => {}
            Err(Stopped::Unable) => {
                self.long_rows = LongRows::Unfit;
                return Ok(false);
            }
            Err(Stopped::From(error)) => return Err(Ended::Server(error)),
            Err(Stopped::To) => return Err(Ended::Client),
        }
        Ok(true)
    }
}
