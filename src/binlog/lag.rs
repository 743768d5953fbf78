//! How far behind the server's log memory is: for those who watch.

use std::time::{Duration, Instant};

use super::{Binlog, BinlogState};
use crate::clock;
use crate::index::BinlogPosition;

/// As noted by those who follow, prove and apply.
#[derive(Debug, Default)]
pub(super) struct LagRecord {
    /// When something was heard of the log last, be it a sign of life.
    last_received: Option<Instant>,
    /// Where the server said that the log ends.
    log_end: BinlogPosition,
    /// Since when there have been changes that wait to be applied, without a break.
    waiting_since: Option<Instant>,
}

/// How far behind memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLag {
    /// Bytes of the log between what is applied and the end that the server told last.
    pub bytes: u64,
    /// Row changes that wait until it is proved that they can be read.
    pub changes: usize,
    /// Since when some have waited.
    pub waiting_for: Duration,
    /// Since when nothing was heard of the log.
    pub silent: Duration,
}

impl LagRecord {
    /// Something was heard.
    pub(super) fn receive(&mut self, now: Instant) {
        self.last_received = Some(now);
    }

    /// The log ends there.
    pub(super) fn extend_log_end(&mut self, end: BinlogPosition) {
        self.log_end = self.log_end.max(end);
    }
}

impl BinlogState {
    /// Notes whether changes wait.
    pub(super) fn note_waiting(&mut self, now: Instant) {
        self.lag.waiting_since = match self.following.pending_changes() {
            0 => None,
            _ => self.lag.waiting_since.or(Some(now)),
        };
    }
}

impl Binlog {
    /// How far behind memory is; `None`: the log is not followed.
    #[must_use]
    pub fn lag(&self) -> Option<MemoryLag> {
        let now = clock::now();
        let state = self.state();
        let following = &state.following;
        let since = |then: Instant| now.saturating_duration_since(then);
        let heard = state.lag.last_received.filter(|_| !self.is_suspended())?;
        // Where nothing is proved, what was received is all that is known.
        let applied = following.floor().unwrap_or_else(|| following.received());
        Some(MemoryLag {
            bytes: state
                .lag
                .log_end
                .max(following.received())
                .bytes_after(applied),
            changes: following.pending_changes(),
            waiting_for: state.lag.waiting_since.map(since).unwrap_or_default(),
            silent: since(heard),
        })
    }
}
