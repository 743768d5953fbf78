//! Measures one page at one number of connections: every way in turn, a short slice at a time.
//!
//! The machine's speed drifts while the bench runs. Ways that take turns several times a second meet the same drift,
//! so their ratios hold where their rates do not.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::check::Wrong;
use super::client::{Client, ClientError};
use super::way::{Form, Way};
use super::work::Work;
use super::{BenchError, Stop};

/// How long a way has its turn.
pub const SLICE: Duration = Duration::from_millis(250);
/// Latencies are kept up to this, to three digits, in microseconds.
const LONGEST_US: u64 = 120_000_000;

/// One way's figures on one connection, and where it is in the list of readers.
#[derive(Debug)]
pub struct Lane {
    next: usize,
    /// Answers so far.
    pub answers: u64,
    /// Time they took.
    pub busy: Duration,
    /// Their latencies in microseconds; a CALL and its tail are one.
    pub latencies: Histogram<u64>,
}

impl Lane {
    /// Lanes for as many connections; each starts elsewhere in the list, and at the same places for every way.
    ///
    /// # Errors
    /// Never with the bounds of this module.
    pub fn several(connections: usize, works: usize) -> Result<Vec<Lane>, BenchError> {
        (0..connections)
            .map(|lane| {
                Ok(Lane {
                    next: lane * works / connections.max(1),
                    answers: 0,
                    busy: Duration::ZERO,
                    latencies: Histogram::new_with_max(LONGEST_US, 3)?,
                })
            })
            .collect()
    }

    /// The next place in a list of so many.
    pub fn next(&mut self, places: usize) -> usize {
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
    pub fn forget(&mut self) {
        self.answers = 0;
        self.busy = Duration::ZERO;
        self.latencies.reset();
    }
}

/// A share of a slice, done by a thread of its own.
pub type Job<'a, T> = Box<dyn FnOnce() -> Result<T, ClientError> + Send + 'a>;

/// Does all of it at the same time.
///
/// # Errors
/// The first that one of them ended with.
pub fn together<T: Send>(jobs: Vec<Job<'_, T>>) -> Result<Vec<T>, ClientError> {
    thread::scope(|scope| {
        let running: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        let ended: Vec<_> = running
            .into_iter()
            .map(|job| job.join().unwrap_or(Err(ClientError::Thread)))
            .collect();
        ended.into_iter().collect()
    })
}

/// Does something again and again for as long, each time at the next of so many places in a list.
///
/// # Errors
/// When it fails.
pub fn repeat(
    length: Duration,
    places: usize,
    lane: &mut Lane,
    stop: &Stop,
    mut once: impl FnMut(usize) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    let start = Instant::now();
    let mut now = start;
    while now - start < length && !stop.asked() {
        once(lane.next(places))?;
        let then = std::mem::replace(&mut now, Instant::now());
        lane.record(now - then);
    }
    lane.busy += now - start;
    Ok(())
}

/// Gives a way its turn on all connections; returns the answers that are not the expected ones.
///
/// # Errors
/// When a connection fails or a statement is refused.
pub fn slice(
    way: Way,
    length: Duration,
    clients: &mut [Client],
    lanes: &mut [Lane],
    works: &[Work],
    stop: &Stop,
) -> Result<Vec<Wrong>, ClientError> {
    let jobs = clients
        .iter_mut()
        .zip(lanes)
        .map(|(client, lane)| -> Job<'_, Vec<Wrong>> {
            Box::new(move || turn(way.form, length, client, lane, works, stop))
        })
        .collect();
    Ok(together(jobs)?.into_iter().flatten().collect())
}

fn turn(
    form: Form,
    length: Duration,
    client: &mut Client,
    lane: &mut Lane,
    works: &[Work],
    stop: &Stop,
) -> Result<Vec<Wrong>, ClientError> {
    let mut wrong = Vec::new();
    let mut rows = Vec::new();
    let mut last = None;
    repeat(length, works.len(), lane, stop, |index| {
        let Some(work) = works.get(index) else {
            return Ok(());
        };
        work.ask(form, client, &mut rows)?;
        if form != Form::Call && rows != work.expected(form) {
            Wrong::note(&mut wrong, index, &rows);
        }
        last = Some((index, work));
        Ok(())
    })?;
    // What a CALL alone left is looked at once, when the clock has stopped.
    if let (Form::Call, Some((index, work))) = (form, last) {
        work.ask_tail(client, &mut rows)?;
        if rows != work.expected(form) {
            Wrong::note(&mut wrong, index, &rows);
        }
    }
    Ok(wrong)
}
