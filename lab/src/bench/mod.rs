//! `headwater bench`: the same timelines side by side, by plain SQL, the procedure and Headwater.
//!
//! [`data`] chooses readers and pages, [`mod@run`] alternates between all [`query_path`](crate::query_path)s ([`measure`]) and compares each answer with the
//! procedure's ([`check`]), [`report`] holds the figures, [`table`] and [`chart`] show them.

pub mod bench_database;
pub mod cell;
pub mod chart;
pub mod check;
pub mod client;
pub mod client_pool;
pub mod cpu_time;
pub mod data;
pub mod depth;
pub mod figures;
pub mod flags;
pub mod login;
pub mod measure;
pub mod memory;
pub mod named_feed;
pub mod prepared_task;
pub mod proxy_process;
pub mod push;
pub mod reconnect;
pub mod report;
pub mod request;
pub mod round_runner;
pub mod run;
pub mod scrape_bench;
pub mod shapes;
pub mod simulate;
pub mod slice;
pub mod spider_bench;
pub mod strategies;
pub mod table;
pub mod target_ratios;
pub mod targets;
pub mod warmup;
pub mod writes;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

pub use flags::{BenchCommand, BenchFlags};
use headwater_server::config::{ServeFlags, ServeSettings};
use report::BenchReport;

