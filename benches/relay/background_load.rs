//! How much of the machine others took while we measured: figures are as good as that is little.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

/// What the system counts in.
const TICK: Duration = Duration::from_millis(10);

/// Processor time until now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessorUsage {
    all: Duration,
    ours: Duration,
}

impl ProcessorUsage {
    /// Ours is that of this process, and of those that it has started and that have ended.
    pub(crate) fn sample() -> Option<ProcessorUsage> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let numbers = stat.lines().next()?.strip_prefix("cpu ")?;
        // In user mode, at low priority, in system mode; what follows is idle, or nobody's.
        let ticks = numbers.split_whitespace().take(3).map(str::parse::<u32>);
        let all = TICK * ticks.sum::<Result<u32, _>>().ok()?;
        let mut ours = Duration::ZERO;
        for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
            let usage = getrusage(who).ok()?;
            ours += duration(usage.user_time()) + duration(usage.system_time());
        }
        Some(ProcessorUsage { all, ours })
    }

    /// The share of what was spent since then that others spent.
    pub(crate) fn others_share_since(self, then: ProcessorUsage) -> f64 {
        let all = self.all.saturating_sub(then.all).as_secs_f64();
        let ours = self.ours.saturating_sub(then.ours).as_secs_f64();
        ((all - ours) / all.max(1.0)).max(0.0)
    }
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or_default())
}
