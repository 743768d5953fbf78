//! `headwater bench strategies`: compares all strategies for timelines on the same follows and messages.
//!
//! Pull, push and mixed forms, each with its real engine, started here: MariaDB, MySQL, Redis. A [`strategy`] reads pages and receives
//! writes; [`measurement`] compares its pages with the procedure's and measures; [`report`] shows the [`figures`].

pub mod article;
pub mod base_tables;
pub mod buckets;
pub mod charts;
pub mod figures;
pub mod flags;
pub mod growth;
pub mod growth_run;
pub mod kill_guard;
pub mod mailbox;
pub mod measurement;
pub mod packed_ids;
pub mod page;
pub mod pull;
pub mod push_rule;
pub mod redis_timelines;
pub mod report;
pub mod servers;
pub mod size_comparison;
pub mod strategy;
pub mod user_data;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use flags::StrategiesFlags;

use buckets::BucketStrategy;
use figures::{
    EngineDataset, OmittedStrategy, PostCost, SizeComparison, StrategiesReport, StrategyFigures,
};
use measurement::{
    ChangeCosts, ComparisonCount, MeasurementEffort, ReaderPage, SessionGroup, StalenessSample,
    StrategySessions, median,
};
use redis_timelines::RedisStrategy;
use servers::{StrategyData, StrategyServers};
use strategy::{FreshnessClaim, MemoryOwner, TimelineStrategy};
use user_data::UserData;

use super::client::BenchClientError;
use super::figures::LatencyFigures as Rates;
use super::{BenchError, StopSignal, proxy_process, run_interruptible, write, write_json};
use crate::demo::dataset::DatasetSize;
use crate::demo::load::LoadError;
use crate::private_server::{PrivateServerError, ServerKind};

/// The share of the free disk that strategies may fill.
const MAX_DISK_SHARE: f64 = 0.7;

/// The file of a report with all results of growth runs.
const GROWTH_FILE: &str = "growth.json";

