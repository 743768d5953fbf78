//! The classic tables as a feed, for a Headwater that the bench or the demo starts.

use std::io;
use std::path::{Path, PathBuf};

/// The feed's section of the settings file.
pub const CLASSIC_FEED: &str = r#"
[[feed]]
name = "classic"
[feed.message]
table = "message"
id = "id"
author = "user_id"
[feed.follow]
table = "follower"
reader = "user_id"
author = "follower_id"
"#;

/// A temporary settings file; dropping this value removes it.
#[derive(Debug)]
pub struct SettingsFile(PathBuf);

impl SettingsFile {
    /// Creates the file in the system's folder for temporary files.
    ///
    /// # Errors
    /// The path, and why it cannot be written.
    pub fn new(text: &str) -> Result<SettingsFile, (PathBuf, io::Error)> {
        let path = std::env::temp_dir().join(format!("headwater-feed-{}.toml", std::process::id()));
        match std::fs::write(&path, text) {
            Ok(()) => Ok(SettingsFile(path)),
            Err(error) => Err((path, error)),
        }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SettingsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
