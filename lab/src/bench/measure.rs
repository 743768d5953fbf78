//! The tally of a connection, and how connections run in parallel for a short slice of time.
//!
//! The machine's speed drifts while the bench runs. Query paths that alternate several times a second meet the same drift, so their ratios
//! hold where their rates do not.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hdrhistogram::errors::CreationError;

use super::client::BenchClientError;
use super::{BenchError, StopSignal};

/// The length of a slice.
pub const SLICE_TIME: Duration = Duration::from_millis(250);
/// The longest latency that is counted, in microseconds, to three digits.
const LONGEST_US: u64 = 120_000_000;

/// The figures of one query path on one connection, and its position in the list of readers.
#[derive(Debug)]
pub struct ConnectionTally {
    next: usize,
    /// Answers received so far.
    pub answers: u64,
    /// The time that they took.
    pub busy: Duration,
    /// Their latencies in microseconds; a CALL and its follow-up SELECT count as one.
    pub latencies: Histogram<u64>,
}

/// A histogram of latencies in microseconds.
///
/// # Errors
/// Never fails with the bounds of this module.
pub fn new_histogram() -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_max(LONGEST_US, 3)
}

impl ConnectionTally {
    /// Tallies for so many connections; each starts at another position of the list, the same for every query path.
    ///
    /// # Errors
    /// Never fails with the bounds of this module.
    pub fn for_connections(
        connections: usize,
        length: usize,
    ) -> Result<Vec<ConnectionTally>, BenchError> {
        (0..connections)
            .map(|connection| {
                ConnectionTally::starting_at(connection * length / connections.max(1))
            })
            .collect()
    }

    /// An empty tally.
    fn starting_at(next: usize) -> Result<ConnectionTally, BenchError> {
        Ok(ConnectionTally {
            next,
            answers: 0,
            busy: Duration::ZERO,
            latencies: new_histogram()?,
        })
    }

    /// A tally at the same position of the list, for answers that do not count.
    ///
    /// # Errors
    /// Never fails with the bounds of this module.
    pub fn uncounted(&self) -> Result<ConnectionTally, BenchError> {
        ConnectionTally::starting_at(self.next)
    }

    /// The next position in a list of so many.
    pub fn next_index(&mut self, length: usize) -> usize {
        let index = self.next % length.max(1);
        self.next = index + 1;
        index
    }

    /// Counts an answer with this latency.
    pub fn record(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(us);
        self.answers += 1;
    }

    /// Clears the figures, but not the position in the list.
    pub fn reset(&mut self) {
        self.answers = 0;
        self.busy = Duration::ZERO;
        self.latencies.reset();
    }
}

/// The work of one thread during a slice.
pub type SliceJob<'a, T, E = BenchClientError> = Box<dyn FnOnce() -> Result<T, E> + Send + 'a>;

/// Runs all jobs in parallel; blocks until they have ended.
///
/// # Errors
/// The first error of a job.
pub fn run_parallel<T, E>(jobs: Vec<SliceJob<'_, T, E>>) -> Result<Vec<T>, E>
where
    T: Send,
    E: From<BenchClientError> + Send,
{
    thread::scope(|scope| {
        let running: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        let ended: Vec<_> = running
            .into_iter()
            .map(|job| {
                job.join()
                    .unwrap_or_else(|_| Err(BenchClientError::ThreadEnded.into()))
            })
            .collect();
        ended.into_iter().collect()
    })
}

/// Repeats an action for so long, each time at the next position of a list.
///
/// # Errors
/// Fails if the action fails.
pub fn repeat_for<E>(
    length: Duration,
    count: usize,
    tally: &mut ConnectionTally,
    stop: &StopSignal,
    mut once: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let start = Instant::now();
    let mut now = start;
    while now - start < length && !stop.is_requested() {
        once(tally.next_index(count))?;
        let then = std::mem::replace(&mut now, Instant::now());
        tally.record(now - then);
    }
    tally.busy += now - start;
    Ok(())
}
