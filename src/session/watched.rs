//! What those who watch want to know of sessions beside the counters.

use std::time::Duration;

use super::calls::{Answer, Calls};
use super::hot::Hot;
use crate::latency::Histogram;

/// Who answered a call, of those whose time is told.
pub const CALLS: [&str; 3] = ["memory", "lookups", "procedure"];
/// How a feed's statement was answered.
pub const STATEMENTS: [&str; 3] = ["kept", "narrowed", "learned"];

/// Counted by sessions.
#[derive(Debug)]
pub struct Watched {
    /// What became of calls.
    pub calls: Calls,
    /// Whose timelines were asked for lately.
    pub hot: Hot,
    /// How long they took, in the order of [`CALLS`].
    pub call_times: [Histogram; CALLS.len()],
    /// How long feeds' statements took, in the order of [`STATEMENTS`].
    pub statement_times: [Histogram; STATEMENTS.len()],
}

impl Watched {
    /// For so many definitions.
    #[must_use]
    pub fn new(definitions: usize) -> Watched {
        Watched {
            calls: Calls::new(definitions),
            hot: Hot::default(),
            call_times: Default::default(),
            statement_times: Default::default(),
        }
    }

    /// A call was answered so, within that time.
    pub fn call_took(&self, answer: Answer, time: Duration) {
        if let Some(times) = self.call_times.get(answer as usize) {
            times.took(time);
        }
    }

    /// A feed's statement was answered so, within that time.
    pub fn statement_took(&self, answer: &str, time: Duration) {
        let mut named = STATEMENTS.iter().zip(&self.statement_times);
        if let Some((_, times)) = named.find(|(name, _)| **name == answer) {
            times.took(time);
        }
    }
}
