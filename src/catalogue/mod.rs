//! The definitions, and what their check against this server said, one verdict a database.

mod service;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

pub use service::{Service, ServiceError};

use crate::limits::Limits;
use crate::statement::{Class, Classes};
use crate::timeline::check::{Reason, Verdict};
use crate::timeline::definition::Definition;

/// Definitions and verdicts, shared by all sessions.
#[derive(Debug)]
pub struct Catalogue {
    definitions: Arc<[Definition]>,
    classes: Mutex<Classes>,
    verdicts: Mutex<LruCache<(usize, Vec<u8>), Entry>>,
    /// The account that checks definitions, if there is one.
    pub service: Option<Service>,
    lifetime: Duration,
    said_unseen: AtomicBool,
}

#[derive(Debug)]
struct Entry {
    verdict: Arc<Verdict>,
    checked: Instant,
}

impl Catalogue {
    /// A catalogue that has checked nothing yet.
    #[must_use]
    pub fn new(definitions: Vec<Definition>, service: Option<Service>, limits: &Limits) -> Self {
        let definitions: Arc<[Definition]> = definitions.into();
        let databases = limits.databases.saturating_mul(definitions.len()).max(1);
        // The service account checks again every `recheck_ms`; a verdict may outlive one lost round.
        let rounds = if service.is_some() { 3 } else { 1 };
        Catalogue {
            classes: Mutex::new(Classes::new(
                Arc::clone(&definitions),
                NonZeroUsize::new(limits.statements).unwrap_or(NonZeroUsize::MIN),
                limits.statement_bytes,
            )),
            verdicts: Mutex::new(LruCache::new(
                NonZeroUsize::new(databases).unwrap_or(NonZeroUsize::MIN),
            )),
            definitions,
            service,
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(rounds),
            said_unseen: AtomicBool::new(false),
        }
    }

    /// What a statement means.
    #[must_use]
    pub fn classify(&self, text: &[u8]) -> Class {
        lock(&self.classes).classify(text)
    }

    /// Every definition.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The verdict on a definition in a database; `None` when a check is due.
    #[must_use]
    pub fn verdict(&self, number: usize, database: &[u8]) -> Option<Arc<Verdict>> {
        let mut verdicts = lock(&self.verdicts);
        let entry = verdicts.get(&(number, database.to_vec()))?;
        (entry.checked.elapsed() < self.lifetime).then(|| Arc::clone(&entry.verdict))
    }

    /// Takes in a verdict, and says so in the log when it is new or another than before.
    pub fn record(&self, number: usize, database: &[u8], verdict: Verdict) -> Arc<Verdict> {
        let verdict = Arc::new(verdict);
        let entry = Entry {
            verdict: Arc::clone(&verdict),
            checked: Instant::now(),
        };
        let before = lock(&self.verdicts).put((number, database.to_vec()), entry);
        let changed = before.is_none_or(|before| !before.verdict.is_alike(&verdict));
        if let (true, Some(definition)) = (changed, self.definitions.get(number)) {
            let name = &definition.name;
            let database = String::from_utf8_lossy(database);
            match &*verdict {
                Verdict::Accelerate(facts) => {
                    tracing::info!(
                        "definition {name} in database {database}: accelerated ({facts})"
                    );
                }
                Verdict::Relay(reason) => {
                    tracing::warn!("definition {name} in database {database}: relayed, {reason}");
                }
            }
        }
        verdict
    }

    /// Says once that a client's account sees too little of a definition to check it.
    pub fn say_unseen(&self, number: usize, reason: &Reason) {
        if self.said_unseen.swap(true, Ordering::Relaxed) {
            return;
        }
        let name = self
            .definitions
            .get(number)
            .map_or("", |definition| &definition.name);
        tracing::warn!(
            "definition {name}: a client's account cannot check it, its calls are relayed: {reason} \
             (a service account could: --service-user, HEADWATER_SERVICE_USER, service.user)"
        );
    }

    /// Forgets when verdicts were given: a statement passed that may have changed a definition.
    pub fn expire(&self) {
        let Some(long_ago) = Instant::now().checked_sub(self.lifetime) else {
            return lock(&self.verdicts).clear();
        };
        for (_, entry) in lock(&self.verdicts).iter_mut() {
            entry.checked = long_ago;
        }
    }

    /// The definitions and databases that have a verdict.
    #[must_use]
    pub fn known(&self) -> Vec<(usize, Vec<u8>)> {
        lock(&self.verdicts)
            .iter()
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Has the service account check one definition in one database.
    ///
    /// # Errors
    /// When there is no service account, or it cannot ask.
    pub async fn check(
        &self,
        number: usize,
        database: &[u8],
    ) -> Result<Arc<Verdict>, ServiceError> {
        let service = self.service.as_ref().ok_or(ServiceError::None)?;
        let definition = self.definitions.get(number).ok_or(ServiceError::None)?;
        let verdict = service.check(definition, database).await?;
        Ok(self.record(number, database, verdict))
    }
}

/// A panic elsewhere leaves a cache whole: every change to it is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
