//! What an idle session costs a relay: resident memory before and behind thousands of logins.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use headwater::lab::bench::client::Client;
use headwater::lab::private_server::Kind;

use crate::contenders::{Running, Setup};
use crate::score::{Contender, Figure, Score};
use crate::stage::Stage;

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
pub(crate) fn options(kind: Kind) -> Vec<String> {
    let mut options = vec![
        format!("--max-connections={}", SESSIONS + 2 * SPARED),
        "--thread-cache-size=0".to_owned(),
        "--performance-schema=OFF".to_owned(),
        "--back-log=1000".to_owned(),
    ];
    if kind == Kind::Mariadb {
        options.push("--thread-handling=pool-of-threads".to_owned());
    }
    options
}

/// Opens so many sessions through each relay, one relay after the other.
pub(crate) fn measure(
    stage: &Stage,
    setup: &Setup,
    contenders: &[Contender],
    sessions: usize,
    mut say: impl FnMut(Contender),
) -> anyhow::Result<Score> {
    let mut score = Score::new(Figure::Idle);
    for contender in contenders {
        say(*contender);
        let running = Running::start(*contender, setup, &stage.account)?;
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
fn open(running: &Running, stage: &Stage, count: usize) -> anyhow::Result<Vec<Client>> {
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        crate::ensure_not_stopped()?;
        let mut client = Client::connect(&running.address, &stage.account)
            .with_context(|| format!("{} took {number} sessions", running.contender.name()))?;
        for statement in &stage.point {
            let mut rows = Vec::new();
            client.ask(&statement.packet, &mut rows)?;
            ensure!(rows == statement.expected, "a wrong answer to DO 1");
        }
        clients.push(client);
    }
    Ok(clients)
}

fn wait_until_empty(stage: &Stage) -> anyhow::Result<()> {
    let address = stage.server.addr().to_string();
    let mut client = Client::connect(&address, &stage.account)?;
    let until = Instant::now() + EMPTY_TIMEOUT;
    while Instant::now() < until {
        crate::ensure_not_stopped()?;
        let sessions = client.numbers("SELECT COUNT(*) FROM information_schema.processlist")?;
        if sessions.iter().all(|count| *count < SPARED as u64) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(200));
    }
    bail!("the server keeps sessions that have ended")
}
