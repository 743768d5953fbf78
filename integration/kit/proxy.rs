//! Headwater as users run it: a separate process before a server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use headwater_lab::private_server::free_port;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::wire_client::{Login, WireClient};
use crate::kit::patience;

const START_TIMEOUT: Duration = Duration::from_secs(90);
const STOP_TIMEOUT: Duration = Duration::from_secs(90);

/// The flags of a service account that has all privileges.
pub(crate) const ROOT_SERVICE: &[&str] = &["--service-user", "root", "--service-password", ""];

/// Writes a settings file in a temporary folder. Drop of the guard removes it.
pub(crate) fn settings_file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// A running `headwater serve`. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Proxy {
    child: Child,
    addr: SocketAddr,
    flags: Vec<String>,
    /// The settings file; Headwater may read it again at any time.
    settings: Option<(tempfile::TempDir, String)>,
    log: Written,
    output: Written,
}

/// What the process has written to one of its streams, line by line.
#[derive(Debug)]
struct Written {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Written {
    fn follow(stream: impl Read + Send + 'static) -> Written {
        let text = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&text);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let mut text = written.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        Written {
            text,
            reader: Some(reader),
        }
    }

    fn so_far(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// The whole output, once the process has closed the stream.
    fn read_to_its_end(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.so_far()
    }
}

/// The exit status of a process, and its complete output.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) log: String,
    pub(crate) output: String,
}

impl Proxy {
    /// Starts Headwater before `upstream` with further flags of `serve`. Returns once it accepts connections.
    #[track_caller]
    pub(crate) fn start(upstream: SocketAddr, flags: &[&str]) -> Proxy {
        let mut flags = flags.to_vec();
        let upstream = upstream.to_string();
        flags.extend(["--upstream", &upstream]);
        Proxy::start_with(&flags, &[])
    }

    /// Starts Headwater before `upstream` with this settings file.
    #[track_caller]
    pub(crate) fn configured(upstream: SocketAddr, settings: &str, flags: &[&str]) -> Proxy {
        let (folder, path) = settings_file(settings);
        let mut proxy = Proxy::start(upstream, &[&["--config", path.as_str()], flags].concat());
        proxy.settings = Some((folder, path));
        proxy
    }

    /// The path of the settings file that it was started with.
    pub(crate) fn settings(&self) -> &str {
        let (_, path) = self.settings.as_ref().expect("it has a settings file");
        path
    }

    /// Starts Headwater with only these flags and environment variables, and `--listen`.
    #[track_caller]
    pub(crate) fn start_with(flags: &[&str], environment: &[(&str, &str)]) -> Proxy {
        Proxy::launch(free_addr(), flags, environment)
    }

    /// Starts another command instead of the program under test, with these flags of `serve`, and `--listen`.
    #[track_caller]
    pub(crate) fn of(command: Command, flags: &[&str]) -> Proxy {
        Proxy::run(command, free_addr(), flags)
    }

    /// Starts Headwater with its default admin port unless a flag sets another.
    #[track_caller]
    pub(crate) fn with_default_admin(flags: &[&str]) -> Proxy {
        Proxy::wait_until_it_listens(headwater(&[]), free_addr(), flags)
    }

    /// Starts Headwater before `upstream` in a process with this limit of open files.
    #[track_caller]
    pub(crate) fn with_open_files(limit: u32, upstream: SocketAddr, flags: &[&str]) -> Proxy {
        let mut command = headwater(&[]);
        let program = command.get_program().to_owned();
        let mut shell = Command::new("sh");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.args(["-c", &format!("ulimit -n {limit}; exec \"$@\""), "sh"]);
        shell.stdin(Stdio::null());
        shell.arg(program);
        command = shell;
        let upstream = upstream.to_string();
        let flags = [flags, &["--upstream", &upstream]].concat();
        Proxy::run(command, free_addr(), &flags)
    }