/// Why the bench failed.
#[derive(Debug, thiserror::Error)]
pub enum StrategyError {
    /// A server could not be started.
    #[error(transparent)]
    Server(#[from] PrivateServerError),
    /// A server could not be filled.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A connection for filling the server failed.
    #[error("cannot fill the server")]
    Fill {
        /// The cause.
        source: mysql_async::Error,
    },
    /// A Headwater could not be started.
    #[error(transparent)]
    Proxy(#[from] proxy_process::ProxyError),
    /// A page could not be read.
    #[error("cannot ask for a page")]
    Client(#[from] BenchClientError),
    /// A statement was refused.
    #[error("cannot run {statement}")]
    Statement {
        /// Its beginning.
        statement: String,
        /// The cause.
        source: BenchClientError,
    },
    /// The user's own data cannot be used.
    #[error(transparent)]
    UserData(#[from] user_data::UserDataError),
    /// Redis refused a command, or cannot be reached.
    #[error("cannot ask Redis")]
    Redis(#[from] redis::RedisError),
    /// A row has another form than a message.
    #[error("a row that came is not a message")]
    UnexpectedRow,
    /// A file cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An error of code that is shared with the other benches.
    #[error(transparent)]
    Bench(Box<BenchError>),
    /// Latencies cannot be added up.
    #[error("latencies cannot be added up")]
    Addition(#[from] hdrhistogram::errors::AdditionError),
    /// The data set itself does not fit on the disk.
    #[error("the messages would take about {:.0} GB of {:.0} GB that are free on the disk: fewer --messages, or TMPDIR on another disk", bytes / 1e9, free / 1e9)]
    DiskFull {
        /// Its estimated size.
        bytes: f64,
        /// The free space.
        free: f64,
    },
    /// The earlier results cannot be used.
    #[error("cannot go on with {path}: remove it, or leave out --resume")]
    EarlierResults {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A thread ended early.
    #[error("a measuring thread ended early")]
    ThreadEnded,
    /// A signal was received.
    #[error("stopped before the end")]
    Stopped,
    /// The strategy in which an error happened.
    #[error("{strategy} on {engine}")]
    InStrategy {
        /// The strategy.
        strategy: &'static str,
        /// The server.
        engine: &'static str,
        /// The error.
        source: Box<StrategyError>,
    },
}

impl From<BenchError> for StrategyError {
    fn from(error: BenchError) -> StrategyError {
        StrategyError::Bench(Box::new(error))
    }
}

/// The strategies' names: MySQL has all of them.
fn names() -> Vec<&'static str> {
    let all = strategies(ServerKind::Mysql);
    all.iter().map(|strategy| strategy.name()).collect()
}

/// Names of strategies and servers, and the strategies' descriptions.
fn known_words() -> Vec<&'static str> {
    let all = strategies(ServerKind::Mysql);
    let strategy_words = all.iter().flat_map(|it| [it.name(), it.about()]);
    let servers = [ServerKind::Mariadb, ServerKind::Mysql].map(ServerKind::name);
    strategy_words.chain(servers).collect()
}

/// All strategies of this server, in the order of the report.
fn strategies(kind: ServerKind) -> Vec<Box<dyn TimelineStrategy>> {
    let mut all: Vec<Box<dyn TimelineStrategy>> = vec![Box::new(pull::JOIN), Box::new(pull::LIST)];
    if kind == ServerKind::Mysql {
        all.push(Box::new(pull::LATERAL));
    }
    all.extend([
        Box::new(pull::PROCEDURE) as Box<dyn TimelineStrategy>,
        Box::new(pull::HEADWATER_CALL),
        Box::new(pull::HEADWATER_NARROWED),
        Box::new(pull::HEADWATER_CACHED),
        Box::new(mailbox::MAILBOX),
        Box::new(mailbox::HYBRID),
        Box::new(packed_ids::PackedStrategy),
        Box::new(BucketStrategy::Time),
        Box::new(BucketStrategy::Size),
        Box::new(RedisStrategy::OnWrite),
        Box::new(RedisStrategy::OnRead),
        Box::new(RedisStrategy::Pull),
        Box::new(RedisStrategy::Window),
    ]);
    all
}

/// Measures, prints the table, and writes the files that the flags name.
///
/// # Errors
/// Fails if a step fails; after everything is printed also if a page differs from the procedure's.
pub async fn run(flags: StrategiesFlags) -> Result<(), BenchError> {
    let (json, folder, run) = (flags.json.clone(), flags.report.clone(), flags.run);
    if !flags.growth.is_empty() {
        let growth = run_interruptible(move |stop| {
            growth_run::measure_growth(&flags, stop, &|growth| {
                if let Some(path) = &json {
                    write_json(path, growth)?;
                }
                match &folder {
                    Some(folder) => save(folder, growth::files(growth), GROWTH_FILE, growth),
                    None => Ok(()),
                }
            })
        })
        .await?;
        print!("{}", growth::table(&growth.points));
        return check_equal(growth.points.iter().map(|point| &point.measured));
    }
    let figures =
        run_interruptible(move |stop| measure(&flags, stop).map_err(BenchError::from)).await?;
    print!("{}", report::table(&figures));
    if let Some(run) = run {
        print!("{}", run.comparison(&figures));
    }
    if let Some(path) = &json {
        write_json(path, &figures)?;
    }
    if let Some(folder) = &folder {
        match run {
            Some(run) => {
                let files = vec![(format!("{}.md", run.name()), run.report(&figures))];
                save(folder, Ok(files), &format!("{}.json", run.name()), &figures)?;
            }
            None => save(folder, report::files(&figures), "figures.json", &figures)?,
        }
    }
    check_equal(figures.strategies.iter())
}

/// Writes a report's files, and the figures beside them.
fn save(
    folder: &Path,
    files: Result<Vec<(String, String)>, Box<dyn std::error::Error>>,
    json: &str,
    figures: &impl serde::Serialize,
) -> Result<(), BenchError> {
    let failed = |source| BenchError::Write {
        path: folder.to_owned(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let files = files.map_err(|error| failed(io::Error::other(error.to_string())))?;
    for (name, text) in files {
        write(&folder.join(name), &text)?;
    }
    write_json(&folder.join(json), figures)
}

/// Fails unless every page equals the procedure's.
fn check_equal<'a>(all: impl Iterator<Item = &'a StrategyFigures>) -> Result<(), BenchError> {
    match all.map(|it| it.compared_pages - it.equal_pages).sum() {
        0 => Ok(()),
        count => Err(BenchError::Differences { count }),
    }
}

fn measure(flags: &StrategiesFlags, stop: &StopSignal) -> Result<StrategiesReport, StrategyError> {
    let effort = flags.effort();
    let mut figures = StrategiesReport {
        headwater: env!("CARGO_PKG_VERSION"),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        connections: effort.connections,
        seconds: effort.seconds(),
        engines: Vec::new(),
        strategies: Vec::new(),
    };
    let user_data = match (&flags.follows_from, &flags.messages_from) {
        (Some(follows), Some(messages)) => Some(UserData::read(follows, messages)?),
        _ => None,
    };
    let data = match &user_data {
        Some(user_data) => StrategyData::Provided(user_data),
        None => StrategyData::Generated(flags.size(), flags.fans()),
    };
    for kind in flags.kinds() {
        let (engine, measured) = measure_engine(kind, data, None, flags, &effort, stop)?;
        figures.engines.push(engine);
        figures.strategies.extend(measured);
    }
    Ok(figures)
}

/// A strategy, and its results so far.
struct StrategyProgress {
    strategy: Box<dyn TimelineStrategy>,
    build_s: f64,
    own_table_bytes: u64,
    memory_bytes: u64,
    compared: ComparisonCount,
    newest: Rates,
    beside: Option<SizeComparison>,
    deep: Rates,
    writes: Rates,
    posts: Vec<PostCost>,
    changes: ChangeCosts,
    staleness: StalenessSample,
}

fn measure_engine(
    kind: ServerKind,
    data: StrategyData<'_>,
    smallest: Option<DatasetSize>,
    flags: &StrategiesFlags,
    effort: &MeasurementEffort,
    stop: &StopSignal,
) -> Result<(EngineDataset, Vec<StrategyFigures>), StrategyError> {
    let mut servers = StrategyServers::start(kind, data, flags.buffer_pool, stop)?;
    let size = servers.size;
    let engine = kind.name();
    let base = servers.table_bytes(&["follower", "message"])?;
    let mut filled = EngineDataset {
        engine,
        version: servers.version().to_owned(),
        users: size.users,
        follows: size.follows(),
        fans: data.fans(),
        buffer_pool_gb: flags.buffer_pool,
        messages: size.messages,
        base_bytes: base,
        followers_per_message: servers.followers_per_message()?,
        follows_per_reader: servers.follows_per_reader()?,
        filled_s: servers.filled.as_secs_f64(),
        left_out: Vec::new(),
    };
    let mut chosen = strategies(kind);
    chosen.retain(|strategy| flags.includes(strategy.name()));
    omit_unfit(&mut chosen, &mut filled, servers.free_bytes()?, effort);
    let accelerated = |it: &dyn TimelineStrategy| matches!(it.memory(), MemoryOwner::Headwater);
    let readers = servers.some_readers(effort.compared)?;
    let warmed = match chosen.iter().any(|it| accelerated(it.as_ref())) {
        true => servers.start_headwater(&readers)?.as_secs_f64(),
        false => 0.0,
    };
    let mut entries = Vec::new();
    for strategy in chosen {
        if stop.is_requested() {
            return Err(StrategyError::Stopped);
        }
        let name = strategy.name();
        eprintln!("{engine}: {name}: being built");
        entries.push(build(&servers, strategy, warmed).map_err(in_strategy(engine, name))?);
    }
    eprintln!(
        "{engine}: the pages of {} readers asked of the procedure",
        readers.len()
    );
    let (newest, deep) = measurement::reader_pages(&servers, &readers, effort)?;
    let mut procedures = open_sessions(&pull::PROCEDURE, &servers, effort)?;
    let newest_truth = measurement::read_pages(&mut procedures, &newest)?;
    let deep_truth = measurement::read_pages(&mut procedures, &deep)?;
    drop(procedures);
    let mut session_groups = Vec::new();
    for entry in &mut entries {
        let name = entry.strategy.name();
        eprintln!(
            "{engine}: {name}: {} pages compared",
            newest.len() + deep.len()
        );
        let mut group = open_sessions(entry.strategy.as_ref(), &servers, effort)?;
        let mut check = |requested: &[ReaderPage], truth: &[_]| {
            measurement::compare_pages(&mut group, requested, truth, &mut entry.compared)
        };
        check(&newest, &newest_truth)
            .and_then(|()| match entry.strategy.claim() {
                FreshnessClaim::Fresh => check(&deep, &deep_truth),
                FreshnessClaim::Capped | FreshnessClaim::Stale => Ok(()),
            })
            .map_err(in_strategy(engine, name))?;
        session_groups.push(group);
    }
    measure_reads(
        &mut entries,
        &mut session_groups,
        (&newest, &deep),
        effort,
        stop,
    )?;
    if let Some(smallest) = smallest {
        let of_headwater = entries.iter_mut().zip(&mut session_groups);
        let of_headwater = of_headwater.filter(|(entry, _)| accelerated(entry.strategy.as_ref()));
        let mut both: Vec<_> = of_headwater
            .map(|(entry, group)| (entry.strategy.as_ref(), group, &mut entry.beside))
            .collect();
        size_comparison::measure(kind, smallest, &newest, &mut both, flags, effort, stop)?;
    }
    // After the reads, because they fill the caches.
    for entry in &mut entries {
        entry.memory_bytes = servers.memory_bytes(entry.strategy.memory())?;
    }
    let follows = measurement::some_follows(&servers, effort.changes)?;
    for entry in &mut entries {
        let (name, strategy) = (entry.strategy.name(), entry.strategy.as_ref());
        eprintln!("{engine}: {name}: follows, unfollows and deletes");
        if stop.is_requested() {
            return Err(StrategyError::Stopped);
        }
        let changes =
            measurement::measure_changes(&servers, strategy, &follows, &mut entry.compared);
        entry.changes = changes.map_err(in_strategy(engine, name))?;
    }
    let (followed, authors) = (
        measurement::most_followed(&servers, effort)?,
        measurement::writing_authors(&servers)?,
    );
    eprintln!("{engine}: messages written");
    let ids = &servers.ids;
    let once = |session: &mut dyn strategy::AppSession, index: usize, _: &mut page::MessagePage| {
        let author = authors.get(index).copied().unwrap_or_default();
        measurement::write_message(ids, session, author).map(drop)
    };
    let sides = session_groups.iter_mut().map(|group| SessionGroup {
        sessions: group,
        action: &once,
    });
    let mut sides: Vec<_> = sides.collect();
    let writes = measurement::measure_rates(&mut sides, effort.rounds, authors.len(), stop)?;
    for ((entry, group), rate) in entries.iter_mut().zip(&mut session_groups).zip(writes) {
        let (name, strategy) = (entry.strategy.name(), entry.strategy.as_ref());
        entry.writes = rate;
        if let Some(session) = group.first_mut() {
            let posts = measurement::measure_posts(&servers, session.as_mut(), effort, stop);
            entry.posts = posts.map_err(in_strategy(engine, name))?;
        }
        let staleness =
            measurement::measure_staleness(&servers, strategy, effort, (&followed, &authors));
        entry.staleness = staleness.map_err(in_strategy(engine, name))?;
    }
    let measured = entries.into_iter();
    let measured = measured.map(|entry| entry.into_figures(engine, base));
    Ok((filled, measured.collect()))
}

/// Opens a strategy's connections.
fn open_sessions(
    strategy: &dyn TimelineStrategy,
    servers: &StrategyServers,
    effort: &MeasurementEffort,
) -> Result<StrategySessions, StrategyError> {
    let connections = 0..effort.connections;
    connections.map(|_| strategy.session(servers)).collect()
}

/// Leaves out, and records, strategies that would not fit on the disk or would store too many messages.
fn omit_unfit(
    chosen: &mut Vec<Box<dyn TimelineStrategy>>,
    engine: &mut EngineDataset,
    free: f64,
    effort: &MeasurementEffort,
) {
    let pushed = engine.followers_per_message * engine.messages as f64;
    let mut remaining = free * MAX_DISK_SHARE;
    chosen.retain(|strategy| {
        let Some(each) = strategy.pushed_bytes() else {
            return true;
        };
        let bytes = each * pushed;
        let is_left_out = bytes > remaining || pushed > effort.most_pushed;
        if is_left_out {
            let name = strategy.name();
            eprintln!(
                "{}: {name}: left out, for {:.0} million messages at followers ({:.1} GB of {:.1} GB that are free)",
                engine.engine,
                pushed / 1e6,
                bytes / 1e9,
                free / 1e9,
            );
            engine.left_out.push(OmittedStrategy { name, bytes });
        } else {
            remaining -= bytes;
        }
        !is_left_out
    });
}

fn build(
    servers: &StrategyServers,
    strategy: Box<dyn TimelineStrategy>,
    warmed: f64,
) -> Result<StrategyProgress, StrategyError> {
    let begun = Instant::now();
    strategy.build(servers)?;
    let build_s = match strategy.memory() {
        MemoryOwner::Headwater => warmed,
        _ => begun.elapsed().as_secs_f64(),
    };
    Ok(StrategyProgress {
        own_table_bytes: servers.table_bytes(strategy.tables())?,
        memory_bytes: 0,
        strategy,
        build_s,
        compared: ComparisonCount::default(),
        newest: Rates::default(),
        beside: None,
        deep: Rates::default(),
        writes: Rates::default(),
        posts: Vec::new(),
        changes: ChangeCosts::default(),
        staleness: StalenessSample::default(),
    })
}

fn measure_reads(
    entries: &mut [StrategyProgress],
    session_groups: &mut [StrategySessions],
    (newest, deep): (&[ReaderPage], &[ReaderPage]),
    effort: &MeasurementEffort,
    stop: &StopSignal,
) -> Result<(), StrategyError> {
    // A stale strategy is a cache with an expiry that reads fill: it is filled right before, and alternates only with others of its kind.
    for (requested, is_deep, may_be_stale) in [
        (newest, false, false),
        (deep, true, false),
        (deep, true, true),
        (newest, false, true),
    ] {
        let requested = requested.get(..effort.readers).unwrap_or(requested);
        let of = |entry: &StrategyProgress| {
            (entry.strategy.claim() == FreshnessClaim::Stale) == may_be_stale
        };
        let (mut selected, mut own_teams): (Vec<_>, Vec<_>) = entries
            .iter_mut()
            .zip(session_groups.iter_mut())
            .filter(|(entry, _)| of(entry))
            .unzip();
        if requested.is_empty() || selected.is_empty() {
            continue;
        }
        let what = if is_deep { "deep" } else { "newest" };
        let names: Vec<_> = selected.iter().map(|entry| entry.strategy.name()).collect();
        eprintln!("{what} pages read in turn: {}", names.join(", "));
        if may_be_stale && !is_deep {
            for group in &mut own_teams {
                measurement::read_pages(group, requested)?;
            }
        }
        let once =
            |session: &mut dyn strategy::AppSession, index: usize, page: &mut page::MessagePage| {
                let (reader, bound) = requested.get(index).copied().unwrap_or_default();
                session.page(reader, bound, page)
            };
        let sides = own_teams.into_iter().map(|group| SessionGroup {
            sessions: group,
            action: &once,
        });
        let mut sides: Vec<_> = sides.collect();
        let rates = measurement::measure_rates(&mut sides, effort.rounds, requested.len(), stop)?;
        for (entry, rate) in selected.iter_mut().zip(rates) {
            match is_deep {
                true => entry.deep = rate,
                false => entry.newest = rate,
            }
        }
    }
    Ok(())
}

impl StrategyProgress {
    fn into_figures(self, engine: &'static str, base: u64) -> StrategyFigures {
        let mut stale = self.staleness.stale_ms;
        let probed = self.staleness.probed;
        StrategyFigures {
            name: self.strategy.name(),
            about: self.strategy.about(),
            engine,
            claims: self.strategy.claim(),
            compared_pages: self.compared.pages,
            equal_pages: self.compared.equal,
            pages_per_s: self.newest.rate,
            page_p50_us: self.newest.p50_us as f64,
            page_p99_us: self.newest.p99_us as f64,
            beside: self.beside,
            deep_pages_per_s: self.deep.rate,
            messages_per_s: self.writes.rate,
            posts: self.posts,
            follow_ms: self.changes.follow,
            unfollow_ms: self.changes.unfollow,
            delete_ms: self.changes.delete,
            refill_ms: self.changes.refill,
            bytes: base + self.own_table_bytes + self.memory_bytes,
            own_table_bytes: self.own_table_bytes,
            memory_bytes: self.memory_bytes,
            build_s: self.build_s,
            stale_looked: probed,
            stale_share: stale.len() as f64 / probed.max(1) as f64,
            stale_p50_ms: median(&mut stale),
            stale_max_ms: stale.last().copied().unwrap_or_default(),
        }
    }
}

/// Adds the strategy and the server to an error.
fn in_strategy(
    engine: &'static str,
    strategy: &'static str,
) -> impl Fn(StrategyError) -> StrategyError {
    move |source| StrategyError::InStrategy {
        strategy,
        engine,
        source: Box::new(source),
    }
}
