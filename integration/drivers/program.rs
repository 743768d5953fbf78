//! The drivers' programs as processes: `run.sh` knows how to start each, and which of them this machine has.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The slowest takes a few seconds on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(180);

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/integration/drivers/run.sh");
const SETUP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/setup/drivers.sh");

/// All drivers that have a program.
pub(super) fn names() -> Vec<String> {
    words(Command::new(RUN).arg("--names"))
}

/// All ORMs that have a program.
pub(super) fn orms() -> Vec<String> {
    words(Command::new(RUN).arg("--orms"))
}

/// Whether `make test-drivers` installed it. On CI (`CI=true`) a missing driver is a failure.
#[track_caller]
pub(super) fn is_here(driver: &str) -> bool {
    static HERE: OnceLock<Vec<String>> = OnceLock::new();
    let here = HERE.get_or_init(|| words(Command::new(SETUP).arg("--list")));
    let is_here = here.iter().any(|name| name == driver);
    let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(
        is_here || !on_ci,
        "no driver {driver} on this machine: run `make test-drivers`"
    );
    is_here
}

#[track_caller]
fn words(command: &mut Command) -> Vec<String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Runs a program to its end and returns its standard output; on failure, how it failed and all its output.
pub(super) fn run(args: &[&str]) -> Result<String, String> {
    let files = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
    let mut child = Command::new(RUN)
        .args(args)
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(files[0].try_clone().unwrap())
        .stderr(files[1].try_clone().unwrap())
        // With its child processes, so that none outlives the test.
        .process_group(0)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
            let _ = child.wait();
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let [output, errors] = files.map(read);
    match status {
        Some(status) if status.success() => Ok(output),
        _ => Err(format!(
            "{args:?} ended with {status:?}:\n{output}\n{errors}"
        )),
    }
}

/// Bytes that are not UTF-8 (some drivers print raw blobs) are shown as Latin-1, so none is lost.
fn read(mut file: File) -> String {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap_or_else(|error| {
        error
            .into_bytes()
            .iter()
            .map(|&byte| char::from(byte))
            .collect()
    })
}
