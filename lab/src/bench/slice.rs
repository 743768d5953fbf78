//! Runs a slice: all connections query at the same time, and again as soon as they have their answers.
//!
//! One thread for each two processors waits for the answers of many connections. With a thread for each connection, as in an app that does
//! other work too, every answer wakes a thread: on two cores that took 5 to 10 % from the measured rates, most of it inside the proxy's
//! `send`.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::StopSignal;
use super::check::UnexpectedAnswer;
use super::client::{BenchClient, BenchClientError, TIMEOUT};
use super::measure::{ConnectionTally, SliceJob, run_parallel};
use super::prepared_task::PreparedTask;
use crate::query_path::{QueryForm, QueryPath};

/// Socket events that are taken at a time.
const BATCH: usize = 64;

/// Runs one slice on all connections; returns the answers that differ from the expected ones.
///
/// # Errors
/// Fails if a connection fails or a statement is refused.
pub fn run_slice(
    path: QueryPath,
    length: Duration,
    clients: &mut [BenchClient],
    tallies: &mut [ConnectionTally],
    prepared_tasks: &[PreparedTask],
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    let share = clients.len().div_ceil(threads).max(1);
    let jobs = clients
        .chunks_mut(share)
        .zip(tallies.chunks_mut(share))
        .map(
            |(clients, tallies)| -> SliceJob<'_, Vec<UnexpectedAnswer>> {
                let connections = clients.iter_mut().zip(tallies);
                let connections = connections.map(|(client, tally)| {
                    QueryingConnection::new(path.form, client, tally, prepared_tasks)
                });
                let connections = connections.collect();
                Box::new(move || run_event_loop(connections, length, stop))
            },
        )
        .collect();
    Ok(run_parallel(jobs)?.into_iter().flatten().collect())
}

fn run_event_loop(
    mut connections: Vec<QueryingConnection<'_>>,
    length: Duration,
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
    let start = Instant::now();
    for (index, connection) in (0..).zip(&mut connections) {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, index);
        epoll
            .add(&*connection.client, event)
            .map_err(io::Error::from)?;
        connection.send_next(start)?;
    }
    let timeout = EpollTimeout::try_from(TIMEOUT).unwrap_or(EpollTimeout::NONE);
    let mut events = [EpollEvent::empty(); BATCH];
    let mut asking = connections.len();
    while asking > 0 {
        let answers = match epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => continue,
            answers => answers.map_err(io::Error::from)?,
        };
        if answers == 0 {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        for event in events.iter().take(answers) {
            let index = usize::try_from(event.data()).unwrap_or(usize::MAX);
            let Some(connection) = connections.get_mut(index) else {
                continue;
            };
            let Some(now) = connection.read_more()? else {
                continue;
            };
            if now - start < length && !stop.is_requested() {
                connection.send_next(now)?;
            } else {
                connection.lane.busy += now - start;
                asking -= 1;
            }
        }
    }
    let mut wrong = Vec::new();
    for connection in connections {
        wrong.extend(connection.finish()?);
    }
    Ok(wrong)
}

/// A connection with a query in flight.
struct QueryingConnection<'a> {
    form: QueryForm,
    client: &'a mut BenchClient,
    lane: &'a mut ConnectionTally,
    works: &'a [PreparedTask],
    /// The index of the task.
    index: usize,
    /// The statement after the current one.
    next: Option<&'a [u8]>,
    begun: Instant,
    rows: Vec<u8>,
    wrong: Vec<UnexpectedAnswer>,
}

impl<'a> QueryingConnection<'a> {
    fn new(
        form: QueryForm,
        client: &'a mut BenchClient,
        tally: &'a mut ConnectionTally,
        prepared_tasks: &'a [PreparedTask],
    ) -> QueryingConnection<'a> {
        QueryingConnection {
            form,
            client,
            lane: tally,
            works: prepared_tasks,
            index: 0,
            next: None,
            begun: Instant::now(),
            rows: Vec::new(),
            wrong: Vec::new(),
        }
    }

    fn send_next(&mut self, now: Instant) -> Result<(), BenchClientError> {
        self.begun = now;
        self.index = self.lane.next_index(self.works.len());
        let Some(prepared) = self.works.get(self.index) else {
            return Err(BenchClientError::UnexpectedReply);
        };
        let (first, next) = prepared.statements(self.form);
        self.next = next;
        self.client.send_query(first, &mut self.rows)
    }

    /// Reads what has arrived; returns the time when the answer was complete.
    fn read_more(&mut self) -> Result<Option<Instant>, BenchClientError> {
        if !self.client.read_more(&mut self.rows)? {
            return Ok(None);
        }
        if let Some(next) = self.next.take() {
            self.client.send_query(next, &mut self.rows)?;
            return Ok(None);
        }
        let now = Instant::now();
        self.lane.record(now - self.begun);
        if self.form != QueryForm::Call {
            self.compare();
        }
        Ok(Some(now))
    }

    /// After the clock has stopped, verifies once the result table that a CALL alone created.
    fn finish(mut self) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
        if let (QueryForm::Call, Some(work)) = (self.form, self.works.get(self.index)) {
            work.query_follow_up(self.client, &mut self.rows)?;
            self.compare();
        }
        Ok(self.wrong)
    }

    fn compare(&mut self) {
        let prepared = self.works.get(self.index);
        if prepared.is_some_and(|work| self.rows != work.expected(self.form)) {
            UnexpectedAnswer::record(&mut self.wrong, self.index, &self.rows);
        }
    }
}
