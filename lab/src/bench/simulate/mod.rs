//! `--simulate`: the requirements of very many users, from a sample with the seeds' distributions, the real index and the real log reader.
//!
//! [`user_sample`] draws the sample, [`index_cost`] fills the index with it, [`hit_simulation`] reads under budgets, [`log_throughput`]
//! parses the log of its writes, and [`table`] shows the figures scaled up to all users.

pub mod hit_simulation;
pub mod index_cost;
pub mod log_throughput;
pub mod table;
pub mod user_sample;

use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use self::hit_simulation::{EventMix, HitCounts, ReaderWeights};
use self::index_cost::IndexCost;
use self::log_throughput::LogReadRates;
use self::user_sample::{SplitMix64, UserSample};
use super::{BenchError, StopSignal, run_interruptible, write_json};

const DAY_SECONDS: f64 = 86_400.0;
/// Budgets, as shares of what all active readers need.
const BUDGETS: [f64; 5] = [0.125, 0.25, 0.5, 0.75, 1.05];
/// The simulated numbers of Headwaters.
const HEADWATERS: [u64; 5] = [1, 2, 4, 8, 16];
/// Time for parsing the log.
const LOG_READ_TIME: Duration = Duration::from_secs(3);
/// Pages for each active reader of the sample under each budget; the first half warms up.
const PAGES_PER_READER: u64 = 20;
/// Maximum number of events under one budget: bounds the time.
const MOST_EVENTS: u64 = 2_000_000;

/// Flags of `headwater bench --simulate`.
#[derive(Args, Clone, Debug)]
pub struct SimulateFlags {
    /// Simulate so many users (100,000,000 if left out) in place of measuring a server: size of the index, hit share, log rate
    ///
    /// A sample of them is drawn with the distributions of the classic data set, and put into a real index; what that costs is scaled up.
    /// No server is needed. The same --seed draws the same sample.
    #[arg(long, value_name = "USERS", num_args = 0..=1, default_missing_value = "100000000",
          value_parser = clap::value_parser!(u64).range(10_000..=10_000_000_000))]
    pub simulate: Option<u64>,
    /// With --simulate: users of the sample
    #[arg(long, value_name = "USERS", requires = "simulate", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(1_000..=200_000))]
    pub sample: u32,
    /// With --simulate: the share of users who read and write
    #[arg(long, value_name = "SHARE", requires = "simulate", default_value_t = 0.25, value_parser = share)]
    pub active: f64,
    /// With --simulate: messages that an active user writes a day
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 2.7, value_parser = number)]
    pub posts_a_day: f64,
    /// With --simulate: pages that are read for each message that is written
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 100.0, value_parser = number)]
    pub reads_a_post: f64,
    /// With --simulate: follows that come or go for each message that is written
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 10.0, value_parser = number)]
    pub follows_a_post: f64,
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && (0.0..=10_000.0).contains(number))
        .ok_or_else(|| "write a number from 0 to 10,000".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    share
        .filter(|share: &f64| (0.001..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0.001 to 1".to_owned())
}

/// All figures.
#[derive(Clone, Debug, Serialize)]
pub struct SimulationReport {
    /// The simulated users.
    pub users: u64,
    /// The users of the sample.
    pub sample: u32,
    /// The seed of the sample.
    pub seed: u64,
    /// The share of users who read and write.
    pub active: f64,
    /// The cost of the index with every user's follow list, in the sample.
    pub all: IndexCost,
    /// The cost of the index with the active readers' lists, in the sample.
    pub of_active: IndexCost,
    /// The hits under each budget.
    pub budgets: Vec<BudgetHits>,
    /// The share of each instance, by number of Headwaters.
    pub shared: Vec<InstanceShare>,
    /// The users' rates.
    pub rates: WorkloadRates,
    /// The log reader's throughput; `None` if it could not parse the log.
    pub parsed: Option<LogReadRates>,
}

/// The hits under one budget, scaled up to all users.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BudgetHits {
    /// The budget as a share of what all active readers need.
    pub share: f64,
    /// The budget in bytes.
    pub bytes: f64,
    /// All active readers have the same weight.
    pub alike: HitCounts,
    /// The weights are as uneven as those of the seeds' authors.
    pub unevenly: HitCounts,
}

/// One of several Headwaters among which the readers are divided by their number.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct InstanceShare {
    /// The number of Headwaters.
    pub headwaters: u64,
    /// Bytes that each needs for its active readers.
    pub bytes_each: f64,
    /// Pages a second that each serves.
    pub pages_per_s: f64,
}

