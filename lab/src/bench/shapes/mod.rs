//! `--shapes`: feed SELECTs in every shape, in a database that the bench creates.
//!
//! Each shape is queried directly and through Headwater, in turn, and each answer is compared with the server's.

pub mod database;
pub mod figures;
pub mod mixed_load;
pub mod statements;

pub use figures::{ShapeFigures, ShapesReport};

use std::time::Duration;

use database::DATABASE;
use mixed_load::MixedLoad;
use statements::{FeedShape, SHAPES};

use super::bench_database::BenchDatabase;
use super::check::BenchDifferences;
use super::client::BenchClient;
use super::client_pool::ClientPool;
use super::data;
use super::depth::PageDepth;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::prepared_task::PreparedTask;
use super::round_runner::{RoundRunner, round_count};
use super::warmup::warm_up;
use super::writes::INSERTS_PER_SECOND;
use super::{BenchError, StopSignal};
use crate::query_path::{ConnectionRoute, QueryForm, QueryPath};

/// Maximum number of connections that query at the same time.
pub const CONNECTIONS: usize = 8;
/// The query paths that alternate.
const QUERY_PATHS: [QueryPath; 3] = [
    QueryPath::new(ConnectionRoute::Direct, QueryForm::Own),
    QueryPath::new(ConnectionRoute::Headwater, QueryForm::Own),
    QueryPath::new(ConnectionRoute::NoFeeds, QueryForm::Own),
];
/// Inserts a second beside counts.
const INSERTS_BESIDE_COUNTS: u32 = 100;
/// Time limit for warming up each shape's statements.
const WARMUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates the database, measures, and drops it in any case.
///
/// # Errors
/// Fails if the database exists, a connection fails, or a statement is refused.
pub fn measure(
    flags: &BenchFlags,
    messages: u32,
    account: &BenchAccount,
    mariadb: bool,
    stop: &StopSignal,
) -> Result<(ShapesReport, BenchDifferences), BenchError> {
    eprintln!(
        "--shapes: makes the database {DATABASE} on {}, fills it, and drops it at the end",
        flags.upstream
    );
    let shapes_database = BenchDatabase::create(DATABASE, flags, account)?;
    let account = BenchAccount {
        database: DATABASE.to_owned(),
        ..account.clone()
    };
    let measured = compare(flags, messages, &account, mariadb, stop)?;
    shapes_database.remove()?;
    Ok(measured)
}

fn compare(
    flags: &BenchFlags,
    messages: u32,
    account: &BenchAccount,
    mariadb: bool,
    stop: &StopSignal,
) -> Result<(ShapesReport, BenchDifferences), BenchError> {
    let at = BenchError::for_address(&flags.upstream);
    let users = (messages / 100).max(100);
    let mut client = BenchClient::connect(&flags.upstream, account).map_err(&at)?;
    database::fill(flags, users, u64::from(messages), &mut client, stop)?;
    let readers = client.query_numbers("SELECT DISTINCT user_id FROM follower ORDER BY user_id");
    let mut readers = readers.map_err(&at)?;
    data::shuffle(&mut readers, flags.seed);
    readers.truncate(flags.readers);
    let routes = [ConnectionRoute::Headwater, ConnectionRoute::NoFeeds];
    let mut pool =
        ClientPool::connect(flags, account, CONNECTIONS, &routes, Some(database::FEEDS))?;
    let mut shapes = Vec::new();
    let mut differences = BenchDifferences::default();
    for sort in SHAPES {
        let mut prepared_tasks = Vec::new();
        for (reader, statement) in sort.statements(&readers, users, &mut client).map_err(&at)? {
            prepared_tasks.push(
                PreparedTask::for_statement(reader, &statement, &mut pool.direct).map_err(&at)?,
            );
        }
        if prepared_tasks.is_empty() {
            continue;
        }
        eprintln!("{}", sort.name());
        warm_up(&mut pool, &prepared_tasks, WARMUP_TIMEOUT, stop)?;
        let mut measured = Vec::new();
        for _ in 0..sort.repetitions() {
            let (shape, shape_differences) =
                measure_shape(flags, (sort, mariadb), &mut prepared_tasks, &mut pool, stop)?;
            measured.push(shape);
            differences.merge(shape_differences);
        }
        measured.sort_by(|a, b| {
            a.ratio()
                .unwrap_or(0.0)
                .total_cmp(&b.ratio().unwrap_or(0.0))
        });
        let median = measured.len() / 2;
        shapes.extend(measured.into_iter().nth(median));
    }
    let direct = shapes.first().map_or(0, |join| join.direct.p50_us);
    let mut beside = |shape, inserts| {
        let load = MixedLoad { shape, inserts };
        mixed_load::measure(load, flags, account, &readers, users, &mut pool, stop)
    };
    let mixed = beside(FeedShape::Join, INSERTS_PER_SECOND)?;
    let counted = beside(FeedShape::Count, INSERTS_BESIDE_COUNTS)?;
    let counts = pool.close().counts;
    let shapes = ShapesReport {
        database: DATABASE,
        users,
        messages,
        seconds: flags.seconds.as_secs_f64(),
        shapes,
        beside: mixed,
        counts_beside: counted,
        direct_p50_us: direct,
        counts,
    };
    Ok((shapes, differences))
}

fn measure_shape(
    flags: &BenchFlags,
    (sort, mariadb): (FeedShape, bool),
    prepared_tasks: &mut [PreparedTask],
    pool: &mut ClientPool,
    stop: &StopSignal,
) -> Result<(ShapeFigures, BenchDifferences), BenchError> {
    let connections = sort.connections();
    let paths: &[QueryPath] = match sort.is_control() {
        true => &QUERY_PATHS,
        false => QUERY_PATHS.split_at(2).0,
    };
    let mut runner = RoundRunner::new(paths.len(), round_count(flags), stop);
    runner.measure_cells(PageDepth::NEWEST, paths, connections, pool, prepared_tasks)?;
    let (cells, differences) = runner.finish();
    let shape = ShapeFigures {
        target: sort.target(mariadb),
        ..ShapeFigures::from_cells(sort.name(), &cells)
    };
    Ok((shape, differences))
}
