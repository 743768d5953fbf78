//! `--writes`: what readers and writers are to each other, directly and through Headwater.
//!
//! Both routes take turns, as the ways of reading do. While messages are written the right answer changes under the
//! readers, so answers are compared when the writers rest: once with the rows there, and once when they are removed.

pub mod figures;
pub mod pace;
pub mod pen;
pub mod removal;

pub use figures::{Load, Sides, Writes};
pub use pen::Pen;

use pace::Pace;
use removal::Written;

use super::check::{Difference, Wrong, judge};
use super::client::{Client, ClientError};
use super::crew::Crew;
use super::figures::Figures;
use super::flags::BenchFlags;
use super::login::Account;
use super::measure::{Job, Lane, SLICE, repeat, together};
use super::way::{Form, Route, Task, Way};
use super::work::Work;
use super::{BenchError, Stop, course};

/// Connections that read.
pub const READERS: usize = 8;
/// Connections that write.
const WRITERS: usize = 8;
/// Paced inserts, by all connections together.
pub const PER_SECOND: u32 = 1_000;
/// No round begins with more rows than this written, less what one round could add.
const MOST_ROWS: u64 = 200_000;
/// More than a round adds on any machine in reach: its slices are short.
const ROUND_ROWS: u64 = 40_000;
const ROUTES: [Route; 2] = [Route::Direct, Route::Headwater];

/// What was measured, and what was wrong.
#[derive(Debug)]
pub struct Measured {
    /// The figures.
    pub writes: Writes,
    /// Answers that were not the procedure's, when the writers rested.
    pub differences: Vec<Difference>,
}

/// Writes, measures, and removes what it wrote, whatever happens.
///
/// # Errors
/// When a connection fails, a statement is refused, or the rows cannot be removed.
pub fn measure(
    flags: &BenchFlags,
    account: &Account,
    tasks: &[Task],
    crew: &mut Crew,
    stop: &Stop,
) -> Result<Measured, BenchError> {
    let at = BenchError::at(&flags.upstream);
    let pen = Pen::new(&mut crew.direct).map_err(&at)?;
    let written = Written::above_the_newest(&mut crew.direct, &flags.upstream, account, pen.mark());
    let written = written.map_err(&at)?;
    eprintln!(
        "--writes: inserts messages into {}.message on {} and removes them at the end; should the bench be killed before: {}",
        account.database,
        flags.upstream,
        written.statement()
    );
    let mut works = Vec::new();
    for task in tasks {
        works.push(Work::new(task.newest(), &mut crew.direct).map_err(&at)?);
    }
    let mut turns = turns(works.len(), &pen)?;
    let mut writers = Vec::new();
    for route in ROUTES {
        let address = crew.address(route).to_owned();
        for _ in 0..WRITERS {
            let client = Client::connect(&address, account);
            writers.push((route, client.map_err(BenchError::at(&address))?));
        }
    }
    let rounds = rounds(course::rounds(flags), &mut turns, |turn| {
        let (readers, _) = crew.clients(turn.route, READERS);
        let writers = writers.iter_mut().filter(|(route, _)| *route == turn.route);
        let writers = writers.map(|(_, client)| client).collect();
        turn.slice(readers, writers, &works, &pen, stop)
            .map_err(&at)?;
        if stop.asked() {
            Err(BenchError::Stopped)
        } else {
            Ok(())
        }
    })?;
    drop(writers);
    let mut differences = compare(&mut works, crew)?;
    let removed = written.remove()?;
    differences.extend(compare(&mut works, crew)?);
    Ok(Measured {
        writes: Writes {
            database: account.database.clone(),
            readers: READERS,
            writers: WRITERS,
            seconds: SLICE.as_secs_f64() * f64::from(rounds),
            unpaced: sides(&turns, Kind::Unpaced)?,
            paced: sides(&turns, Kind::Paced)?,
            removed,
            compared: 2 * works.len(),
        },
        differences,
    })
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// As fast as it goes.
    Unpaced,
    /// At [`PER_SECOND`].
    Paced,
}

/// What takes turns: a kind of writing on a route, and what was counted.
#[derive(Debug)]
struct Turn {
    kind: Kind,
    route: Route,
    readers: Vec<Lane>,
    writers: Vec<Lane>,
}

fn turns(works: usize, pen: &Pen) -> Result<Vec<Turn>, BenchError> {
    let mut turns = Vec::new();
    for kind in [Kind::Unpaced, Kind::Paced] {
        for route in ROUTES {
            turns.push(Turn {
                kind,
                route,
                readers: Lane::several(READERS, works)?,
                writers: Lane::several(WRITERS, pen.places())?,
            });
        }
    }
    Ok(turns)
}

/// Lets everybody take turns; the first round warms up. Ends early when enough was written; returns how many counted.
fn rounds(
    most: u32,
    turns: &mut [Turn],
    mut turn: impl FnMut(&mut Turn) -> Result<(), BenchError>,
) -> Result<u32, BenchError> {
    let mut rows = 0;
    for round in 0..=most {
        if rows + ROUND_ROWS > MOST_ROWS {
            return Ok(round.saturating_sub(1));
        }
        for each in turns.iter_mut() {
            let before = each.rows();
            turn(each)?;
            rows += each.rows() - before;
            if round == 0 {
                let lanes = each.readers.iter_mut().chain(&mut each.writers);
                lanes.for_each(Lane::forget);
            }
        }
    }
    Ok(most)
}

