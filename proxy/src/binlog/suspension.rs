//! Why no call is served from memory: the server's log is not followed.

use headwater_sql::NameCase;
use tokio::sync::watch;

use super::Binlog;

/// Why no call is served from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySuspension {
    /// One of [`super::REASONS`].
    pub reason: &'static str,
    /// A text for display.
    pub text: String,
    /// The statement that cures it, if there is one.
    pub cure: Option<String>,
}

impl MemorySuspension {
    /// True if memory is expected to be in use soon.
    #[must_use]
    pub fn is_startup(&self) -> bool {
        ["starting", "anew", "moved"].contains(&self.reason)
    }
}

impl Binlog {
    /// Why no call is served from memory; `None`: the server's log is followed.
    #[must_use]
    pub fn suspension(&self) -> Option<MemorySuspension> {
        self.suspension.borrow().clone()
    }

    /// True while the server's log is not followed.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspension.borrow().is_some()
    }

    /// Receives each change of the suspension.
    #[must_use]
    pub fn subscribe_suspension(&self) -> watch::Receiver<Option<MemorySuspension>> {
        self.suspension.subscribe()
    }

    /// Receives how the server compares names of databases and tables, and each change of it.
    #[must_use]
    pub fn subscribe_name_case(&self) -> watch::Receiver<NameCase> {
        self.case.subscribe()
    }

    /// Notifies subscribers that a timeline's block reason has changed.
    pub(super) fn notify_suspension(&self) {
        self.suspension.send_modify(|_| ());
    }
}
