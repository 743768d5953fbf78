//! What an idle session costs a relay: resident memory before and behind thousands of logins.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use headwater_lab::bench::client::BenchClient;
use headwater_lab::private_server::ServerKind;

use crate::contenders::{RelaySetup, RunningContender};
use crate::score::{Contender, FigureScore, RelayFigure};
use crate::stage::RelayStage;

/// Sessions wanted.
pub(crate) const SESSIONS: usize = 10_000;
/// Sessions that come first, so that code and caches are there before the first look.
const FIRST: usize = 8;
/// Sessions of a relay that are not counted.
pub(crate) const SPARED: usize = 50;
/// Time for a relay to be done with what it keeps for busy sessions.
const REST: Duration = Duration::from_secs(5);
/// Time for the server to be done with sessions that have quit.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(120);

/// Options of a server that can hold so many sessions at little cost.
pub(crate) fn options(kind: ServerKind) -> Vec<String> {
    let mut options = vec![
        format!("--max-connections={}", SESSIONS + 2 * SPARED),
        "--thread-cache-size=0".to_owned(),
        "--performance-schema=OFF".to_owned(),
        "--back-log=1000".to_owned(),
    ];
    if kind == ServerKind::Mariadb {
        options.push("--thread-handling=pool-of-threads".to_owned());
    }
    options
}

/// Opens so many sessions through each relay, one relay after the other.
pub(crate) fn measure(
    stage: &RelayStage,
    setup: &RelaySetup,
    contenders: &[Contender],
    sessions: usize,
    mut say: impl FnMut(Contender),
) -> anyhow::Result<FigureScore> {
    let mut score = FigureScore::new(RelayFigure::Idle);
    for contender in contenders {
        say(*contender);
        let running = RunningContender::start(*contender, setup, &stage.account)?;
        let Some(process) = &running.process else {
            continue;
        };
        let first = open(&running, stage, FIRST)?;
        thread::sleep(REST);
        let before = process.resident_bytes()?;
        let idle = open(&running, stage, sessions)?;
        thread::sleep(REST);
        let behind = process.resident_bytes()?;
        let kib = behind.saturating_sub(before) as f64 / 1_024.0;
        score.add(*contender, kib / sessions as f64);
        drop((first, idle));
        drop(running);
        wait_until_empty(stage)?;
    }
    Ok(score)
}

/// Logs in, and has each session answer one statement.
fn open(
    running: &RunningContender,
    stage: &RelayStage,
    count: usize,
) -> anyhow::Result<Vec<BenchClient>> {
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        crate::ensure_not_stopped()?;
        let mut client = BenchClient::connect(&running.address, &stage.account)
            .with_context(|| format!("{} took {number} sessions", running.contender.name()))?;
        for statement in &stage.point {
            let mut rows = Vec::new();
            client.query(&statement.packet, &mut rows)?;
            ensure!(rows == statement.expected, "a wrong answer to DO 1");
        }
        clients.push(client);
    }
    Ok(clients)
}

fn wait_until_empty(stage: &RelayStage) -> anyhow::Result<()> {
    let address = stage.server.addr().to_string();
    let mut client = BenchClient::connect(&address, &stage.account)?;
    let until = Instant::now() + EMPTY_TIMEOUT;
    while Instant::now() < until {
        crate::ensure_not_stopped()?;
        let sessions =
            client.query_numbers("SELECT COUNT(*) FROM information_schema.processlist")?;
        if sessions.iter().all(|count| *count < SPARED as u64) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(200));
    }
    bail!("the server keeps sessions that have ended")
}
