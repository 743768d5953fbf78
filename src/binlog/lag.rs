//! How far behind the server's log memory is: for those who watch.

use std::time::{Duration, Instant};

use super::{Binlog, State};
use crate::clock;
use crate::index::Position;

/// As noted by those who follow, prove and apply.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// When something was heard of the log last, be it a sign of life.
    heard: Option<Instant>,
    /// Where the server said that the log ends.
    end: Position,
    /// Since when there have been changes that wait to be applied, without a break.
    waiting: Option<Instant>,
}

/// How far behind memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Bytes of the log between what is applied and the end that the server told last.
    pub bytes: u64,
    /// Row changes that wait until it is proved that they can be read.
    pub changes: usize,
    /// Since when some have waited.
    pub waits: Duration,
    /// Since when nothing was heard of the log.
    pub silent: Duration,
}

impl Noted {
    /// Something was heard.
    pub(super) fn hears(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// The log ends there.
    pub(super) fn ends(&mut self, end: Position) {
        self.end = self.end.max(end);
    }
}

impl State {
    /// Notes whether changes wait.
    pub(super) fn note_waiting(&mut self, now: Instant) {
        self.noted.waiting = match self.following.waiting() {
            0 => None,
            _ => self.noted.waiting.or(Some(now)),
        };
    }
}

impl Binlog {
    /// How far behind memory is; `None`: the log is not followed.
    #[must_use]
    pub fn lag(&self) -> Option<Lag> {
        let now = clock::now();
        let state = self.state();
        let following = &state.following;
        let since = |then: Instant| now.saturating_duration_since(then);
        let heard = state.noted.heard.filter(|_| !self.is_aside())?;
        // Where nothing is proved, what was received is all that is known.
        let applied = following.floor().unwrap_or_else(|| following.received());
        Some(Lag {
            bytes: state
                .noted
                .end
                .max(following.received())
                .bytes_behind(applied),
            changes: following.waiting(),
            waits: state.noted.waiting.map(since).unwrap_or_default(),
            silent: since(heard),
        })
    }
}
