//! Programs of packages that were unpacked, not installed (`setup/unpack.sh`): their folder has its own C library.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that may hold libraries; not every product has all of them.
const LIBRARIES: &[&str] = &[
    "usr/lib/mysql/private",
    "usr/lib/mysql",
    "usr/lib/mysql-router",
    "usr/lib/mysqlrouter/plugin",
];

/// A folder of unpacked packages.
#[derive(Debug)]
pub struct PackageFolder {
    prefix: PathBuf,
}

impl PackageFolder {
    /// The folder in the environment variable, or else the one of that name in the user's cache.
    #[must_use]
    pub fn at(variable: &str, name: &str) -> PackageFolder {
        let prefix = match env::var_os(variable) {
            Some(prefix) if !prefix.is_empty() => PathBuf::from(prefix),
            _ => cache_folder().join(name),
        };
        PackageFolder { prefix }
    }

    /// The folder's path.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// True if this program (`usr/sbin/mysqld`) and its loader exist.
    #[must_use]
    pub fn has(&self, program: &str) -> bool {
        self.prefix.join(program).exists() && self.loader().exists()
    }

    /// The command that runs a program of the folder.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.loader());
        command
            .arg("--library-path")
            .arg(self.library_path())
            .arg(self.prefix.join(program));
        command
    }

    /// `PATH` with the folder's programs before the machine's, which may have the same names; `None` if the folder does not exist.
    #[must_use]
    pub fn search_path(&self) -> Option<OsString> {
        let own_programs = self.prefix.join("usr/bin");
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [own_programs.clone()]
            .into_iter()
            .chain(env::split_paths(&path));
        own_programs
            .is_dir()
            .then(|| env::join_paths(folders).ok())?
    }

    /// The loader's own path, not the one stored in programs: packages may have an absolute link there.
    fn loader(&self) -> PathBuf {
        let name = match env::consts::ARCH {
            "aarch64" => "ld-linux-aarch64.so.1",
            _ => "ld-linux-x86-64.so.2",
        };
        self.libraries().join(name)
    }

    /// Where the distribution's own libraries are.
    #[must_use]
    pub fn libraries(&self) -> PathBuf {
        self.prefix.join(system_libraries())
    }

    fn library_path(&self) -> OsString {
        let mut path = self.libraries().into_os_string();
        for folder in LIBRARIES {
            path.push(":");
            path.push(self.prefix.join(folder));
        }
        path
    }
}

fn system_libraries() -> String {
    format!("usr/lib/{}-linux-gnu", env::consts::ARCH)
}

/// The user's cache, for files that can be created again.
pub(super) fn cache_folder() -> PathBuf {
    match env::var_os("HOME") {
        Some(home) if !home.is_empty() => Path::new(&home).join(".cache/headwater"),
        _ => env::temp_dir().join("headwater-cache"),
    }
}
