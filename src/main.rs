//! Arguments, logging, settings, runtime, a subcommand, an exit code.

// Doc comments here are texts of `--help`.
#![allow(rustdoc::broken_intra_doc_links)]

#[cfg(feature = "lab")]
use headwater_lab as laboratory;
#[cfg(not(feature = "lab"))]
#[path = "no_lab.rs"]
mod laboratory;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use headwater_proxy::logging::{JsonLogWriter, LogState, ThrottleLayer, fields};
use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_server::config::{
    ConfigError, LogFormat, LogLevel, LogSection, ServeFlags, ServeSettings, SettingChanges,
};
use headwater_server::report::with_causes;
use headwater_server::server::{
    PredecessorProcess, ProxyServer, SettingsReloader, SettingsSource, TakeoverOffer,
};
use headwater_server::sockets::InheritedSockets;
use headwater_server::systemd;
use headwater_tools::discover::DiscoverFlags;
use headwater_tools::verify::{VerifyFlags, VerifyOutcome};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Registry;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// A MySQL proxy that makes feeds fast to read, without a change to the app's SQL.
///
/// Point any MySQL client at its port. It answers SELECTs of feeds (the newest messages of everyone I follow: by a join, EXISTS, a
/// subquery or a list of authors) from memory that follows the server's binary log: those of the feeds that the settings file names,
/// and of those that it finds by itself (feeds.auto). It does the same for timelines by stored procedures, CALL fetch_timeline_ids(reader)
/// and its like. Every other byte it relays unchanged.
#[derive(Parser)]
#[command(version = headwater_server::version::WHOLE, max_term_width = 100)]
struct ProgramArguments {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Stand in front of a MySQL or MariaDB server
    ///
    /// Flags, environment (HEADWATER_*) and settings file mean the same, in that order of precedence.
    /// SIGHUP reads the settings, certificate and key again, as `headwater reload` does, and has a definition be answered again that is
    /// relayed because an answer differed (--shadow); SIGUSR1 prints the counters; SIGTERM and Ctrl-C let commands in flight end, a second one does not.
    Serve(ServeFlags),
    /// Have a running Headwater read its settings again
    ///
    /// Asks at its admin port (admin.listen, admin.token: taken from the flags, environment and settings file given here, so give those
    /// of `serve`), and prints each setting that is another one now and each that needs a restart. Settings with a mistake change
    /// nothing. Clients notice nothing: their sessions go on, and take the new settings between two commands.
    ///
    /// SIGHUP does the same, and says in the log what changed. Headwater's flags and environment are those that it was started with: of
    /// them only the files that they name are read again.
    ///
    /// The exit status is for deploy scripts. 0: the settings are in force. 1: they stay as they were, or nobody answers. 3: they are in force,
    /// but for some that need a restart. 2: the flags or the settings file given here are wrong.
    Reload(ServeFlags),
    /// What will be answered from memory, and what stands in the way
    ///
    /// Takes the settings of `serve` (flags, environment, file), asks the server as `serve` would, changes nothing, and
    /// prints: the server; how fresh answers are and how much memory there is; the grants that the service account
    /// needs, as statements to paste, with those that are missing marked; every setting of the server that is in the
    /// way, with the way out; for each feed in each database whether its SELECTs are answered from memory, and what is in the
    /// way; and for each call of each definition whether it is answered from memory, by lookups, or by the server's procedure
    /// (relay), and why.
    ///
    /// The exit status is for deploy scripts. 0: every feed is served, and every call of every definition is answered as well as these
    /// settings allow: from memory; by lookups where memory is switched off or no service account is set; relayed with
    /// --relay-only. 1: a right is missing, a setting is in the way, a feed or a call is relayed, a definition is found in no
    /// database, or the server cannot be asked. 2: the flags or the settings file are wrong.
    ///
    /// A definition is looked for in every database that the account may see: name one (its key `database`) where
    /// tables of these names stand elsewhere too.
    Check(ServeFlags),
    /// Which SELECTs of an app are feeds, and the settings that make them fast
    ///
    /// Looks at the statements that the server has counted (performance_schema, MySQL's default; on MariaDB it has to be
    /// switched on), or, with --listen, relays for a while and looks at what goes by: then have the app connect there.
    ///
    /// A feed is a page of the newest messages of several authors: SELECT ... ORDER BY ... DESC LIMIT n, with a list of
    /// authors, or with a subquery, a join or EXISTS that says whom somebody follows. For each that is found it prints
    /// the [[feed]] section to paste into the settings file of `serve`, the statements that it serves (how often, how
    /// long, how many rows were read for each that was sent), and what stands in the way, with the statement that mends it: as
    /// `headwater check` would say. Statements that look like feeds and cannot be served are listed with the reason.
    ///
    /// It changes nothing: it runs SELECTs as the service account, which needs SELECT on performance_schema.* and on the
    /// app's tables. Values of statements are not printed.
    Discover(Box<DiscoverFlags>),
    /// Whether every reader is answered as the server would answer, on a live server
    ///
    /// Takes the settings of `serve` (flags, environment, file). It goes through every reader of every feed and definition, or through
    /// some of them (--readers), asks through the Headwater that runs, asks the server itself, and compares: of a feed the statements that
    /// apps were seen to send, with the reader's values in them, of a definition the calls and the SELECT behind each.
    ///
    /// Others may write meanwhile: an answer that differs is asked for again on both sides, and is a difference only where it
    /// stays one while the server's own answer does not change. Each difference is reported with both answers.
    ///
    /// Safe on a live server: one connection to each side, at most --rate answers a second, no locks, and it stops when the server
    /// becomes slower (--stop-when-slower). Progress goes to the standard error, the report to the standard output; Ctrl-C
    /// ends it with the report so far.
    ///
    /// The service account needs EXECUTE on the procedures, CREATE TEMPORARY TABLES and SELECT on the tables; so does the account
    /// that asks through Headwater (--user), and PROCESS where the report is to say what answered.
    ///
    /// The exit status: 0: all equal. 1: an answer differs, or something could not be compared. 2: the flags or the settings file
    /// are wrong. 3: it stopped early, and all was equal until then.
    Verify(Box<VerifyFlags>),
    #[command(flatten)]
    Lab(laboratory::LabCommand),
}

