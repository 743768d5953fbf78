//! Runs rounds; each round measures every query path once.

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
use super::reconnect::run_reconnecting_slice;
use super::slice::run_slice;
use super::{BenchError, StopSignal};
use crate::query_path::{QueryForm, QueryPath};

/// Differences that are printed in full when they are found.
const MAX_PRINTED: usize = 5;

/// The cells measured so far, and the state of the run.
#[derive(Debug)]
pub struct RoundRunner<'a> {
    progress: ProgressBar,
    differences: BenchDifferences,
    cells: Vec<BenchCell>,
    rounds: u32,
    stop: &'a StopSignal,
}

impl<'a> RoundRunner<'a> {
    /// Nothing measured yet; so many query paths run in so many rounds.
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

    /// The measured cells, and the differences.
    #[must_use]
    pub fn finish(self) -> (Vec<BenchCell>, BenchDifferences) {
        self.progress.finish_and_clear();
        (self.cells, self.differences)
    }

    /// Measures one page by these query paths, with each number of connections.
    ///
    /// # Errors
    /// Fails if a step fails, or the bench is stopped.
    pub fn measure_page(
        &mut self,
        page: &BenchPage,
        paths: &[QueryPath],
        flags: &BenchFlags,
        pool: &mut ClientPool,
    ) -> Result<(), BenchError> {
        let at = BenchError::for_address(&flags.upstream);
        let newest = paths.iter().any(|path| path.form == QueryForm::Newest);
        let mut prepared_tasks = Vec::with_capacity(page.tasks.len());
        for task in &page.tasks {
            let mut prepared = PreparedTask::new(*task, &mut pool.direct).map_err(&at)?;
            if newest {
                prepared
                    .load_expected(QueryForm::Newest, &mut pool.direct)
                    .map_err(&at)?;
            }
            prepared_tasks.push(prepared);
        }
        for connections in &flags.connections {
            self.measure_cells(
                page.depth,
                paths,
                usize::from(*connections),
                pool,
                &mut prepared_tasks,
            )?;
        }
        Ok(())
    }

    /// Alternates between these query paths at one page, and stores a cell for each.
    ///
    /// # Errors
    /// Fails if a step fails, or the bench is stopped.
    pub fn measure_cells(
        &mut self,
        page: PageDepth,
        paths: &[QueryPath],
        connections: usize,
        pool: &mut ClientPool,
        prepared_tasks: &mut [PreparedTask],
    ) -> Result<(), BenchError> {
        let mut tallies = Vec::new();
        for path in paths {
            tallies.push((
                *path,
                ConnectionTally::for_connections(connections, prepared_tasks.len())?,
                ProcessorTime::default(),
            ));
        }
        // Round 0 warms up and does not count.
        for round in 0..=self.rounds {
            for (path, tallies, spent) in &mut tallies {
                self.progress.set_message(format!(
                    "{page}, {connections} connections: {}",
                    path.label()
                ));
                let before = pool.server_pid.and_then(processor_time);
                self.run_slice(*path, connections, pool, tallies, prepared_tasks)?;
                spent.add(before, pool.server_pid.and_then(processor_time));
                if round == 0 {
                    tallies.iter_mut().for_each(ConnectionTally::reset);
                    *spent = ProcessorTime::default();
                }
                self.progress.inc(1);
            }
        }
        for (path, tallies, spent) in tallies {
            let figures = LatencyFigures::from_lanes(&tallies)?;
            self.cells.push(BenchCell {
                page,
                connections,
                way: path,
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
        path: QueryPath,
        connections: usize,
        pool: &mut ClientPool,
        tallies: &mut [ConnectionTally],
        prepared_tasks: &mut [PreparedTask],
    ) -> Result<(), BenchError> {
        if self.stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        let at = BenchError::for_address(pool.address(path.route));
        let reconnect = pool.reconnect;
        let (clients, direct) = pool.clients(path.route, connections);
        let run = match reconnect {
            true => run_reconnecting_slice,
            false => run_slice,
        };
        let noted = run(
            path,
            SLICE_TIME,
            clients,
            tallies,
            prepared_tasks,
            self.stop,
        );
        let noted = noted.map_err(&at)?;
        let Some(client) = clients.first_mut() else {
            return Ok(());
        };
        for difference in
            verify_answers(path, noted, prepared_tasks, client, direct).map_err(&at)?
        {
            if self.differences.kept.len() < MAX_PRINTED {
                self.progress
                    .suspend(|| eprintln!("DIFFERENT: {difference}"));
            }
            self.differences.add(difference);
        }
        Ok(())
    }
}

/// As many whole rounds as fill the time of each query path.
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
