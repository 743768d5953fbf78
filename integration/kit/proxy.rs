//! Headwater as users run it: a process of its own in front of a server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::wire_client::{Login, WireClient};

const START_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A running `headwater serve`. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Proxy {
    child: Child,
    addr: SocketAddr,
    log: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// In front of `upstream` with further flags of `serve`, once it takes connections.
    #[track_caller]
    pub(crate) fn start(upstream: SocketAddr, flags: &[&str]) -> Proxy {
        let addr = free_addr();
        let mut child = Command::new(env!("CARGO_BIN_EXE_headwater"))
            .args(["serve", "--listen", &addr.to_string()])
            .args(["--upstream", &upstream.to_string()])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("headwater starts");
        let log = Arc::new(Mutex::new(String::new()));
        let readers = vec![
            follow(child.stdout.take().unwrap(), &log),
            follow(child.stderr.take().unwrap(), &log),
        ];
        let mut proxy = Proxy {
            child,
            addr,
            log,
            readers,
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(addr).is_err() {
            let ended = proxy.child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "headwater does not listen ({ended:?}):\n{}",
                proxy.log()
            );
            thread::sleep(Duration::from_millis(5));
        }
        proxy
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    #[track_caller]
    pub(crate) fn login(&self, login: &Login) -> WireClient {
        WireClient::login(self.addr, login)
    }

    /// All it wrote so far, to its standard output and its standard error.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log holds `text`; its messages come from another process.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "no {text:?} in:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its counters now, by name.
    #[track_caller]
    pub(crate) fn counts(&self) -> Counts {
        let printed = |log: &str| log.matches("counts: ").count();
        let before = printed(&self.log());
        self.signal(Signal::SIGUSR1);
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let log = self.log();
            if printed(&log) > before {
                let (_, last) = log.rsplit_once("counts: ").unwrap();
                return Counts::read(last.lines().next().unwrap());
            }
            assert!(Instant::now() < deadline, "no counts in:\n{log}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal::kill(Pid::from_raw(self.pid() as i32), signal).unwrap();
    }

    /// SIGTERM, then how it ended and all it ever wrote.
    #[track_caller]
    pub(crate) fn terminate(mut self) -> (ExitStatus, String) {
        self.signal(Signal::SIGTERM);
        let deadline = Instant::now() + STOP_TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "it does not end:\n{}",
                self.log()
            );
            thread::sleep(Duration::from_millis(5));
        };
        // The pipes are closed now, so the readers come to their end.
        for reader in std::mem::take(&mut self.readers) {
            reader.join().unwrap();
        }
        (status, self.log())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process counted: `name=value`, those at zero left out.
#[derive(Debug, Clone)]
pub(crate) struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn read(line: &str) -> Counts {
        let pairs = line.split_whitespace().filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Counts(pairs.collect())
    }

    pub(crate) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Calls that the server's procedure answered, for whatever reason.
    pub(crate) fn relayed(&self) -> u64 {
        let relayed = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("calls_relayed["));
        relayed.map(|(_, value)| value).sum()
    }
}

/// Gathers what the process writes to a pipe, line by line.
fn follow(pipe: impl Read + Send + 'static, log: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut log = log.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    })
}

/// Nobody listens there now; nor will anyone soon, as the system deals out others first.
fn free_addr() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}
