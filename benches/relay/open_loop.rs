//! An open loop: statements arrive at a fixed rate, whether those before them are answered or not. One that finds all
//! connections taken waits, and its latency counts from when it should have been sent: a relay that stops for a moment
//! is charged for everything that arrived meanwhile.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headwater_lab::bench::client::{BenchClient, BenchClientError};
use nix::sys::epoll::{EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::closed_loop::{BATCH, STOP, wait, watch};
use crate::stage::CheckedStatement;

/// A contender had no turn for a while: what arrives first is asked and not counted.
const WARM_UP: Duration = Duration::from_millis(100);
/// What tells of the clock, beside the places of connections.
const CLOCK: u64 = u64::MAX;

/// Arrivals of a turn.
struct ArrivalSchedule {
    start: Instant,
    interval: Duration,
    begun: u32,
    count: u32,
}

impl ArrivalSchedule {
    /// When the next statement should be sent, if that is not later than `now`.
    fn due(&mut self, now: Instant) -> Option<Instant> {
        let intended = self.start + self.interval * self.begun;
        if self.begun == self.count || intended > now {
            return None;
        }
        self.begun += 1;
        Some(intended)
    }
}

/// Lets so many arrive each second, for as long; returns how long each took from when it should have been sent.
pub(crate) fn run_turn(
    clients: &mut [BenchClient],
    statement: &CheckedStatement,
    rate: f64,
    length: Duration,
) -> Result<Vec<Duration>, BenchClientError> {
    let interval = Duration::from_secs_f64(1.0 / rate.max(1.0));
    let epoll = watch(clients)?;
    let clock = clock(interval)?;
    let event = EpollEvent::new(EpollFlags::EPOLLIN, CLOCK);
    epoll.add(clock.as_fd(), event).map_err(io::Error::from)?;
    let start = Instant::now();
    let mut arrivals = ArrivalSchedule {
        start,
        interval,
        begun: 0,
        count: u32::try_from(length.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX),
    };
    let mut free: Vec<usize> = (0..clients.len()).collect();
    let mut intended = vec![start; clients.len()];
    let mut rows = Vec::new();
    let mut latencies = Vec::new();
    let mut events = [EpollEvent::empty(); BATCH];
    while arrivals.begun < arrivals.count || free.len() < clients.len() {
        let come = wait(&epoll, &mut events)?;
        for event in events.iter().take(come) {
            if event.data() == CLOCK {
                clock.wait().map_err(io::Error::from)?;
                continue;
            }
            let place = usize::try_from(event.data()).unwrap_or(usize::MAX);
            let (Some(client), Some(since)) = (clients.get_mut(place), intended.get(place)) else {
                continue;
            };
            if client.read_more(&mut rows)? {
                free.push(place);
                if *since - start >= WARM_UP {
                    latencies.push(since.elapsed());
                }
            }
        }
        if STOP.load(Ordering::Relaxed) {
            break;
        }
        while let Some(place) = free.last().copied()
            && let Some(due) = arrivals.due(Instant::now())
        {
            free.pop();
            if let (Some(client), Some(since)) = (clients.get_mut(place), intended.get_mut(place)) {
                *since = due;
                client.send_query(&statement.packet, &mut rows)?;
            }
        }
    }
    Ok(latencies)
}

/// Ends a wait when the next statement is due: waits of an epoll count in milliseconds.
fn clock(interval: Duration) -> Result<TimerFd, BenchClientError> {
    let flags = TimerFlags::TFD_CLOEXEC;
    let clock = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(io::Error::from)?;
    let every = Expiration::Interval(TimeSpec::from_duration(interval));
    clock
        .set(every, TimerSetTimeFlags::empty())
        .map_err(io::Error::from)?;
    Ok(clock)
}
