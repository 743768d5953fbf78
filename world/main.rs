//! Deterministic simulation: Headwater's own sessions, log stream, freshness proofs and loads run in one thread, on in-memory connections
//! and a paused clock, in front of a model server. The same seed is the same run.
//!
//! | module | what it is |
//! |---|---|
//! | `run` | one world: its server, Headwater, writers, operators and apps |
//! | `fleet` | its Headwaters |
//! | `plan`, `operator`, `rights` | what happens in it |
//! | `reader` | an app, and which answers it may receive |
//! | `pages` | the pages of a state of the tables |
//! | `writes` | the apps' writes |
//! | `server`, `wire` | the model server: its connections and commits, and its side of the protocol |
//! | `answers`, `sql`, `condition` | its replies |
//! | `model`, `log` | its tables and transactions, and its binary log |
//! | `network` | the network between two ends |
//! | `client` | an app's side of the protocol |
//! | `packets` | packets of both sides |
//! | `trace`, `lanes` | the trace of a world, as a table and as a page |
//! | `reduction` | reduces a failing world |
//! | `second_opinion` | the model's log, read by another parser |
//! | `faults` | mutations that the worlds have to find |
//! | `arguments`, `workers` | the program's arguments, and how many worlds run in parallel |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod answers;
mod arguments;
mod client;
mod condition;
mod faults;
mod fleet;
mod lanes;
mod log;
mod model;
mod network;
mod operator;
mod packets;
mod pages;
mod plan;
#[allow(dead_code, reason = "the stories need more of it")]
#[path = "../integration/kit/random.rs"]
mod random;
mod reader;
mod reduction;
mod rights;
mod run;
mod second_opinion;
mod server;
mod sql;
mod trace;
mod wire;
mod workers;
mod writes;

use std::iter::once;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arguments::{number, value_after};
use reduction::PlanReduction;
use trace::TraceLine;

const HELP: &str = "\
Runs Headwater in simulated worlds, and compares every page with what the model server had.

Usage: cargo test --test world -- [--seed SEED | --seeds COUNT [--from SEED]] [--trace] [--html FILE]
       cargo test --test world -- --seed SEED [--without PART,...] [--steps COUNT]
       cargo test --test world -- --faults [NAME...] [--seeds COUNT]

  --seed SEED    one world, and what Headwater counted in it
  --seeds COUNT  so many worlds
  --from SEED    of which this is the first (0)
                 without either: the first 300, and 200 that nobody has run before
  --trace        what happened in them: milliseconds, who, what
  --html FILE    the same as a page, a lane for each who
  --without, --steps
                 a smaller world, as the command under a failure says it
  --faults       the test of the test: plants faults in a copy of the sources, and runs up to
                 COUNT worlds (2000) with each of them, or with those whose names hold a NAME

SEED is hexadecimal, COUNT decimal. A world that fails is made smaller: what can be left out of
it is left out, and the command that runs what is left is printed.";

/// Without arguments: these seeds, and as many others that begin at the current time.
const SEEDS: u64 = 300;
const FRESH: u64 = 200;
/// Worlds for each planted fault.
const FAULT_SEEDS: u64 = 2_000;
/// A progress line is printed every so many worlds.
const PROGRESS: u64 = 1_000;
/// One of so many worlds is run twice.
const REPEATED: u64 = 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|it| it == "--help") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let seeds = match number(&arguments, "--seeds", 10) {
        Ok(seeds) => seeds,
        Err(problem) => return usage_error(&problem),
    };
    if let Some(index) = arguments.iter().position(|it| it == "--faults") {
        let names = arguments[index + 1..].iter();
        let names = names.take_while(|it| !it.starts_with("--")).cloned();
        return faults::find_all(&names.collect::<Vec<_>>(), seeds.unwrap_or(FAULT_SEEDS));
    }
    let wishes = requested_seeds(&arguments, seeds).and_then(|seeds| {
        let reduction = PlanReduction::from_arguments(&arguments)?;
        Ok((seeds, reduction))
    });
    let (seeds, reduction) = match wishes {
        Ok(wishes) => wishes,
        Err(problem) => return usage_error(&problem),
    };
    trace::install();
    if let Err(problem) = second_opinion::check() {
        eprintln!("the model's log is none that a server writes: {problem}");
        return ExitCode::FAILURE;
    }
    let begun = Instant::now();
    let count: u64 = seeds.iter().map(|them| them.end - them.start).sum();
    println!("\nrunning {count} worlds");
    let all = seeds.into_iter().map(|seeds| {
        println!("{} from {:x} on", seeds.end - seeds.start, seeds.start);
        run_all(seeds, &reduction, &arguments)
    });
    match all.sum::<Result<u64, _>>() {
        Ok(pages) => {
            println!("{pages} pages, none wrong");
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "\ntest result: ok. {count} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in {seconds:.2}s"
            );
            ExitCode::SUCCESS
        }
        Err((seed, fault)) => {
            println!("world {seed:x} ... FAILED\n{fault}");
            if !is_planted() && reduction == PlanReduction::default() {
                let (smallest, fault) = reduction::shrink(seed, fault);
                let shown = smallest.as_arguments();
                println!(
                    "\nmade smaller, it fails so:\n{fault}\nagain, with what happened: cargo test --test world -- --seed {seed:x}{shown} --trace"
                );
            }
            ExitCode::FAILURE
        }
    }
}

