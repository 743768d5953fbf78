//! Histograms of answer times, one for each kind of answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds, in microseconds.
const BOUNDS: [u64; 15] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000, 10_000_000,
];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    /// One for each bound, and a last one for longer times.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// The counts of a histogram at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// Upper bounds in seconds, each with the number of times in its bucket.
    pub buckets: Vec<(f64, u64)>,
    /// Number of recorded times.
    pub count: u64,
    /// Sum of all times, in seconds.
    pub sum: f64,
}

impl LatencyHistogram {
    /// Records one duration.
    pub fn record(&self, time: Duration) {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let index = BOUNDS.partition_point(|bound| *bound < microseconds);
        if let Some(bucket) = self.buckets.get(index) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The current counts.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts = self.buckets.iter().map(|it| it.load(Ordering::Relaxed));
        #[allow(clippy::cast_precision_loss, reason = "bounds are small")]
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6);
        let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        #[allow(clippy::cast_precision_loss, reason = "a sum of times")]
        let sum = self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        HistogramSnapshot {
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
            sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_counted_in_the_first_bucket_that_holds_it() {
        let histogram = LatencyHistogram::default();
        for microseconds in [0, 25, 26, 1_000, 20_000_000] {
            histogram.record(Duration::from_micros(microseconds));
        }
        let measured = histogram.snapshot();
        let held: Vec<(f64, u64)> = measured
            .buckets
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .collect();
        assert_eq!(
            held,
            [
                (0.000_025, 2),
                (0.000_05, 1),
                (0.001, 1),
                (f64::INFINITY, 1)
            ]
        );
        assert_eq!(measured.count, 5);
        assert!((measured.sum - 20.001_051).abs() < 1e-9);
    }
}
