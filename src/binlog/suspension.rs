//! Why nothing is answered from memory: the server's log is not followed.

use crate::sql::NameCase;
use tokio::sync::watch;

use super::Binlog;

/// Why nothing is answered from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySuspension {
    /// One of [`super::REASONS`].
    pub reason: &'static str,
    /// For people.
    pub text: String,
    /// The statement that cures it, where there is one.
    pub cure: Option<String>,
}

impl MemorySuspension {
    /// True where memory is about to begin, as far as is known.
    #[must_use]
    pub fn is_startup(&self) -> bool {
        ["starting", "anew", "moved"].contains(&self.reason)
    }
}

impl Binlog {
    /// Why nothing is answered from memory; `None`: the server's log is followed.
    #[must_use]
    pub fn suspension(&self) -> Option<MemorySuspension> {
        self.suspension.borrow().clone()
    }

    /// True where nothing is: the server's log is not followed.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspension.borrow().is_some()
    }

    /// Tells each change of it.
    #[must_use]
    pub fn subscribe_suspension(&self) -> watch::Receiver<Option<MemorySuspension>> {
        self.suspension.subscribe()
    }

    /// Tells how the server compares names of databases and tables, once that is known, and each change of it.
    #[must_use]
    pub fn subscribe_name_case(&self) -> watch::Receiver<NameCase> {
        self.case.subscribe()
    }

    /// What keeps a place's rows out of memory is another one now.
    pub(super) fn notify_suspension(&self) {
        self.suspension.send_modify(|_| ());
    }
}
