//! `--writes`: what readers and writers are to each other, directly and through Headwater.
//!
//! Both routes take turns, as the ways of reading do. While messages are written the right answer changes under the
//! readers, so answers are compared when the writers rest: once with the rows there, and once when they are removed.

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
use super::query_path::{ConnectionRoute, PageTask, QueryForm, QueryPath};
use super::{BenchError, StopSignal, round_runner};

/// Connections that read.
pub const READERS: usize = 8;
/// Connections that write.
const WRITERS: usize = 8;
/// Paced inserts, by all connections together.
pub const INSERTS_PER_SECOND: u32 = 1_000;
/// No round begins with more rows than this written, less what one round could add.
const MAX_ROWS: u64 = 200_000;
/// More than a round adds on any machine in reach: its slices are short.
const ROUND_ROWS: u64 = 40_000;
const ROUTES: [ConnectionRoute; 2] = [ConnectionRoute::Direct, ConnectionRoute::Headwater];

/// What was measured, and what was wrong.
#[derive(Debug)]
pub struct WriteMeasurement {
    /// The figures.
    pub writes: WriteFigures,
    /// Answers that were not the procedure's, when the writers rested.
    pub differences: Vec<BenchDifference>,
}

/// Writes, measures, and removes what it wrote, whatever happens.
///
/// # Errors
/// When a connection fails, a statement is refused, or the rows cannot be removed.
pub fn measure(
    flags: &BenchFlags,
    account: &BenchAccount,
    tasks: &[PageTask],
    crew: &mut ClientPool,
    stop: &StopSignal,
) -> Result<WriteMeasurement, BenchError> {
    let at = BenchError::for_address(&flags.upstream);
    let pen = MessageWriter::new(&mut crew.direct).map_err(&at)?;
    let written = WrittenRows::after_newest(&mut crew.direct, &flags.upstream, account, pen.mark());
    let written = written.map_err(&at)?;
    eprintln!(
        "--writes: inserts messages into {}.message on {} and removes them at the end; should the bench be killed before: {}",
        account.database,
        flags.upstream,
        written.statement()
    );
    let mut works = Vec::new();
    for task in tasks {
        works.push(PreparedTask::new(task.newest(), &mut crew.direct).map_err(&at)?);
    }
    let mut turns = write_turns(works.len(), &pen)?;
    let mut writers = Vec::new();
    for route in ROUTES {
        let address = crew.address(route).to_owned();
        for _ in 0..WRITERS {
            let client = BenchClient::connect(&address, account);
            writers.push((route, client.map_err(BenchError::for_address(&address))?));
        }
    }
    let rounds = run_rounds(round_runner::round_count(flags), &mut turns, |turn| {
        let (readers, _) = crew.clients(turn.route, READERS);
        let writers = writers.iter_mut().filter(|(route, _)| *route == turn.route);
        let writers = writers.map(|(_, client)| client).collect();
        turn.run_slice(readers, writers, &works, &pen, stop)
            .map_err(&at)?;
        if stop.is_requested() {
            Err(BenchError::Stopped)
        } else {
            Ok(())
        }
    })?;
    drop(writers);
    let mut differences = verify_timelines(&mut works, crew)?;
    let removed = written.remove()?;
    differences.extend(verify_timelines(&mut works, crew)?);
    Ok(WriteMeasurement {
        writes: WriteFigures {
            database: account.database.clone(),
            readers: READERS,
            writers: WRITERS,
            seconds: SLICE_TIME.as_secs_f64() * f64::from(rounds),
            unpaced: route_comparison(&turns, PacingKind::Unpaced)?,
            paced: route_comparison(&turns, PacingKind::Paced)?,
            removed,
            compared: 2 * works.len(),
        },
        differences,
    })
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacingKind {
    /// As fast as it goes.
    Unpaced,
    /// At [`PER_SECOND`].
    Paced,
}

/// What takes turns: a kind of writing on a route, and what was counted.
#[derive(Debug)]
struct WriteTurn {
    kind: PacingKind,
    route: ConnectionRoute,
    readers: Vec<ConnectionTally>,
    writers: Vec<ConnectionTally>,
}

fn write_turns(works: usize, pen: &MessageWriter) -> Result<Vec<WriteTurn>, BenchError> {
    let mut turns = Vec::new();
    for kind in [PacingKind::Unpaced, PacingKind::Paced] {
        for route in ROUTES {
            turns.push(WriteTurn {
                kind,
                route,
                readers: ConnectionTally::for_connections(READERS, works)?,
                writers: ConnectionTally::for_connections(WRITERS, pen.author_count())?,
            });
        }
    }
    Ok(turns)
}

/// Lets everybody take turns; the first round warms up. Ends early when enough was written; returns how many counted.
fn run_rounds(
    most: u32,
    turns: &mut [WriteTurn],
    mut turn: impl FnMut(&mut WriteTurn) -> Result<(), BenchError>,
) -> Result<u32, BenchError> {
    let mut rows = 0;
    for round in 0..=most {
        if rows + ROUND_ROWS > MAX_ROWS {
            return Ok(round.saturating_sub(1));
        }
        for each in turns.iter_mut() {
            let before = each.rows();
            turn(each)?;
            rows += each.rows() - before;
            if round == 0 {
                let lanes = each.readers.iter_mut().chain(&mut each.writers);
                lanes.for_each(ConnectionTally::reset);
            }
        }
    }
    Ok(most)
}

impl WriteTurn {
    fn rows(&self) -> u64 {
        self.writers.iter().map(|lane| lane.answers).sum()
    }

    fn run_slice(
        &mut self,
        readers: &mut [BenchClient],
        writers: Vec<&mut BenchClient>,
        works: &[PreparedTask],
        pen: &MessageWriter,
        stop: &StopSignal,
    ) -> Result<(), BenchClientError> {
        let form = match self.kind {
            PacingKind::Unpaced => QueryForm::CallAndTail,
            PacingKind::Paced => QueryForm::Call,
        };
        let mut jobs: Vec<SliceJob<'_, ()>> = Vec::new();
        for (client, lane) in readers.iter_mut().zip(&mut self.readers) {
            jobs.push(Box::new(move || {
                let mut rows = Vec::new();
                repeat_for(SLICE_TIME, works.len(), lane, stop, |index| {
                    works
                        .get(index)
                        .map_or(Ok(()), |work| work.query(form, client, &mut rows))
                })
            }));
        }
        let paced = self.kind == PacingKind::Paced;
        for (hand, (client, lane)) in (0..).zip(writers.into_iter().zip(&mut self.writers)) {
            jobs.push(Box::new(move || {
                if paced {
                    write_paced(hand, client, lane, pen, stop)
                } else {
                    write_unpaced(client, lane, pen, stop)
                }
            }));
        }
        run_parallel(jobs).map(drop)
    }
}

fn write_unpaced(
    client: &mut BenchClient,
    lane: &mut ConnectionTally,
    pen: &MessageWriter,
    stop: &StopSignal,
) -> Result<(), BenchClientError> {
    let mut none = Vec::new();
    repeat_for(SLICE_TIME, pen.author_count(), lane, stop, |place| {
        client.query(&pen.insert(pen.author(place)), &mut none)
    })
}

fn write_paced(
    hand: u32,
    client: &mut BenchClient,
    lane: &mut ConnectionTally,
    pen: &MessageWriter,
    stop: &StopSignal,
) -> Result<(), BenchClientError> {
    let pace = InsertPace {
        per_second: INSERTS_PER_SECOND,
        connections: u32::try_from(WRITERS).unwrap_or(u32::MAX),
    };
    let mut none = Vec::new();
    pace.run_slice(hand, pen.author_count(), lane, stop, |place| {
        client.query(&pen.insert(pen.author(place)), &mut none)
    })
}

/// Asks for every timeline through Headwater when nobody of the bench writes, and judges the answers.
fn verify_timelines(
    works: &mut [PreparedTask],
    crew: &mut ClientPool,
) -> Result<Vec<BenchDifference>, BenchError> {
    let way = QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail);
    let at = BenchError::for_address(crew.address(way.route));
    let (clients, direct) = crew.clients(way.route, 1);
    let Some(client) = clients.first_mut() else {
        return Ok(Vec::new());
    };
    let (mut wrong, mut rows) = (Vec::new(), Vec::new());
    for (index, work) in works.iter_mut().enumerate() {
        work.load_expected(way.form, direct).map_err(&at)?;
        work.query(way.form, client, &mut rows).map_err(&at)?;
        if rows != work.expected(way.form) {
            UnexpectedAnswer::record(&mut wrong, index, &rows);
        }
    }
    verify_answers(way, wrong, works, client, direct).map_err(&at)
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
                .for_each(|lane| lane.record(SLICE_TIME));
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
                .for_each(|lane| lane.answers += ROUND_ROWS);
            written += ROUND_ROWS;
            Ok(())
        };
        let counted = run_rounds(1_000, &mut turns, write).unwrap();
        assert!(counted < 1_000 && written <= MAX_ROWS, "{written} rows");
    }
}
