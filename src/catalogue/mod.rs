//! The definitions, and what their check against this server said, one verdict a database.

mod rights;
mod service;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

pub use rights::DefinerRights;
pub use service::{Service, ServiceError, ask, denied, runs};

use crate::limits::Limits;
use crate::source::hints::Hints;
use crate::statement::{Class, Classes};
use crate::timeline::check::{Reason, Verdict};
use crate::timeline::definition::{Definition, DefinitionId};

/// Definitions and verdicts, shared by all sessions.
#[derive(Debug)]
pub struct Catalogue {
    definitions: Arc<[Definition]>,
    classes: Classes,
    verdicts: Mutex<PerDatabase<Entry>>,
    rights: Mutex<PerDatabase<Arc<DefinerRights>>>,
    hints: Mutex<Hints>,
    /// Whether the server surely has no stored functions, as it was seen last.
    no_functions: Mutex<Option<(bool, Instant, Epoch)>>,
    /// Held while a check that is due is made.
    due: tokio::sync::Mutex<()>,
    /// The account that checks definitions, if there is one.
    pub service: Option<Service>,
    lifetime: Duration,
    said_unseen: AtomicBool,
    epoch: AtomicU64,
}

/// By definition and database.
type PerDatabase<T> = LruCache<(DefinitionId, Vec<u8>), T>;

#[derive(Debug)]
struct Entry {
    verdict: Arc<Verdict>,
    checked: Instant,
    epoch: Epoch,
}

/// Counts what may have changed definitions; see [`Catalogue::epoch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u64);

impl From<u64> for Epoch {
    fn from(count: u64) -> Self {
        Epoch(count)
    }
}

impl Epoch {
    /// Its number.
    #[must_use]
    pub fn count(self) -> u64 {
        self.0
    }
}

impl Catalogue {
    /// A catalogue that has checked nothing yet. `messages`: tables of feeds, and whether there may be others.
    #[must_use]
    pub fn new(
        definitions: Vec<Definition>,
        (messages, any): (Box<[Box<[u8]>]>, bool),
        service: Option<Service>,
        limits: &Limits,
    ) -> Self {
        let definitions: Arc<[Definition]> = definitions.into();
        let databases = limits.databases.saturating_mul(definitions.len());
        let databases = NonZeroUsize::new(databases).unwrap_or(NonZeroUsize::MIN);
        // The service account checks again every `recheck_ms`; a verdict may outlive one lost round.
        let rounds = if service.is_some() { 3 } else { 1 };
        Catalogue {
            classes: Classes::new(
                Arc::clone(&definitions),
                NonZeroUsize::new(limits.statements).unwrap_or(NonZeroUsize::MIN),
                limits.statement_bytes,
            )
            .with_messages(messages, any),
            verdicts: Mutex::new(LruCache::new(databases)),
            rights: Mutex::new(LruCache::new(databases)),
            due: tokio::sync::Mutex::new(()),
            no_functions: Mutex::new(None),
            hints: Mutex::new(Hints::new(limits.authors, limits.follow_edges)),
            definitions,
            service,
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(rounds),
            said_unseen: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
        }
    }

    /// What a statement means.
    #[must_use]
    pub fn classify(&self, text: &[u8]) -> Class {
        let no_functions = self.no_functions().unwrap_or(false);
        self.classes.classify(text, no_functions)
    }

