//! A private database server: its own folder and port, removed with this process.
//!
//! The demo, the tests and `make bench-relay` use it. The server runs as the invoking user, listens on loopback only, accepts `root` with
//! an empty password, and loses everything when it is dropped: it trades durability for speed and must never hold data of value.

mod data_home;
mod folder;
pub mod package_folder;
mod ports;
mod programs;
pub mod redis;
mod template;
mod watchdog;

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use self::data_home::data_home;
pub use self::data_home::data_homes;
use self::folder::ServerFolder;
pub use self::ports::free_port;
use self::programs::ServerPrograms;
use self::watchdog::Watchdog;

/// Time limit from start to the first greeting (crash recovery included).
const START_TIMEOUT: Duration = Duration::from_secs(90);
/// Time limit from SIGTERM to the end, before SIGKILL.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Which product a private server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// The distribution's MariaDB.
    Mariadb,
    /// MySQL 9.7, as `setup/mysql.sh` unpacks it.
    Mysql,
}

impl ServerKind {
    /// The product's name in lower case, as used in folder names.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::Mariadb => "mariadb",
            ServerKind::Mysql => "mysql",
        }
    }
}

/// Why a private server did not start.
#[derive(Debug, thiserror::Error)]
pub enum PrivateServerError {
    /// A program or the unpacked MySQL folder is not on this machine.
    #[error("{what} is not on this machine: run `make setup`")]
    Missing {
        /// The missing program or folder.
        what: String,
    },
    /// A file, folder or process could not be made or read.
    #[error("could not {doing}")]
    Io {
        /// The failed action, as an infinitive.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The program that creates an empty data folder failed.
    #[error("could not make an empty data folder for {kind:?}; the last lines it wrote:\n{log}")]
    Initialise {
        /// Which product.
        kind: ServerKind,
        /// The end of its output.
        log: String,
    },
    /// The server ended, or sent no greeting in time.
    #[error("{kind:?} did not come up on port {port}; the last lines it wrote:\n{log}")]
    Start {
        /// Which product.
        kind: ServerKind,
        /// The port it was given.
        port: u16,
        /// The end of its log.
        log: String,
    },
}

impl PrivateServerError {
    fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> PrivateServerError {
        let doing = doing.into();
        move |source| PrivateServerError::Io { doing, source }
    }
}

/// The option of a server that resolves its clients' names, and counts their errors by host.
const NAME_RESOLVE_OPTION: &str = "--disable-skip-name-resolve";

/// A running (or stopped) server with its own folder and port. Dropping it stops the server and removes the folder; if this process dies
/// without dropping it, a watchdog does the same.
#[derive(Debug)]
pub struct PrivateServer {
    kind: ServerKind,
    programs: ServerPrograms,
    options: Vec<String>,
    port: u16,
    process: Option<Child>,
    watchdog: Watchdog,
    folder: ServerFolder,
}

impl PrivateServer {
    /// Starts a server on an empty data folder and waits until it greets. `options` are further command line options of the server
    /// (`--innodb-buffer-pool-size=512M`); they come last, so they override the defaults. Blocks for one to three seconds, about ten more
    /// the first time on a machine.
    ///
    /// # Errors
    /// [`PrivateServerError::Missing`] when the product is not installed, the others as named.
    pub fn start(kind: ServerKind, options: &[&str]) -> Result<PrivateServer, PrivateServerError> {
        PrivateServer::start_with(ServerPrograms::find(kind)?, options)
    }

    /// As [`PrivateServer::start`], MariaDB 11.8 as `setup/mariadb11.sh` unpacks it.
    ///
    /// # Errors
    /// As [`PrivateServer::start`].
    pub fn start_mariadb11(options: &[&str]) -> Result<PrivateServer, PrivateServerError> {
        PrivateServer::start_with(ServerPrograms::mariadb11()?, options)
    }

    fn start_with(
        programs: ServerPrograms,
        options: &[&str],
    ) -> Result<PrivateServer, PrivateServerError> {
        let kind = programs.kind();
        let folder = ServerFolder::create(kind.name())?;
        template::copy_into(&programs, &folder.data(), options)?;
        let watchdog = Watchdog::start(folder.path()).map_err(PrivateServerError::io(
            "start the watchdog of a private server",
        ))?;
        let mut server = PrivateServer {
            kind,
            programs,
            options: options.iter().map(|&option| option.to_owned()).collect(),
            port: 0,
            process: None,
            watchdog,
            folder,
        };
        // Another process may take the port between the check and the server's bind.
        let mut attempts_left = 4;
        loop {
            server.port = free_port().map_err(PrivateServerError::io("find a free port"))?;
            match server.launch() {
                Err(PrivateServerError::Start { log, .. })
                    if attempts_left > 0 && log.contains("Address already in use") =>
                {
                    attempts_left -= 1;
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok(server),
            }
        }
    }

    /// Which product runs here.
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    /// The product's command line client, without option files; it still needs to be given the address.
    pub fn client(&self) -> std::process::Command {
        self.programs.client()
    }

    /// The server's version as its program states it (`10.11.19-MariaDB-0+deb12u1`, `9.7.4`).
    pub fn version(&self) -> &str {
        self.programs.version()
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The port it listens on; the same across restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.socket()
    }

    /// Its process id; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// The file with the server's standard output and error.
    pub fn log(&self) -> PathBuf {
        self.folder.log()
    }

    /// Sets the options for the next start.
    pub fn set_options(&mut self, options: &[&str]) {
        self.options = options.iter().map(|&option| option.to_owned()).collect();
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.data()
    }

    /// Stops the server if it runs, then starts it again on the same data folder and port.
    ///
    /// # Errors
    /// [`PrivateServerError::Start`] when it does not come up again.
    pub fn restart(&mut self) -> Result<(), PrivateServerError> {
        self.stop();
        self.launch()
    }

    /// Asks the server to shut down and waits until it has ended, with SIGKILL after 30 seconds.
    pub fn stop(&mut self) {
        let Some(child) = self.process.as_ref() else {
            return;
        };
        let deadline = Instant::now() + STOP_TIMEOUT;
        send_signal(child, Signal::SIGTERM);
        while Instant::now() < deadline && self.is_running() {
            thread::sleep(POLL_INTERVAL);
        }
        self.kill();
    }

    /// Kills the server with SIGKILL, like a crash; [`PrivateServer::restart`] recovers it.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            // It may have ended by itself; either way it has ended once it was waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.watchdog.set_server(None);
    }

