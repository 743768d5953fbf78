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

use super::Stop;
use super::check::Wrong;
use super::client::{Client, ClientError, TIMEOUT};
use super::measure::{Job, Lane, together};
use super::way::{Form, Way};
use super::work::Work;

/// Answers that are taken at a time.
const BATCH: usize = 64;

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
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    let share = clients.len().div_ceil(threads).max(1);
    let jobs = clients
        .chunks_mut(share)
        .zip(lanes.chunks_mut(share))
        .map(|(clients, lanes)| -> Job<'_, Vec<Wrong>> {
            let askers = clients.iter_mut().zip(lanes);
            let askers = askers.map(|(client, lane)| Asker::new(way.form, client, lane, works));
            let askers = askers.collect();
            Box::new(move || turn(askers, length, stop))
        })
        .collect();
    Ok(together(jobs)?.into_iter().flatten().collect())
}

fn turn(
    mut askers: Vec<Asker<'_>>,
    length: Duration,
    stop: &Stop,
) -> Result<Vec<Wrong>, ClientError> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
    let start = Instant::now();
    for (place, asker) in (0..).zip(&mut askers) {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, place);
        epoll.add(&*asker.client, event).map_err(io::Error::from)?;
        asker.begin(start)?;
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
            let Some(now) = asker.go_on()? else {
                continue;
            };
            if now - start < length && !stop.asked() {
                asker.begin(now)?;
            } else {
                asker.lane.busy += now - start;
                asking -= 1;
            }
        }
    }
    let mut wrong = Vec::new();
    for asker in askers {
        wrong.extend(asker.end()?);
    }
    Ok(wrong)
}

/// A connection that asks.
struct Asker<'a> {
    form: Form,
    client: &'a mut Client,
    lane: &'a mut Lane,
    works: &'a [Work],
    /// What is asked for.
    index: usize,
    /// The statement behind the one that is asked.
    next: Option<&'a [u8]>,
    begun: Instant,
    rows: Vec<u8>,
    wrong: Vec<Wrong>,
}

impl<'a> Asker<'a> {
    fn new(form: Form, client: &'a mut Client, lane: &'a mut Lane, works: &'a [Work]) -> Asker<'a> {
        Asker {
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

    fn begin(&mut self, now: Instant) -> Result<(), ClientError> {
        self.begun = now;
        self.index = self.lane.next(self.works.len());
        let Some(work) = self.works.get(self.index) else {
            return Err(ClientError::Reply);
        };
        let (first, next) = work.statements(self.form);
        self.next = next;
        self.client.begin(first, &mut self.rows)
    }

    /// Takes what has come; returns when the whole answer was there.
    fn go_on(&mut self) -> Result<Option<Instant>, ClientError> {
        if !self.client.go_on(&mut self.rows)? {
            return Ok(None);
        }
        if let Some(next) = self.next.take() {
            self.client.begin(next, &mut self.rows)?;
            return Ok(None);
        }
        let now = Instant::now();
        self.lane.record(now - self.begun);
        if self.form != Form::Call {
            self.compare();
        }
        Ok(Some(now))
    }

    /// What a CALL alone left is looked at once, when the clock has stopped.
    fn end(mut self) -> Result<Vec<Wrong>, ClientError> {
        if let (Form::Call, Some(work)) = (self.form, self.works.get(self.index)) {
            work.ask_tail(self.client, &mut self.rows)?;
            self.compare();
        }
        Ok(self.wrong)
    }

    fn compare(&mut self) {
        let work = self.works.get(self.index);
        if work.is_some_and(|work| self.rows != work.expected(self.form)) {
            Wrong::note(&mut self.wrong, self.index, &self.rows);
        }
    }
}
