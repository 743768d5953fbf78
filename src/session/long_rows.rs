//! Long rows go from the server to the client without being read: only where each ends is looked at.

use super::state::{Ended, LongRows, Session};
use crate::link::{Stopped, carry};

/// A row of which at least so much is to come is not read any more, but carried.
const LONG_ROW_BYTES: usize = 64 * 1024;

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
                self.listed.to_client(moved);
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
