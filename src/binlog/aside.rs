//! Why nothing is answered from memory: the server's log is not followed.

use crate::sql::NameCase;
use tokio::sync::watch;

use super::Binlog;

/// Why nothing is answered from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// One of [`super::REASONS`].
    pub reason: &'static str,
    /// For people.
    pub text: String,
    /// The statement that cures it, where there is one.
    pub cure: Option<String>,
}

impl Aside {
    /// True where memory is about to begin, as far as is known.
    #[must_use]
    pub fn is_a_beginning(&self) -> bool {
        ["starting", "anew", "moved"].contains(&self.reason)
    }
}

impl Binlog {
    /// Why nothing is answered from memory; `None`: the server's log is followed.
    #[must_use]
    pub fn aside(&self) -> Option<Aside> {
        self.aside.borrow().clone()
    }

    /// True where nothing is: the server's log is not followed.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        self.aside.borrow().is_some()
    }

    /// Tells each change of it.
    #[must_use]
    pub fn asides(&self) -> watch::Receiver<Option<Aside>> {
        self.aside.subscribe()
    }

    /// Tells how the server compares names of databases and tables, once that is known, and each change of it.
    #[must_use]
    pub fn name_cases(&self) -> watch::Receiver<NameCase> {
        self.case.subscribe()
    }

    /// What keeps a place's rows out of memory is another one now.
    pub(super) fn tell_asides(&self) {
        self.aside.send_modify(|_| ());
    }
}
