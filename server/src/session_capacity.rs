//! The capacity for sessions: by `limits.sessions`, and by the process's limit of file descriptors.

use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// A client's connection, and the server's.
const DESCRIPTORS_PER_SESSION: u64 = 2;
/// Reserved for other uses: the service account's connections, clients that are being refused, files.
const SPARE_DESCRIPTORS: u64 = 16;
/// Assumed if the operating system does not report the open descriptors.
const USUALLY_OPEN: u64 = 32;

/// Raises the soft limit of file descriptors to the hard one. The usual soft limit of 1,024 is meant for programs that use select().
pub fn raise_open_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // A limit that cannot be raised is reported later.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Bytes of memory of the machine, by a name of `/proc/meminfo`.
pub fn meminfo(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let figure = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: usize = figure.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The memory limit of the process's control group and its parents, in bytes; `None`: unlimited.
#[must_use]
pub fn cgroup_memory_limit() -> Option<usize> {
    let groups_text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let read = |path: &Path, file: &str| {
        let text = std::fs::read_to_string(path.join(file)).ok()?;
        // `max`, or a number that no machine has.
        text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
    };
    let limits = groups_text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let (mounted, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container the group may appear as the root of the mount.
        let groups = Path::new(group.trim_start_matches('/')).ancestors();
        groups
            .filter_map(|group| read(&Path::new(mounted).join(group), file))
            .min()
    });
    limits.min()
}

/// The possible number of sessions, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionCapacity {
    pub(crate) sessions: usize,
    /// The limit of file descriptors, if that is the bound.
    descriptors: Option<u64>,
    wanted: usize,
}

impl SessionCapacity {
    /// The capacity for `limits.sessions`; call it once everything else is open.
    pub(crate) fn detect(wanted: usize) -> SessionCapacity {
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        let open = std::fs::read_dir("/proc/self/fd");
        let open = open.map_or(USUALLY_OPEN, |open| open.count() as u64);
        SessionCapacity::within(wanted, limit, open)
    }

    fn within(wanted: usize, limit: u64, open: u64) -> SessionCapacity {
        let free = limit.saturating_sub(open).saturating_sub(SPARE_DESCRIPTORS);
        let most = usize::try_from(free / DESCRIPTORS_PER_SESSION).unwrap_or(usize::MAX);
        SessionCapacity {
            sessions: wanted.min(most).max(1),
            descriptors: (most < wanted).then_some(limit),
            wanted,
        }
    }

    /// A warning for the start; `None`: `limits.sessions` fits.
    pub(crate) fn shortage(&self) -> Option<String> {
        let limit = self.descriptors?;
        let (sessions, wanted) = (self.sessions, self.wanted);
        let lacking = (wanted - sessions.min(wanted)) as u64 * DESCRIPTORS_PER_SESSION;
        let enough = limit.saturating_add(lacking);
        Some(format!(
            "there is room for {sessions} sessions only, since the process may open {limit} files; limits.sessions = {wanted} takes \
             {enough}: raise the limit (ulimit -n, LimitNOFILE), or set limits.sessions = {sessions}"
        ))
    }

    /// The error for a client that gets no permit.
    pub(crate) fn refusal(&self) -> String {
        match self.descriptors {
            Some(_) => descriptor_exhaustion_message(&format!("in {} sessions", self.sessions)),
            None => format!(
                "Too many connections (Headwater's limits.sessions = {})",
                self.sessions
            ),
        }
    }
}

/// The error for a client if Headwater is full, and not the server.
pub(crate) fn descriptor_exhaustion_message(when: &str) -> String {
    format!(
        "Too many connections (Headwater is out of file descriptors {when}: raise ulimit -n, LimitNOFILE)"
    )
}

/// True for an error that this process, or the system, can open no more files.
pub(crate) fn is_out_of_files(error: &std::io::Error) -> bool {
    use nix::errno::Errno;
    let code = error.raw_os_error();
    code.is_some_and(|code| code == Errno::EMFILE as i32 || code == Errno::ENFILE as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_fit_are_not_talked_about() {
        let room = SessionCapacity::within(100, 1_000, 20);
        assert_eq!((room.sessions, room.shortage()), (100, None));
        assert!(room.refusal().contains("limits.sessions = 100"));
        assert_eq!(
            SessionCapacity::within(10_000, u64::MAX, 20).sessions,
            10_000
        );
    }

    #[test]
    fn too_few_descriptors_are_reported_with_sufficient_numbers() {
        let room = SessionCapacity::within(10_000, 64, 14);
        assert_eq!(room.sessions, 17);
        let said = room.shortage().unwrap_or_default();
        for part in [
            "17 sessions",
            "64 files",
            "limits.sessions = 10000",
            "LimitNOFILE",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let enough = 64 + (10_000 - 17) * DESCRIPTORS_PER_SESSION;
        assert!(said.contains(&enough.to_string()), "{said}");
        assert_eq!(SessionCapacity::within(10_000, enough, 14).shortage(), None);
        assert!(room.refusal().contains("file descriptors"));
        assert_eq!(SessionCapacity::within(10_000, 8, 14).sessions, 1);
    }
}
