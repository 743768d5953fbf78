//! Who takes part: each relay with the settings that its users would give it for this, on a free port in front of the server.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use headwater_lab::bench::client::BenchClient;
use headwater_lab::bench::login::BenchAccount;
use headwater_lab::private_server::{free_port, package_folder::PackageFolder};

use crate::process::RelayProcess;
use crate::score::Contender;

const START_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Open files of a relay besides its sessions' two each.
pub(crate) const OTHER_FILES: usize = 200;

const HAPROXY: &str = "usr/sbin/haproxy";
const ROUTER: &str = "usr/bin/mysqlrouter";

/// What all relays are started with.
#[derive(Debug)]
pub(crate) struct RelaySetup {
    /// The server, `HOST:PORT`.
    pub(crate) upstream: String,
    /// Sessions that a relay has to take.
    pub(crate) sessions: usize,
    /// Further flags of `headwater serve`.
    pub(crate) headwater: Vec<String>,
}

/// A contender that clients can connect to.
#[derive(Debug)]
pub(crate) struct RunningContender {
    pub(crate) contender: Contender,
    pub(crate) address: String,
    /// `None` for the server itself.
    pub(crate) process: Option<RelayProcess>,
}

impl RunningContender {
    /// Starts it, and waits until a client can log in.
    pub(crate) fn start(
        contender: Contender,
        setup: &RelaySetup,
        account: &BenchAccount,
    ) -> anyhow::Result<RunningContender> {
        if contender == Contender::Direct {
            return Ok(RunningContender {
                contender,
                address: setup.upstream.clone(),
                process: None,
            });
        }
        let folder = tempfile::Builder::new()
            .prefix("headwater-relay-")
            .tempdir()?;
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let config = folder.path().join("config");
        let command = match contender {
            Contender::Haproxy => {
                fs::write(&config, haproxy_config(&address, setup))?;
                let mut command = haproxy().command(HAPROXY);
                command.arg("-db").arg("-f").arg(&config);
                command
            }
            Contender::Router => {
                let unpacked = router();
                fs::write(&config, router_config(port, setup, &unpacked, &folder))?;
                let mut command = unpacked.command(ROUTER);
                command.arg("--config").arg(&config);
                command
            }
            Contender::Direct | Contender::Headwater => {
                let limits = format!("[limits]\nsessions = {}\n", setup.sessions);
                fs::write(&config, limits)?;
                let mut command = headwater(&address, setup);
                command.arg("--config").arg(&config);
                command
            }
        };
        let mut process = RelayProcess::start(command, folder)?;
        wait_until_it_serves(contender, &address, account, &mut process)?;
        Ok(RunningContender {
            contender,
            address,
            process: Some(process),
        })
    }

    /// Logs in so many times.
    pub(crate) fn connect(
        &self,
        account: &BenchAccount,
        count: usize,
    ) -> anyhow::Result<Vec<BenchClient>> {
        let connect = || BenchClient::connect(&self.address, account);
        let clients = (0..count).map(|_| connect()).collect::<Result<_, _>>();
        clients.with_context(|| format!("cannot log in: {}", self.contender.name()))
    }
}

/// Whether the programs are there; an error names the way out.
pub(crate) fn check(contenders: &[Contender]) -> anyhow::Result<()> {
    for (contender, folder, program) in [
        (Contender::Haproxy, haproxy(), HAPROXY),
        (Contender::Router, router(), ROUTER),
    ] {
        if contenders.contains(&contender) && !folder.has(program) {
            let (name, prefix) = (contender.name(), folder.prefix().display());
            bail!(
                "{name} is not in {prefix}: run `setup/relays.sh`, or leave it out of --contenders"
            );
        }
    }
    Ok(())
}

/// What is compared, for the table's head.
pub(crate) fn describe(contender: Contender, setup: &RelaySetup) -> Option<String> {
    let version = |mut command: Command, flag| {
        let output = command.arg(flag).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.split_whitespace();
        let is_version = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
        words.find(is_version).map(str::to_owned)
    };
    Some(match contender {
        Contender::Direct => return None,
        Contender::Haproxy => format!(
            "HAProxy {}: TCP mode, nbthread 2",
            version(haproxy().command(HAPROXY), "-v")?
        ),
        Contender::Router => format!(
            "MySQL Router {}: 2 threads, client_ssl_mode=PASSTHROUGH",
            version(router().command(ROUTER), "--version")?
        ),
        Contender::Headwater => format!(
            "Headwater {}: serve --upstream {}",
            env!("CARGO_PKG_VERSION"),
            match setup.headwater.join(" ") {
                flags if flags.is_empty() => "and as many sessions as the others".to_owned(),
                flags => flags,
            }
        ),
    })
}

fn haproxy() -> PackageFolder {
    PackageFolder::at("HEADWATER_HAPROXY_PREFIX", "haproxy-2.6")
}

fn router() -> PackageFolder {
    PackageFolder::at("HEADWATER_MYSQL_ROUTER_PREFIX", "mysql-router-9.7")
}

fn haproxy_config(address: &str, setup: &RelaySetup) -> String {
    format!(
        "global\n    nbthread 2\n    maxconn {maxconn}\n\
         defaults\n    mode tcp\n    maxconn {maxconn}\n    timeout connect 10s\n    timeout client 1h\n    timeout server 1h\n\
         listen mysql\n    bind {address}\n    server upstream {upstream}\n",
        maxconn = setup.sessions,
        upstream = setup.upstream,
    )
}

/// TLS is left to client and server, as HAProxy leaves it: anything else makes Router take the protocol apart.
fn router_config(
    port: u16,
    setup: &RelaySetup,
    unpacked: &PackageFolder,
    folder: &tempfile::TempDir,
) -> String {
    let mut config = String::from("[DEFAULT]\n");
    for name in ["logging_folder", "runtime_folder", "data_folder"] {
        // Writing to a String does not fail.
        let _ = writeln!(config, "{name}={}", folder.path().display());
    }
    let plugins = unpacked.prefix().join("usr/lib/mysqlrouter/plugin");
    let _ = write!(
        config,
        "plugin_folder={plugins}\nmax_total_connections={sessions}\n\
         [logger]\nlevel=ERROR\n\
         [io]\nthreads=2\n\
         [routing:mysql]\nbind_address=127.0.0.1\nbind_port={port}\ndestinations={upstream}\n\
         routing_strategy=first-available\nprotocol=classic\nclient_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT\n\
         max_connections={sessions}\nmax_connect_errors=1000000000\n",
        plugins = plugins.display(),
        sessions = setup.sessions,
        upstream = setup.upstream,
    );
    config
}

fn headwater(address: &str, setup: &RelaySetup) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    // What is measured is what the flags say, not what the terminal's environment adds.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HEADWATER_") {
            command.env_remove(name);
        }
    }
    command
        .args(["serve", "--listen", address, "--upstream", &setup.upstream])
        .args(&setup.headwater);
    command
}

fn wait_until_it_serves(
    contender: Contender,
    address: &str,
    account: &BenchAccount,
    process: &mut RelayProcess,
) -> anyhow::Result<()> {
    let until = Instant::now() + START_TIMEOUT;
    loop {
        let Err(error) = BenchClient::connect(address, account) else {
            return Ok(());
        };
        if !process.is_running() || Instant::now() > until {
            let (name, log) = (contender.name(), process.log());
            return Err(error).with_context(|| format!("{name} did not come up; it said:\n{log}"));
        }
        thread::sleep(POLL_INTERVAL);
    }
}
