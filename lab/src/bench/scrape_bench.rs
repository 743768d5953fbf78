//! `--admin`: measures the cost of scrapes. Timelines from memory through one Headwater, in alternating slices: without requests to its
//! admin port, and with ten scrapes of `/metrics` and one load of the page's data a second.

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
use super::slice::run_slice;
use super::{BenchError, StopSignal, round_runner};
use crate::private_server::free_port;
use crate::query_path::{ConnectionRoute, PageTask, QueryForm, QueryPath};

/// Connections that read timelines.
pub const CONNECTIONS: usize = 8;
/// Scrapes a second.
pub const SCRAPES_PER_SECOND: u32 = 10;
/// The requests of the admin page, each once a second.
const PAGE_PATHS: [&str; 5] = [
    "/api/health",
    "/api/history",
    "/api/hottest",
    "/api/statements?most=20",
    "/api/sessions?most=50",
];
/// Slices in a second.
const TURNS_PER_SECOND: u32 = 4;
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The figures with and without scrapes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ScrapeFigures {
    /// Without scrapes.
    pub alone: LatencyFigures,
    /// With scrapes.
    pub scraped: LatencyFigures,
    /// Requests answered by the admin port.
    pub scrapes: u64,
    /// Headwater's processor time for each timeline without scrapes, in microseconds.
    pub alone_us: Option<f64>,
    /// The same with scrapes, including the time spent on the admin port.
    pub scraped_us: Option<f64>,
}

impl ScrapeFigures {
    /// Timelines a second with scrapes, divided by those without.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.scraped.rate / self.alone.rate
    }
}

/// Measures both in alternating slices.
///
/// # Errors
/// Fails if a step fails.
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
    let prepared_tasks = tasks
        .iter()
        .map(|task| PreparedTask::new(*task, &mut direct))
        .collect::<Result<Vec<_>, _>>()
        .map_err(&at)?;
    let address = proxy.address();
    let at = BenchError::for_address(&address);
    let mut clients = (0..CONNECTIONS)
        .map(|_| BenchClient::connect(&address, account).map_err(&at))
        .collect::<Result<Vec<_>, _>>()?;
    let path = QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail);
    let mut turns = [false, true].map(|looks| (looks, ProcessorTime::default()));
    let mut tallies = [
        ConnectionTally::for_connections(CONNECTIONS, prepared_tasks.len())?,
        ConnectionTally::for_connections(CONNECTIONS, prepared_tasks.len())?,
    ];
    let mut scrapes = 0;
    // Round 0 fills memory and does not count. A difference of 1% takes many slices.
    for round in 0..=round_runner::round_count(flags) * 2 {
        for ((looks, spent), tallies) in turns.iter_mut().zip(&mut tallies) {
            if stop.is_requested() {
                return Err(BenchError::Stopped);
            }
            let before = processor_time(proxy.pid());
            let scraped_count = thread::scope(|scope| {
                let scraper = looks.then(|| scope.spawn(move || scrape_admin(admin, round)));
                let queried = run_slice(
                    path,
                    SLICE_TIME,
                    &mut clients,
                    tallies,
                    &prepared_tasks,
                    stop,
                )
                .map_err(&at);
                let scraped_count = scraper.map_or(Ok(Ok(0)), thread::ScopedJoinHandle::join);
                queried.map(|_| scraped_count)
            })?;
            let scraped_count = scraped_count.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            scrapes += scraped_count.map_err(super::proxy_process::ProxyError::Start)?;
            spent.add(before, processor_time(proxy.pid()));
            if round == 0 {
                tallies.iter_mut().for_each(ConnectionTally::reset);
                *spent = ProcessorTime::default();
                scrapes = 0;
            }
        }
    }
    let [alone, scraped] = tallies;
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

/// Requests the admin port for the length of a slice; returns the number of requests.
fn scrape_admin(admin: SocketAddr, round: u32) -> io::Result<u64> {
    let begun = Instant::now();
    let every = Duration::from_secs(1) / SCRAPES_PER_SECOND;
    let mut requests = 0;
    let mut due = Duration::ZERO;
    while due < SLICE_TIME {
        thread::sleep(due.saturating_sub(begun.elapsed()));
        get(admin, "/metrics")?;
        requests += 1;
        due += every;
    }
    // Each once a second: a share of them in each slice.
    for path in PAGE_PATHS
        .iter()
        .skip((round % TURNS_PER_SECOND) as usize)
        .step_by(TURNS_PER_SECOND as usize)
    {
        get(admin, path)?;
        requests += 1;
    }
    Ok(requests)
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
