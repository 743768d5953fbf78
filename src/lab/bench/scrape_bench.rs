//! `--admin`: what it costs that somebody looks in. Timelines are asked for from memory through one Headwater, in turns: while nobody asks at its
//! admin port, and while `/metrics` is asked for ten times a second and what the page shows once.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::client::BenchClient;
use super::cpu_time::{ProcessorTime, processor_time};
use super::figures::LatencyFigures;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::measure::{ConnectionTally, SLICE_TIME};
use super::prepared_task::PreparedTask;
use super::proxy_process::ProxyProcess;
use super::query_path::{ConnectionRoute, PageTask, QueryForm, QueryPath};
use super::slice::run_slice;
use super::{BenchError, StopSignal, round_runner};
use crate::lab::private_server::free_port;

/// Connections that ask for timelines.
pub const CONNECTIONS: usize = 8;
/// Scrapes a second.
pub const SCRAPES_PER_SECOND: u32 = 10;
/// What the page asks for, each once a second.
const PAGE_PATHS: [&str; 5] = [
    "/api/health",
    "/api/history",
    "/api/hottest",
    "/api/statements?most=20",
    "/api/sessions?most=50",
];
/// Turns in a second.
const TURNS_PER_SECOND: u32 = 4;
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The figures with and without.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ScrapeFigures {
    /// While nobody looks.
    pub alone: LatencyFigures,
    /// While somebody does.
    pub scraped: LatencyFigures,
    /// Answers that were given at the admin port.
    pub scrapes: u64,
    /// Headwater's processor time for each timeline while nobody looks, in microseconds.
    pub alone_us: Option<f64>,
    /// The same while somebody does, what is spent on the admin port included.
    pub scraped_us: Option<f64>,
}

impl ScrapeFigures {
    /// Timelines a second while somebody looks, by those while nobody does.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.scraped.rate / self.alone.rate
    }
}

/// Measures both in turns.
///
/// # Errors
/// When something fails on the way.
pub fn measure(
    flags: &BenchFlags,
    account: &BenchAccount,
    tasks: &[PageTask],
    stop: &StopSignal,
) -> Result<ScrapeFigures, BenchError> {
    let at = BenchError::for_address(&flags.upstream);
    let port = free_port().map_err(super::proxy_process::ProxyError::Start)?;
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let proxy = ProxyProcess::start(flags, &["--admin-listen", &admin.to_string()])?;
    let mut direct = BenchClient::connect(&flags.upstream, account).map_err(&at)?;
    let works = tasks
        .iter()
        .map(|task| PreparedTask::new(*task, &mut direct))
        .collect::<Result<Vec<_>, _>>()
        .map_err(&at)?;
    let address = proxy.address();
    let at = BenchError::for_address(&address);
    let mut clients = (0..CONNECTIONS)
        .map(|_| BenchClient::connect(&address, account).map_err(&at))
        .collect::<Result<Vec<_>, _>>()?;
    let way = QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail);
    let mut turns = [false, true].map(|looks| (looks, ProcessorTime::default()));
    let mut lanes = [
        ConnectionTally::for_connections(CONNECTIONS, works.len())?,
        ConnectionTally::for_connections(CONNECTIONS, works.len())?,
    ];
    let mut scrapes = 0;
    // Round 0 fills memory and does not count. A difference of one in a hundred takes many turns.
    for round in 0..=round_runner::round_count(flags) * 2 {
        for ((looks, spent), lanes) in turns.iter_mut().zip(&mut lanes) {
            if stop.is_requested() {
                return Err(BenchError::Stopped);
            }
            let before = processor_time(proxy.pid());
            let looked = thread::scope(|scope| {
                let looking = looks.then(|| scope.spawn(move || scrape_admin(admin, round)));
                let asked =
                    run_slice(way, SLICE_TIME, &mut clients, lanes, &works, stop).map_err(&at);
                let looked = looking.map_or(Ok(Ok(0)), thread::ScopedJoinHandle::join);
                asked.map(|_| looked)
            })?;
            let looked = looked.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            scrapes += looked.map_err(super::proxy_process::ProxyError::Start)?;
            spent.add(before, processor_time(proxy.pid()));
            if round == 0 {
                lanes.iter_mut().for_each(ConnectionTally::reset);
                *spent = ProcessorTime::default();
                scrapes = 0;
            }
        }
    }
    let [alone, scraped] = lanes;
    let (alone, scraped) = (
        LatencyFigures::from_lanes(&alone)?,
        LatencyFigures::from_lanes(&scraped)?,
    );
    let [(_, spent_alone), (_, spent_scraped)] = turns;
    Ok(ScrapeFigures {
        alone_us: spent_alone.per_answer_us(alone.answers),
        scraped_us: spent_scraped.per_answer_us(scraped.answers),
        alone,
        scraped,
        scrapes,
    })
}

/// Asks at the admin port for as long as a turn lasts; returns how often.
fn scrape_admin(admin: SocketAddr, round: u32) -> io::Result<u64> {
    let begun = Instant::now();
    let every = Duration::from_secs(1) / SCRAPES_PER_SECOND;
    let mut asked = 0;
    let mut due = Duration::ZERO;
    while due < SLICE_TIME {
        thread::sleep(due.saturating_sub(begun.elapsed()));
        get(admin, "/metrics")?;
        asked += 1;
        due += every;
    }
    // Each once a second: a share of them in each turn.
    for path in PAGE_PATHS
        .iter()
        .skip((round % TURNS_PER_SECOND) as usize)
        .step_by(TURNS_PER_SECOND as usize)
    {
        get(admin, path)?;
        asked += 1;
    }
    Ok(asked)
}

fn get(admin: SocketAddr, path: &str) -> io::Result<()> {
    let mut socket = TcpStream::connect(admin)?;
    socket.set_read_timeout(Some(READ_TIMEOUT))?;
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    match answer.starts_with(b"HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{path} is answered with {}",
            String::from_utf8_lossy(
                answer
                    .split(|byte| *byte == b'\r')
                    .next()
                    .unwrap_or_default()
            )
        ))),
    }
}
