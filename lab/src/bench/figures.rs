//! The counts of several connections, added up.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::BenchError;
use super::measure::ConnectionTally;

/// How many answers there were, their rate and their latencies.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LatencyFigures {
    /// Answers received.
    pub answers: u64,
    /// Answers a second.
    pub rate: f64,
    /// Median latency, in microseconds.
    pub p50_us: u64,
    /// The latency that one in a hundred exceeds, in microseconds.
    pub p99_us: u64,
    /// The greatest latency, in microseconds.
    pub max_us: u64,
    /// The server's processor time for each answer, in microseconds; `None` if it was not measured.
    pub server_us: Option<f64>,
}

impl LatencyFigures {
    /// Adds up the tallies of all connections.
    ///
    /// # Errors
    /// Never fails as long as all histograms have the same bounds.
    pub fn from_lanes(tallies: &[ConnectionTally]) -> Result<LatencyFigures, BenchError> {
        let mut all = Histogram::<u64>::new(3)?;
        let mut rate = 0.0;
        for tally in tallies.iter().filter(|lane| !lane.busy.is_zero()) {
            all.add(&tally.latencies)?;
            rate += tally.answers as f64 / tally.busy.as_secs_f64();
        }
        Ok(LatencyFigures {
            answers: all.len(),
            rate,
            p50_us: all.value_at_quantile(0.5),
            p99_us: all.value_at_quantile(0.99),
            max_us: all.max(),
            server_us: None,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_of_lanes_add_up_and_an_idle_one_adds_nothing() {
        let mut tallies = ConnectionTally::for_connections(3, 1).unwrap();
        for (tally, us) in tallies.iter_mut().zip([100, 300]) {
            for _ in 0..50 {
                tally.record(Duration::from_micros(us));
            }
            tally.busy = Duration::from_secs(1);
        }
        let figures = LatencyFigures::from_lanes(&tallies).unwrap();
        assert_eq!((figures.answers, figures.p50_us), (100, 100));
        assert_eq!((figures.p99_us, figures.max_us), (300, 300));
        assert!((figures.rate - 100.0).abs() < 1e-9);
    }
}
