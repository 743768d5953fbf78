//! The parent folder of servers' folders: in memory if there is enough of it, so that servers start and stop without waiting for a disk.

use std::path::{Path, PathBuf};

use headwater_server::session_capacity::{cgroup_memory_limit, meminfo};

/// A file system in memory, on Linux.
const IN_MEMORY: &str = "/dev/shm";
/// The space that has to be free in that file system and in the machine's memory: ten servers have a few hundred megabytes each.
const FREE_BYTES_NEEDED: u64 = 8 << 30;

/// The parent folder of new servers' folders: `TMPDIR` if that is set.
pub(super) fn data_home() -> PathBuf {
    let in_memory = Path::new(IN_MEMORY);
    match std::env::var_os("TMPDIR").is_none() && has_plenty(in_memory) {
        true => in_memory.to_owned(),
        false => std::env::temp_dir(),
    }
}

/// All possible parent folders: the free space changes from moment to moment.
#[must_use]
pub fn data_homes() -> [PathBuf; 2] {
    [PathBuf::from(IN_MEMORY), std::env::temp_dir()]
}

fn has_plenty(folder: &Path) -> bool {
    let Ok(system) = rustix::fs::statvfs(folder) else {
        return false;
    };
    let is_writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let memory = [meminfo("MemAvailable:"), cgroup_memory_limit()];
    let least = memory.into_iter().flatten().min();
    let least = least.and_then(|bytes| u64::try_from(bytes).ok());
    is_writable
        && free >= FREE_BYTES_NEEDED
        && least.is_some_and(|bytes| bytes >= FREE_BYTES_NEEDED)
}
