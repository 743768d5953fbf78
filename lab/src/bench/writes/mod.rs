//! `--writes`: how readers and writers affect each other, directly and through Headwater.
//!
//! Both routes alternate, as the query paths of reading do. Inserts change the expected answers, so answers are compared while no inserts
//! run: once with the rows there, and once after their removal.

pub mod figures;
pub mod message_writer;
pub mod pace;
pub mod removal;

pub use figures::{RouteComparison, RouteLoad, WriteFigures};
pub use message_writer::MessageWriter;

use pace::InsertPace;
use removal::WrittenRows;

use super::check::{BenchDifference, UnexpectedAnswer, verify_answers};
use super::client::{BenchClient, BenchClientError};
use super::client_pool::ClientPool;
use super::figures::LatencyFigures;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::measure::{ConnectionTally, SLICE_TIME, SliceJob, repeat_for, run_parallel};
use super::prepared_task::PreparedTask;
use super::{BenchError, StopSignal, round_runner};
use crate::query_path::{ConnectionRoute, PageTask, QueryForm, QueryPath};

/// Connections that read.
pub const READERS: usize = 8;
/// Connections that write.
const WRITERS: usize = 8;
/// Paced inserts by all connections together.
pub const INSERTS_PER_SECOND: u32 = 1_000;
/// No round begins if it could exceed this number of written rows.
const MAX_ROWS: u64 = 200_000;
/// More than a round can add on any likely machine: its slices are short.
const ROUND_ROWS: u64 = 40_000;
const ROUTES: [ConnectionRoute; 2] = [ConnectionRoute::Direct, ConnectionRoute::Headwater];

/// The measurement, and the differences.
#[derive(Debug)]
pub struct WriteMeasurement {
    /// The figures.
    pub writes: WriteFigures,
    /// Answers that differed from the procedure's while no inserts ran.
    pub differences: Vec<BenchDifference>,
}