    /// Starts Headwater before `upstream` at this address through another program with these arguments.
    #[track_caller]
    pub(crate) fn by(
        program: &str,
        arguments: &[&str],
        addr: SocketAddr,
        upstream: SocketAddr,
        flags: &[&str],
    ) -> Proxy {
        let upstream = upstream.to_string();
        let flags = [flags, &["--upstream", &upstream]].concat();
        Proxy::run(started_by(program, arguments), addr, &flags)
    }

    /// Starts Headwater on a listening socket that the test passes to it, as a service manager does.
    #[track_caller]
    pub(crate) fn given(listener: &TcpListener, upstream: SocketAddr) -> Proxy {
        let hands_over = "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\" 3<&0 </dev/null";
        let mut command = started_by("sh", &["-c", hands_over, "sh"]);
        command.stdin(OwnedFd::from(listener.try_clone().unwrap()));
        let addr = listener.local_addr().unwrap();
        Proxy::run(command, addr, &["--upstream", &upstream.to_string()])
    }

    /// Starts another process with the same flags, and these.
    #[track_caller]
    pub(crate) fn beside(&self, flags: &[&str]) -> Proxy {
        let own: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        Proxy::launch(self.addr, &[&own, flags].concat(), &[])
    }

    /// Kills the process, as a crash would, and starts it again at the same address with the same flags.
    #[track_caller]
    pub(crate) fn crash_and_start(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let mut anew = Proxy::launch(self.addr, &flags, &[]);
        anew.settings = self.settings.take();
        *self = anew;
    }

    #[track_caller]
    fn launch(addr: SocketAddr, flags: &[&str], environment: &[(&str, &str)]) -> Proxy {
        Proxy::run(headwater(environment), addr, flags)
    }

    /// Turns off the admin port and comparisons unless the flags ask for them: tests run in parallel, and count.
    #[track_caller]
    fn run(command: Command, addr: SocketAddr, flags: &[&str]) -> Proxy {
        let mut all = flags.to_vec();
        if !flags.contains(&"--admin-listen") {
            all.extend(["--admin-listen", ""]);
        }
        if !says_what_is_compared(flags) {
            all.extend(["--shadow", "0"]);
        }
        Proxy::wait_until_it_listens(command, addr, &all)
    }

