//! The definitions, and what their check against this server said, one verdict a database.
//!
//! A catalogue never changes its definitions. Settings that are read again make another one, which knows what the one before found out.

mod numbered;
mod rights;
mod service;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

pub use numbered::{MOST_DEFINITIONS, numbered};
pub use rights::DefinerRights;
pub(crate) use service::MAY_SEE;
pub use service::{Service, ServiceError, ask, denied, runs};

use crate::clock;
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
    seen: Arc<Seen>,
    /// The account that checks definitions, if there is one.
    pub service: Option<Arc<Service>>,
    lifetime: Duration,
}

/// What was found out about definitions, by their numbers: a number never comes to mean another definition.
#[derive(Debug)]
struct Seen {
    verdicts: Mutex<PerDatabase<Entry>>,
    rights: Mutex<PerDatabase<Arc<DefinerRights>>>,
    hints: Mutex<Hints>,
    /// Whether the server surely has no stored functions, as it was seen last.
    no_functions: Mutex<Option<(bool, Instant, Epoch)>>,
    /// Held while a check that is due is made.
    due: tokio::sync::Mutex<()>,
    said_unseen: AtomicBool,
    epoch: Arc<AtomicU64>,
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
        messages: (Box<[Box<[u8]>]>, bool),
        service: Option<Arc<Service>>,
        limits: &Limits,
    ) -> Self {
        let most = databases(limits, definitions.len());
        let seen = Seen {
            verdicts: Mutex::new(LruCache::new(most)),
            rights: Mutex::new(LruCache::new(most)),
            due: tokio::sync::Mutex::new(()),
            no_functions: Mutex::new(None),
            hints: Mutex::new(Hints::new(limits.authors, limits.follow_edges)),
            said_unseen: AtomicBool::new(false),
            epoch: Arc::default(),
        };
        Self::knowing(Arc::new(seen), definitions, messages, service, limits)
    }

    /// The same with what another one has found out, whose definitions have the same numbers here.
    #[must_use]
    pub fn after(
        before: &Catalogue,
        definitions: Vec<Definition>,
        messages: (Box<[Box<[u8]>]>, bool),
        service: Option<Arc<Service>>,
        limits: &Limits,
    ) -> Self {
        let seen = Arc::clone(&before.seen);
        let most = databases(limits, definitions.len());
        lock(&seen.verdicts).resize(most);
        lock(&seen.rights).resize(most);
        Self::knowing(seen, definitions, messages, service, limits)
    }

    fn knowing(
        seen: Arc<Seen>,
        definitions: Vec<Definition>,
        (messages, any): (Box<[Box<[u8]>]>, bool),
        service: Option<Arc<Service>>,
        limits: &Limits,
    ) -> Self {
        let definitions: Arc<[Definition]> = definitions.into();
        // The service account checks again every `recheck_ms`; a verdict may outlive one lost round.
        let rounds = if service.is_some() { 3 } else { 1 };
        Catalogue {
            classes: Classes::new(
                Arc::clone(&definitions),
                NonZeroUsize::new(limits.statements).unwrap_or(NonZeroUsize::MIN),
                limits.statement_bytes,
            )
            .with_messages(messages, any),
            seen,
            definitions,
            service,
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(rounds),
        }
    }

    /// What a statement means on a server that is known to have `no_functions`, or may have some.
    #[must_use]
    pub fn classify(&self, text: &[u8], no_functions: bool) -> Class {
        self.classes.classify(text, no_functions)
    }

    /// What earlier lookups saw.
    pub fn hints(&self) -> MutexGuard<'_, Hints> {
        lock(&self.seen.hints)
    }

    /// Whether the server surely has no stored functions. `None`: it has to be asked, as a statement since may have made one.
    #[must_use]
    pub fn no_functions(&self) -> Option<bool> {
        let seen = *lock(&self.seen.no_functions);
        let (none, ..) = seen.filter(|(_, at, epoch)| self.is_fresh(*at, *epoch))?;
        Some(none)
    }

    /// Takes in whether the server surely has no stored functions, as was asked for at an epoch.
    pub fn functions_seen(&self, none: bool, epoch: Epoch) {
        *lock(&self.seen.no_functions) = Some((none, clock::now(), epoch));
    }

    /// True while what was seen then still holds.
    fn is_fresh(&self, seen: Instant, epoch: Epoch) -> bool {
        epoch == self.epoch() && clock::since(seen) < self.lifetime
    }

    /// Those that the settings name.
    pub fn in_use(&self) -> impl Iterator<Item = (DefinitionId, &Definition)> {
        let all = (0..).map(DefinitionId).zip(self.definitions());
        all.filter(|(_, own)| !own.retired)
    }

    /// Every definition by its number, those that are retired included.
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
        let mut verdicts = lock(&self.seen.verdicts);
        let entry = verdicts.get(&(number, database.to_vec()))?;
        let fresh = self.is_fresh(entry.checked, entry.epoch);
        Some((Arc::clone(&entry.verdict), fresh))
    }

    /// What is known of the rights of the definers of a definition's procedures in a database.
    #[must_use]
    pub fn definer_rights(&self, number: DefinitionId, database: &[u8]) -> Arc<DefinerRights> {
        let mut all = lock(&self.seen.rights);
        let new = || Arc::new(DefinerRights::new(number, database));
        Arc::clone(all.get_or_insert((number, database.to_vec()), new))
    }

    /// What a verdict has to be given with: taken before its first question is asked, it tells
    /// whether a definition may have changed since.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.seen.epoch.load(Ordering::Acquire))
    }

    /// Where epochs are counted: whoever hears of a statement that may have changed definitions counts it before anything is proved behind it.
    #[must_use]
    pub fn epochs(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.seen.epoch)
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
            checked: clock::now(),
            epoch,
        };
        if let Verdict::Accelerate(facts) = &*verdict {
            self.functions_seen(facts.no_functions, epoch);
        }
        let before = lock(&self.seen.verdicts).put((number, database.to_vec()), entry);
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
        if self.seen.said_unseen.swap(true, Ordering::Relaxed) {
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
        self.seen.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes every check due, and forgets what is known of definers' rights: another server is asked from now on.
    pub fn server_moved(&self) {
        self.expire();
        lock(&self.seen.rights).clear();
        if let Some(service) = &self.service {
            service.server_moved();
        }
    }

    /// The definitions and databases that have a verdict.
    #[must_use]
    pub fn known(&self) -> Vec<(DefinitionId, Vec<u8>)> {
        let verdicts = lock(&self.seen.verdicts);
        let known = verdicts.iter().map(|(key, _)| key.clone());
        known
            .filter(|(number, _)| self.is_in_use(*number))
            .collect()
    }

    fn is_in_use(&self, number: DefinitionId) -> bool {
        let own = number.of(&self.definitions);
        own.is_some_and(|own| !own.retired)
    }

    /// Definitions that are answered in some database, as the last checks had it.
    #[must_use]
    pub fn accelerated(&self) -> Vec<DefinitionId> {
        let verdicts = lock(&self.seen.verdicts);
        let answered = verdicts.iter().filter_map(|((definition, _), entry)| {
            matches!(&*entry.verdict, Verdict::Accelerate(_)).then_some(*definition)
        });
        answered.filter(|number| self.is_in_use(*number)).collect()
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
        let _turn = self.seen.due.lock().await;
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

/// Room for verdicts.
fn databases(limits: &Limits, definitions: usize) -> NonZeroUsize {
    let databases = limits.databases.saturating_mul(definitions);
    NonZeroUsize::new(databases).unwrap_or(NonZeroUsize::MIN)
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
