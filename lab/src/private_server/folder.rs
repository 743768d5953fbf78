//! The private folder of one server.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{PrivateServerError, data_home};

/// A folder with access for the user only. Dropping this value removes it with its contents.
#[derive(Debug)]
pub(super) struct ServerFolder(PathBuf);

impl ServerFolder {
    pub(super) fn create(of: &str) -> Result<ServerFolder, PrivateServerError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("headwater-{of}-{}-{number}", process::id());
            let path = data_home().join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(ServerFolder(path)),
                // A process with the same id left it, without a chance to clean up.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    let doing = format!("create {}", path.display());
                    return Err(PrivateServerError::Io { doing, source });
                }
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("server.log")
    }

    /// A short name: the system accepts at most 107 bytes for the whole path.
    pub(super) fn socket(&self) -> PathBuf {
        self.0.join("s")
    }

    pub(super) fn pid_file(&self) -> PathBuf {
        self.0.join("pid")
    }
}

impl Drop for ServerFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
