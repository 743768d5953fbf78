//! One run: a world from a seed, and the checks of its result.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use headwater_proxy::link::memory::MemoryListener;
use headwater_proxy::session::shared_state::SharedState;
use tokio::time::{Instant, sleep};

use crate::fleet::ProxyFleet;
use crate::model::{ModelState, ModelTable, RowEdit, TableChange};
use crate::operator::ServerOperator;
use crate::plan::{PRIMARY, RestartKind, WorldPlan};
use crate::random::Random;
use crate::reader::{AppReader, StatementOutcome, memory_answers};
use crate::reduction::PlanReduction;
use crate::server::WorldServer;
use crate::trace::TraceLine;
use crate::writes::{self, AUTHORS, READERS};

const APPS: u64 = 3;
/// How long apps wait for memory to answer before they begin.
const START: Duration = Duration::from_secs(5);
/// Transactions of each client that writes without Headwater.
const TRANSACTIONS: usize = 300;
/// The limit in simulated time; a run ends long before it.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The result of a world.
pub(crate) struct WorldOutcome {
    /// The number of pages and Headwater's counters, or the failure.
    pub(crate) outcome: Result<(u64, String), String>,
    /// The trace.
    pub(crate) lines: Vec<TraceLine>,
}

impl Random {
    /// A random pause of up to so many milliseconds; short ones are as likely as long ones.
    pub(crate) fn pause(&mut self, most: u64) -> Duration {
        let micros = self.below(most * 1000) + 1;
        Duration::from_micros(micros >> self.below(10))
    }

    pub(crate) fn fork(&mut self) -> Random {
        Random(self.next())
    }
}

/// A world that takes so long in real time is stuck: it needs a fraction of a second.
const STALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the world of this seed on a thread of its own; `traced` records its trace.
pub(crate) fn run(seed: u64, reduction: &PlanReduction, traced: bool) -> WorldOutcome {
    let reduction = reduction.clone();
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let _ = done.send(runtime.block_on(world(seed, &reduction, traced)));
    });
    let why = match is_done.recv_timeout(STALL_TIMEOUT) {
        Ok(done) => return done,
        Err(mpsc::RecvTimeoutError::Disconnected) => "a panic",
        Err(mpsc::RecvTimeoutError::Timeout) => "its thread stands still, or spins",
    };
    WorldOutcome {
        outcome: Err(why.to_owned()),
        lines: Vec::new(),
    }
}

async fn world(seed: u64, reduction: &PlanReduction, traced: bool) -> WorldOutcome {
    let mut random = Random(seed);
    headwater_proxy::binlog::random::seed(random.next());
    headwater_proxy::clock::simulate();
    let mut plan = WorldPlan::drawn(&mut random.fork());
    reduction.apply(&mut plan);
    let server = Arc::new(WorldServer::new(
        initial_state(plan.messages, &mut random.fork()),
        &plan,
        traced,
    ));
    server.trace.follow_log();
    server.trace.note("world", format_args!("{plan:?}"));
    let lived = run_world(Arc::clone(&server), plan, random);
    let outcome = match tokio::time::timeout(PATIENCE, lived).await {
        Ok(outcome) => outcome,
        Err(_) => Err("something waits for good".to_owned()),
    };
    WorldOutcome {
        outcome,
        lines: server.trace.lines(),
    }
}

async fn run_world(
    server: Arc<WorldServer>,
    plan: WorldPlan,
    mut random: Random,
) -> Result<(u64, String), String> {
    let listener = MemoryListener::bind(PRIMARY).expect("an address");
    tokio::spawn(Arc::clone(&server).run(listener, random.fork()));
    let fleet = Arc::new(ProxyFleet::start(&plan, random.fork()).await?);
    let mut others: Vec<_> = (0..plan.writers)
        .map(|_| tokio::spawn(write(Arc::clone(&server), plan.rest, random.fork())))
        .collect();
    let operator = ServerOperator {
        server: Arc::clone(&server),
        fleet: Arc::clone(&fleet),
        plan: plan.clone(),
        random: random.fork(),
    };
    others.push(tokio::spawn(operator.run()));
    let mut reader = |number| AppReader {
        number,
        server: Arc::clone(&server),
        fleet: Arc::clone(&fleet),
        random: random.fork(),
        plan: plan.clone(),
        transaction: None,
        last: None,
    };
    if plan.warm {
        for member in fleet.in_use() {
            member.follow(START).await;
        }
    }
    let readers: Vec<_> = (1..=APPS)
        .map(|number| tokio::spawn(reader(number).run(plan.steps.div_ceil(APPS as usize))))
        .collect();
    let mut pages = 0;
    for reader in readers {
        pages += reader.await.map_err(|it| it.to_string())??;
    }
    plan.weather.calm();
    server.model().denied.clear();
    fleet.wait_for_takeovers().await;
    fleet.reload().await?;
    for (number, member) in (0..).zip(fleet.in_use()) {
        recover(reader(number)).await?;
        check_memory_bound(&member.shared())?;
    }
    for other in others {
        other.abort();
    }
    fleet.end().await?;
    let faults = server.faults();
    if let Some(first) = faults.first() {
        return Err(format!("{first} (the first of {} faults)", faults.len()));
    }
    let counts = fleet.summaries();
    let may_contradict = matches!(
        plan.restarts,
        Some(RestartKind::Losing | RestartKind::Replaced)
    );
    if !may_contradict && counts.contains("contradictions=") {
        return Err(format!("memory and log contradict each other: {counts}"));
    }
    Ok((pages, counts))
}

