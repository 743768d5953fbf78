//! What the log tells of definitions and stored functions: counted before a proof tells that it has been heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Binlog;

impl Binlog {
    /// From here on statements that may have changed definitions are counted there, before a proof tells that they have been heard.
    pub fn counts_epochs(&self, epochs: Arc<AtomicU64>) {
        let _ = self.epochs.set(epochs);
    }

    /// How many statements that have been heard by now may have made a stored function.
    #[must_use]
    pub fn functions(&self) -> u64 {
        self.functions.load(Ordering::Acquire)
    }

    /// A statement may have made a stored function. Who finds this counted finds the epoch counted as well.
    pub(super) fn function_made(&self) {
        self.count_epoch();
        self.functions.fetch_add(1, Ordering::AcqRel);
    }

    fn count_epoch(&self) {
        if let Some(epochs) = self.epochs.get() {
            epochs.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// A statement may have changed a definition.
    pub(super) fn redefined(&self) {
        self.count_epoch();
        self.changed.notify_one();
    }
}
