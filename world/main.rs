//! A world whose time is ours: Headwater's own sessions, stream, proofs and loads in one thread, on connections in memory and a paused
//! clock, in front of a model server. A seed is a number, and the same seed is the same run.
//!
//! | module | what it is |
//! |---|---|
//! | `run` | one world: its server, Headwater, writers, operators and apps |
//! | `plan` | what happens in it |
//! | `reader` | an app, and what it may be told |
//! | `pages` | what a page is by a state of the tables |
//! | `writes` | what is written |
//! | `server`, `wire` | the model server: its connections and commits, and its side of the protocol |
//! | `answers`, `sql` | what it answers |
//! | `model`, `log` | its tables and transactions, and its binary log |
//! | `network` | what lies between two ends |
//! | `client` | an app's side of the protocol |
//! | `packets` | what both sides read and write |
//! | `trace` | what happened |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod answers;
mod client;
mod log;
mod model;
mod network;
mod packets;
mod pages;
mod plan;
#[allow(dead_code, reason = "the stories need more of it")]
#[path = "../integration/kit/random.rs"]
mod random;
mod reader;
mod run;
mod server;
mod sql;
mod trace;
mod wire;
mod writes;

use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Runs Headwater in simulated worlds, and compares every page with what the model server had.

Usage: cargo test --test world -- [--seed SEED | --seeds COUNT [--from SEED]] [--trace]

  --seed SEED    one world, and what Headwater counted in it
  --seeds COUNT  so many worlds (100)
  --from SEED    of which this is the first (0)
  --trace        what happened in them: milliseconds, who, what

SEED is hexadecimal, COUNT decimal.";

/// Without arguments.
const SEEDS: u64 = 100;
/// Of so many worlds one is run twice.
const REPEATED: u64 = 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|it| it == "--help") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let seeds = match wished(&arguments) {
        Ok(seeds) => seeds,
        Err(problem) => {
            eprintln!("{problem}\n\n{HELP}");
            return ExitCode::FAILURE;
        }
    };
    let (begun, count) = (Instant::now(), seeds.end - seeds.start);
    let shows_trace = arguments.iter().any(|it| it == "--trace");
    println!("\nrunning {count} worlds");
    let mut pages = 0;
    for seed in seeds {
        let done = run::run(seed, shows_trace).and_then(|done| match seed % REPEATED {
            0 => same_again(seed, done),
            _ => Ok(done),
        });
        match done {
            Ok(done) => {
                pages += done.pages;
                if count == 1 {
                    println!("{}", done.counts);
                }
            }
            Err(fault) => {
                println!("world {seed:x} ... FAILED\n{fault}");
                println!(
                    "again, with what happened: cargo test --test world -- --seed {seed:x} --trace"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{pages} pages, none wrong");
    println!(
        "\ntest result: ok. {count} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in {seconds:.2}s"
    );
    ExitCode::SUCCESS
}

/// The same seed is the same run, whatever differs outside of it.
fn same_again(seed: u64, done: run::Done) -> Result<run::Done, String> {
    let again = run::run(seed, false)?;
    let mut lines = done.trace.lines().zip(again.trace.lines());
    match lines.find(|(first, second)| first != second) {
        None if done.trace.len() == again.trace.len() => Ok(done),
        differ => Err(format!("another run of it is another one: {differ:#?}")),
    }
}

/// Which worlds. What cargo says to all tests alike (`--skip`, `--nocapture`, names) changes nothing.
fn wished(arguments: &[String]) -> Result<Range<u64>, String> {
    let number = |name: &str, radix: u32| {
        let place = arguments.iter().position(|it| it == name);
        place.map(|place| {
            let text = arguments.get(place + 1).map_or("", String::as_str);
            u64::from_str_radix(text, radix)
                .map_err(|_| format!("{name} takes a number, not {text:?}"))
        })
    };
    if let Some(seed) = number("--seed", 16).transpose()? {
        return Ok(seed..seed + 1);
    }
    let first = number("--from", 16).transpose()?.unwrap_or(0);
    let count = number("--seeds", 10).transpose()?.unwrap_or(SEEDS);
    Ok(first..first + count)
}
