//! Long rows go from the server to the client unread: only their ends are examined.

use super::state::{LongRowMode, Session, SessionEnd};
use crate::link::{SpliceStop, splice_bytes};

/// A row is spliced if at least this much of it is to come.
const LONG_ROW_BYTES: usize = 64 * 1024;

impl Session {
    /// Splices what has arrived of a long row; false: the bytes have to be read.
    pub(super) fn splice_row(&mut self) -> Result<bool, SessionEnd> {
        let least = match self.long_row_mode {
            LongRowMode::Read => LONG_ROW_BYTES,
            LongRowMode::Spliced => 1,
            LongRowMode::Unsupported => return Ok(false),
        };
        let Some(commands) = self.machine.commands() else {
            return Ok(false);
        };
        let ahead = commands.row_bytes_ahead();
        if ahead < least || !self.backend.inbox.is_empty() {
            return Ok(false);
        }
        match splice_bytes(&mut self.backend.link, &mut self.client, ahead) {
            Ok(moved) => {
                commands.row_bytes_passed(moved);
                self.record.add_to_client(moved);
                self.long_row_mode = LongRowMode::Spliced;
            }
            Err(SpliceStop::Empty) => {}
            Err(SpliceStop::Unsupported) => {
                self.long_row_mode = LongRowMode::Unsupported;
                return Ok(false);
            }
            Err(SpliceStop::Source(error)) => return Err(SessionEnd::ServerClosed(error)),
            Err(SpliceStop::Destination) => return Err(SessionEnd::ClientLeft),
        }
        Ok(true)
    }
}
