//! The end on a signal: a statement that takes minutes is cut short with its server.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::lab::bench::StopSignal;

/// How often it is asked whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// While it is there, processes are killed once it is asked to stop. They are waited for behind it, so that the numbers are still theirs.
#[derive(Debug)]
pub struct KillGuard {
    cancel: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KillGuard {
    /// Cuts off what these processes do.
    #[must_use]
    pub fn start(processes: &[u32], stop: &StopSignal) -> KillGuard {
        let numbers = processes.iter().filter_map(|id| i32::try_from(*id).ok());
        let processes: Vec<Pid> = numbers.map(Pid::from_raw).collect();
        let (unneeded, told) = channel::<()>();
        let stop = stop.clone();
        let thread = std::thread::spawn(move || {
            while told.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if stop.is_requested() {
                    for process in &processes {
                        // One that has ended needs no signal.
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
            // It does not panic.
            let _ = thread.join();
        }
    }
}
