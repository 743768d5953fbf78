//! Arguments, logging, settings, runtime, a subcommand, an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use headwater::config::{ConfigError, Log, LogFormat, LogLevel, ServeFlags, Settings};
use headwater::discover::DiscoverFlags;
use headwater::server::{Offer, Predecessor, Server};
use headwater::sockets::Sockets;
use headwater::systemd;
use headwater::tls::Acceptor;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// A MySQL proxy that gives pull-model timelines the read speed of push ones.
///
/// Point any MySQL client at its port. It answers CALL fetch_timeline_ids(reader),
/// CALL fetch_timeline_ids2(reader, bound) and their helper, CALL build_max_ids_of_followers(reader, bound),
/// itself, and relays every other byte unchanged.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Stand in front of a MySQL or MariaDB server
    ///
    /// Flags, environment (HEADWATER_*) and settings file mean the same, in that order of precedence.
    /// SIGHUP reads certificate and key again, and has a definition be answered again that is relayed because an answer
    /// differed (--shadow); SIGUSR1 prints the counters; SIGTERM and Ctrl-C let commands in flight end, a second one does not.
    Serve(ServeFlags),
    /// What will be answered from memory, and what stands in the way
    ///
    /// Takes the settings of `serve` (flags, environment, file), asks the server as `serve` would, changes nothing, and
    /// prints: the server; how fresh answers are and how much memory there is; the grants that the service account
    /// needs, as statements to paste, with those that are missing marked; every setting of the server that is in the
    /// way, with the way out; and for each call of each definition in each database whether it is answered from memory,
    /// by lookups, or by the server's procedure (relay), and why.
    ///
    /// The exit status is for deploy scripts. 0: every call of every definition is answered as well as these
    /// settings allow: from memory; by lookups where memory is switched off or no service account is set; relayed with
    /// --relay-only. 1: a right is missing, a setting is in the way, a call is relayed, a definition is found in no
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
    #[command(flatten)]
    Lab(headwater::lab::Command),
}

