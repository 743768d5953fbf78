//! The laboratory: subcommands to try and to measure Headwater (cargo feature `lab`).
//!
//! The scenario tests and `make bench-relay` use its servers, data and clients. `cargo build --no-default-features` leaves it out, with
//! the crates that only it needs.

pub mod bench;
pub mod demo;
pub mod feed;
pub mod manual;
pub mod private_server;
pub mod query_path;
pub mod spider;

use self::bench::{BenchError, BenchFlags};
use self::demo::{DemoError, DemoFlags};
use self::manual::{ManualError, ManualFlags};
use futures_util::future::LocalBoxFuture;

/// The laboratory's subcommands.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum LabCommand {
    /// A private MariaDB with a million messages, and Headwater in front: left running, with what to type next
    Demo(DemoFlags),
    /// The same timelines side by side: plain SQL, the procedure, Headwater
    Bench(Box<BenchFlags>),
    /// Manual pages, completions and the page of settings, written from the code
    #[command(hide = true)]
    Manual(ManualFlags),
}

/// Why a subcommand failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The demo's error.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The bench's error.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The manual's error.
    #[error(transparent)]
    Manual(#[from] ManualError),
}

/// Runs a subcommand to its end. `program`: the complete command line definition.
///
/// # Errors
/// The subcommand's error.
///
/// Boxed, so that no other package compiles it again.
pub fn run(
    command: LabCommand,
    program: clap::Command,
) -> LocalBoxFuture<'static, Result<(), LabError>> {
    Box::pin(run_command(command, program))
}

async fn run_command(command: LabCommand, program: clap::Command) -> Result<(), LabError> {
    match command {
        LabCommand::Demo(flags) => demo::run(flags).await?,
        LabCommand::Bench(flags) => bench::run(*flags).await?,
        LabCommand::Manual(flags) => manual::write(&flags, &program)?,
    }
    Ok(())
}