/// The events of all users in a second, averaged over a day.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WorkloadRates {
    /// Messages written.
    pub posts: f64,
    /// Follows and unfollows.
    pub follows: f64,
    /// Pages read.
    pub pages: f64,
}

impl WorkloadRates {
    fn from_flags(users: u64, flags: &SimulateFlags) -> WorkloadRates {
        let posts = users as f64 * flags.active * flags.posts_a_day / DAY_SECONDS;
        WorkloadRates {
            posts,
            follows: posts * flags.follows_a_post,
            pages: posts * flags.reads_a_post,
        }
    }

    /// Transactions a second.
    #[must_use]
    pub fn transactions(&self) -> f64 {
        self.posts + self.follows
    }

    /// Bytes of log a second.
    #[must_use]
    pub fn bytes(&self, parsed: &LogReadRates) -> f64 {
        self.posts * parsed.message_bytes as f64 + self.follows * parsed.follow_bytes as f64
    }
}

impl SimulationReport {
    /// The number of users that one user of the sample represents.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.users as f64 / f64::from(self.sample)
    }
}

/// Simulates, prints the figures, and writes them to `json`.
///
/// # Errors
/// Fails if it is stopped, or the file cannot be written.
pub async fn run(
    users: u64,
    flags: SimulateFlags,
    seed: u64,
    json: Option<&std::path::Path>,
) -> Result<(), BenchError> {
    let simulated = run_interruptible(move |stop| Ok(simulate(users, &flags, seed, stop))).await?;
    print!("{}", table::table(&simulated));
    match json {
        Some(path) => write_json(path, &simulated),
        None => Ok(()),
    }
}

/// Runs the whole simulation; ends early when stopped.
#[must_use]
pub fn simulate(
    users: u64,
    flags: &SimulateFlags,
    seed: u64,
    stop: &StopSignal,
) -> SimulationReport {
    let begun = Instant::now();
    let bar = ProgressBar::new(100);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {percent}%") {
        bar.set_style(style);
    }
    bar.set_message("drawing users");
    let world = UserSample::new(flags.sample, seed);
    let mut dice = SplitMix64::new(seed);
    let readers = active_readers(&world, flags.active, &mut dice);
    bar.set_message("filling the index");
    let all = index_cost::fill(&world, 1..=world.users() as u64);
    let of_active = index_cost::fill(&world, readers.iter().copied());
    let scale = users as f64 / f64::from(flags.sample);
    let rates = WorkloadRates::from_flags(users, flags);
    let shared = HEADWATERS.map(|headwaters| {
        let instance_readers = readers
            .iter()
            .copied()
            .filter(|reader| reader % headwaters == 0);
        InstanceShare {
            headwaters,
            bytes_each: index_cost::fill(&world, instance_readers).bytes() as f64 * scale,
            pages_per_s: rates.pages / headwaters as f64,
        }
    });
    let mix = EventMix {
        reads: flags.reads_a_post,
        follows: flags.follows_a_post,
    };
    let events = (readers.len() as u64)
        .saturating_mul(PAGES_PER_READER)
        .min(MOST_EVENTS);
    let (alike, unevenly) = (
        ReaderWeights::uniform(readers.clone()),
        ReaderWeights::skewed(readers),
    );
    let mut budgets = Vec::new();
    for share in BUDGETS {
        let bytes = of_active.bytes() as f64 * share;
        bar.set_message(format!("asking with {:.0}% of the memory", share * 100.0));
        let mut run_budget = |weights: &ReaderWeights| {
            let each = 100.0 / (BUDGETS.len() * 2) as f64;
            let from = bar.position();
            let hits = hit_simulation::simulate(
                world.clone(),
                weights,
                mix,
                (to_usize(bytes), events),
                &mut dice,
                |event| {
                    let done = event as f64 / events.max(1) as f64 * each;
                    bar.set_position(from + to_usize(done) as u64);
                    !stop.is_requested()
                },
            );
            bar.set_position(from + to_usize(each) as u64);
            hits
        };
        let (alike, unevenly) = (run_budget(&alike), run_budget(&unevenly));
        budgets.push(BudgetHits {
            share,
            bytes: bytes * scale,
            alike,
            unevenly,
        });
    }
    bar.set_message("reading a log");
    let parsed = log_throughput::measure(flags.follows_a_post, LOG_READ_TIME);
    bar.finish_and_clear();
    eprintln!("simulated in {:.0} s", begun.elapsed().as_secs_f64());
    SimulationReport {
        users,
        sample: flags.sample,
        seed,
        active: flags.active,
        all,
        of_active,
        budgets,
        shared: shared.into(),
        rates,
        parsed,
    }
}