impl Turn {
    fn rows(&self) -> u64 {
        self.writers.iter().map(|lane| lane.answers).sum()
    }

    fn slice(
        &mut self,
        readers: &mut [Client],
        writers: Vec<&mut Client>,
        works: &[Work],
        pen: &Pen,
        stop: &Stop,
    ) -> Result<(), ClientError> {
        let form = match self.kind {
            Kind::Unpaced => Form::CallAndTail,
            Kind::Paced => Form::Call,
        };
        let mut jobs: Vec<Job<'_, ()>> = Vec::new();
        for (client, lane) in readers.iter_mut().zip(&mut self.readers) {
            jobs.push(Box::new(move || {
                let mut rows = Vec::new();
                repeat(SLICE, works.len(), lane, stop, |index| {
                    works
                        .get(index)
                        .map_or(Ok(()), |work| work.ask(form, client, &mut rows))
                })
            }));
        }
        let paced = self.kind == Kind::Paced;
        for (hand, (client, lane)) in (0..).zip(writers.into_iter().zip(&mut self.writers)) {
            jobs.push(Box::new(move || {
                if paced {
                    write_paced(hand, client, lane, pen, stop)
                } else {
                    write(client, lane, pen, stop)
                }
            }));
        }
        together(jobs).map(drop)
    }
}

fn write(client: &mut Client, lane: &mut Lane, pen: &Pen, stop: &Stop) -> Result<(), ClientError> {
    let mut none = Vec::new();
    repeat(SLICE, pen.places(), lane, stop, |place| {
        client.ask(&pen.insert(pen.author(place)), &mut none)
    })
}

fn write_paced(
    hand: u32,
    client: &mut Client,
    lane: &mut Lane,
    pen: &Pen,
    stop: &Stop,
) -> Result<(), ClientError> {
    let pace = Pace {
        per_second: PER_SECOND,
        hands: u32::try_from(WRITERS).unwrap_or(u32::MAX),
    };
    let mut none = Vec::new();
    pace.keep(hand, pen.places(), lane, stop, |place| {
        client.ask(&pen.insert(pen.author(place)), &mut none)
    })
}

/// Asks for every timeline through Headwater when nobody of the bench writes, and judges the answers.
fn compare(works: &mut [Work], crew: &mut Crew) -> Result<Vec<Difference>, BenchError> {
    let way = Way::new(Route::Headwater, Form::CallAndTail);
    let at = BenchError::at(crew.address(way.route));
    let (clients, direct) = crew.clients(way.route, 1);
    let Some(client) = clients.first_mut() else {
        return Ok(Vec::new());
    };
    let (mut wrong, mut rows) = (Vec::new(), Vec::new());
    for (index, work) in works.iter_mut().enumerate() {
        work.learn(way.form, direct).map_err(&at)?;
        work.ask(way.form, client, &mut rows).map_err(&at)?;
        if rows != work.expected(way.form) {
            Wrong::note(&mut wrong, index, &rows);
        }
    }
    judge(way, wrong, works, client, direct).map_err(&at)
}

fn sides(turns: &[Turn], kind: Kind) -> Result<Sides, BenchError> {
    let load = |route| {
        let turn = turns
            .iter()
            .find(|turn| (turn.kind, turn.route) == (kind, route));
        turn.map_or(Ok(Load::default()), |turn| {
            Ok::<_, BenchError>(Load {
                inserts: Figures::of(&turn.writers)?,
                timelines: Figures::of(&turn.readers)?,
            })
        })
    };
    Ok(Sides {
        direct: load(Route::Direct)?,
        headwater: load(Route::Headwater)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn one_turn() -> Vec<Turn> {
        vec![Turn {
            kind: Kind::Unpaced,
            route: Route::Direct,
            readers: Vec::new(),
            writers: Lane::several(1, 1).unwrap(),
        }]
    }

    #[test]
    fn the_first_round_does_not_count() {
        let mut turns = one_turn();
        let write = |turn: &mut Turn| {
            turn.writers.iter_mut().for_each(|lane| lane.record(SLICE));
            Ok(())
        };
        assert_eq!(rounds(3, &mut turns, write).unwrap(), 3);
        assert_eq!(turns.iter().map(Turn::rows).sum::<u64>(), 3);
    }

    #[test]
    fn no_more_rounds_when_enough_was_written() {
        let mut turns = one_turn();
        let mut written = 0;
        let write = |turn: &mut Turn| {
            turn.writers
                .iter_mut()
                .for_each(|lane| lane.answers += ROUND_ROWS);
            written += ROUND_ROWS;
            Ok(())
        };
        let counted = rounds(1_000, &mut turns, write).unwrap();
        assert!(counted < 1_000 && written <= MOST_ROWS, "{written} rows");
    }
}