/// Why the bench ended without valid figures.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The data cannot be read from the server.
    #[error("cannot prepare the bench on {upstream}")]
    Prepare {
        /// The server.
        upstream: String,
        /// The cause.
        source: mysql_async::Error,
    },
    /// The account needs a password, and none was given.
    #[error(
        "the account {user} needs a password, and none was given: HEADWATER_BENCH_PASSWORD, or --password"
    )]
    NoPassword {
        /// The account.
        user: String,
        /// The server's error.
        source: mysql_async::Error,
    },
    /// No reader has one of the pages.
    #[error("nobody in {database} has any of these pages: see --pages")]
    NoReaders {
        /// The database.
        database: String,
    },
    /// A measured statement failed.
    #[error("cannot measure {address}")]
    Client {
        /// The address that was queried.
        address: String,
        /// The cause.
        source: client::BenchClientError,
    },
    /// The settings file cannot be used.
    #[error("cannot read the feed's settings")]
    Settings(#[from] headwater_server::config::ConfigError),
    /// The settings file has no such feed.
    #[error(
        "--feed {name}: the settings file (--config, HEADWATER_CONFIG) has no [[feed]] of that name; it has: {known}"
    )]
    NoFeed {
        /// The requested name.
        name: String,
        /// The names in the file.
        known: String,
    },
    /// The feed would be measured without its acceleration.
    #[error("feed {name} is not served, so that nothing is measured: {why}")]
    NotServed {
        /// The feed.
        name: String,
        /// The reason.
        why: String,
    },
    /// The service account cannot check the server.
    #[error("feed {name} is not served, so that nothing is measured")]
    Unchecked {
        /// The feed.
        name: String,
        /// The cause.
        source: headwater_tools::check::CheckError,
    },
    /// A line of the request's file cannot be read.
    #[error("cannot read the request {path}")]
    RequestFile {
        /// The file.
        path: PathBuf,
        /// The line, and what is wrong with it.
        source: request::file::RequestFileError,
    },
    /// Nobody is known who reads.
    #[error(
        "--request: nobody reads{}: name the readers in the file, with a line such as `readers SELECT id FROM users`",
        if select.is_empty() { String::new() } else { format!(" by {select}") }
    )]
    NoRequestReaders {
        /// The SELECT that had no row.
        select: String,
    },
    /// A request has pages of numbers.
    #[error("--request plays pages by number: write --pages 1, or 1,2,10")]
    RandomRequest,
    /// The feed's table is empty.
    #[error("feed {name}: the table {table} has no rows in database {database} (--database)")]
    NoRows {
        /// The feed.
        name: String,
        /// The table of readers or authors.
        table: String,
        /// The database.
        database: String,
    },
    /// The database exists: another bench may use it.
    #[error(
        "the database {database} exists: another bench uses it, or was killed and left it; drop it and try again"
    )]
    Exists {
        /// Its name.
        database: &'static str,
    },
    /// The data set for push and pull cannot be loaded.
    #[error(transparent)]
    Load(#[from] crate::demo::load::LoadError),
    /// A Spider node and its data nodes could not be started.
    #[error(transparent)]
    Spider(#[from] crate::spider::SpiderError),
    /// The strategies could not be measured.
    #[error(transparent)]
    Strategies(#[from] strategies::StrategyError),
    /// Headwater could not be started.
    #[error(transparent)]
    Proxy(#[from] proxy_process::ProxyError),
    /// The figures cannot be counted.
    #[error("latencies cannot be counted")]
    Histogram(#[from] hdrhistogram::errors::CreationError),
    /// The figures cannot be added up.
    #[error("latencies cannot be added up")]
    Addition(#[from] hdrhistogram::errors::AdditionError),
    /// A file of the system cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The signal handlers cannot be installed.
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
    /// The measuring thread ended early.
    #[error("the measuring thread ended early")]
    Thread(#[from] tokio::task::JoinError),
    /// SIGINT, SIGTERM or SIGHUP was received.
    #[error("stopped before the end")]
    Stopped,
    /// Answers differ from the procedure's.
    #[error(
        "{count} answers differ from the procedure's: the first are shown above, more are in the --json file"
    )]
    Differences {
        /// How many.
        count: u64,
    },
}

impl BenchError {
    /// Adds the address to a client's error.
    pub fn for_address(address: &str) -> impl Fn(client::BenchClientError) -> BenchError + use<> {
        let address = address.to_owned();
        move |source| BenchError::Client {
            address: address.clone(),
            source,
        }
    }
}

/// The request to stop the bench; checked between two statements.
#[derive(Clone, Debug, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// True after the first signal.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the settings file, and uses its service account if no flag names one.
fn load_settings(flags: &mut BenchFlags) -> Result<ServeSettings, BenchError> {
    let settings = ServeSettings::load(&ServeFlags {
        config: flags.config.clone(),
        upstream: vec![flags.upstream.clone()],
        service: flags.service.clone(),
        ..ServeFlags::default()
    })?;
    if let Some(service) = &settings.service {
        flags.service.service_user = Some(service.user.clone());
        flags.service.service_password = Some(service.password.clone());
    }
    Ok(settings)
}

/// Why the bench could not begin on this server.
fn prepare_error(flags: &BenchFlags, source: mysql_async::Error) -> BenchError {
    let is_denied = matches!(&source, mysql_async::Error::Server(error) if error.code == 1045);
    if is_denied && flags.password.is_empty() {
        return BenchError::NoPassword {
            user: flags.user.clone().unwrap_or_default(),
            source,
        };
    }
    BenchError::Prepare {
        upstream: flags.upstream.clone(),
        source,
    }
}

/// Measures, prints the figures, and writes the files that the flags name. Stops all processes that it started.
///
/// # Errors
/// Fails if a step fails; after everything is printed also if an answer differs from the procedure's.
pub async fn run(mut flags: BenchFlags) -> Result<(), BenchError> {
    if let Some(BenchCommand::Strategies(flags)) = flags.command {
        return strategies::run(flags).await;
    }
    if let Some(users) = flags.simulate.simulate {
        let json = flags.json.as_deref();
        return simulate::run(users, flags.simulate.clone(), flags.seed, json).await;
    }
    flags.service = flags.service.resolved()?;
    if let Some(path) = flags.request.clone() {
        return request::run(flags, &path).await;
    }
    if flags.named_feed().is_some() {
        return named_feed::run(flags).await;
    }
    // Stopped and removed when the bench ends.
    let _spider = spider_bench::start_spider(&mut flags).await?;
    let data = data::prepare(&flags)
        .await
        .map_err(|source| prepare_error(&flags, source))?;
    if data.pages.is_empty() {
        return Err(BenchError::NoReaders {
            database: flags.database,
        });
    }
    let (json, chart) = (flags.json.clone(), flags.chart.clone());
    let report = run_interruptible(move |stop| run::run(&flags, data, stop)).await?;
    show(&report, json.as_deref(), chart.as_deref())?;
    match report.differences.answers {
        0 => Ok(()),
        count => Err(BenchError::Differences { count }),
    }
}

/// Measures on a thread of its own, until that ends or a signal arrives.
async fn run_interruptible<T: Send + 'static>(
    measure: impl FnOnce(&StopSignal) -> Result<T, BenchError> + Send + 'static,
) -> Result<T, BenchError> {
    let stop = StopSignal::default();
    let signals = tokio::spawn(stop_on_signals(stop.clone()));
    let stop_requested = stop.clone();
    let measured = tokio::task::spawn_blocking(move || measure(&stop)).await?;
    signals.abort();
    // A signal at the terminal also reaches the measured processes, so errors are expected then.
    if stop_requested.is_requested() {
        return Err(BenchError::Stopped);
    }
    measured
}

/// SIGHUP stops the bench too: what it wrote has to be removed.
async fn stop_on_signals(stop: StopSignal) -> Result<(), BenchError> {
    let mut hangup = signal(SignalKind::hangup()).map_err(BenchError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(BenchError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(BenchError::Signals)?;
    tokio::select! {
        _ = hangup.recv() => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    stop.request();
    Ok(())
}

fn show(report: &BenchReport, json: Option<&Path>, chart: Option<&Path>) -> Result<(), BenchError> {
    print!("{}", table::table(report));
    if let Some(path) = json {
        write_json(path, report)?;
    }
    if let Some(path) = chart {
        match chart::chart(report) {
            Some(text) => write(path, &text)?,
            None => eprintln!("no chart: the newest page was not measured"),
        }
    }
    Ok(())
}

fn write_json(path: &Path, figures: &impl Serialize) -> Result<(), BenchError> {
    let text = serde_json::to_string_pretty(figures).map_err(|error| BenchError::Write {
        path: path.to_owned(),
        source: error.into(),
    })?;
    write(path, &(text + "\n"))
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(path, text).map_err(|source| BenchError::Write {
        path: path.to_owned(),
        source,
    })
}