/// As the argument parser ends.
const BAD_USAGE: u8 = 2;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("headwater: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    headwater::room::raise_open_files();
    match arguments.command {
        Command::Serve(flags) => {
            let unknown = environment()?;
            let settings = Settings::load(&flags)?;
            log(settings.log);
            for warning in unknown {
                tracing::warn!("{warning}");
            }
            let sockets = Sockets::from_environment()?;
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("cannot start the runtime")?
                .block_on(serve(&settings, sockets))?;
        }
        Command::Check(flags) => return check(&flags),
        Command::Discover(flags) => return discover(&flags),
        Command::Lab(command) => {
            log(Log {
                level: LogLevel::Warn,
                ..Log::default()
            });
            runtime(1)?.block_on(headwater::lab::run(command))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Variables that look like settings and are none: what to say of them.
fn environment() -> Result<Vec<String>, ConfigError> {
    let command = Arguments::command();
    let flags = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments);
    let known: Vec<&str> = flags.filter_map(|flag| flag.get_env()?.to_str()).collect();
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    headwater::config::unknown_variables(&known, set)
}

/// The settings of a subcommand that reports; what is wrong with them is said. `None`: they cannot be used.
fn settings(load: impl FnOnce() -> Result<Settings, ConfigError>) -> Option<Settings> {
    match environment().and_then(|unknown| Ok((unknown, load()?))) {
        Ok((unknown, settings)) => {
            for warning in unknown {
                eprintln!("headwater: {warning}");
            }
            Some(settings)
        }
        Err(error) => {
            eprintln!("headwater: {:#}", anyhow::Error::from(error));
            None
        }
    }
}

/// The report goes to the standard output, also where it ends early.
fn check(flags: &ServeFlags) -> anyhow::Result<ExitCode> {
    let Some(settings) = settings(|| Settings::load(flags)) else {
        return Ok(ExitCode::from(BAD_USAGE));
    };
    let mut report = String::new();
    let checked = runtime(1)?.block_on(headwater::check::run(&settings, &mut report));
    let _ = std::io::stdout().write_all(report.as_bytes());
    Ok(if checked? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// As for `check`: the report goes to the standard output, mistakes in flags and settings end with another status than what the
/// server says.
fn discover(flags: &DiscoverFlags) -> anyhow::Result<ExitCode> {
    let Some(settings) = settings(|| flags.settings()) else {
        return Ok(ExitCode::from(BAD_USAGE));
    };
    log(settings.log);
    let mut report = String::new();
    let found = headwater::discover::run(&settings, flags.source(), &mut report);
    let found = runtime(1)?.block_on(found);
    let _ = std::io::stdout().write_all(report.as_bytes());
    found?;
    Ok(ExitCode::SUCCESS)
}

fn runtime(threads: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// The process that this one takes over from, and its sockets; or those that the service manager has opened, if it has.
async fn inherit(
    settings: &Settings,
    given: Sockets,
) -> anyhow::Result<(Option<Predecessor>, Sockets)> {
    if let Some(path) = settings
        .takeover
        .socket
        .as_deref()
        .filter(|_| settings.takes_over)
    {
        match Predecessor::ask(path).await? {
            Some((predecessor, sockets)) => {
                return Ok((Some(predecessor), sockets.as_set(settings)));
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

async fn taken(offer: Option<Offer>) {
    match offer {
        Some(offer) => offer.taken().await,
        None => std::future::pending().await,
    }
}

async fn serve(settings: &Settings, given: Sockets) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let usage = signal(SignalKind::user_defined1())?;
    let hangup = signal(SignalKind::hangup())?;
    let (predecessor, mut sockets) = inherit(settings, given).await?;
    let server = Server::on(&mut sockets, settings, None).await?;
    let mut server = server.with_admin(&mut sockets, &settings.admin)?;
    let shared = server.shared();
    let announcing = tokio::spawn(server.announce());
    if let Some(predecessor) = predecessor {
        tokio::select! {
            () = server.take_over(predecessor, &settings.takeover) => {}
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
    let mut taken = tokio::spawn(taken(server.offer(&settings.takeover)?));
    systemd::ready();
    let guarding = tokio::spawn(systemd::guard(server.pulse()));
    let counts = tokio::spawn(print_counts(usage, server.shared()));
    let reloads = tokio::spawn(reload(hangup, server.shared()));
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
                    // The watchdog is the next process's.
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
    counts.abort();
    reloads.abort();
    print_line(&shared);
    Ok(())
}

async fn print_counts(
    mut usage: Signal,
    shared: std::sync::Arc<headwater::session::shared::Shared>,
) {
    while usage.recv().await.is_some() {
        print_line(&shared);
    }
}

/// Shows clients the certificate as the files have it now, and trusts answers again that were found to differ.
async fn reload(mut hangup: Signal, shared: std::sync::Arc<headwater::session::shared::Shared>) {
    while hangup.recv().await.is_some() {
        systemd::reloading();
        match shared.transport.acceptor.as_ref().map(Acceptor::reload) {
            Some(Ok(())) => tracing::info!("certificate and key (tls) are read again"),
            Some(Err(error)) => tracing::error!("certificate and key stay as they were: {error}"),
            None => tracing::info!("SIGHUP: there is no certificate (tls.cert) to read again"),
        }
        if shared.trust_again() > 0 {
            tracing::info!(
                "memory is emptied; what was relayed or not kept for an answer that differed is answered and kept again"
            );
        }
        systemd::ready();
    }
}

/// Nobody may be there to read it any more; that is no reason to fail.
fn print_line(shared: &headwater::session::shared::Shared) {
    let mut now = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut now));
    // Who waits for the counters has the rest by then.
    for line in shared.tallies() {
        let _ = writeln!(std::io::stdout(), "{now} {line}");
    }
    let _ = writeln!(std::io::stdout(), "{now} counts: {}", shared.summary());
}

fn log(log: Log) {
    let level = match log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(std::io::stderr);
    match log.format {
        LogFormat::Text => subscriber.init(),
        // A session is in one span, which is not within another.
        LogFormat::Json => subscriber.json().with_span_list(false).init(),
    }
}
