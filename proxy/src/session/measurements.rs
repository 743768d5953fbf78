//! Answer times of sessions.

use std::time::Duration;

use super::call_counters::CallAnswer;
use super::hot_readers::HotReaderSample;
use crate::latency::LatencyHistogram;

/// The kinds of answers to a feed's statement.
pub const STATEMENTS: [&str; 3] = ["kept", "narrowed", "learned"];

/// Times of all sessions.
#[derive(Debug, Default)]
pub struct SessionMeasurements {
    /// A sample of the readers requested.
    pub hot_readers: HotReaderSample,
    /// Times of calls, in the order of [`CallAnswer::ALL`] without its last, the interrupted calls.
    pub call_times: [LatencyHistogram; CallAnswer::ALL.len() - 1],
    /// Times of feeds' statements, in the order of [`STATEMENTS`].
    pub statement_times: [LatencyHistogram; STATEMENTS.len()],
}

impl SessionMeasurements {
    /// Records a call's answer time.
    pub fn record_call(&self, answer: CallAnswer, time: Duration) {
        if let Some(times) = self.call_times.get(answer as usize) {
            times.record(time);
        }
    }

    /// Records the answer time of a feed's statement.
    pub fn record_statement(&self, answer: &str, time: Duration) {
        let mut named = STATEMENTS.iter().zip(&self.statement_times);
        if let Some((_, times)) = named.find(|(name, _)| **name == answer) {
            times.record(time);
        }
    }
}
