//! The memory of an idle session: a Headwater's resident memory before and after many logins.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::BenchError;
use super::client::BenchClient;
use super::data::ServerInfo;
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::prepared_task::PreparedTask;
use super::proxy_process::ProxyProcess;
use crate::query_path::PageTask;

/// Sessions that are opened first, so that code and caches are loaded before the first reading.
const WARMUP_SESSIONS: usize = 8;
/// Connections of the server that are reserved for others.
const RESERVED_CONNECTIONS: usize = 10;
/// Files that a Headwater opens besides two for each session.
const OTHER_FILES: usize = 64;
/// Time for the last bytes to be processed.
const QUIET_TIME: Duration = Duration::from_millis(300);
/// Enough for tens of millions of ids.
const INDEX_MEMORY_BYTES: u64 = 1 << 30;
/// Time limit for loading everything.
const PRELOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// The memory of idle sessions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IdleSessionMemory {
    /// The number of open sessions.
    pub sessions: usize,
    /// Resident memory of each session after login, in bytes.
    pub logged_in_bytes: f64,
    /// Resident memory of each idle session after one timeline, in bytes.
    pub after_a_timeline_bytes: f64,
}

/// The memory of a full index.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FullIndexMemory {
    /// Message ids in memory: the newest of each followed author.
    pub ids: u64,
    /// Follows in memory: all of them.
    pub follows: u64,
    /// Resident memory beyond that of a Headwater with an empty index, in bytes.
    pub bytes: u64,
    /// The same for each id and each follow.
    pub bytes_each: f64,
}

/// Opens sessions through a fresh Headwater; `None` if there is no room for any.
///
/// # Errors
/// Fails if a session fails, or resident memory cannot be read.
pub fn measure_idle(
    flags: &BenchFlags,
    account: &BenchAccount,
    server: &ServerInfo,
    task: PageTask,
) -> Result<Option<IdleSessionMemory>, BenchError> {
    let by_server = server
        .free_connections
        .saturating_sub(RESERVED_CONNECTIONS + WARMUP_SESSIONS);
    let by_files = open_file_limit()?.saturating_sub(OTHER_FILES) / 2;
    let sessions = flags
        .idle_sessions
        .min(by_server)
        .min(by_files.saturating_sub(WARMUP_SESSIONS));
    if sessions == 0 {
        return Ok(None);
    }
    let proxy = ProxyProcess::start(flags, &[])?;
    let address = proxy.address();
    let connect =
        || BenchClient::connect(&address, account).map_err(BenchError::for_address(&address));
    let mut first = (0..WARMUP_SESSIONS)
        .map(|_| connect())
        .collect::<Result<Vec<_>, _>>()?;
    let timeline = |client: &mut BenchClient| {
        PreparedTask::new(task, client)
            .map(drop)
            .map_err(BenchError::for_address(&address))
    };
    first.iter_mut().try_for_each(timeline)?;
    let before = resident_bytes(proxy.pid())?;
    let mut idle = (0..sessions)
        .map(|_| connect())
        .collect::<Result<Vec<_>, _>>()?;
    let logged_in = resident_bytes(proxy.pid())?;
    idle.iter_mut().try_for_each(timeline)?;
    let used = resident_bytes(proxy.pid())?;
    let each = |now: u64| now.saturating_sub(before) as f64 / sessions as f64;
    Ok(Some(IdleSessionMemory {
        sessions,
        logged_in_bytes: each(logged_in),
        after_a_timeline_bytes: each(used),
    }))
}

/// Loads everything into a Headwater of its own, and measures its memory. `None` without a service account, or on timeout.
///
/// # Errors
/// Fails if it cannot be started, or resident memory cannot be read.
pub fn measure_full(flags: &BenchFlags) -> Result<Option<FullIndexMemory>, BenchError> {
    // Tables on Spider's data nodes are not preloaded.
    if flags.service.service_user.is_none() || flags.spider.is_some() {
        return Ok(None);
    }
    let none = ProxyProcess::start(flags, &["--index-memory-bytes", "0"])?;
    let before = resident_bytes(none.pid())?;
    drop(none);
    let (most, limit) = (
        INDEX_MEMORY_BYTES.to_string(),
        (2 * INDEX_MEMORY_BYTES).to_string(),
    );
    let all = ["--index-memory-bytes", &most, "--memory-limit", &limit];
    let proxy = ProxyProcess::start(flags, &[&["--preload"], &all[..]].concat())?;
    // "preload of <database>: <n> readers, <n> follows, <n> authors, <n> ids, ..."
    let done = format!("preload of {}: ", flags.database);
    let begun = Instant::now();
    while begun.elapsed() < PRELOAD_TIMEOUT {
        let Some(line) = proxy.wait_for(&done, PRELOAD_TIMEOUT) else {
            break;
        };
        let mut words = line.split(", ").filter_map(|part| part.split_once(' '));
        let mut number = |what: &str| {
            let part = words.find(|(_, of)| *of == what)?;
            part.0.parse::<u64>().ok()
        };
        if let (Some(follows), Some(ids)) = (number("follows"), number("ids")) {
            let bytes = resident_bytes(proxy.pid())?.saturating_sub(before);
            return Ok(Some(FullIndexMemory {
                ids,
                follows,
                bytes,
                bytes_each: bytes as f64 / (ids + follows).max(1) as f64,
            }));
        }
    }
    Ok(None)
}

/// The resident memory of a process, in bytes.
///
/// # Errors
/// Fails if the system does not report it.
pub fn resident_bytes(pid: u32) -> Result<u64, BenchError> {
    thread::sleep(QUIET_TIME);
    let status = read(format!("/proc/{pid}/status"))?;
    Ok(number_after(&status, "VmRSS:").unwrap_or_default() * 1024)
}

/// How many files this process and its children may have open.
fn open_file_limit() -> Result<usize, BenchError> {
    let limits = read("/proc/self/limits".to_owned())?;
    let files = number_after(&limits, "Max open files").unwrap_or(u64::MAX);
    Ok(usize::try_from(files).unwrap_or(usize::MAX))
}

fn read(path: String) -> Result<String, BenchError> {
    fs::read_to_string(&path).map_err(|source| BenchError::Read {
        path: path.into(),
        source,
    })
}

/// The first number of the line with this prefix.
fn number_after(text: &str, start: &str) -> Option<u64> {
    let text_after = text.lines().find_map(|line| line.strip_prefix(start))?;
    text_after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_lines_are_read() {
        let status = "Name:\theadwater\nVmRSS:\t   14280 kB\nThreads:\t3\n";
        assert_eq!(number_after(status, "VmRSS:"), Some(14_280));
        let limits = "Max open files            20000                20000                files\n";
        assert_eq!(number_after(limits, "Max open files"), Some(20_000));
        let limits = "Max open files            unlimited            unlimited            files\n";
        assert_eq!(number_after(limits, "Max open files"), None);
    }
}
