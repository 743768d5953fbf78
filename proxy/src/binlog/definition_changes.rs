//! Counts statements in the log that may have changed definitions or stored functions, before a proof covers them.
//!
//! MySQL logs a statement before it commits what the statement has made: a query right after it sees the previous state. So a change of
//! functions is counted again once it is visible; until then the server may have some. Procedures need none of that: `SHOW CREATE
//! PROCEDURE` waits for a concurrent definition.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{Binlog, commit_fence};

/// Pause between attempts to prove that a change is visible.
const BETWEEN_TRIES: Duration = Duration::from_secs(2);

/// Counters of statements that may have changed definitions.
#[derive(Debug, Default)]
pub(super) struct DefinitionChanges {
    /// The catalogue's epoch counter.
    epochs: OnceLock<Arc<AtomicU64>>,
    /// Statements that may have made a stored function.
    functions: AtomicU64,
    /// Those that MySQL may have logged before they were visible.
    received: AtomicU64,
    /// How many of those are visible.
    visible: AtomicU64,
    /// A proof of visibility is under way.
    proving: AtomicBool,
}

impl DefinitionChanges {
    fn count_epoch(&self) {
        if let Some(epochs) = self.epochs.get() {
            epochs.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Order matters: a reader of the new count sees the new epoch too.
    fn count_function(&self) {
        self.count_epoch();
        self.functions.fetch_add(1, Ordering::AcqRel);
    }
}

impl Binlog {
    /// Counts statements that may have changed definitions in `epochs`, before a proof covers them.
    pub fn set_epoch_counter(&self, epochs: Arc<AtomicU64>) {
        let _ = self.definition_changes.epochs.set(epochs);
    }

    /// How many statements received so far may have made a stored function.
    #[must_use]
    pub fn function_changes(&self) -> u64 {
        self.definition_changes.functions.load(Ordering::Acquire)
    }

    /// True if every function change received is visible to a query.
    #[must_use]
    pub fn are_functions_visible(&self) -> bool {
        self.definition_changes.visible.load(Ordering::Acquire)
            == self.definition_changes.received.load(Ordering::Acquire)
    }

    /// Records a statement that may have made a stored function.
    pub(super) fn record_function_change(self: &Arc<Self>) {
        let changes = &self.definition_changes;
        if self.is_mariadb() {
            return changes.count_function();
        }
        changes.received.fetch_add(1, Ordering::AcqRel);
        changes.count_function();
        if !changes.proving.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).prove_functions());
        }
    }

    /// Records that one may have been missed while the log was not followed: it is visible by now, or the log will contain it.
    pub(super) fn record_function_gap(&self) {
        self.definition_changes.count_function();
    }

    /// Records a statement that may have changed a definition.
    pub(super) fn record_redefinition(&self) {
        self.definition_changes.count_epoch();
        self.changed.notify_one();
    }

    /// Runs until what was received is visible.
    async fn prove_functions(self: Arc<Self>) {
        let changes = &self.definition_changes;
        loop {
            let received = changes.received.load(Ordering::Acquire);
            self.wait_for_functions().await;
            changes.count_function();
            changes.visible.store(received, Ordering::Release);
            self.changed.notify_one();
            changes.proving.store(false, Ordering::Release);
            // A statement that came meanwhile may have seen this proof under way.
            let is_done = changes.received.load(Ordering::Acquire) == received;
            if is_done || changes.proving.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }

    async fn wait_for_functions(&self) {
        let mut waiting = None;
        loop {
            match commit_fence::wait_for_all(self, &mut waiting).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!("whether functions can be seen is not proved: {error}");
                    // The next list may be another server's.
                    waiting = None;
                }
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }
}
