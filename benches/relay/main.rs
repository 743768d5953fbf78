//! `make bench-relay`: what relaying costs. Headwater beside HAProxy and MySQL Router, in turn, in front of one server.
//!
//! [`contenders`] starts the relays, [`run`] lets them take turns ([`rounds`]), [`score`] says what was aimed at, and
//! [`table`] shows it. Apart from `headwater bench`, which compares ways to get a timeline.

mod background_load;
mod closed_loop;
mod contenders;
mod flags;
mod idle;
mod logins;
mod open_loop;
mod process;
mod rounds;
mod run;
mod score;
mod stage;
mod table;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use headwater_lab::bench::report::MachineInfo;
use headwater_lab::private_server::ServerKind;
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::background_load::ProcessorUsage;
use crate::closed_loop::STOP;
use crate::contenders::{RelaySetup, describe};
use crate::flags::RelayFlags;
use crate::run::ServerOutcome;

/// The share of the processors' work, taken by others, from which on they disturb the figures.
const BUSY: f64 = 0.05;

fn main() -> ExitCode {
    match bench(&RelayFlags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-relay: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whatever is started is stopped when this returns.
fn bench(flags: &RelayFlags) -> anyhow::Result<()> {
    contenders::check(&flags.contenders)?;
    stop_on_signals()?;
    raise_open_files();
    let machine = MachineInfo::inspect();
    let begun = Instant::now();
    for kind in flags.kinds() {
        let bar = bar();
        let before = ProcessorUsage::sample();
        let outcome = run::run(*kind, flags, &bar);
        // By now all that was started has ended, and counts as ours.
        let others = ProcessorUsage::sample().zip(before);
        let others = others.map(|(now, before)| now.others_share_since(before));
        bar.finish_and_clear();
        // What a signal ended failed in some way of its own.
        ensure_not_stopped()?;
        print(*kind, flags, &machine, &outcome?, others);
    }
    println!("{} s in all", begun.elapsed().as_secs());
    Ok(())
}

/// Looked at between any two steps.
pub(crate) fn ensure_not_stopped() -> anyhow::Result<()> {
    ensure!(!STOP.load(Ordering::Relaxed), "stopped before the end");
    Ok(())
}

fn print(
    kind: ServerKind,
    flags: &RelayFlags,
    machine: &MachineInfo,
    outcome: &ServerOutcome,
    others: Option<f64>,
) {
    let product = match kind {
        ServerKind::Mariadb => "MariaDB",
        ServerKind::Mysql => "MySQL",
    };
    println!(
        "{product} {}, {} cores, {}; {} rounds of {} s for each figure and contender",
        outcome.version,
        machine.cores,
        machine.processor.as_deref().unwrap_or("unknown processor"),
        flags.rounds,
        flags.seconds().as_secs_f64(),
    );
    let setup = RelaySetup {
        upstream: "...".to_owned(),
        sessions: 0,
        headwater: flags.headwater(),
    };
    for contender in &flags.contenders {
        if let Some(line) = describe(*contender, &setup) {
            println!("{line}");
        }
    }
    if let Some(share) = others.filter(|share| *share > BUSY) {
        println!(
            "Others took {:.0} % of the processors' work meanwhile: figures are worse than they might be, ratios less sure.",
            share * 100.0
        );
    }
    println!("\n{}", table::table(&outcome.scores, &flags.contenders));
    for note in &outcome.notes {
        println!("({note})");
    }
    println!();
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len}, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// A relay holds two sockets for each of thousands of sessions; what we start inherits the limit.
fn raise_open_files() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// From the first signal on, every loop ends, and what was started is stopped on the way out.
fn stop_on_signals() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for signals")?;
    let (mut interrupt, mut terminate, mut hangup) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        });
        STOP.store(true, Ordering::Relaxed);
    });
    Ok(())
}
