//! How long answers took, for those who watch.

use std::time::Duration;

use super::call_counters::CallAnswer;
use super::hot_readers::HotReaderSample;
use crate::latency::LatencyHistogram;

/// How a feed's statement was answered.
pub const STATEMENTS: [&str; 3] = ["kept", "narrowed", "learned"];

/// Measured by sessions.
#[derive(Debug, Default)]
pub struct SessionMeasurements {
    /// Whose timelines were asked for lately.
    pub hot_readers: HotReaderSample,
    /// Of calls, in the order of [`CallAnswer::ALL`]: none of those that were interrupted, which are last.
    pub call_times: [LatencyHistogram; CallAnswer::ALL.len() - 1],
    /// Of feeds' statements, in the order of [`STATEMENTS`].
    pub statement_times: [LatencyHistogram; STATEMENTS.len()],
}

impl SessionMeasurements {
    /// A call was answered so, within that time.
    pub fn record_call(&self, answer: CallAnswer, time: Duration) {
        if let Some(times) = self.call_times.get(answer as usize) {
            times.record(time);
        }
    }

    /// A feed's statement was answered so, within that time.
    pub fn record_statement(&self, answer: &str, time: Duration) {
        let mut named = STATEMENTS.iter().zip(&self.statement_times);
        if let Some((_, times)) = named.find(|(name, _)| **name == answer) {
            times.record(time);
        }
    }
}