    /// True if its options require name resolution.
    fn resolves_names(&self) -> bool {
        self.options
            .iter()
            .any(|option| option == NAME_RESOLVE_OPTION)
    }

    /// The end of its log; for a Galera node also the output of its scripts, which may be far before the end.
    fn startup_log(&self) -> String {
        let log = last_lines(&self.log());
        match self.options.iter().any(|it| it.starts_with("--wsrep")) {
            true => format!(
                "{log}\nits scripts wrote:\n{}",
                script_log_lines(&self.log())
            ),
            false => log,
        }
    }

    fn is_running(&mut self) -> bool {
        self.process
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    fn launch(&mut self) -> Result<(), PrivateServerError> {
        let log = File::create(self.folder.log())
            .map_err(PrivateServerError::io("create a server's log"))?;
        let errors = log
            .try_clone()
            .map_err(PrivateServerError::io("share a server's log"))?;
        let child = self
            .programs
            .server(&self.folder, self.port, self.resolves_names())
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(PrivateServerError::io(format!("start {:?}", self.kind)))?;
        self.watchdog.set_server(Some(child.id()));
        self.process = Some(child);

        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline && self.is_running() {
            if greets(self.addr()) {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.kill();
        Err(PrivateServerError::Start {
            kind: self.kind,
            port: self.port,
            log: self.startup_log(),
        })
    }
}

impl Drop for PrivateServer {
    /// SIGKILL, since the data is deleted as well: MySQL takes nearly two seconds for an orderly shutdown.
    fn drop(&mut self) {
        self.kill();
        self.watchdog.dismiss();
    }
}

/// The library that makes MariaDB's server a node of a Galera cluster: `--wsrep-provider`.
///
/// # Errors
/// [`PrivateServerError::Missing`] if it or `rsync`, which state transfers need, is not on this machine.
pub fn galera_provider() -> Result<PathBuf, PrivateServerError> {
    programs::galera_provider()
}

/// The folder of Galera's library and of its state transfer scripts.
#[must_use]
pub fn galera_folder() -> PathBuf {
    programs::galera().prefix().to_owned()
}

/// Whether a server at `addr` sends a greeting of protocol version 10 within two seconds.
fn greets(addr: SocketAddr) -> bool {
    let read_first_bytes = || -> io::Result<[u8; 5]> {
        let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(2))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut header_and_version = [0; 5];
        stream.read_exact(&mut header_and_version)?;
        Ok(header_and_version)
    };
    matches!(read_first_bytes(), Ok([_, _, _, 0, 10]))
}

fn send_signal(child: &Child, signal: Signal) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // The child was not reaped yet, so the pid is still its own.
        let _ = signal::kill(Pid::from_raw(pid), signal);
    }
}

/// The end of a log for an error message: at most 20 lines.
fn last_lines(file: &Path) -> String {
    last_matching_lines(file, |_| true)
}

/// The last lines of a server's log that other programs wrote, such as the scripts of Galera's state transfers. At most 20.
#[must_use]
pub fn script_log_lines(log: &Path) -> String {
    // The server's own lines begin with the date.
    last_matching_lines(log, |line| {
        !line.is_empty() && !line.starts_with(|first: char| first.is_ascii_digit())
    })
}

fn last_matching_lines(file: &Path, is_wanted: impl Fn(&str) -> bool) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let matching = text.lines().rev().filter(|line| is_wanted(line));
    let mut lines: Vec<&str> = matching.take(20).collect();
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_its_port_across_a_crash_and_removes_its_folder() {
        let mut server = PrivateServer::start(ServerKind::Mariadb, &[]).unwrap();
        let (addr, folder) = (server.addr(), server.folder.path().to_owned());
        assert!(greets(addr), "{addr} does not greet");
        server.kill();
        assert_eq!(server.pid(), None);
        assert!(!greets(addr), "{addr} still greets");
        server.restart().unwrap();
        assert_eq!(server.addr(), addr);
        assert!(greets(addr), "{addr} does not greet after a restart");
        drop(server);
        assert!(!greets(addr), "{addr} outlived its owner");
        assert!(!folder.exists(), "{} is left", folder.display());
    }

    #[test]
    fn mysql_starts_too() {
        match PrivateServer::start(ServerKind::Mysql, &[]) {
            Ok(server) => assert!(server.version().starts_with("9.7"), "{}", server.version()),
            // Another test requires it where it has to be installed: see integration/kit/servers.rs.
            Err(PrivateServerError::Missing { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_server_that_cannot_start_says_why() {
        let error = PrivateServer::start(ServerKind::Mariadb, &["--no-such-option"]).unwrap_err();
        assert!(error.to_string().contains("no-such-option"), "{error}");
    }
}
