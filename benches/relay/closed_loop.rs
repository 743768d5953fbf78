//! A closed loop: every connection asks again as soon as it is answered. Each contender has the same few threads of ours,
//! each of which waits for many connections.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::bench::client::{BenchClient, BenchClientError, TIMEOUT};
use headwater_lab::bench::measure::{SliceJob, run_parallel};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::stage::CheckedStatement;

/// Answers that are taken at a time.
pub(crate) const BATCH: usize = 64;

/// Set when everything has to end.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// What came in a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnAnswers {
    pub(crate) right: u64,
    pub(crate) wrong: u64,
}

/// Asks for as long on all connections.
pub(crate) fn run_turn(
    clients: &mut [BenchClient],
    statements: &[CheckedStatement],
    length: Duration,
) -> Result<TurnAnswers, BenchClientError> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    let share = clients.len().div_ceil(threads).max(1);
    let jobs = clients
        .chunks_mut(share)
        .map(|clients| -> SliceJob<'_, TurnAnswers> {
            Box::new(move || ask(clients, statements, length))
        })
        .collect();
    let mut all = TurnAnswers::default();
    for answers in run_parallel(jobs)? {
        all.right += answers.right;
        all.wrong += answers.wrong;
    }
    Ok(all)
}

/// Waits for what comes on any connection that this epoll knows, and returns how much did.
pub(crate) fn wait(epoll: &Epoll, events: &mut [EpollEvent]) -> Result<usize, BenchClientError> {
    let timeout = EpollTimeout::try_from(TIMEOUT).unwrap_or(EpollTimeout::NONE);
    loop {
        match epoll.wait(events, timeout) {
            Err(Errno::EINTR) => {}
            Ok(0) => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            come => return Ok(come.map_err(io::Error::from)?),
        }
    }
}

/// An epoll that tells of each connection by its place.
pub(crate) fn watch(clients: &[BenchClient]) -> Result<Epoll, BenchClientError> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
    for (place, client) in (0..).zip(clients) {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, place);
        epoll.add(client, event).map_err(io::Error::from)?;
    }
    Ok(epoll)
}

fn ask(
    clients: &mut [BenchClient],
    statements: &[CheckedStatement],
    length: Duration,
) -> Result<TurnAnswers, BenchClientError> {
    let epoll = watch(clients)?;
    let until = Instant::now() + length;
    let mut asked = statements.iter().cycle();
    // What each connection waits for.
    let mut asking: Vec<(Option<&CheckedStatement>, Vec<u8>)> =
        vec![(None, Vec::new()); clients.len()];
    let mut left = clients.len();
    for (client, (statement, rows)) in clients.iter_mut().zip(&mut asking) {
        *statement = begin(client, asked.next(), rows)?;
    }
    let mut answers = TurnAnswers::default();
    let mut events = [EpollEvent::empty(); BATCH];
    while left > 0 {
        let come = wait(&epoll, &mut events)?;
        for event in events.iter().take(come) {
            let place = usize::try_from(event.data()).unwrap_or(usize::MAX);
            let (Some(client), Some((statement, rows))) =
                (clients.get_mut(place), asking.get_mut(place))
            else {
                continue;
            };
            if !client.read_more(rows)? {
                continue;
            }
            match statement {
                Some(statement) if *rows == statement.expected => answers.right += 1,
                _ => answers.wrong += 1,
            }
            if Instant::now() < until && !STOP.load(Ordering::Relaxed) {
                *statement = begin(client, asked.next(), rows)?;
            } else {
                left -= 1;
            }
        }
    }
    Ok(answers)
}

fn begin<'a>(
    client: &mut BenchClient,
    statement: Option<&'a CheckedStatement>,
    rows: &mut Vec<u8>,
) -> Result<Option<&'a CheckedStatement>, BenchClientError> {
    if let Some(statement) = statement {
        client.send_query(&statement.packet, rows)?;
    }
    Ok(statement)
}