/// Some of the users, in random order.
fn active_readers(sample: &UserSample, share: f64, dice: &mut SplitMix64) -> Vec<u64> {
    let mut readers: Vec<u64> = (1..=sample.users() as u64).collect();
    for index in (1..readers.len()).rev() {
        let other = usize::try_from(dice.below(index as u64 + 1)).unwrap_or(0);
        readers.swap(index, other);
    }
    readers.truncate(to_usize(sample.users() as f64 * share).max(1));
    readers
}

/// Rounds a number that is neither negative nor too large.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_usize(number: f64) -> usize {
    number.max(0.0) as usize
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn flags() -> SimulateFlags {
        SimulateFlags {
            simulate: Some(1_000_000),
            sample: 1_000,
            active: 0.25,
            posts_a_day: 2.7,
            reads_a_post: 100.0,
            follows_a_post: 10.0,
        }
    }

    #[test]
    fn the_same_seed_simulates_the_same_and_more_memory_has_more_pages() {
        let one = simulate(1_000_000, &flags(), 7, &StopSignal::default());
        let other = simulate(1_000_000, &flags(), 7, &StopSignal::default());
        let figures = |simulated: &SimulationReport| {
            let shared = simulated.shared.iter().map(|shared| shared.bytes_each);
            let hits = simulated.budgets.iter();
            let hits = hits.flat_map(|budget| [budget.alike.hits, budget.unevenly.hits]);
            (shared.collect::<Vec<_>>(), hits.collect::<Vec<_>>())
        };
        assert_eq!(figures(&one), figures(&other));
        let third = simulate(1_000_000, &flags(), 8, &StopSignal::default());
        assert_ne!(figures(&one), figures(&third));
        let (least, most) = (&one.budgets[0], &one.budgets[BUDGETS.len() - 1]);
        assert!(least.alike.share() < most.alike.share());
        assert!(least.unevenly.share() > least.alike.share());
        assert!(most.alike.share() > 0.9, "{most:?}");
        assert!(least.alike.evicted > 0);
        // Each of sixteen has fewer lists, but more than a sixteenth of the memory: they share authors.
        let (first, last) = (one.shared[0], one.shared[4]);
        assert!(last.bytes_each < first.bytes_each);
        assert!(last.bytes_each > first.bytes_each / 16.0);
        // Nothing was evicted during the fill.
        assert_eq!(one.all.follows, 42_900);
        assert!(one.all.readers == 1_000 && one.of_active.readers == 250);
        assert!((4.0..64.0).contains(&one.all.bytes_each()), "{:?}", one.all);
        let parsed = one.parsed.unwrap();
        assert!(parsed.bytes_per_s > 0.0 && one.rates.bytes(&parsed) > 0.0);
    }

    #[test]
    fn the_table_has_every_figure_with_its_unit() {
        let flags = SimulateFlags {
            active: 1.0,
            ..flags()
        };
        let told = table::table(&simulate(2_000_000, &flags, 1, &StopSignal::default()));
        for word in [
            "2,000,000 users",
            "GiB",
            "bytes",
            "a second",
            "hit share",
            "MB/s",
        ] {
            assert!(told.contains(word), "no {word} in:\n{told}");
        }
    }
}
