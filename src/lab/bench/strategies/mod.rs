//! `headwater bench strategies`: every way to have timelines, on the same follows and messages, side by side.
//!
//! Pull, push and what lies between, each with its real engine, started here: MariaDB, MySQL, Redis. A [`strategy`] is asked for pages and
//! told of writes; [`course`] compares its pages with the procedure's and measures; [`report`] shows the [`figures`].

pub mod base;
pub mod beside;
pub mod buckets;
pub mod course;
pub mod cut;
pub mod drawn;
pub mod figures;
pub mod flags;
pub mod growing;
pub mod growth;
pub mod mailbox;
pub mod named;
pub mod own;
pub mod packed;
pub mod page;
pub mod pull;
pub mod report;
pub mod rule;
pub mod stored;
pub mod strategy;
pub mod world;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use flags::StrategiesFlags;

use buckets::Buckets;
use course::{Ask, Changes, Compared, Effort, Side, Staleness, Team, median};
use figures::{Beside, Engine, Figures, LeftOut, Measured, Post};
use own::Own;
use stored::Stored;
use strategy::{Claim, Memory, Strategy};
use world::{Data, World};

use super::client::ClientError;
use super::figures::Figures as Rates;
use super::{BenchError, Stop, child, interruptible, write, write_json};
use crate::lab::demo::dataset::Size;
use crate::lab::demo::load::LoadError;
use crate::lab::private_server::{Kind, PrivateServerError};

/// The share of the free disk that strategies may fill.
const FILLED: f64 = 0.7;

