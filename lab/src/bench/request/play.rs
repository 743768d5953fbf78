//! Plays requests: each connection sends one statement after the other, and each one's time is counted by its line.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::resolution::ReaderRequest;
use crate::bench::client::{BenchClient, BenchClientError};
use crate::bench::measure::{ConnectionTally, SliceJob, new_histogram, repeat_for, run_parallel};
use crate::bench::{BenchError, StopSignal};

/// A request with the rows that the server answers to each of its statements.
#[derive(Debug)]
pub struct ExpectedRequest {
    request: ReaderRequest,
    rows: Vec<Vec<u8>>,
}

/// The times of one connection.
#[derive(Debug)]
pub struct RequestTally {
    /// Whole requests.
    pub requests: ConnectionTally,
    /// The latencies of each line, in microseconds.
    pub lines: Vec<Histogram<u64>>,
}

/// An answer that is not the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestDifference {
    request: usize,
    line: usize,
    rows: Vec<u8>,
}

impl RequestTally {
    /// Tallies for so many connections, of requests of so many lines; each begins at another reader.
    ///
    /// # Errors
    /// Never fails with the bounds of this module.
    pub fn for_connections(
        connections: usize,
        requests: usize,
        lines: usize,
    ) -> Result<Vec<RequestTally>, BenchError> {
        let all = ConnectionTally::for_connections(connections, requests)?;
        all.into_iter()
            .map(|requests| {
                let lines = (0..lines)
                    .map(|_| new_histogram())
                    .collect::<Result<_, _>>()?;
                Ok(RequestTally { requests, lines })
            })
            .collect()
    }

    /// Clears the figures.
    pub fn reset(&mut self) {
        self.requests.reset();
        self.lines.iter_mut().for_each(Histogram::reset);
    }
}

impl ExpectedRequest {
    /// Has the server answer each statement.
    ///
    /// # Errors
    /// Fails if a statement fails.
    pub fn new(
        request: ReaderRequest,
        direct: &mut BenchClient,
    ) -> Result<ExpectedRequest, BenchClientError> {
        let mut expected = ExpectedRequest {
            request,
            rows: Vec::new(),
        };
        expected.ask(direct)?;
        Ok(expected)
    }

    fn ask(&mut self, direct: &mut BenchClient) -> Result<(), BenchClientError> {
        self.rows.clear();
        for packet in &self.request.packets {
            let mut rows = Vec::new();
            if let Some(packet) = packet {
                direct.query(packet, &mut rows)?;
            }
            self.rows.push(rows);
        }
        Ok(())
    }

    /// Sends it; `answered` gets each line's number, its time and its rows.
    ///
    /// # Errors
    /// Fails if a connection or a statement fails.
    pub fn play(
        &self,
        client: &mut BenchClient,
        mut answered: impl FnMut(usize, Duration, &[u8]),
    ) -> Result<(), BenchClientError> {
        let mut rows = Vec::new();
        for (line, packet) in self.request.packets.iter().enumerate() {
            let begun = Instant::now();
            rows.clear();
            match packet {
                Some(packet) => client.query(packet, &mut rows)?,
                None => client.reconnect()?,
            }
            answered(line, begun.elapsed(), &rows);
        }
        Ok(())
    }

    /// What a line sends.
    #[must_use]
    pub fn statement(&self, line: usize) -> &str {
        let statements = &self.request.statements;
        statements.get(line).map_or("", String::as_str)
    }
}

/// Plays requests on all these connections for so long; returns answers that are not as expected, the first of each line of a request.
///
/// # Errors
/// Fails if a connection or a statement fails.
pub fn play_slice(
    length: Duration,
    clients: &mut [BenchClient],
    tallies: &mut [RequestTally],
    requests: &[ExpectedRequest],
    stop: &StopSignal,
) -> Result<Vec<RequestDifference>, BenchClientError> {
    let pairs = clients.iter_mut().zip(tallies);
    let jobs = pairs.map(|(client, tally)| -> SliceJob<'_, Vec<RequestDifference>> {
        Box::new(move || {
            let RequestTally {
                requests: tally,
                lines,
            } = tally;
            let mut different = Vec::new();
            repeat_for(length, requests.len(), tally, stop, |index| {
                let Some(request) = requests.get(index) else {
                    return Err(BenchClientError::UnexpectedReply);
                };
                request.play(client, |line, took, rows| {
                    if let Some(times) = lines.get_mut(line) {
                        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
                        times.saturating_record(us);
                    }
                    if request
                        .rows
                        .get(line)
                        .is_none_or(|expected| expected != rows)
                    {
                        note(&mut different, index, line, rows);
                    }
                })
            })?;
            Ok(different)
        })
    });
    let different = run_parallel(jobs.collect())?;
    Ok(different.into_iter().flatten().collect())
}

fn note(different: &mut Vec<RequestDifference>, request: usize, line: usize, rows: &[u8]) {
    let is_known = |one: &RequestDifference| one.request == request && one.line == line;
    if !different.iter().any(is_known) {
        different.push(RequestDifference {
            request,
            line,
            rows: rows.to_vec(),
        });
    }
}

/// Of these answers, those that the server does not give either now. What changed meanwhile is expected from here on.
///
/// # Errors
/// Fails if a statement fails.
pub fn wrong_answers(
    noted: Vec<RequestDifference>,
    requests: &mut [ExpectedRequest],
    direct: &mut BenchClient,
) -> Result<Vec<String>, BenchClientError> {
    let mut wrong = Vec::new();
    for RequestDifference {
        request,
        line,
        rows,
    } in noted
    {
        let Some(request) = requests.get_mut(request) else {
            continue;
        };
        let before = request.rows.get(line).cloned().unwrap_or_default();
        request.ask(direct)?;
        let now = request.rows.get(line).map_or(&[][..], Vec::as_slice);
        // The data changed, or the statement answers otherwise each time.
        if now == rows || now != before {
            continue;
        }
        wrong.push(format!(
            "{}\n  the server: {}\n  Headwater:  {}",
            request.statement(line),
            shown(now),
            shown(&rows)
        ));
    }
    Ok(wrong)
}

fn shown(rows: &[u8]) -> String {
    const MOST: usize = 200;
    let part = rows.get(..MOST).unwrap_or(rows);
    let text = String::from_utf8_lossy(part);
    format!("{} bytes {:?}", rows.len(), text)
}
