//! A relay's process: started in a folder of its own, stopped by its pid, looked at through the system's files.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running process. Dropped, it is stopped, and its folder removed.
#[derive(Debug)]
pub(crate) struct RelayProcess {
    child: Child,
    folder: TempDir,
}

impl RelayProcess {
    /// Starts it. What it writes is kept in a file of the folder.
    pub(crate) fn start(mut command: Command, folder: TempDir) -> anyhow::Result<RelayProcess> {
        let log = File::create(folder.path().join("log"))?;
        let child = command
            // Ctrl-C in the terminal reaches us alone, and we stop it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(RelayProcess { child, folder })
    }

    /// Whether it has not ended by itself.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// All it has written.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = read(&format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kib.context("the system does not say how much memory is resident")? * 1024)
    }

    /// Time that its threads have had on a processor, in user and system mode. Not from `/proc/PID/stat`, which counts
    /// in hundredths of a second.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let spent = read(&format!("{}/schedstat", task?.path().display()))?;
            let first = spent.split(' ').next();
            nanoseconds += first
                .and_then(|spent| spent.parse::<u64>().ok())
                .context("the system does not count time on processors")?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        if let (true, Ok(pid)) = (self.is_running(), i32::try_from(self.child.id())) {
            // It has not been waited for, so the number is still its own.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let until = Instant::now() + STOP_TIMEOUT;
        while self.is_running() && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}
