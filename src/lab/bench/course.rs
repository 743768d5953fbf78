//! Rounds, and in each round every way once.

use indicatif::{ProgressBar, ProgressStyle};

use super::anew::anew;
use super::cell::Cell;
use super::check::{Differences, judge};
use super::crew::Crew;
use super::data::Page;
use super::depth::Depth;
use super::figures::Figures;
use super::flags::BenchFlags;
use super::measure::{Lane, SLICE};
use super::slice::slice;
use super::spent::{Spent, processor_time};
use super::way::{Form, Way};
use super::work::Work;
use super::{BenchError, Stop};

/// Differences that are printed in full as they are found.
const SHOWN: usize = 5;

/// What has been measured so far, and how it goes on.
#[derive(Debug)]
pub struct Course<'a> {
    progress: ProgressBar,
    differences: Differences,
    cells: Vec<Cell>,
    rounds: u32,
    stop: &'a Stop,
}

impl<'a> Course<'a> {
    /// Nothing yet; so many ways will take their turns in so many rounds.
    #[must_use]
    pub fn new(turns: usize, rounds: u32, stop: &'a Stop) -> Course<'a> {
        Course {
            progress: progress(turns, rounds),
            differences: Differences::default(),
            cells: Vec::new(),
            rounds,
            stop,
        }
    }

    /// What was measured, and what was wrong.
    #[must_use]
    pub fn finish(self) -> (Vec<Cell>, Differences) {
        self.progress.finish_and_clear();
        (self.cells, self.differences)
    }

    /// Measures one page by these ways, with each number of connections.
    ///
    /// # Errors
    /// When something fails, and when the bench is asked to stop.
    pub fn page(
        &mut self,
        page: &Page,
        ways: &[Way],
        flags: &BenchFlags,
        crew: &mut Crew,
    ) -> Result<(), BenchError> {
        let at = BenchError::at(&flags.upstream);
        let newest = ways.iter().any(|way| way.form == Form::Newest);
        let mut works = Vec::with_capacity(page.tasks.len());
        for task in &page.tasks {
            let mut work = Work::new(*task, &mut crew.direct).map_err(&at)?;
            if newest {
                work.learn(Form::Newest, &mut crew.direct).map_err(&at)?;
            }
            works.push(work);
        }
        for connections in &flags.connections {
            self.cells(
                page.depth,
                ways,
                usize::from(*connections),
                crew,
                &mut works,
            )?;
        }
        Ok(())
    }

    /// Lets these ways take turns at one page, and keeps a cell for each.
    ///
    /// # Errors
    /// When something fails, and when the bench is asked to stop.
    pub fn cells(
        &mut self,
        page: Depth,
        ways: &[Way],
        connections: usize,
        crew: &mut Crew,
        works: &mut [Work],
    ) -> Result<(), BenchError> {
        let mut lanes = Vec::new();
        for way in ways {
            lanes.push((
                *way,
                Lane::several(connections, works.len())?,
                Spent::default(),
            ));
        }
        // Round 0 warms up and does not count.
        for round in 0..=self.rounds {
            for (way, lanes, spent) in &mut lanes {
                self.progress.set_message(format!(
                    "{page}, {connections} connections: {}",
                    way.label()
                ));
                let before = crew.server.and_then(processor_time);
                self.turn(*way, connections, crew, lanes, works)?;
                spent.add(before, crew.server.and_then(processor_time));
                if round == 0 {
                    lanes.iter_mut().for_each(Lane::forget);
                    *spent = Spent::default();
                }
                self.progress.inc(1);
            }
        }
        for (way, lanes, spent) in lanes {
            let figures = Figures::of(&lanes)?;
            self.cells.push(Cell {
                page,
                connections,
                way,
                ratio: None,
                figures: Figures {
                    server_us: spent.each(figures.answers),
                    ..figures
                },
            });
        }
        Ok(())
    }

    fn turn(
        &mut self,
        way: Way,
        connections: usize,
        crew: &mut Crew,
        lanes: &mut [Lane],
        works: &mut [Work],
    ) -> Result<(), BenchError> {
        if self.stop.asked() {
            return Err(BenchError::Stopped);
        }
        let at = BenchError::at(crew.address(way.route));
        let reconnect = crew.reconnect;
        let (clients, direct) = crew.clients(way.route, connections);
        let noted = match reconnect {
            true => anew(way, SLICE, clients, lanes, works, self.stop),
            false => slice(way, SLICE, clients, lanes, works, self.stop),
        };
        let noted = noted.map_err(&at)?;
        let Some(client) = clients.first_mut() else {
            return Ok(());
        };
        for difference in judge(way, noted, works, client, direct).map_err(&at)? {
            if self.differences.kept.len() < SHOWN {
                self.progress
                    .suspend(|| eprintln!("DIFFERENT: {difference}"));
            }
            self.differences.add(difference);
        }
        Ok(())
    }
}

/// As many rounds as fill the time that each way is given, the last not cut short.
pub fn rounds(flags: &BenchFlags) -> u32 {
    let rounds = flags.seconds.as_nanos().div_ceil(SLICE.as_nanos());
    u32::try_from(rounds).unwrap_or(u32::MAX - 1)
}

fn progress(turns: usize, rounds: u32) -> ProgressBar {
    let turns = u64::try_from(turns).unwrap_or(u64::MAX) * (u64::from(rounds) + 1);
    let progress = ProgressBar::new(turns);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {percent}% {eta_precise} to go, {msg}")
    {
        progress.set_style(style);
    }
    progress
}
