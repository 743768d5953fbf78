//! Gives a way its turn: all connections ask at the same time, and again as soon as they are answered.
//!
//! One thread for each two processors waits for the answers of many connections. A thread for each, as a client has it
//! that does something else too, is woken for every answer: on two cores that took 5 to 10 % from what was measured,
//! most of it inside the proxy's `send`.

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
use super::query_path::{QueryForm, QueryPath};

/// Answers that are taken at a time.
const BATCH: usize = 64;

/// Gives a way its turn on all connections; returns the answers that are not the expected ones.
///
/// # Errors
/// When a connection fails or a statement is refused.
pub fn run_slice(
    way: QueryPath,
    length: Duration,
    clients: &mut [BenchClient],
    lanes: &mut [ConnectionTally],
    works: &[PreparedTask],
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    let share = clients.len().div_ceil(threads).max(1);
    let jobs = clients
        .chunks_mut(share)
        .zip(lanes.chunks_mut(share))
        .map(|(clients, lanes)| -> SliceJob<'_, Vec<UnexpectedAnswer>> {
            let askers = clients.iter_mut().zip(lanes);
            let askers =
                askers.map(|(client, lane)| QueryingConnection::new(way.form, client, lane, works));
            let askers = askers.collect();
            Box::new(move || run_event_loop(askers, length, stop))
        })
        .collect();
    Ok(run_parallel(jobs)?.into_iter().flatten().collect())
}

fn run_event_loop(
    mut askers: Vec<QueryingConnection<'_>>,
    length: Duration,
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
    let start = Instant::now();
    for (place, asker) in (0..).zip(&mut askers) {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, place);
        epoll.add(&*asker.client, event).map_err(io::Error::from)?;
        asker.send_next(start)?;
    }
    let timeout = EpollTimeout::try_from(TIMEOUT).unwrap_or(EpollTimeout::NONE);
    let mut events = [EpollEvent::empty(); BATCH];
    let mut asking = askers.len();
    while asking > 0 {
        let answers = match epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => continue,
            answers => answers.map_err(io::Error::from)?,
        };
        if answers == 0 {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        for event in events.iter().take(answers) {
            let place = usize::try_from(event.data()).unwrap_or(usize::MAX);
            let Some(asker) = askers.get_mut(place) else {
                continue;
            };
            let Some(now) = asker.read_more()? else {
                continue;
            };
            if now - start < length && !stop.is_requested() {
                asker.send_next(now)?;
            } else {
                asker.lane.busy += now - start;
                asking -= 1;
            }
        }
    }
    let mut wrong = Vec::new();
    for asker in askers {
        wrong.extend(asker.finish()?);
    }
    Ok(wrong)
}

/// A connection that asks.
struct QueryingConnection<'a> {
    form: QueryForm,
    client: &'a mut BenchClient,
    lane: &'a mut ConnectionTally,
    works: &'a [PreparedTask],
    /// What is asked for.
    index: usize,
    /// The statement behind the one that is asked.
    next: Option<&'a [u8]>,
    begun: Instant,
    rows: Vec<u8>,
    wrong: Vec<UnexpectedAnswer>,
}

impl<'a> QueryingConnection<'a> {
    fn new(
        form: QueryForm,
        client: &'a mut BenchClient,
        lane: &'a mut ConnectionTally,
        works: &'a [PreparedTask],
    ) -> QueryingConnection<'a> {
        QueryingConnection {
            form,
            client,
            lane,
            works,
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
        let Some(work) = self.works.get(self.index) else {
            return Err(BenchClientError::UnexpectedReply);
        };
        let (first, next) = work.statements(self.form);
        self.next = next;
        self.client.send_query(first, &mut self.rows)
    }

    /// Takes what has come; returns when the whole answer was there.
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

    /// What a CALL alone left is looked at once, when the clock has stopped.
    fn finish(mut self) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
        if let (QueryForm::Call, Some(work)) = (self.form, self.works.get(self.index)) {
            work.query_follow_up(self.client, &mut self.rows)?;
            self.compare();
        }
        Ok(self.wrong)
    }

    fn compare(&mut self) {
        let work = self.works.get(self.index);
        if work.is_some_and(|work| self.rows != work.expected(self.form)) {
            UnexpectedAnswer::record(&mut self.wrong, self.index, &self.rows);
        }
    }
}