    /// What earlier lookups saw.
    pub fn hints(&self) -> MutexGuard<'_, Hints> {
        lock(&self.hints)
    }

    /// Whether the server surely has no stored functions. `None`: it has to be asked, as a statement since may have made one.
    #[must_use]
    pub fn no_functions(&self) -> Option<bool> {
        let seen = *lock(&self.no_functions);
        let (none, ..) = seen.filter(|(_, at, epoch)| self.is_fresh(*at, *epoch))?;
        Some(none)
    }

    /// Takes in whether the server surely has no stored functions, as was asked for at an epoch.
    pub fn functions_seen(&self, none: bool, epoch: Epoch) {
        *lock(&self.no_functions) = Some((none, Instant::now(), epoch));
    }

    /// True while what was seen then still holds.
    fn is_fresh(&self, seen: Instant, epoch: Epoch) -> bool {
        epoch == self.epoch() && seen.elapsed() < self.lifetime
    }

    /// Every definition.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The verdict on a definition in a database; `None` when a check is due.
    #[must_use]
    pub fn verdict(&self, number: DefinitionId, database: &[u8]) -> Option<Arc<Verdict>> {
        let (verdict, fresh) = self.last_verdict(number, database)?;
        fresh.then_some(verdict)
    }

    /// The verdict that was found last, and whether it still counts.
    pub fn last_verdict(
        &self,
        number: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<Verdict>, bool)> {
        let mut verdicts = lock(&self.verdicts);
        let entry = verdicts.get(&(number, database.to_vec()))?;
        let fresh = self.is_fresh(entry.checked, entry.epoch);
        Some((Arc::clone(&entry.verdict), fresh))
    }

    /// What is known of the rights of the definers of a definition's procedures in a database.
    #[must_use]
    pub fn definer_rights(&self, number: DefinitionId, database: &[u8]) -> Arc<DefinerRights> {
        let mut all = lock(&self.rights);
        let new = || Arc::new(DefinerRights::new(number, database));
        Arc::clone(all.get_or_insert((number, database.to_vec()), new))
    }

    /// What a verdict has to be given with: taken before its first question is asked, it tells
    /// whether a definition may have changed since.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Takes in a verdict, and says so in the log when it is new or another than before.
    pub fn record(
        &self,
        number: DefinitionId,
        database: &[u8],
        verdict: Verdict,
        epoch: Epoch,
    ) -> Arc<Verdict> {
        let verdict = Arc::new(verdict);
        let entry = Entry {
            verdict: Arc::clone(&verdict),
            checked: Instant::now(),
            epoch,
        };
        if let Verdict::Accelerate(facts) = &*verdict {
            self.functions_seen(facts.no_functions, epoch);
        }
        let before = lock(&self.verdicts).put((number, database.to_vec()), entry);
        let changed = before.is_none_or(|before| !before.verdict.is_alike(&verdict));
        if let (true, Some(definition)) = (changed, number.of(&self.definitions)) {
            let name = &definition.name;
            let database = String::from_utf8_lossy(database);
            match &*verdict {
                Verdict::Accelerate(facts) if facts.are_whole() => {
                    tracing::info!(
                        "definition {name} in database {database}: accelerated ({facts})"
                    );
                }
                Verdict::Accelerate(facts) => {
                    tracing::warn!(
                        "definition {name} in database {database}: accelerated in part ({facts})"
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
    pub fn say_unseen(&self, number: DefinitionId, reason: &Reason) {
        if self.said_unseen.swap(true, Ordering::Relaxed) {
            return;
        }
        let name = number
            .of(&self.definitions)
            .map_or("", |definition| &definition.name);
        tracing::warn!(
            "definition {name}: a client's account cannot check it, its calls are relayed: {reason} \
             (a service account could: --service-user, HEADWATER_SERVICE_USER, service.user)"
        );
    }

    /// Makes every check due: a statement has ended that may have changed a definition. That goes
    /// for checks under way as well, which may have asked before it.
    pub fn expire(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// The definitions and databases that have a verdict.
    #[must_use]
    pub fn known(&self) -> Vec<(DefinitionId, Vec<u8>)> {
        lock(&self.verdicts)
            .iter()
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Definitions that are answered in some database, as the last checks had it.
    #[must_use]
    pub fn accelerated(&self) -> Vec<DefinitionId> {
        let verdicts = lock(&self.verdicts);
        let answered = verdicts.iter().filter_map(|((definition, _), entry)| {
            matches!(&*entry.verdict, Verdict::Accelerate(_)).then_some(*definition)
        });
        answered.collect()
    }

    /// The verdict that is due, by the service account; who waits for one that another session has
    /// asked for meanwhile takes that.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub async fn check_due(
        &self,
        number: DefinitionId,
        database: &[u8],
    ) -> Result<Arc<Verdict>, ServiceError> {
        let _turn = self.due.lock().await;
        match self.verdict(number, database) {
            Some(verdict) => Ok(verdict),
            None => self.check(number, database).await,
        }
    }

    /// Has the service account check one definition in one database.
    ///
    /// # Errors
    /// When there is no service account, or it cannot ask.
    pub async fn check(
        &self,
        number: DefinitionId,
        database: &[u8],
    ) -> Result<Arc<Verdict>, ServiceError> {
        let service = self.service.as_ref().ok_or(ServiceError::None)?;
        let definition = number.of(&self.definitions).ok_or(ServiceError::None)?;
        let epoch = self.epoch();
        let verdict = service.check(definition, database).await?;
        Ok(self.record(number, database, verdict, epoch))
    }
}

/// A panic elsewhere leaves a cache whole: every change to it is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSIC: DefinitionId = DefinitionId(0);

    #[test]
    fn a_verdict_that_was_asked_for_before_a_change_is_due_again() {
        let limits = Limits::default();
        let catalogue = Catalogue::new(
            vec![Definition::classic()],
            Default::default(),
            None,
            &limits,
        );
        let refused = || {
            Verdict::Relay(Reason::NoTable {
                table: "message".into(),
            })
        };
        let asked = catalogue.epoch();
        catalogue.record(CLASSIC, b"tl", refused(), asked);
        assert!(catalogue.verdict(CLASSIC, b"tl").is_some());
        catalogue.expire();
        assert!(catalogue.verdict(CLASSIC, b"tl").is_none());
        // The change came while the check was under way: what it saw may be the state before.
        catalogue.record(CLASSIC, b"tl", refused(), asked);
        assert!(catalogue.verdict(CLASSIC, b"tl").is_none());
        catalogue.record(CLASSIC, b"tl", refused(), catalogue.epoch());
        assert!(catalogue.verdict(CLASSIC, b"tl").is_some());
    }
}