/// The file of a report that has all that is known of growth.
const GROWTH: &str = "growth.json";

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A server could not be had.
    #[error(transparent)]
    Server(#[from] PrivateServerError),
    /// It could not be filled.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It could not be connected to.
    #[error("cannot fill the server")]
    Fill {
        /// Why.
        source: mysql_async::Error,
    },
    /// A Headwater could not be started.
    #[error(transparent)]
    Proxy(#[from] child::ProxyError),
    /// A page could not be had.
    #[error("cannot ask for a page")]
    Client(#[from] ClientError),
    /// A statement was refused.
    #[error("cannot run {statement}")]
    Statement {
        /// Its beginning.
        statement: String,
        /// Why.
        source: ClientError,
    },
    /// The user's own data are of no use.
    #[error(transparent)]
    Own(#[from] own::OwnError),
    /// Redis refused a command.
    #[error("cannot ask Redis")]
    Redis(#[from] redis::RedisError),
    /// What came is no message.
    #[error("a row that came is not a message")]
    Row,
    /// A file cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A part of the bench that others share.
    #[error(transparent)]
    Bench(Box<BenchError>),
    /// Times cannot be added up.
    #[error("latencies cannot be added up")]
    Addition(#[from] hdrhistogram::errors::AdditionError),
    /// The data themselves do not fit.
    #[error("the messages would take about {:.0} GB of {:.0} GB that are free on the disk: fewer --messages, or TMPDIR on another disk", bytes / 1e9, free / 1e9)]
    Full {
        /// What they would take.
        bytes: f64,
        /// What is free.
        free: f64,
    },
    /// What was measured before is of no use.
    #[error("cannot go on with {path}: remove it, or leave out --resume")]
    Before {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A thread ended early.
    #[error("a measuring thread ended early")]
    Thread,
    /// A signal came.
    #[error("stopped before the end")]
    Stopped,
    /// With which strategy it happened.
    #[error("{strategy} on {engine}")]
    At {
        /// The strategy.
        strategy: &'static str,
        /// The server.
        engine: &'static str,
        /// What.
        source: Box<Failure>,
    },
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        Failure::Bench(Box::new(error))
    }
}

/// What strategies are called: MySQL has them all.
fn names() -> Vec<&'static str> {
    let all = strategies(Kind::Mysql);
    all.iter().map(|strategy| strategy.name()).collect()
}

/// What strategies and servers are called, and what strategies do.
fn words() -> Vec<&'static str> {
    let all = strategies(Kind::Mysql);
    let said = all.iter().flat_map(|it| [it.name(), it.about()]);
    let servers = [Kind::Mariadb, Kind::Mysql].map(Kind::name);
    said.chain(servers).collect()
}

/// All that this server can have, in the order of the report.
fn strategies(kind: Kind) -> Vec<Box<dyn Strategy>> {
    let mut all: Vec<Box<dyn Strategy>> = vec![Box::new(pull::JOIN), Box::new(pull::LIST)];
    if kind == Kind::Mysql {
        all.push(Box::new(pull::LATERAL));
    }
    all.extend([
        Box::new(pull::PROCEDURE) as Box<dyn Strategy>,
        Box::new(pull::CALLS),
        Box::new(pull::NARROW),
        Box::new(pull::KEEP),
        Box::new(mailbox::MAILBOX),
        Box::new(mailbox::HYBRID),
        Box::new(packed::Packed),
        Box::new(Buckets::Time),
        Box::new(Buckets::Size),
        Box::new(Stored::OnWrite),
        Box::new(Stored::OnRead),
        Box::new(Stored::Pull),
        Box::new(Stored::Window),
    ]);
    all
}

/// Measures, prints the table, and writes the files that the flags name.
///
/// # Errors
/// When a part cannot be had or fails, and when a page was not the procedure's, once everything is printed.
pub async fn run(flags: StrategiesFlags) -> Result<(), BenchError> {
    let (json, folder, run) = (flags.json.clone(), flags.report.clone(), flags.run);
    if !flags.growth.is_empty() {
        let growth = interruptible(move |stop| {
            growing::grow(&flags, stop, &|growth| {
                if let Some(path) = &json {
                    write_json(path, growth)?;
                }
                match &folder {
                    Some(folder) => save(folder, growth::files(growth), GROWTH, growth),
                    None => Ok(()),
                }
            })
        })
        .await?;
        print!("{}", growth::table(&growth.points));
        return equal(growth.points.iter().map(|point| &point.measured));
    }
    let figures =
        interruptible(move |stop| measure(&flags, stop).map_err(BenchError::from)).await?;
    print!("{}", report::table(&figures));
    if let Some(run) = run {
        print!("{}", run.beside(&figures));
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
    equal(figures.strategies.iter())
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

/// Every page was the procedure's.
fn equal<'a>(all: impl Iterator<Item = &'a Measured>) -> Result<(), BenchError> {
    match all.map(|it| it.compared_pages - it.equal_pages).sum() {
        0 => Ok(()),
        count => Err(BenchError::Differences { count }),
    }
}

fn measure(flags: &StrategiesFlags, stop: &Stop) -> Result<Figures, Failure> {
    let effort = flags.effort();
    let mut figures = Figures {
        headwater: env!("CARGO_PKG_VERSION"),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        connections: effort.connections,
        seconds: effort.seconds(),
        engines: Vec::new(),
        strategies: Vec::new(),
    };
    let own = match (&flags.follows_from, &flags.messages_from) {
        (Some(follows), Some(messages)) => Some(Own::read(follows, messages)?),
        _ => None,
    };
    let data = match &own {
        Some(own) => Data::Own(own),
        None => Data::Made(flags.size(), flags.fans()),
    };
    for kind in flags.kinds() {
        let (engine, measured) = on_engine(kind, data, None, flags, &effort, stop)?;
        figures.engines.push(engine);
        figures.strategies.extend(measured);
    }
    Ok(figures)
}

/// What is known of a strategy by and by.
struct Entry {
    strategy: Box<dyn Strategy>,
    build_s: f64,
    own_table_bytes: u64,
    memory_bytes: u64,
    compared: Compared,
    newest: Rates,
    beside: Option<Beside>,
    deep: Rates,
    writes: Rates,
    posts: Vec<Post>,
    changes: Changes,
    staleness: Staleness,
}

fn on_engine(
    kind: Kind,
    data: Data<'_>,
    smallest: Option<Size>,
    flags: &StrategiesFlags,
    effort: &Effort,
    stop: &Stop,
) -> Result<(Engine, Vec<Measured>), Failure> {
    let mut world = World::make(kind, data, flags.buffer_pool, stop)?;
    let size = world.size;
    let engine = kind.name();
    let base = world.table_bytes(&["follower", "message"])?;
    let mut filled = Engine {
        engine,
        version: world.version().to_owned(),
        users: size.users,
        follows: size.follows(),
        fans: data.fans(),
        buffer_pool_gb: flags.buffer_pool,
        messages: size.messages,
        base_bytes: base,
        followers_per_message: world.followers_per_message()?,
        follows_per_reader: world.follows_per_reader()?,
        filled_s: world.filled.as_secs_f64(),
        left_out: Vec::new(),
    };
    let mut chosen = strategies(kind);
    chosen.retain(|strategy| flags.wants(strategy.name()));
    leave_out(&mut chosen, &mut filled, world.free_bytes()?, effort);
    let accelerated = |it: &dyn Strategy| matches!(it.memory(), Memory::Headwater);
    let readers = world.some_readers(effort.compared)?;
    let warmed = match chosen.iter().any(|it| accelerated(it.as_ref())) {
        true => world.accelerate(&readers)?.as_secs_f64(),
        false => 0.0,
    };
    let mut entries = Vec::new();
    for strategy in chosen {
        if stop.asked() {
            return Err(Failure::Stopped);
        }
        let name = strategy.name();
        eprintln!("{engine}: {name}: being built");
        entries.push(build(&world, strategy, warmed).map_err(named(engine, name))?);
    }
    eprintln!(
        "{engine}: the pages of {} readers asked of the procedure",
        readers.len()
    );
    let (newest, deep) = course::asks(&world, &readers, effort)?;
    let mut procedures = team(&pull::PROCEDURE, &world, effort)?;
    let newest_truth = course::pages(&mut procedures, &newest)?;
    let deep_truth = course::pages(&mut procedures, &deep)?;
    drop(procedures);
    let mut teams = Vec::new();
    for entry in &mut entries {
        let name = entry.strategy.name();
        eprintln!(
            "{engine}: {name}: {} pages compared",
            newest.len() + deep.len()
        );
        let mut team = team(entry.strategy.as_ref(), &world, effort)?;
        let mut check = |asks: &[Ask], truth: &[_]| {
            course::compare(&mut team, asks, truth, &mut entry.compared)
        };
        check(&newest, &newest_truth)
            .and_then(|()| match entry.strategy.claim() {
                Claim::Fresh => check(&deep, &deep_truth),
                Claim::Capped | Claim::Stale => Ok(()),
            })
            .map_err(named(engine, name))?;
        teams.push(team);
    }
    read(&mut entries, &mut teams, (&newest, &deep), effort, stop)?;
    if let Some(smallest) = smallest {
        let of_headwater = entries.iter_mut().zip(&mut teams);
        let of_headwater = of_headwater.filter(|(entry, _)| accelerated(entry.strategy.as_ref()));
        let mut both: Vec<_> = of_headwater
            .map(|(entry, team)| (entry.strategy.as_ref(), team, &mut entry.beside))
            .collect();
        beside::measure(kind, smallest, &newest, &mut both, flags, effort, stop)?;
    }
    // Behind the reads: caches are filled by them.
    for entry in &mut entries {
        entry.memory_bytes = world.memory_bytes(entry.strategy.memory())?;
    }
    let follows = course::some_follows(&world, effort.changes)?;
    for entry in &mut entries {
        let (name, strategy) = (entry.strategy.name(), entry.strategy.as_ref());
        eprintln!("{engine}: {name}: follows, unfollows and deletes");
        if stop.asked() {
            return Err(Failure::Stopped);
        }
        let changes = course::changes(&world, strategy, &follows, &mut entry.compared);
        entry.changes = changes.map_err(named(engine, name))?;
    }
    let (followed, authors) = (course::followed(&world, effort)?, course::writers(&world)?);
    eprintln!("{engine}: messages written");
    let ids = &world.ids;
    let once = |session: &mut dyn strategy::Session, place: usize, _: &mut page::Page| {
        let author = authors.get(place).copied().unwrap_or_default();
        course::post(ids, session, author).map(drop)
    };
    let sides = teams.iter_mut().map(|team| Side { team, once: &once });
    let mut sides: Vec<_> = sides.collect();
    let writes = course::rates(&mut sides, effort.rounds, authors.len(), stop)?;
    for ((entry, team), rate) in entries.iter_mut().zip(&mut teams).zip(writes) {
        let (name, strategy) = (entry.strategy.name(), entry.strategy.as_ref());
        entry.writes = rate;
        if let Some(session) = team.first_mut() {
            let posts = course::posts(&world, session.as_mut(), effort, stop);
            entry.posts = posts.map_err(named(engine, name))?;
        }
        let staleness = course::staleness(&world, strategy, effort, (&followed, &authors));
        entry.staleness = staleness.map_err(named(engine, name))?;
    }
    let measured = entries.into_iter();
    let measured = measured.map(|entry| entry.measured(engine, base));
    Ok((filled, measured.collect()))
}

/// A strategy's connections.
fn team(strategy: &dyn Strategy, world: &World, effort: &Effort) -> Result<Team, Failure> {
    let connections = 0..effort.connections;
    connections.map(|_| strategy.session(world)).collect()
}

/// Leaves out, and names, what would not fit on the disk, or has too many messages to keep.
fn leave_out(chosen: &mut Vec<Box<dyn Strategy>>, engine: &mut Engine, free: f64, effort: &Effort) {
    let pushed = engine.followers_per_message * engine.messages as f64;
    let mut left = free * FILLED;
    chosen.retain(|strategy| {
        let Some(each) = strategy.pushed_bytes() else {
            return true;
        };
        let bytes = each * pushed;
        let is_left_out = bytes > left || pushed > effort.most_pushed;
        if is_left_out {
            let name = strategy.name();
            eprintln!(
                "{}: {name}: left out, for {:.0} million messages at followers ({:.1} GB of {:.1} GB that are free)",
                engine.engine,
                pushed / 1e6,
                bytes / 1e9,
                free / 1e9,
            );
            engine.left_out.push(LeftOut { name, bytes });
        } else {
            left -= bytes;
        }
        !is_left_out
    });
}

fn build(world: &World, strategy: Box<dyn Strategy>, warmed: f64) -> Result<Entry, Failure> {
    let begun = Instant::now();
    strategy.build(world)?;
    let build_s = match strategy.memory() {
        Memory::Headwater => warmed,
        _ => begun.elapsed().as_secs_f64(),
    };
    Ok(Entry {
        own_table_bytes: world.table_bytes(strategy.tables())?,
        memory_bytes: 0,
        strategy,
        build_s,
        compared: Compared::default(),
        newest: Rates::default(),
        beside: None,
        deep: Rates::default(),
        writes: Rates::default(),
        posts: Vec::new(),
        changes: Changes::default(),
        staleness: Staleness::default(),
    })
}

fn read(
    entries: &mut [Entry],
    teams: &mut [Team],
    (newest, deep): (&[Ask], &[Ask]),
    effort: &Effort,
    stop: &Stop,
) -> Result<(), Failure> {
    // What may be stale is a cache that reads fill, and whose time ends: it is filled right before, in turns with others of its kind alone.
    for (asks, is_deep, may_be_stale) in [
        (newest, false, false),
        (deep, true, false),
        (deep, true, true),
        (newest, false, true),
    ] {
        let asks = asks.get(..effort.readers).unwrap_or(asks);
        let of = |entry: &Entry| (entry.strategy.claim() == Claim::Stale) == may_be_stale;
        let (mut own, mut own_teams): (Vec<_>, Vec<_>) = entries
            .iter_mut()
            .zip(teams.iter_mut())
            .filter(|(entry, _)| of(entry))
            .unzip();
        if asks.is_empty() || own.is_empty() {
            continue;
        }
        let what = if is_deep { "deep" } else { "newest" };
        let names: Vec<_> = own.iter().map(|entry| entry.strategy.name()).collect();
        eprintln!("{what} pages read in turn: {}", names.join(", "));
        if may_be_stale && !is_deep {
            for team in &mut own_teams {
                course::pages(team, asks)?;
            }
        }
        let once = |session: &mut dyn strategy::Session, place: usize, page: &mut page::Page| {
            let (reader, bound) = asks.get(place).copied().unwrap_or_default();
            session.page(reader, bound, page)
        };
        let sides = own_teams.into_iter().map(|team| Side { team, once: &once });
        let mut sides: Vec<_> = sides.collect();
        let rates = course::rates(&mut sides, effort.rounds, asks.len(), stop)?;
        for (entry, rate) in own.iter_mut().zip(rates) {
            match is_deep {
                true => entry.deep = rate,
                false => entry.newest = rate,
            }
        }
    }
    Ok(())
}

impl Entry {
    fn measured(self, engine: &'static str, base: u64) -> Measured {
        let mut stale = self.staleness.stale;
        let looked = self.staleness.looked;
        Measured {
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
            stale_looked: looked,
            stale_share: stale.len() as f64 / looked.max(1) as f64,
            stale_p50_ms: median(&mut stale),
            stale_max_ms: stale.last().copied().unwrap_or_default(),
        }
    }
}

/// Names where it happened.
fn named(engine: &'static str, strategy: &'static str) -> impl Fn(Failure) -> Failure {
    move |source| Failure::At {
        strategy,
        engine,
        source: Box::new(source),
    }
}
