//! `--push`: the classic comparison of push and pull, in a database that the bench creates.
//!
//! All three use one data set: the mailbox table, the procedure called directly, and the same calls through Headwater. Pages are read
//! first and compared with each other; then messages are submitted. All alternate.

pub mod database;
pub mod figures;

pub use figures::{ModelFigures, PushFigures};

use database::DATABASE;

use super::bench_database::BenchDatabase;
use super::check::BenchDifferences;
use super::client::{BenchClient, BenchClientError};
use super::client_pool::ClientPool;
use super::data;
use super::depth::PageDepth;
use super::figures::LatencyFigures;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::measure::{ConnectionTally, SLICE_TIME, SliceJob, repeat_for, run_parallel};
use super::prepared_task::PreparedTask;
use super::round_runner::{RoundRunner, round_count};
use super::writes::MessageWriter;
use super::{BenchError, StopSignal};
use crate::demo::dataset::DatasetSize;
use crate::feed::CLASSIC_FEED;
use crate::query_path::{ConnectionRoute, PageTask, QueryForm, QueryPath, query_packet};

/// Connections that read, and as many that submit.
const CONNECTIONS: usize = 8;
/// Messages a user, as in the classic data set.
const MESSAGES_EACH: u64 = 100;
/// The query paths that alternate at reading.
const READ_PATHS: [QueryPath; 4] = [
    QueryPath::new(ConnectionRoute::Direct, QueryForm::Mailbox),
    QueryPath::new(ConnectionRoute::Direct, QueryForm::CallAndTail),
    QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail),
    QueryPath::new(ConnectionRoute::Headwater, QueryForm::Join),
];
/// The routes that alternate at submitting, in the same order, and whether mailboxes are filled.
const SUBMIT_ROUTES: [(ConnectionRoute, bool); 3] = [
    (ConnectionRoute::Direct, true),
    (ConnectionRoute::Direct, false),
    (ConnectionRoute::Headwater, false),
];

/// Creates the database, measures, and drops it in any case.
///
/// # Errors
/// Fails if the database exists, a connection fails, or a statement is refused.
pub fn measure(
    flags: &BenchFlags,
    users: u32,
    account: &BenchAccount,
    stop: &StopSignal,
) -> Result<(PushFigures, BenchDifferences), BenchError> {
    eprintln!(
        "--push: makes the database {DATABASE} on {}, fills it, and drops it at the end",
        flags.upstream
    );
    let push_database = BenchDatabase::create(DATABASE, flags, account)?;
    let account = BenchAccount {
        database: DATABASE.to_owned(),
        ..account.clone()
    };
    let measured = compare(flags, users, &account, stop)?;
    push_database.remove()?;
    Ok(measured)
}

fn compare(
    flags: &BenchFlags,
    users: u32,
    account: &BenchAccount,
    stop: &StopSignal,
) -> Result<(PushFigures, BenchDifferences), BenchError> {
    let at = BenchError::for_address(&flags.upstream);
    let size = DatasetSize {
        users,
        messages: u64::from(users) * MESSAGES_EACH,
        ..DatasetSize::CLASSIC
    };
    let mut client = BenchClient::connect(&flags.upstream, account).map_err(&at)?;
    database::fill(flags, size, &mut client, stop)?;
    let mut bytes = |tables: &[&str]| database::table_bytes(&mut client, tables).map_err(&at);
    let pull_bytes = bytes(&["follower", "message"])?;
    let push_bytes = bytes(&["follower", "message", "mailbox"])?;
    let mailbox_rows = client
        .query_numbers("SELECT COUNT(*) FROM mailbox")
        .map_err(&at)?;
    let tasks = tasks(flags, &mut client).map_err(&at)?;
    let mut pool = ClientPool::connect(
        flags,
        account,
        CONNECTIONS,
        &[ConnectionRoute::Headwater],
        Some(CLASSIC_FEED),
    )?;
    let (read, differences) = measure_reads(flags, &tasks, &mut pool, stop)?;
    let submitted = measure_submits(flags, &mut pool, stop)?;
    let counts = pool.close().counts;
    let [push, procedure, headwater] =
        [(0, push_bytes), (1, pull_bytes), (2, pull_bytes)].map(|(index, bytes)| ModelFigures {
            timelines: read.get(index).copied().unwrap_or_default(),
            submissions: submitted.get(index).copied().unwrap_or_default(),
            bytes,
        });
    let push = PushFigures {
        database: DATABASE,
        users,
        follows: size.follows(),
        messages: size.messages,
        mailbox_rows: mailbox_rows.iter().sum(),
        connections: CONNECTIONS,
        seconds: SLICE_TIME.as_secs_f64() * f64::from(round_count(flags)),
        push,
        procedure,
        headwater,
        join: read.get(3).copied().unwrap_or_default(),
        counts,
    };
    Ok((push, differences))
}