/// True if a fault is planted.
fn is_planted() -> bool {
    std::env::var_os(faults::CHOICE).is_some()
}

fn usage_error(problem: &str) -> ExitCode {
    eprintln!("{problem}\n\n{HELP}");
    ExitCode::FAILURE
}

/// The results so far: pages, and the first failure.
#[derive(Default)]
struct WorldTotals {
    pages: u64,
    failed: Option<(u64, String)>,
}

/// Runs these worlds, as many in parallel as there are processors. Returns the number of pages, or the first failure.
fn run_all(
    seeds: Range<u64>,
    reduction: &PlanReduction,
    arguments: &[String],
) -> Result<u64, (u64, String)> {
    let count = seeds.end - seeds.start;
    // The search for planted faults runs several of these programs in parallel.
    let at_a_time = match is_planted() {
        true => 1,
        false => workers::processors(),
    };
    let sum = Mutex::new(WorldTotals::default());
    workers::share_out(count, at_a_time, |number| {
        let seed = seeds.start + number;
        let judged = judge(seed, reduction, arguments);
        let mut sum = sum.lock().expect("nobody panics with it");
        match judged {
            Ok((pages, counts)) => {
                sum.pages += pages;
                if (number + 1).is_multiple_of(PROGRESS) {
                    println!("{} worlds, {} pages", number + 1, sum.pages);
                }
                if count == 1 {
                    println!("{counts}");
                }
            }
            Err(fault) => {
                let is_first = sum.failed.as_ref().is_none_or(|(first, _)| seed < *first);
                if is_first {
                    sum.failed = Some((seed, fault));
                }
            }
        }
        sum.failed.is_none()
    });
    let sum = sum.into_inner().expect("nobody panics with it");
    sum.failed.map_or(Ok(sum.pages), Err)
}

/// Runs one world, some of them twice. Returns the number of pages and Headwater's counters, or the failure.
fn judge(
    seed: u64,
    reduction: &PlanReduction,
    arguments: &[String],
) -> Result<(u64, String), String> {
    let is_repeated = seed.is_multiple_of(REPEATED) && !is_planted();
    let is_shown = ["--trace", "--html"].map(|it| arguments.iter().any(|argument| argument == it));
    let done = run::run(seed, reduction, is_repeated || is_shown.contains(&true));
    show(arguments, &done);
    let pages_and_counts = done.outcome?;
    if is_repeated {
        same_again(seed, reduction, &done.lines)?;
    }
    Ok(pages_and_counts)
}

/// Prints the trace as far as requested.
fn show(arguments: &[String], done: &run::WorldOutcome) {
    if arguments.iter().any(|it| it == "--trace") {
        for line in &done.lines {
            println!("{line}");
        }
    }
    if let Some(file) = value_after(arguments, "--html") {
        let page = lanes::page(&done.lines, done.outcome.as_ref().err().map(String::as_str));
        match std::fs::write(file, page) {
            Ok(()) => println!("{file} shows what happened"),
            Err(error) => eprintln!("{file} cannot be written: {error}"),
        }
    }
}

/// The same seed has to give the same run.
fn same_again(seed: u64, reduction: &PlanReduction, lines: &[TraceLine]) -> Result<(), String> {
    let again = run::run(seed, reduction, true).lines;
    let mut both = lines.iter().zip(&again);
    match both.find(|(first, second)| first != second) {
        None if lines.len() == again.len() => Ok(()),
        differ => Err(format!("another run of it is another one: {differ:#?}")),
    }
}

/// The seeds to run.
fn requested_seeds(arguments: &[String], count: Option<u64>) -> Result<Vec<Range<u64>>, String> {
    if let Some(seed) = number(arguments, "--seed", 16)? {
        return Ok(once(seed..seed + 1).collect());
    }
    let from = number(arguments, "--from", 16)?;
    if from.is_some() || count.is_some() || is_planted() {
        let first = from.unwrap_or(0);
        return Ok(once(first..first + count.unwrap_or(SEEDS)).collect());
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let moment = since.map_or(0, |since| since.as_millis() as u64);
    Ok(vec![0..SEEDS, moment..moment + FRESH])
}