/// Checks that memory answers again once nothing is delayed or lost any more.
async fn recover(mut reader: AppReader) -> Result<(), String> {
    // With so little memory there may never be room.
    if reader.plan.index_bytes.is_some() {
        return Ok(());
    }
    let mut begun = Instant::now();
    let (calls, feeds) = memory_answers(&reader.fleet);
    let mut client = reader.connect().await?;
    let thread = reader.server.model().connect();
    for attempt in 0u64.. {
        // If no row shows whether the last transactions are readable, write something else.
        if attempt % 50 == 49 {
            let changes = [ModelTable::Message, ModelTable::Statuses].map(|table| {
                let id = reader.server.model().newest().newest(table) + 1;
                TableChange::Row(RowEdit::insert(table, (id, 1, 0)))
            });
            let server = Arc::clone(&reader.server);
            server.commit(thread, &changes, &mut reader.random).await;
        }
        let outcome = match attempt % 2 {
            0 => reader.call(&mut client, 1).await?,
            _ => {
                let feed = reader.page_of(1);
                reader.feed(&mut client, &feed).await?
            }
        };
        if let StatementOutcome::CutOff = outcome {
            client = reader.connect().await?;
        }
        let now = memory_answers(&reader.fleet);
        if now.0 >= calls + 3 && (now.1 >= feeds + 3 || !reader.plan.always_narrow) {
            break;
        }
        // Frequent at first, rarer later.
        sleep(Duration::from_millis(20 + attempt)).await;
        if reader.server.is_down() {
            begun = Instant::now();
        }
        let bound = reader.plan.recovery();
        if begun.elapsed() > bound {
            let counts = reader.fleet.summaries();
            return Err(format!("memory does not answer after {bound:?}: {counts}"));
        }
    }
    Ok(())
}

/// How much memory may exceed its limit: lists that are being loaded, which cannot be evicted.
const MARGIN: usize = 8_192;

fn check_memory_bound(shared: &SharedState) -> Result<(), String> {
    let Some(held) = shared.index_usage() else {
        return Ok(());
    };
    let (bytes, most) = (held.sizes[0], held.max_bytes);
    match bytes <= most.saturating_add(MARGIN) {
        true => Ok(()),
        false => Err(format!("memory holds {bytes} bytes, and may hold {most}")),
    }
}

fn initial_state(messages: u64, random: &mut Random) -> ModelState {
    let mut state = ModelState::default();
    let mut comes = |table, row| {
        state.apply(RowEdit::insert(table, row));
    };
    for id in 1..=messages {
        comes(ModelTable::Message, (id, 1 + random.below(AUTHORS), 0));
        comes(ModelTable::Statuses, (id, 1 + random.below(AUTHORS), 0));
    }
    for author in (1..=AUTHORS).filter(|author| author % 3 != 0) {
        comes(ModelTable::Profiles, (author, 0, 0));
    }
    for reader in 1..=READERS {
        for author in 1..=AUTHORS {
            for table in [ModelTable::Follower, ModelTable::Followers] {
                if random.one_in(3) {
                    comes(table, (reader, author, 0));
                }
            }
            if random.one_in(6) {
                comes(ModelTable::Blocks, (reader, author, 0));
            }
        }
    }
    state
}

/// Writes without Headwater.
async fn write(server: Arc<WorldServer>, rest: u64, mut random: Random) {
    for _ in 0..TRANSACTIONS {
        sleep(random.pause(rest)).await;
        if server.is_down() {
            continue;
        }
        let thread = server.model().connect();
        let mut state = server.model().newest().clone();
        let mut changes = Vec::new();
        for _ in 0..1 + random.below(3) / 2 * random.below(4) {
            let edit = state.apply(writes::drawn(&state, &mut random));
            changes.extend(edit.map(TableChange::Row));
        }
        server.commit(thread, &changes, &mut random).await;
    }
}
