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

    /// Forgets the figures, but not the place in the list.
    pub fn forget(&mut self) {
        self.answers = 0;
        self.busy = Duration::ZERO;
        self.latencies.reset();
    }
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
    let turns: Vec<Result<Vec<Wrong>, ClientError>> = thread::scope(|scope| {
        let turns: Vec<_> = clients
            .iter_mut()
            .zip(lanes)
            .map(|(client, lane)| {
                scope.spawn(move || turn(way.form, length, client, lane, works, stop))
            })
            .collect();
        turns
            .into_iter()
            .map(|turn| turn.join().unwrap_or(Err(ClientError::Thread)))
            .collect()
    });
    Ok(turns
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect())
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
    let start = Instant::now();
    let mut now = start;
    let mut last = None;
    while now - start < length && !stop.asked() {
        let index = lane.next % works.len().max(1);
        let Some(work) = works.get(index) else { break };
        work.ask(form, client, &mut rows)?;
        let then = std::mem::replace(&mut now, Instant::now());
        let us = u64::try_from((now - then).as_micros()).unwrap_or(u64::MAX);
        lane.latencies.saturating_record(us);
        lane.answers += 1;
        lane.next = index + 1;
        if form != Form::Call && rows != work.expected {
            Wrong::note(&mut wrong, index, &rows);
        }
        last = Some((index, work));
    }
    lane.busy += now - start;
    // What a CALL alone left is looked at once, when the clock has stopped.
    if let (Form::Call, Some((index, work))) = (form, last) {
        work.ask_tail(client, &mut rows)?;
        if rows != work.expected {
            Wrong::note(&mut wrong, index, &rows);
        }
    }
    Ok(wrong)
}
