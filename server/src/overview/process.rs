//! The operating system's numbers of the process, under the names that all exporters use.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers of this process, as far as the system reports them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessStats {
    /// Processor time, in seconds.
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) virtual_bytes: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) max_open_files: Option<u64>,
    pub(crate) threads: Option<u64>,
    /// In seconds since 1970.
    pub(crate) start_time: Option<f64>,
}

/// Fields of `/proc/self/stat` after the name, which ends with the last bracket.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const THREADS: usize = 17;
const VIRTUAL: usize = 20;
const RESIDENT_PAGES: usize = 21;

impl ProcessStats {
    /// Reads the current numbers; `runs`: the seconds since the start.
    pub(crate) fn now(runs: f64) -> ProcessStats {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
        let fields: Vec<u64> = after_name
            .split_whitespace()
            .map(|field| field.parse().unwrap_or_default())
            .collect();
        let field = |at: usize| fields.get(at).copied();
        let of_system = |name| nix::unistd::sysconf(name).ok().flatten();
        let per = |name| of_system(name).and_then(|value| u64::try_from(value).ok());
        let ticks = per(nix::unistd::SysconfVar::CLK_TCK).filter(|ticks| *ticks > 0);
        let used = field(USER_TICKS).zip(field(SYSTEM_TICKS));
        #[allow(clippy::cast_precision_loss, reason = "hundredths of seconds")]
        let cpu = used
            .zip(ticks)
            .map(|((user, system), ticks)| (user + system) as f64 / ticks as f64);
        let page = per(nix::unistd::SysconfVar::PAGE_SIZE);
        let limits = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        ProcessStats {
            cpu_seconds: cpu,
            resident_bytes: field(RESIDENT_PAGES)
                .zip(page)
                .map(|(pages, page)| pages * page),
            virtual_bytes: field(VIRTUAL),
            // The open directory is one of them.
            open_files: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|files| (files.count() as u64).saturating_sub(1)),
            max_open_files: limits.ok().map(|(soft, _)| soft),
            threads: field(THREADS),
            start_time: since.map(|since| since.as_secs_f64() - runs),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_what_this_process_takes() {
        let process = ProcessStats::now(2.0);
        assert!(process.resident_bytes.unwrap() > 1 << 20);
        assert!(process.virtual_bytes.unwrap() > process.resident_bytes.unwrap());
        assert!(process.open_files.unwrap() >= 3 && process.max_open_files.unwrap() > 3);
        assert!(process.threads.unwrap() >= 1);
        assert!(process.cpu_seconds.unwrap() < 10_000.0);
        assert!(process.start_time.unwrap() > 1.7e9);
    }
}