/// Writes, measures, and removes the rows in any case.
///
/// # Errors
/// Fails if a connection fails, a statement is refused, or the rows cannot be removed.
pub fn measure(
    flags: &BenchFlags,
    account: &BenchAccount,
    tasks: &[PageTask],
    pool: &mut ClientPool,
    stop: &StopSignal,
) -> Result<WriteMeasurement, BenchError> {
    let at = BenchError::for_address(&flags.upstream);
    let message_writer = MessageWriter::new(&mut pool.direct).map_err(&at)?;
    let written = WrittenRows::after_newest(
        &mut pool.direct,
        &flags.upstream,
        account,
        message_writer.mark(),
    );
    let written = written.map_err(&at)?;
    eprintln!(
        "--writes: inserts messages into {}.message on {} and removes them at the end; should the bench be killed before: {}",
        account.database,
        flags.upstream,
        written.statement()
    );
    let mut prepared_tasks = Vec::new();
    for task in tasks {
        prepared_tasks.push(PreparedTask::new(task.newest(), &mut pool.direct).map_err(&at)?);
    }
    let mut turns = write_turns(prepared_tasks.len(), &message_writer)?;
    let mut writers = Vec::new();
    for route in ROUTES {
        let address = pool.address(route).to_owned();
        for _ in 0..WRITERS {
            let client = BenchClient::connect(&address, account);
            writers.push((route, client.map_err(BenchError::for_address(&address))?));
        }
    }
    let rounds = run_rounds(round_runner::round_count(flags), &mut turns, |load| {
        let (readers, _) = pool.clients(load.route, READERS);
        let writers = writers.iter_mut().filter(|(route, _)| *route == load.route);
        let writers = writers.map(|(_, client)| client).collect();
        load.run_slice(readers, writers, &prepared_tasks, &message_writer, stop)
            .map_err(&at)?;
        if stop.is_requested() {
            Err(BenchError::Stopped)
        } else {
            Ok(())
        }
    })?;
    drop(writers);
    let mut differences = verify_timelines(&mut prepared_tasks, pool)?;
    let removed = written.remove()?;
    differences.extend(verify_timelines(&mut prepared_tasks, pool)?);
    Ok(WriteMeasurement {
        writes: WriteFigures {
            database: account.database.clone(),
            readers: READERS,
            writers: WRITERS,
            seconds: SLICE_TIME.as_secs_f64() * f64::from(rounds),
            unpaced: route_comparison(&turns, PacingKind::Unpaced)?,
            paced: route_comparison(&turns, PacingKind::Paced)?,
            removed,
            compared: 2 * prepared_tasks.len(),
        },
        differences,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacingKind {
    /// At full speed.
    Unpaced,
    /// At [`INSERTS_PER_SECOND`].
    Paced,
}

/// A load that alternates with the others: a pacing on a route, and its tallies.
#[derive(Debug)]
struct WriteTurn {
    kind: PacingKind,
    route: ConnectionRoute,
    readers: Vec<ConnectionTally>,
    writers: Vec<ConnectionTally>,
}

fn write_turns(
    length: usize,
    message_writer: &MessageWriter,
) -> Result<Vec<WriteTurn>, BenchError> {
    let mut turns = Vec::new();
    for kind in [PacingKind::Unpaced, PacingKind::Paced] {
        for route in ROUTES {
            turns.push(WriteTurn {
                kind,
                route,
                readers: ConnectionTally::for_connections(READERS, length)?,
                writers: ConnectionTally::for_connections(WRITERS, message_writer.author_count())?,
            });
        }
    }
    Ok(turns)
}

/// Alternates between the loads; the first round warms up. Ends early at the limit of rows; returns the number of counted rounds.
fn run_rounds(
    most: u32,
    turns: &mut [WriteTurn],
    mut run_load: impl FnMut(&mut WriteTurn) -> Result<(), BenchError>,
) -> Result<u32, BenchError> {
    let mut rows = 0;
    for round in 0..=most {
        if rows + ROUND_ROWS > MAX_ROWS {
            return Ok(round.saturating_sub(1));
        }
        for each in turns.iter_mut() {
            let before = each.rows();
            run_load(each)?;
            rows += each.rows() - before;
            if round == 0 {
                let tallies = each.readers.iter_mut().chain(&mut each.writers);
                tallies.for_each(ConnectionTally::reset);
            }
        }
    }
    Ok(most)
}

impl WriteTurn {
    fn rows(&self) -> u64 {
        self.writers.iter().map(|tally| tally.answers).sum()
    }

    fn run_slice(
        &mut self,
        readers: &mut [BenchClient],
        writers: Vec<&mut BenchClient>,
        prepared_tasks: &[PreparedTask],
        message_writer: &MessageWriter,
        stop: &StopSignal,
    ) -> Result<(), BenchClientError> {
        let form = match self.kind {
            PacingKind::Unpaced => QueryForm::CallAndTail,
            PacingKind::Paced => QueryForm::Call,
        };
        let mut jobs: Vec<SliceJob<'_, ()>> = Vec::new();
        for (client, tally) in readers.iter_mut().zip(&mut self.readers) {
            jobs.push(Box::new(move || {
                let mut rows = Vec::new();
                repeat_for(SLICE_TIME, prepared_tasks.len(), tally, stop, |index| {
                    prepared_tasks
                        .get(index)
                        .map_or(Ok(()), |prepared| prepared.query(form, client, &mut rows))
                })
            }));
        }
        let paced = self.kind == PacingKind::Paced;
        for (connection, (client, tally)) in (0..).zip(writers.into_iter().zip(&mut self.writers)) {
            jobs.push(Box::new(move || {
                if paced {
                    write_paced(connection, client, tally, message_writer, stop)
                } else {
                    write_unpaced(client, tally, message_writer, stop)
                }
            }));
        }
        run_parallel(jobs).map(drop)
    }
}

fn write_unpaced(
    client: &mut BenchClient,
    tally: &mut ConnectionTally,
    message_writer: &MessageWriter,
    stop: &StopSignal,
) -> Result<(), BenchClientError> {
    let mut none = Vec::new();
    repeat_for(
        SLICE_TIME,
        message_writer.author_count(),
        tally,
        stop,
        |index| {
            client.query(
                &message_writer.insert(message_writer.author(index)),
                &mut none,
            )
        },
    )
}

fn write_paced(
    connection: u32,
    client: &mut BenchClient,
    tally: &mut ConnectionTally,
    message_writer: &MessageWriter,
    stop: &StopSignal,
) -> Result<(), BenchClientError> {
    let pace = InsertPace {
        per_second: INSERTS_PER_SECOND,
        connections: u32::try_from(WRITERS).unwrap_or(u32::MAX),
    };
    let mut none = Vec::new();
    pace.run_slice(
        connection,
        message_writer.author_count(),
        tally,
        stop,
        |index| {
            client.query(
                &message_writer.insert(message_writer.author(index)),
                &mut none,
            )
        },
    )
}

/// Reads every timeline through Headwater while the bench does not write, and verifies the answers.
fn verify_timelines(
    prepared_tasks: &mut [PreparedTask],
    pool: &mut ClientPool,
) -> Result<Vec<BenchDifference>, BenchError> {
    let path = QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail);
    let at = BenchError::for_address(pool.address(path.route));
    let (clients, direct) = pool.clients(path.route, 1);
    let Some(client) = clients.first_mut() else {
        return Ok(Vec::new());
    };
    let (mut wrong, mut rows) = (Vec::new(), Vec::new());
    for (index, prepared) in prepared_tasks.iter_mut().enumerate() {
        prepared.load_expected(path.form, direct).map_err(&at)?;
        prepared.query(path.form, client, &mut rows).map_err(&at)?;
        if rows != prepared.expected(path.form) {
            UnexpectedAnswer::record(&mut wrong, index, &rows);
        }
    }
    verify_answers(path, wrong, prepared_tasks, client, direct).map_err(&at)
}

fn route_comparison(turns: &[WriteTurn], kind: PacingKind) -> Result<RouteComparison, BenchError> {
    let load = |route| {
        let turn = turns
            .iter()
            .find(|turn| (turn.kind, turn.route) == (kind, route));
        turn.map_or(Ok(RouteLoad::default()), |turn| {
            Ok::<_, BenchError>(RouteLoad {
                inserts: LatencyFigures::from_lanes(&turn.writers)?,
                timelines: LatencyFigures::from_lanes(&turn.readers)?,
            })
        })
    };
    Ok(RouteComparison {
        direct: load(ConnectionRoute::Direct)?,
        headwater: load(ConnectionRoute::Headwater)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn one_turn() -> Vec<WriteTurn> {
        vec![WriteTurn {
            kind: PacingKind::Unpaced,
            route: ConnectionRoute::Direct,
            readers: Vec::new(),
            writers: ConnectionTally::for_connections(1, 1).unwrap(),
        }]
    }

    #[test]
    fn the_first_round_does_not_count() {
        let mut turns = one_turn();
        let write = |turn: &mut WriteTurn| {
            turn.writers
                .iter_mut()
                .for_each(|tally| tally.record(SLICE_TIME));
            Ok(())
        };
        assert_eq!(run_rounds(3, &mut turns, write).unwrap(), 3);
        assert_eq!(turns.iter().map(WriteTurn::rows).sum::<u64>(), 3);
    }

    #[test]
    fn no_more_rounds_when_enough_was_written() {
        let mut turns = one_turn();
        let mut written = 0;
        let write = |turn: &mut WriteTurn| {
            turn.writers
                .iter_mut()
                .for_each(|tally| tally.answers += ROUND_ROWS);
            written += ROUND_ROWS;
            Ok(())
        };
        let counted = run_rounds(1_000, &mut turns, write).unwrap();
        assert!(counted < 1_000 && written <= MAX_ROWS, "{written} rows");
    }
}