/// The exit status of clap.
const BAD_USAGE: u8 = 2;
/// Some settings need a restart.
const NEEDS_RESTART: u8 = 3;
/// `verify` stopped early.
const STOPPED: u8 = 3;

fn main() -> ExitCode {
    match run(ProgramArguments::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("headwater: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: ProgramArguments) -> anyhow::Result<ExitCode> {
    headwater_server::session_capacity::raise_open_files();
    match arguments.command {
        CliCommand::Serve(flags) => {
            let unknown = unknown_environment()?;
            let settings = ServeSettings::load(&flags)?;
            let (messages, level) = init_logging(settings.log);
            for warning in unknown.into_iter().chain(settings.memory_shortage()) {
                tracing::warn!("{warning}");
            }
            let sockets = InheritedSockets::from_environment()?;
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("cannot start the runtime")?
                .block_on(serve(
                    &settings,
                    sockets,
                    FlagSettingsSource {
                        flags,
                        level_handle: level,
                        log_state: Arc::clone(&messages),
                    },
                ))?;
            messages.report_remainder();
        }
        CliCommand::Reload(flags) => return reload(&flags),
        CliCommand::Check(flags) => return check(&flags),
        CliCommand::Discover(flags) => return discover(&flags),
        CliCommand::Verify(flags) => return verify(&flags),
        CliCommand::Lab(command) => {
            let (messages, _) = init_logging(LogSection {
                level: LogLevel::Warn,
                ..LogSection::default()
            });
            let ended = runtime(1)?.block_on(with_log_summaries(
                &messages,
                laboratory::run(command, ProgramArguments::command()),
            ));
            ended?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Environment variables that look like settings and are none: a hint for each.
fn unknown_environment() -> Result<Vec<String>, ConfigError> {
    let command = ProgramArguments::command();
    let flags = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments);
    let known: Vec<&str> = flags.filter_map(|flag| flag.get_env()?.to_str()).collect();
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    headwater_server::config::unknown_variables(&known, set)
}

/// The settings of a subcommand that reports; prints what is wrong with them. `None`: they cannot be used.
fn settings<T>(load: impl FnOnce() -> Result<T, ConfigError>) -> Option<T> {
    match unknown_environment().and_then(|unknown| Ok((unknown, load()?))) {
        Ok((unknown, settings)) => {
            for warning in unknown {
                eprintln!("headwater: {warning}");
            }
            Some(settings)
        }
        Err(error) => {
            eprintln!("headwater: {}", with_causes(&error));
            None
        }
    }
}

/// Prints what changed to the standard output.
fn reload(flags: &ServeFlags) -> anyhow::Result<ExitCode> {
    let Some(settings) = settings(|| ServeSettings::load(flags)) else {
        return Ok(ExitCode::from(BAD_USAGE));
    };
    let reloaded = runtime(1)?.block_on(headwater_server::admin::reload(&settings.admin))?;
    let SettingChanges {
        changed,
        need_restart,
    } = &reloaded.changes;
    let mut report = String::new();
    for change in changed {
        report += &format!("in force now: {change}\n");
    }
    for change in need_restart {
        report += &format!("needs a restart: {change}\n");
    }
    if changed.is_empty() && need_restart.is_empty() {
        report += "no setting differs; certificates and keys are read again\n";
    }
    let _ = std::io::stdout().write_all(report.as_bytes());
    Ok(match need_restart.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(NEEDS_RESTART),
    })
}

/// Prints the report to the standard output, also if it ends early.
fn check(flags: &ServeFlags) -> anyhow::Result<ExitCode> {
    let Some(settings) = settings(|| ServeSettings::load(flags)) else {
        return Ok(ExitCode::from(BAD_USAGE));
    };
    if let Some(warning) = settings.memory_shortage() {
        eprintln!("headwater: {warning}");
    }
    let mut report = String::new();
    let checked = runtime(1)?.block_on(headwater_tools::check::run(&settings, &mut report));
    let _ = std::io::stdout().write_all(report.as_bytes());
    Ok(if checked? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// As `check`: the report goes to the standard output; mistakes in flags and settings have their own exit status.
fn discover(flags: &DiscoverFlags) -> anyhow::Result<ExitCode> {
    let Some(settings) = settings(|| flags.settings()) else {
        return Ok(ExitCode::from(BAD_USAGE));
    };
    let (messages, _) = init_logging(settings.log);
    let mut report = String::new();
    let discovery = headwater_tools::discover::run(
        &settings,
        flags.source(),
        flags.request_file(),
        &mut report,
    );
    let discovered = runtime(1)?.block_on(with_log_summaries(&messages, discovery));
    let _ = std::io::stdout().write_all(report.as_bytes());
    discovered?;
    Ok(ExitCode::SUCCESS)
}

/// As `check`; a run that stopped early has its own exit status.
fn verify(flags: &VerifyFlags) -> anyhow::Result<ExitCode> {
    let Some((settings, options)) = settings(|| flags.settings()) else {
        return Ok(ExitCode::from(BAD_USAGE));
    };
    let mut report = String::new();
    let verified = headwater_tools::verify::run(&settings, &options, &mut report);
    let verified = runtime(1)?.block_on(verified);
    let _ = std::io::stdout().write_all(report.as_bytes());
    Ok(match verified? {
        VerifyOutcome::Equal => ExitCode::SUCCESS,
        VerifyOutcome::Different => ExitCode::FAILURE,
        VerifyOutcome::Stopped => ExitCode::from(STOPPED),
    })
}

fn runtime(threads: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// The process to take over from, and its sockets; or those that the service manager has opened, if any.
async fn inherit_sockets(
    settings: &ServeSettings,
    given: InheritedSockets,
) -> anyhow::Result<(Option<PredecessorProcess>, InheritedSockets)> {
    if let Some(path) = settings
        .takeover
        .socket
        .as_deref()
        .filter(|_| settings.takes_over)
    {
        match PredecessorProcess::request_sockets(path).await? {
            Some((predecessor, sockets)) => {
                return Ok((Some(predecessor), sockets.matching_settings(settings)));
            }
            None => tracing::info!(
                "there is nobody to take over from at {} (takeover.socket): this is a start as usual",
                path.display()
            ),
        }
    }
    if !given.is_empty() {
        tracing::info!(
            "the service manager has opened the port (LISTEN_FDS): `listen` is not looked at"
        );
    }
    Ok((None, given))
}

async fn wait_until_taken(offer: Option<TakeoverOffer>) {
    match offer {
        Some(offer) => offer.wait_until_taken().await,
        None => std::future::pending().await,
    }
}

/// Reads the settings again, as at the start.
#[derive(Debug)]
struct FlagSettingsSource {
    flags: ServeFlags,
    level_handle: LogLevelHandle,
    log_state: Arc<LogState>,
}

impl SettingsSource for FlagSettingsSource {
    fn read(&self) -> Result<ServeSettings, String> {
        ServeSettings::load(&self.flags).map_err(|error| with_causes(&error))
    }

    fn set_log_level(&self, level: LogLevel) {
        self.log_state.set_level(filter(level));
        if let Err(error) = self.level_handle.reload(self.log_state.required_level()) {
            tracing::warn!("log.level stays as it was: {error}");
        }
    }
}

async fn serve(
    settings: &ServeSettings,
    given: InheritedSockets,
    flags: FlagSettingsSource,
) -> anyhow::Result<()> {
    let messages = Arc::clone(&flags.log_state);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let usage = signal(SignalKind::user_defined1())?;
    let hangup = signal(SignalKind::hangup())?;
    let (predecessor, mut sockets) = inherit_sockets(settings, given).await?;
    let server = ProxyServer::bind_reloadable(&mut sockets, settings, Box::new(flags)).await?;
    let mut server = server
        .with_admin(&mut sockets, &settings.admin)?
        .with_log_state(Arc::clone(&messages));
    tracing::info!("headwater {}", headwater_server::version::WHOLE);
    let current = server.current();
    let saying = tokio::spawn(async move { messages.report_suppressed().await });
    let announcing = tokio::spawn(server.announce());
    if let Some(predecessor) = predecessor {
        tokio::select! {
            () = server.take_over(predecessor, &settings.takeover) => {}
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
    let mut taken = tokio::spawn(wait_until_taken(server.offer(&settings.takeover)?));
    systemd::ready();
    let guarding = tokio::spawn(systemd::feed_watchdog(server.liveness_probe()));
    let counts = tokio::spawn(print_counts(usage, server.current()));
    let reloads = tokio::spawn(reload_at(hangup, server.reloader()));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = server.run(async {
        let _ = stopped.await;
    });
    tokio::pin!(running);
    let mut stop = Some(stop);
    loop {
        let handed_over = tokio::select! {
            () = &mut running => break,
            _ = terminate.recv() => false,
            _ = interrupt.recv() => false,
            _ = &mut taken, if stop.is_some() => true,
        };
        match stop.take() {
            Some(stop) => {
                tracing::info!("stopping: commands in flight may end");
                if handed_over {
                    // The next process feeds the watchdog.
                    guarding.abort();
                } else {
                    taken.abort();
                    systemd::stopping();
                }
                let _ = stop.send(());
            }
            None => break,
        }
    }
    guarding.abort();
    announcing.abort();
    saying.abort();
    counts.abort();
    reloads.abort();
    print_counters(&current.shared());
    Ok(())
}

async fn print_counts(mut usage: Signal, current: Arc<CurrentGeneration>) {
    while usage.recv().await.is_some() {
        print_counters(&current.shared());
    }
}

/// Reads the settings again at each signal, and logs the outcome.
async fn reload_at(mut hangup: Signal, reloads: Arc<SettingsReloader>) {
    while hangup.recv().await.is_some() {
        systemd::reloading();
        let _ = reloads.reload().await;
        systemd::ready();
    }
}

/// The reader of the output may be gone; that is no error.
fn print_counters(shared: &headwater_proxy::session::shared_state::SharedState) {
    let mut now = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut now));
    // A reader that waits for the counters then has the rest.
    for line in shared.tallies() {
        let line = headwater_sql::escape_hidden(&line);
        let _ = writeln!(std::io::stdout(), "{now} {line}");
    }
    let _ = writeln!(std::io::stdout(), "{now} counts: {}", shared.summary());
}

/// Logs suppressed lines during `work`, and after it.
async fn with_log_summaries<F: Future>(messages: &LogState, work: F) -> F::Output {
    let ended = tokio::select! {
        ended = work => ended,
        never = messages.report_suppressed() => match never {},
    };
    messages.report_remainder();
    ended
}

/// Changes the log's level at run time.
type LogLevelHandle = tracing_subscriber::reload::Handle<LevelFilter, Registry>;

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

fn init_logging(log: LogSection) -> (Arc<LogState>, LogLevelHandle) {
    let messages = Arc::new(LogState::new(filter(log.level)));
    let throttle = ThrottleLayer(Arc::clone(&messages));
    let (level, handle) = tracing_subscriber::reload::Layer::new(messages.required_level());
    let lines = tracing_subscriber::fmt::layer().with_target(false);
    let lines = match log.format {
        LogFormat::Text => lines
            .with_writer(std::io::stderr)
            .fmt_fields(fields())
            .boxed(),
        // A session is in one span, which is not within another.
        LogFormat::Json => lines
            .with_writer(JsonLogWriter(std::io::stderr))
            .json()
            .with_span_list(false)
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(level)
        .with(lines)
        .with(throttle)
        .init();
    (messages, handle)
}