    #[track_caller]
    fn wait_until_it_listens(mut command: Command, addr: SocketAddr, flags: &[&str]) -> Proxy {
        let mut child = command
            .args(["serve", "--listen", &addr.to_string()])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("headwater starts");
        let log = Written::follow(child.stderr.take().unwrap());
        let output = Written::follow(child.stdout.take().unwrap());
        let mut proxy = Proxy {
            child,
            addr,
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            settings: None,
            log,
            output,
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
        if flags.contains(&"--socket") {
            // Headwater opens it after the port.
            proxy.wait_for_log("listening on ");
        }
        let mut rest = flags
            .iter()
            .skip_while(|flag| **flag != "--takeover-socket");
        if let Some(control) = rest.nth(1) {
            while !std::path::Path::new(control).exists() {
                assert!(Instant::now() < deadline, "no {control}:\n{}", proxy.log());
                thread::sleep(Duration::from_millis(5));
            }
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

    /// Logs in where connection slots are few. Retries, since a closed session or the probe of the port may still hold one.
    #[track_caller]
    pub(crate) fn enter(&self, login: &Login) -> WireClient {
        let deadline = patience();
        loop {
            match WireClient::try_login(self.addr, login).unwrap() {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log.so_far()
    }

    /// Its standard output so far: the counters.
    pub(crate) fn output(&self) -> String {
        self.output.so_far()
    }

    /// Waits until the log contains `text`; another process writes it.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        let deadline = patience();
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "no {text:?} in:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its current counters, by name.
    #[track_caller]
    pub(crate) fn counts(&self) -> Counts {
        Counts::read(&self.counts_line())
    }

    /// Its current line of counters.
    #[track_caller]
    pub(crate) fn counts_line(&self) -> String {
        let printed = |output: &str| output.matches("counts: ").count();
        let before = printed(&self.output());
        self.signal(Signal::SIGUSR1);
        let deadline = patience();
        loop {
            let output = self.output();
            if printed(&output) > before {
                let (_, last) = output.rsplit_once("counts: ").unwrap();
                return last.lines().next().unwrap().to_owned();
            }
            assert!(
                Instant::now() < deadline,
                "no counts in:\n{output}{}",
                self.log()
            );
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// The peak of its resident memory, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal::kill(Pid::from_raw(self.pid() as i32), signal).unwrap();
    }

    /// Sends SIGTERM. Returns the exit status and the complete log.
    #[track_caller]
    pub(crate) fn terminate(self) -> (ExitStatus, String) {
        self.signal(Signal::SIGTERM);
        let ended = self.wait();
        (ended.status, ended.log + &ended.output)
    }

    /// Waits until the process has ended.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
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
        Ended {
            status,
            log: self.log.read_to_its_end(),
            output: self.output.read_to_its_end(),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True where the flags or the settings file set the share of compared calls. An empty section counts: it sets the default.
fn says_what_is_compared(flags: &[&str]) -> bool {
    let file = flags.iter().position(|flag| *flag == "--config");
    let file = file.and_then(|at| std::fs::read_to_string(flags[at + 1]).ok());
    flags.contains(&"--shadow") || file.is_some_and(|text| text.contains("[shadow]"))
}

/// The program with these environment variables, and without any inherited ones that are settings of Headwater.
pub(crate) fn headwater(environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HEADWATER_") {
            command.env_remove(name);
        }
    }
    // Variables of a service manager that started the tests.
    for name in [
        "STATE_DIRECTORY",
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
        "LISTEN_PID",
    ] {
        command.env_remove(name);
    }
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.envs(environment.iter().copied());
    command.stdin(Stdio::null());
    command
}

/// The program, started by another program.
pub(crate) fn started_by(program: &str, arguments: &[&str]) -> Command {
    let headwater = headwater(&[]);
    let mut command = Command::new(program);
    for (name, value) in headwater.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(arguments).arg(headwater.get_program());
    command.stdin(Stdio::null());
    command
}

/// The pages with a row for each counter and each reason. Other tests compare them with what Headwater prints.
const COUNTERS: &str = include_str!("../../docs/counters.md");
const FEEDS: &str = include_str!("../../docs/feeds.md");

/// True for a counter's name in the line of counters.
pub(crate) fn is_counter(name: &str) -> bool {
    let is_in = |page: &str, name: &str| page.contains(&format!("\n| `{name}` |"));
    let (name, page) = match name.split_once('[') {
        Some(("calls_relayed", reason)) => (reason.strip_suffix(']'), COUNTERS),
        Some(("feeds_relayed", reason)) => (reason.strip_suffix(']'), FEEDS),
        Some(_) => (None, COUNTERS),
        None => (Some(name), COUNTERS),
    };
    name.is_some_and(|name| is_in(page, name))
}

/// The counters of a process: `name=value`, without those at zero.
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

    #[track_caller]
    pub(crate) fn of(&self, name: &str) -> u64 {
        assert!(is_counter(name), "there is no counter {name}");
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Feed SELECTs that Headwater answered with help of its memory: narrowed, or from cached rows.
    pub(crate) fn feeds_answered(&self) -> u64 {
        self.of("feeds_narrowed") + self.of("feeds_kept")
    }

    /// The counters that rose since `before`, and by how much.
    pub(crate) fn since(&self, before: &Counts) -> impl Iterator<Item = (&str, u64)> {
        let then = |name| before.0.get(name).copied().unwrap_or(0);
        let rose = self
            .0
            .iter()
            .map(move |(name, value)| (&**name, value - then(name)));
        rose.filter(|(_, rose)| *rose > 0)
    }

    /// Calls that Headwater relayed to the server's procedure, for any reason.
    pub(crate) fn relayed(&self) -> u64 {
        let relayed = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("calls_relayed["));
        relayed.map(|(_, value)| value).sum()
    }
}

/// A free address. It is not one of the system's ephemeral ports, since a [`super::peer::Peer`] or a client could take such a port before
/// Headwater opens it.
pub(crate) fn free_addr() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().unwrap()))
}
