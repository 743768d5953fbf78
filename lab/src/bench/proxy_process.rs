//! A Headwater child process: this executable on a free port, stopped by its pid.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::flags::BenchFlags;
use headwater_server::config::ServiceFlags;

const START_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The text that precedes the address in the log when the port is open.
const LISTENING: &str = "listening on ";

/// A running Headwater. Dropping it stops the process.
#[derive(Debug)]
pub struct ProxyProcess {
    process: Child,
    address: SocketAddr,
    log: Receiver<String>,
    output: Option<ChildStdout>,
}

/// Why a Headwater did not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The process could not be started.
    #[error("cannot start Headwater as a child")]
    Start(#[from] io::Error),
    /// The process ended, or did not open its port in time.
    #[error("the Headwater started by the bench did not come up; it said:\n{log}")]
    NotListening {
        /// Its output until then.
        log: String,
    },
}

impl ProxyProcess {
    /// Starts this executable's `serve` in front of the bench's server with further flags, and waits until its port is open.
    ///
    /// # Errors
    /// Fails if it does not start.
    pub fn start(flags: &BenchFlags, flags_after: &[&str]) -> Result<ProxyProcess, ProxyError> {
        ProxyProcess::start_for(&flags.upstream, &flags.service, flags_after)
    }

    /// The same in front of a server by its address.
    ///
    /// # Errors
    /// Fails if it does not start.
    pub fn start_for(
        upstream: &str,
        service: &ServiceFlags,
        more: &[&str],
    ) -> Result<ProxyProcess, ProxyError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--upstream", upstream]);
        command.args(["--log-level", "info", "--log-format", "text"]);
        // The bench's own environment must not turn one kind of Headwater into the other.
        command.env_remove("HEADWATER_RELAY_ONLY");
        if !more.contains(&"--admin-listen") {
            command.args(["--admin-listen", ""]);
        }
        command.env_remove("HEADWATER_SERVICE_PASSWORD_FILE");
        command.args(more);
        if let Some(user) = &service.service_user {
            command.args(["--service-user", user]);
            // Not as a flag: other users can see flags.
            let password = service.service_password.as_deref().unwrap_or_default();
            command.env("HEADWATER_SERVICE_PASSWORD", password);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let (lines, log) = channel();
        if let Some(stderr) = process.stderr.take() {
            thread::spawn(move || forward_log(stderr, &lines));
        }
        let output = process.stdout.take();
        match await_address(&log) {
            Ok(address) => Ok(ProxyProcess {
                process,
                address,
                log,
                output,
            }),
            Err(error) => {
                terminate(&mut process);
                Err(error)
            }
        }
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for a log line that contains this text, and returns what follows the text; `None` on timeout.
    #[must_use]
    pub fn wait_for(&self, text: &str, limit: Duration) -> Option<String> {
        let until = Instant::now() + limit;
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            let line = self.log.recv_timeout(remaining).ok()?;
            if let Some((_, rest)) = line.split_once(text) {
                return Some(rest.to_owned());
            }
        }
    }

    /// Stops it; returns the log lines after the first one, and the counts that it printed at its end.
    #[must_use]
    pub fn stop(mut self) -> (Vec<String>, String) {
        terminate(&mut self.process);
        let mut counts = String::new();
        if let Some(mut output) = self.output.take() {
            let _ = output.read_to_string(&mut counts);
        }
        let counts = counts.lines().last().unwrap_or_default();
        (self.log.try_iter().collect(), counts.to_owned())
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        terminate(&mut self.process);
    }
}

/// Reads the child's log to its end, so that the child never blocks on the pipe.
fn forward_log(stderr: ChildStderr, lines: &Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let _ = lines.send(line);
    }
}

fn await_address(log: &Receiver<String>) -> Result<SocketAddr, ProxyError> {
    let until = Instant::now() + START_TIMEOUT;
    let mut output = Vec::new();
    loop {
        match log.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => match parse_address(&line) {
                Some(address) => return Ok(address),
                None => output.push(line),
            },
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(ProxyError::NotListening {
                    log: output.join("\n"),
                });
            }
        }
    }
}

fn parse_address(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(LISTENING)?;
    let address = rest.split([' ', ',']).next()?;
    address.parse().ok()
}

/// SIGTERM, then SIGKILL if it does not end. Does nothing to a process that was already reaped.
fn terminate(process: &mut Child) {
    if let (Ok(None), Ok(pid)) = (process.try_wait(), i32::try_from(process.id())) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    let until = Instant::now() + STOP_TIMEOUT;
    while matches!(process.try_wait(), Ok(None)) {
        if Instant::now() > until {
            let _ = process.kill();
            let _ = process.wait();
            return;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_a_log_line() {
        let line =
            "2026-11-20T10:00:00Z  INFO listening on 127.0.0.1:40123, with room for 9000 sessions";
        assert_eq!(
            parse_address(line),
            Some(SocketAddr::from(([127, 0, 0, 1], 40123)))
        );
        assert_eq!(parse_address("INFO in front of MariaDB 10.11"), None);
        assert_eq!(parse_address("listening on nothing"), None);
    }
}
