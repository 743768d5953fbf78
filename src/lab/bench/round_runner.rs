//! Rounds, and in each round every way once.

use indicatif::{ProgressBar, ProgressStyle};

use super::cell::BenchCell;
use super::check::{BenchDifferences, verify_answers};
use super::client_pool::ClientPool;
use super::cpu_time::{ProcessorTime, processor_time};
use super::data::BenchPage;
use super::depth::PageDepth;
use super::figures::LatencyFigures;
use super::flags::BenchFlags;
use super::measure::{ConnectionTally, SLICE_TIME};
use super::prepared_task::PreparedTask;
use super::query_path::{QueryForm, QueryPath};
use super::reconnect::run_reconnecting_slice;
use super::slice::run_slice;
use super::{BenchError, StopSignal};

/// Differences that are printed in full as they are found.
const MAX_PRINTED: usize = 5;

/// What has been measured so far, and how it goes on.
#[derive(Debug)]
pub struct RoundRunner<'a> {
    progress: ProgressBar,
    differences: BenchDifferences,
    cells: Vec<BenchCell>,
    rounds: u32,
    stop: &'a StopSignal,
}

impl<'a> RoundRunner<'a> {
    /// Nothing yet; so many ways will take their turns in so many rounds.
    #[must_use]
    pub fn new(turns: usize, rounds: u32, stop: &'a StopSignal) -> RoundRunner<'a> {
        RoundRunner {
            progress: progress_bar(turns, rounds),
            differences: BenchDifferences::default(),
            cells: Vec::new(),
            rounds,
            stop,
        }
    }

    /// What was measured, and what was wrong.
    #[must_use]
    pub fn finish(self) -> (Vec<BenchCell>, BenchDifferences) {
        self.progress.finish_and_clear();
        (self.cells, self.differences)
    }

    /// Measures one page by these ways, with each number of connections.
    ///
    /// # Errors
    /// When something fails, and when the bench is asked to stop.
    pub fn measure_page(
        &mut self,
        page: &BenchPage,
        ways: &[QueryPath],
        flags: &BenchFlags,
        crew: &mut ClientPool,
    ) -> Result<(), BenchError> {
        let at = BenchError::for_address(&flags.upstream);
        let newest = ways.iter().any(|way| way.form == QueryForm::Newest);
        let mut works = Vec::with_capacity(page.tasks.len());
        for task in &page.tasks {
            let mut work = PreparedTask::new(*task, &mut crew.direct).map_err(&at)?;
            if newest {
                work.load_expected(QueryForm::Newest, &mut crew.direct)
                    .map_err(&at)?;
            }
            works.push(work);
        }
        for connections in &flags.connections {
            self.measure_cells(
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
    pub fn measure_cells(
        &mut self,
        page: PageDepth,
        ways: &[QueryPath],
        connections: usize,
        crew: &mut ClientPool,
        works: &mut [PreparedTask],
    ) -> Result<(), BenchError> {
        let mut lanes = Vec::new();
        for way in ways {
            lanes.push((
                *way,
                ConnectionTally::for_connections(connections, works.len())?,
                ProcessorTime::default(),
            ));
        }
        // Round 0 warms up and does not count.
        for round in 0..=self.rounds {
            for (way, lanes, spent) in &mut lanes {
                self.progress.set_message(format!(
                    "{page}, {connections} connections: {}",
                    way.label()
                ));
                let before = crew.server_pid.and_then(processor_time);
                self.run_slice(*way, connections, crew, lanes, works)?;
                spent.add(before, crew.server_pid.and_then(processor_time));
                if round == 0 {
                    lanes.iter_mut().for_each(ConnectionTally::reset);
                    *spent = ProcessorTime::default();
                }
                self.progress.inc(1);
            }
        }
        for (way, lanes, spent) in lanes {
            let figures = LatencyFigures::from_lanes(&lanes)?;
            self.cells.push(BenchCell {
                page,
                connections,
                way,
                ratio: None,
                figures: LatencyFigures {
                    server_us: spent.per_answer_us(figures.answers),
                    ..figures
                },
            });
        }
        Ok(())
    }

    fn run_slice(
        &mut self,
        way: QueryPath,
        connections: usize,
        crew: &mut ClientPool,
        lanes: &mut [ConnectionTally],
        works: &mut [PreparedTask],
    ) -> Result<(), BenchError> {
        if self.stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        let at = BenchError::for_address(crew.address(way.route));
        let reconnect = crew.reconnect;
        let (clients, direct) = crew.clients(way.route, connections);
        let noted = match reconnect {
            true => run_reconnecting_slice(way, SLICE_TIME, clients, lanes, works, self.stop),
            false => run_slice(way, SLICE_TIME, clients, lanes, works, self.stop),
        };
        let noted = noted.map_err(&at)?;
        let Some(client) = clients.first_mut() else {
            return Ok(());
        };
        for difference in verify_answers(way, noted, works, client, direct).map_err(&at)? {
            if self.differences.kept.len() < MAX_PRINTED {
                self.progress
                    .suspend(|| eprintln!("DIFFERENT: {difference}"));
            }
            self.differences.add(difference);
        }
        Ok(())
    }
}

/// As many rounds as fill the time that each way is given, the last not cut short.
pub fn round_count(flags: &BenchFlags) -> u32 {
    let rounds = flags.seconds.as_nanos().div_ceil(SLICE_TIME.as_nanos());
    u32::try_from(rounds).unwrap_or(u32::MAX - 1)
}

fn progress_bar(turns: usize, rounds: u32) -> ProgressBar {
    let turns = u64::try_from(turns).unwrap_or(u64::MAX) * (u64::from(rounds) + 1);
    let progress = ProgressBar::new(turns);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {percent}% {eta_precise} to go, {msg}")
    {
        progress.set_style(style);
    }
    progress
}
