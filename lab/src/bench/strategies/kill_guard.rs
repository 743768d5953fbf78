//! Handles a signal: kills the servers, so that a statement of minutes ends at once.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::StopSignal;

/// The interval of checks for the signal.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// While it exists, it kills these processes when the bench is stopped. Reap them only after it is dropped, so that no pid is reused.
#[derive(Debug)]
pub struct KillGuard {
    cancel: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KillGuard {
    /// Starts the guard for these processes.
    #[must_use]
    pub fn start(processes: &[u32], stop: &StopSignal) -> KillGuard {
        let numbers = processes.iter().filter_map(|id| i32::try_from(*id).ok());
        let processes: Vec<Pid> = numbers.map(Pid::from_raw).collect();
        let (unneeded, cancelled) = channel::<()>();
        let stop = stop.clone();
        let thread = std::thread::spawn(move || {
            while cancelled.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if stop.is_requested() {
                    for process in &processes {
                        // The process may have ended.
                        let _ = kill(*process, Signal::SIGKILL);
                    }
                    return;
                }
            }
        });
        KillGuard {
            cancel: Some(unneeded),
            thread: Some(thread),
        }
    }
}

impl Drop for KillGuard {
    fn drop(&mut self) {
        drop(self.cancel.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}