/// The newest pages of some readers, in the seed's order.
fn tasks(flags: &BenchFlags, client: &mut BenchClient) -> Result<Vec<PageTask>, BenchClientError> {
    let mut readers =
        client.query_numbers("SELECT DISTINCT user_id FROM follower ORDER BY user_id")?;
    data::shuffle(&mut readers, flags.seed);
    let task = |reader| PageTask {
        reader,
        bound: None,
    };
    Ok(readers.into_iter().take(flags.readers).map(task).collect())
}

fn measure_reads(
    flags: &BenchFlags,
    tasks: &[PageTask],
    pool: &mut ClientPool,
    stop: &StopSignal,
) -> Result<(Vec<LatencyFigures>, BenchDifferences), BenchError> {
    let at = BenchError::for_address(&flags.upstream);
    let mut prepared_tasks = Vec::new();
    for task in tasks {
        prepared_tasks.push(PreparedTask::new(*task, &mut pool.direct).map_err(&at)?);
    }
    let mut runner = RoundRunner::new(READ_PATHS.len(), round_count(flags), stop);
    runner.measure_cells(
        PageDepth::NEWEST,
        &READ_PATHS,
        CONNECTIONS,
        pool,
        &mut prepared_tasks,
    )?;
    let (cells, differences) = runner.finish();
    Ok((
        cells.into_iter().map(|cell| cell.figures).collect(),
        differences,
    ))
}

fn measure_submits(
    flags: &BenchFlags,
    pool: &mut ClientPool,
    stop: &StopSignal,
) -> Result<Vec<LatencyFigures>, BenchError> {
    let message_writer =
        MessageWriter::new(&mut pool.direct).map_err(BenchError::for_address(&flags.upstream))?;
    let mut tallies = Vec::new();
    for _ in SUBMIT_ROUTES {
        tallies.push(ConnectionTally::for_connections(
            CONNECTIONS,
            message_writer.author_count(),
        )?);
    }
    // Round 0 warms up and does not count.
    for round in 0..=round_count(flags) {
        for ((route, fan_out), tallies) in SUBMIT_ROUTES.into_iter().zip(&mut tallies) {
            let at = BenchError::for_address(pool.address(route));
            let (clients, _) = pool.clients(route, CONNECTIONS);
            submit_slice(fan_out, clients, tallies, &message_writer, stop).map_err(at)?;
            if stop.is_requested() {
                return Err(BenchError::Stopped);
            }
            if round == 0 {
                tallies.iter_mut().for_each(ConnectionTally::reset);
            }
        }
    }
    tallies
        .iter()
        .map(|tallies| LatencyFigures::from_lanes(tallies))
        .collect()
}

fn submit_slice(
    fan_out: bool,
    clients: &mut [BenchClient],
    tallies: &mut [ConnectionTally],
    message_writer: &MessageWriter,
    stop: &StopSignal,
) -> Result<(), BenchClientError> {
    let jobs = clients.iter_mut().zip(tallies);
    let jobs = jobs.map(|(client, tally)| -> SliceJob<'_, ()> {
        Box::new(move || {
            let mut none = Vec::new();
            repeat_for(
                SLICE_TIME,
                message_writer.author_count(),
                tally,
                stop,
                |index| {
                    let author = message_writer.author(index);
                    client.query(&message_writer.insert(author), &mut none)?;
                    if fan_out {
                        client.query(&query_packet(&mailbox_insert(author)), &mut none)?;
                    }
                    Ok(())
                },
            )
        })
    });
    run_parallel(jobs.collect()).map(drop)
}

/// The second part of a submission in the push model, after the message's INSERT on the same connection.
fn mailbox_insert(author: u64) -> String {
    format!(
        "INSERT INTO mailbox (user_id,message_id) \
         SELECT user_id,last_insert_id() FROM follower WHERE follower_id={author}"
    )
}
