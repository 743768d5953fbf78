//! How long answers took, for those who watch.

use std::time::Duration;

use super::calls::Answer;
use super::hot::Hot;
use crate::latency::Histogram;

/// How a feed's statement was answered.
pub const STATEMENTS: [&str; 3] = ["kept", "narrowed", "learned"];

/// Measured by sessions.
#[derive(Debug, Default)]
pub struct Watched {
    /// Whose timelines were asked for lately.
    pub hot: Hot,
    /// Of calls, in the order of [`Answer::ALL`]: none of those that were interrupted, which are last.
    pub call_times: [Histogram; Answer::ALL.len() - 1],
    /// Of feeds' statements, in the order of [`STATEMENTS`].
    pub statement_times: [Histogram; STATEMENTS.len()],
}

impl Watched {
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
