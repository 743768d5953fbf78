//! Taking turns: in each round every contender has several short ones, in an order that changes, so that what slows the
//! machine for a while slows all of them.

use std::time::{Duration, Instant};

use crate::contenders::RunningContender;
use crate::score::{FigureScore, RelayFigure, order};

/// What came of a contender's turns in a round.
#[derive(Debug, Default)]
pub(crate) struct RoundTotals {
    /// Statements, sessions or bytes.
    pub(crate) answers: u64,
    /// Time that the turns took.
    pub(crate) time: Duration,
    /// Processor time of the relay meanwhile; `None` for the server itself.
    pub(crate) cpu: Option<Duration>,
    /// Latencies, where they are looked at.
    pub(crate) latencies: Vec<Duration>,
}

/// What a turn brings: answers and latencies.
pub(crate) type TurnResult = (u64, Vec<Duration>);

impl RoundTotals {
    /// Answers a second.
    pub(crate) fn rate(&self) -> Option<f64> {
        (!self.time.is_zero()).then(|| self.answers as f64 / self.time.as_secs_f64())
    }

    /// Processor seconds of the relay for a million answers.
    pub(crate) fn cpu_a_million(&self) -> Option<f64> {
        let cpu = self.cpu.filter(|_| self.answers > 0)?;
        Some(cpu.as_secs_f64() * 1e6 / self.answers as f64)
    }

    /// The latency, in microseconds, that one in a hundred exceeds.
    pub(crate) fn p99_us(&self) -> Option<f64> {
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        let place = (latencies.len() * 99).div_ceil(100).checked_sub(1)?;
        Some(latencies.get(place)?.as_secs_f64() * 1e6)
    }

    fn add(
        &mut self,
        running: &RunningContender,
        turn: impl FnOnce() -> anyhow::Result<TurnResult>,
    ) -> anyhow::Result<()> {
        let cpu = || {
            running
                .process
                .as_ref()
                .map(|process| process.cpu())
                .transpose()
        };
        let before = cpu()?;
        let begun = Instant::now();
        let (answers, latencies) = turn()?;
        self.time += begun.elapsed();
        let spent = cpu()?
            .zip(before)
            .map(|(now, before)| now.saturating_sub(before));
        self.cpu = spent.map(|spent| spent + self.cpu.unwrap_or_default());
        self.answers += answers;
        self.latencies.extend(latencies);
        Ok(())
    }
}

/// Everybody's rounds: a list for each contender.
#[derive(Debug)]
pub(crate) struct ContenderRounds<'a> {
    field: &'a [RunningContender],
    sums: Vec<Vec<RoundTotals>>,
}

impl<'a> ContenderRounds<'a> {
    /// Lets everybody take so many turns in each of so many rounds. `turn` is given a contender's place; `tick` is called
    /// behind each turn.
    pub(crate) fn play(
        field: &'a [RunningContender],
        rounds: usize,
        turns: usize,
        mut turn: impl FnMut(usize, &RunningContender) -> anyhow::Result<TurnResult>,
        mut tick: impl FnMut(),
    ) -> anyhow::Result<ContenderRounds<'a>> {
        let mut sums: Vec<Vec<RoundTotals>> = field.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            sums.iter_mut()
                .for_each(|sums| sums.push(RoundTotals::default()));
            for number in 0..turns {
                for place in order(round * turns + number, field.len()) {
                    crate::ensure_not_stopped()?;
                    let sum = sums.get_mut(place).and_then(|sums| sums.last_mut());
                    if let (Some(running), Some(sum)) = (field.get(place), sum) {
                        sum.add(running, || turn(place, running))?;
                    }
                    tick();
                }
            }
        }
        Ok(ContenderRounds { field, sums })
    }

    /// A figure of every round and contender.
    pub(crate) fn score(
        &self,
        figure: RelayFigure,
        value: impl Fn(&RoundTotals) -> Option<f64>,
    ) -> FigureScore {
        let mut score = FigureScore::new(figure);
        for (running, sums) in self.field.iter().zip(&self.sums) {
            for value in sums.iter().filter_map(&value) {
                score.add(running.contender, value);
            }
        }
        score
    }
}
