//! How far memory lags behind the server's log, for monitoring.

use std::time::{Duration, Instant};

use super::{Binlog, BinlogState};
use crate::clock;
use headwater_timeline::index::BinlogPosition;

/// Recorded by the stream, the provers and the writer.
#[derive(Debug, Default)]
pub(super) struct LagRecord {
    /// When something was last received of the log, be it a heartbeat.
    last_received: Option<Instant>,
    log_end: BinlogPosition,
    /// Since when changes have been pending, without a break.
    waiting_since: Option<Instant>,
}

/// How far memory lags behind the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLag {
    /// Bytes of the log between the applied position and the end that the server last reported.
    pub bytes: u64,
    /// Row changes that are pending until they are proved readable.
    pub changes: usize,
    /// How long some have been pending.
    pub waiting_for: Duration,
    /// How long nothing was received of the log.
    pub silent: Duration,
}

impl LagRecord {
    pub(super) fn receive(&mut self, now: Instant) {
        self.last_received = Some(now);
    }

    pub(super) fn extend_log_end(&mut self, end: BinlogPosition) {
        self.log_end = self.log_end.max(end);
    }
}

impl BinlogState {
    pub(super) fn note_waiting(&mut self, now: Instant) {
        self.lag.waiting_since = match self.replication.pending_changes() {
            0 => None,
            _ => self.lag.waiting_since.or(Some(now)),
        };
    }
}

impl Binlog {
    /// How far memory lags behind the log; `None` if the log is not followed.
    #[must_use]
    pub fn lag(&self) -> Option<MemoryLag> {
        let now = clock::now();
        let state = self.state();
        let replication = &state.replication;
        let since = |then: Instant| now.saturating_duration_since(then);
        let received = state.lag.last_received.filter(|_| !self.is_suspended())?;
        // Before the first proof, only the received position is known.
        let applied = replication
            .floor()
            .unwrap_or_else(|| replication.received());
        Some(MemoryLag {
            bytes: state
                .lag
                .log_end
                .max(replication.received())
                .bytes_after(applied),
            changes: replication.pending_changes(),
            waiting_for: state.lag.waiting_since.map(since).unwrap_or_default(),
            silent: since(received),
        })
    }
}
