//! What the log tells of definitions and stored functions: counted before a proof tells that it has been heard.
//!
//! MySQL writes a statement into its log before it commits what the statement has made: whoever asks at once is told what was there before.
//! So functions are counted once more when what was heard can be seen, and until then the server may have some. A procedure needs none of
//! that: `SHOW CREATE PROCEDURE` waits for whoever defines it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{Binlog, commit_fence};

/// Between two tries to have it proved that what was heard can be seen.
const BETWEEN_TRIES: Duration = Duration::from_secs(2);

/// Statements that may have changed definitions.
#[derive(Debug, Default)]
pub(super) struct DefinitionChanges {
    /// Where they are counted.
    epochs: OnceLock<Arc<AtomicU64>>,
    /// So many may have made a stored function.
    functions: AtomicU64,
    /// So many of those MySQL may have told of too early.
    received: AtomicU64,
    /// What so many of them have made can be seen.
    visible: AtomicU64,
    /// That is being proved.
    proving: AtomicBool,
}

impl DefinitionChanges {
    fn count_epoch(&self) {
        if let Some(epochs) = self.epochs.get() {
            epochs.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Who finds this counted finds the epoch counted as well.
    fn count_function(&self) {
        self.count_epoch();
        self.functions.fetch_add(1, Ordering::AcqRel);
    }
}

impl Binlog {
    /// From here on statements that may have changed definitions are counted there, before a proof tells that they have been heard.
    pub fn set_epoch_counter(&self, epochs: Arc<AtomicU64>) {
        let _ = self.definition_changes.epochs.set(epochs);
    }

    /// How many statements that have been heard by now may have made a stored function.
    #[must_use]
    pub fn function_changes(&self) -> u64 {
        self.definition_changes.functions.load(Ordering::Acquire)
    }

    /// True where functions that were heard of can be seen by whoever asks the server.
    #[must_use]
    pub fn are_functions_visible(&self) -> bool {
        self.definition_changes.visible.load(Ordering::Acquire)
            == self.definition_changes.received.load(Ordering::Acquire)
    }

    /// A statement may have made a stored function.
    pub(super) fn record_function_change(self: &Arc<Self>) {
        let made = &self.definition_changes;
        if self.is_mariadb() {
            return made.count_function();
        }
        made.received.fetch_add(1, Ordering::AcqRel);
        made.count_function();
        if !made.proving.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).prove_functions());
        }
    }

    /// While nobody listened one may have been made: it can be seen by now, or the log will tell of it.
    pub(super) fn record_function_gap(&self) {
        self.definition_changes.count_function();
    }

    /// A statement may have changed a definition.
    pub(super) fn record_redefinition(&self) {
        self.definition_changes.count_epoch();
        self.changed.notify_one();
    }

    /// Works until what was heard can be seen.
    async fn prove_functions(self: Arc<Self>) {
        let made = &self.definition_changes;
        loop {
            let heard = made.received.load(Ordering::Acquire);
            self.wait_for_functions().await;
            made.count_function();
            made.visible.store(heard, Ordering::Release);
            self.changed.notify_one();
            made.proving.store(false, Ordering::Release);
            // One that came meanwhile may have found it being proved.
            let is_done = made.received.load(Ordering::Acquire) == heard;
            if is_done || made.proving.swap(true, Ordering::AcqRel) {
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
                    // It may be another server's list the next time.
                    waiting = None;
                }
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }
}
