//! The pace of comparisons, and whether the server has become slower.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use headwater_proxy::clock;

/// Answers per median.
const SAMPLE_SIZE: usize = 15;
/// Answers faster than this are never counted as slow.
const NEVER_SLOW_BELOW: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(super) struct LatencyWatch {
    first: Vec<Duration>,
    last: VecDeque<Duration>,
}

/// The medians of a server that has become slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LatencySlowdown {
    pub(super) first: Duration,
    pub(super) last: Duration,
}

impl LatencyWatch {
    /// Records the time of an answer. `times`: the factor over the first median that counts as slower.
    pub(super) fn record(&mut self, took: Duration, times: f64) -> Option<LatencySlowdown> {
        if self.first.len() < SAMPLE_SIZE {
            self.first.push(took);
            return None;
        }
        if self.last.len() == SAMPLE_SIZE {
            self.last.pop_front();
        }
        self.last.push_back(took);
        if self.last.len() < SAMPLE_SIZE {
            return None;
        }
        let first = median(self.first.iter());
        let last = median(self.last.iter());
        let is_slower = last > NEVER_SLOW_BELOW && last.as_secs_f64() > first.as_secs_f64() * times;
        is_slower.then_some(LatencySlowdown { first, last })
    }
}

fn median<'a>(times: impl Iterator<Item = &'a Duration>) -> Duration {
    let mut times: Vec<Duration> = times.copied().collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Lets a number pass per second, without bursts.
#[derive(Debug)]
pub(super) struct RatePacer {
    next: Instant,
    gap: Duration,
}

impl RatePacer {
    pub(super) fn of(rate: u32) -> RatePacer {
        RatePacer {
            next: clock::now(),
            gap: Duration::from_secs(1) / rate.max(1),
        }
    }

    /// Waits for the next slot. Lost time is not made up.
    pub(super) async fn wait(&mut self) {
        let now = clock::now();
        if self.next > now {
            tokio::time::sleep(self.next - now).await;
        }
        self.next = self.next.max(now) + self.gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_server_that_becomes_slower_is_noticed_and_a_single_slow_answer_is_not() {
        let mut watch = LatencyWatch::default();
        for _ in 0..50 {
            assert_eq!(watch.record(ms(2), 4.0), None);
        }
        assert_eq!(watch.record(ms(5_000), 4.0), None);
        let slow: Vec<_> = (0..SAMPLE_SIZE)
            .filter_map(|_| watch.record(ms(9), 4.0))
            .collect();
        let slower = LatencySlowdown {
            first: ms(2),
            last: ms(9),
        };
        assert!(slow.contains(&slower) && slow.len() < SAMPLE_SIZE);
    }

    #[test]
    fn fast_is_not_slow() {
        let mut watch = LatencyWatch::default();
        for took in [ms(0), ms(4)] {
            for _ in 0..50 {
                assert_eq!(watch.record(took, 4.0), None);
            }
        }
    }
}
