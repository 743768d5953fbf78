//! What is counted of a connection, and how connections work beside one another for a short slice of time.
//!
//! The machine's speed drifts while the bench runs. Ways that take turns several times a second meet the same drift,
//! so their ratios hold where their rates do not.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::client::BenchClientError;
use super::{BenchError, StopSignal};

/// How long a way has its turn.
pub const SLICE_TIME: Duration = Duration::from_millis(250);
/// Latencies are kept up to this, to three digits, in microseconds.
const LONGEST_US: u64 = 120_000_000;

/// One way's figures on one connection, and where it is in the list of readers.
#[derive(Debug)]
pub struct ConnectionTally {
    next: usize,
    /// Answers so far.
    pub answers: u64,
    /// Time they took.
    pub busy: Duration,
    /// Their latencies in microseconds; a CALL and its tail are one.
    pub latencies: Histogram<u64>,
}

impl ConnectionTally {
    /// Lanes for as many connections; each starts elsewhere in the list, and at the same places for every way.
    ///
    /// # Errors
    /// Never with the bounds of this module.
    pub fn for_connections(
        connections: usize,
        works: usize,
    ) -> Result<Vec<ConnectionTally>, BenchError> {
        (0..connections)
            .map(|lane| ConnectionTally::starting_at(lane * works / connections.max(1)))
            .collect()
    }

    /// With nothing counted.
    fn starting_at(next: usize) -> Result<ConnectionTally, BenchError> {
        Ok(ConnectionTally {
            next,
            answers: 0,
            busy: Duration::ZERO,
            latencies: Histogram::new_with_max(LONGEST_US, 3)?,
        })
    }

    /// At the same place in the list, for what does not count.
    ///
    /// # Errors
    /// Never with the bounds of this module.
    pub fn uncounted(&self) -> Result<ConnectionTally, BenchError> {
        ConnectionTally::starting_at(self.next)
    }

    /// The next place in a list of so many.
    pub fn next_index(&mut self, places: usize) -> usize {
        let place = self.next % places.max(1);
        self.next = place + 1;
        place
    }

    /// Counts an answer that took so long.
    pub fn record(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(us);
        self.answers += 1;
    }

    /// Forgets the figures, but not the place in the list.
    pub fn reset(&mut self) {
        self.answers = 0;
        self.busy = Duration::ZERO;
        self.latencies.reset();
    }
}

/// A share of a slice, done by a thread of its own.
pub type SliceJob<'a, T, E = BenchClientError> = Box<dyn FnOnce() -> Result<T, E> + Send + 'a>;

/// Does all of it at the same time.
///
/// # Errors
/// The first that one of them ended with.
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

/// Does something again and again for as long, each time at the next of so many places in a list.
///
/// # Errors
/// When it fails.
pub fn repeat_for<E>(
    length: Duration,
    places: usize,
    lane: &mut ConnectionTally,
    stop: &StopSignal,
    mut once: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let start = Instant::now();
    let mut now = start;
    while now - start < length && !stop.is_requested() {
        once(lane.next_index(places))?;
        let then = std::mem::replace(&mut now, Instant::now());
        lane.record(now - then);
    }
    lane.busy += now - start;
    Ok(())
}
