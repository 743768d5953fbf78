//! The definitions, and the verdicts of their checks against this server, one for each database.
//!
//! A catalogue's definitions never change. Reloaded settings make a new catalogue, which shares the records of the previous one.

mod definer_rights;
mod definition_numbers;
mod service_connection;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

pub use definer_rights::DefinerRights;
pub use definition_numbers::{MOST_DEFINITIONS, assign_numbers};
pub(crate) use service_connection::SESSION_PRIVILEGE_QUERY;
pub use service_connection::{
    ServiceConnection, ServiceError, denied_forms, execute_probes, query_all,
};

use crate::clock;
use crate::limits::ProcessLimits;
use headwater_lookup::hints::LookupHints;
use headwater_statement::{StatementClass, StatementClassifier};
use headwater_timeline::check::{DefinitionVerdict, RelayReason};
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};

/// Cached classes of statement texts.
const CACHED_CLASSES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);
/// Authors for whom lookups remember where their newest ids are; some dozen bytes each.
const HINTED_AUTHORS: usize = 65_536;
/// Authors in the follow lists that lookups remember, over all readers; 8 bytes each.
const HINTED_FOLLOWS: usize = 1_000_000;

/// Definitions and verdicts, shared by all sessions.
#[derive(Debug)]
pub struct Catalogue {
    definitions: Arc<[TimelineDefinition]>,
    classes: StatementClassifier,
    records: Arc<CatalogueRecords>,
    /// The account that checks definitions, if there is one.
    pub service: Option<Arc<ServiceConnection>>,
    lifetime: Duration,
}

/// Findings about definitions, by number: a number never comes to mean another definition.
#[derive(Debug)]
struct CatalogueRecords {
    verdicts: Mutex<DatabaseCache<VerdictEntry>>,
    rights: Mutex<DatabaseCache<Arc<DefinerRights>>>,
    hints: Mutex<LookupHints>,
    /// Whether the server surely has no stored functions, when and at which epoch that was read.
    no_functions: Mutex<Option<(bool, Instant, DefinitionEpoch)>>,
    /// Held while a due check runs.
    check_lock: tokio::sync::Mutex<()>,
    has_logged_unseen: AtomicBool,
    /// Definitions whose databases the server did not list when it was asked.
    unlisted: Mutex<BTreeSet<DefinitionId>>,
    epoch: Arc<AtomicU64>,
}

type DatabaseCache<T> = LruCache<(DefinitionId, Vec<u8>), T>;

#[derive(Debug)]
struct VerdictEntry {
    verdict: Arc<DefinitionVerdict>,
    checked: Instant,
    epoch: DefinitionEpoch,
}

/// Counts statements that may have changed definitions; see [`Catalogue::epoch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionEpoch(u64);

impl From<u64> for DefinitionEpoch {
    fn from(count: u64) -> Self {
        DefinitionEpoch(count)
    }
}

impl DefinitionEpoch {
    /// Returns the number.
    #[must_use]
    pub fn count(self) -> u64 {
        self.0
    }
}

impl Catalogue {
    /// A catalogue without any verdict. `messages`: message tables of feeds, and whether there may be others.
    #[must_use]
    pub fn new(
        definitions: Vec<TimelineDefinition>,
        messages: (Box<[Box<[u8]>]>, bool),
        service: Option<Arc<ServiceConnection>>,
        limits: &ProcessLimits,
    ) -> Self {
        let most = max_verdicts(limits, definitions.len());
        let records = CatalogueRecords {
            verdicts: Mutex::new(LruCache::new(most)),
            rights: Mutex::new(LruCache::new(most)),
            check_lock: tokio::sync::Mutex::new(()),
            no_functions: Mutex::new(None),
            hints: Mutex::new(LookupHints::new(HINTED_AUTHORS, HINTED_FOLLOWS)),
            has_logged_unseen: AtomicBool::new(false),
            unlisted: Mutex::default(),
            epoch: Arc::default(),
        };
        Self::with_records(Arc::new(records), definitions, messages, service, limits)
    }

    /// A catalogue that shares the records of another one. Definitions known there must have the same numbers here.
    #[must_use]
    pub fn from_previous(
        before: &Catalogue,
        definitions: Vec<TimelineDefinition>,
        messages: (Box<[Box<[u8]>]>, bool),
        service: Option<Arc<ServiceConnection>>,
        limits: &ProcessLimits,
    ) -> Self {
        let records = Arc::clone(&before.records);
        let most = max_verdicts(limits, definitions.len());
        lock(&records.verdicts).resize(most);
        lock(&records.rights).resize(most);
        Self::with_records(records, definitions, messages, service, limits)
    }

    fn with_records(
        records: Arc<CatalogueRecords>,
        definitions: Vec<TimelineDefinition>,
        (messages, any): (Box<[Box<[u8]>]>, bool),
        service: Option<Arc<ServiceConnection>>,
        limits: &ProcessLimits,
    ) -> Self {
        let definitions: Arc<[TimelineDefinition]> = definitions.into();
        // The service account checks again every `recheck_ms`; a verdict may outlive one lost round.
        let rounds = if service.is_some() { 3 } else { 1 };
        Catalogue {
            classes: StatementClassifier::new(
                Arc::clone(&definitions),
                CACHED_CLASSES,
                limits.statement_bytes,
            )
            .with_message_tables(messages, any),
            records,
            definitions,
            service,
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(rounds),
        }
    }

    /// Classifies a statement. `no_functions`: the server is known to have no stored functions.
    #[must_use]
    pub fn classify(&self, text: &[u8], no_functions: bool) -> StatementClass {
        self.classes.classify(text, no_functions)
    }

    /// Observations of earlier lookups.
    pub fn hints(&self) -> MutexGuard<'_, LookupHints> {
        lock(&self.records.hints)
    }

    /// Whether the server surely has no stored functions. `None`: that must be queried, since a statement may have made one.
    #[must_use]
    pub fn no_functions(&self) -> Option<bool> {
        let observed = *lock(&self.records.no_functions);
        let (none, ..) = observed.filter(|(_, at, epoch)| self.is_fresh(*at, *epoch))?;
        Some(none)
    }

    /// Records whether the server surely has no stored functions, as queried at an epoch.
    pub fn record_no_functions(&self, none: bool, epoch: DefinitionEpoch) {
        *lock(&self.records.no_functions) = Some((none, clock::now(), epoch));
    }

    /// True while an observation of that time and epoch still holds.
    fn is_fresh(&self, observed_at: Instant, epoch: DefinitionEpoch) -> bool {
        epoch == self.epoch() && clock::since(observed_at) < self.lifetime
    }

    /// The definitions that the settings name.
    pub fn in_use(&self) -> impl Iterator<Item = (DefinitionId, &TimelineDefinition)> {
        let all = (0..).map(DefinitionId).zip(self.definitions());
        all.filter(|(_, definition)| !definition.retired)
    }

    /// Every definition by number, including retired ones.
    #[must_use]
    pub fn definitions(&self) -> &[TimelineDefinition] {
        &self.definitions
    }

    /// The verdict on a definition in a database; `None` if a check is due.
    #[must_use]
    pub fn verdict(&self, number: DefinitionId, database: &[u8]) -> Option<Arc<DefinitionVerdict>> {
        let (verdict, fresh) = self.last_verdict(number, database)?;
        fresh.then_some(verdict)
    }

    /// The last verdict, and whether it is still valid.
    pub fn last_verdict(
        &self,
        number: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<DefinitionVerdict>, bool)> {
        let mut verdicts = lock(&self.records.verdicts);
        let entry = verdicts.get(&(number, database.to_vec()))?;
        let fresh = self.is_fresh(entry.checked, entry.epoch);
        Some((Arc::clone(&entry.verdict), fresh))
    }

    /// What is known of the privileges of the definers of a definition's procedures in a database.
    #[must_use]
    pub fn definer_rights(&self, number: DefinitionId, database: &[u8]) -> Arc<DefinerRights> {
        let mut all = lock(&self.records.rights);
        let new = || Arc::new(DefinerRights::new(number, database));
        Arc::clone(all.get_or_insert((number, database.to_vec()), new))
    }

    /// The current epoch. Read it before a check's first query and record the verdict with it: a later epoch means that a definition may
    /// have changed since.
    #[must_use]
    pub fn epoch(&self) -> DefinitionEpoch {
        DefinitionEpoch(self.records.epoch.load(Ordering::Acquire))
    }

    /// The epoch counter. It must be incremented for a statement that may have changed definitions before any proof covers that statement.
    #[must_use]
    pub fn epochs(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.records.epoch)
    }

    /// Records a verdict, and logs it if it is new or changed.
    pub fn record(
        &self,
        number: DefinitionId,
        database: &[u8],
        verdict: DefinitionVerdict,
        epoch: DefinitionEpoch,
    ) -> Arc<DefinitionVerdict> {
        let verdict = Arc::new(verdict);
        let entry = VerdictEntry {
            verdict: Arc::clone(&verdict),
            checked: clock::now(),
            epoch,
        };
        if let DefinitionVerdict::Accelerate(facts) = &*verdict {
            self.record_no_functions(facts.no_functions, epoch);
        }
        let before = lock(&self.records.verdicts).put((number, database.to_vec()), entry);
        let changed = before.is_none_or(|before| !before.verdict.is_equivalent(&verdict));
        if let (true, Some(definition)) = (changed, number.resolve(&self.definitions)) {
            let name = &definition.name;
            let database = String::from_utf8_lossy(database);
            match &*verdict {
                DefinitionVerdict::Accelerate(facts) if facts.serves_all_forms() => {
                    tracing::info!(
                        "definition {name} in database {database}: accelerated ({facts})"
                    );
                }
                DefinitionVerdict::Accelerate(facts) => {
                    tracing::warn!(
                        "definition {name} in database {database}: accelerated in part ({facts})"
                    );
                }
                DefinitionVerdict::Relay(reason) => {
                    tracing::warn!("definition {name} in database {database}: relayed, {reason}");
                }
            }
        }
        verdict
    }

    /// Logs once that a client's account sees too little of a definition to check it.
    pub fn log_unseen(&self, number: DefinitionId, reason: &RelayReason) {
        if self.records.has_logged_unseen.swap(true, Ordering::Relaxed) {
            return;
        }
        let name = number
            .resolve(&self.definitions)
            .map_or("", |definition| &definition.name);
        tracing::warn!(
            "definition {name}: a client's account cannot check it, its calls are relayed: {reason} \
             (a service account could: --service-user, HEADWATER_SERVICE_USER, service.user)"
        );
    }

    /// Makes every check due: a statement has ended that may have changed a definition. That includes running checks, which may have
    /// queried before it.
    pub fn expire(&self) {
        self.records.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes every check due, and discards what is known of definers' privileges: another server is queried from now on.
    pub fn change_primary(&self) {
        self.expire();
        lock(&self.records.rights).clear();
        if let Some(service) = &self.service {
            service.change_primary();
        }
    }

    /// Records whether the server has listed the databases of a definition.
    pub fn record_listing(&self, number: DefinitionId, is_listed: bool) {
        let mut unlisted = lock(&self.records.unlisted);
        match is_listed {
            true => drop(unlisted.remove(&number)),
            false => drop(unlisted.insert(number)),
        }
    }

    /// Definitions whose databases are still to be listed.
    #[must_use]
    pub fn unlisted(&self) -> BTreeSet<DefinitionId> {
        lock(&self.records.unlisted).clone()
    }

    /// The definitions and databases that have a verdict.
    #[must_use]
    pub fn checked_databases(&self) -> Vec<(DefinitionId, Vec<u8>)> {
        let verdicts = lock(&self.records.verdicts);
        let known = verdicts.iter().map(|(key, _)| key.clone());
        known
            .filter(|(number, _)| self.is_in_use(*number))
            .collect()
    }

    fn is_in_use(&self, number: DefinitionId) -> bool {
        let definition = number.resolve(&self.definitions);
        definition.is_some_and(|own| !own.retired)
    }

    /// Definitions that are accelerated in some database, by the last checks.
    #[must_use]
    pub fn accelerated(&self) -> Vec<DefinitionId> {
        let verdicts = lock(&self.records.verdicts);
        let answered = verdicts.iter().filter_map(|((definition, _), entry)| {
            matches!(&*entry.verdict, DefinitionVerdict::Accelerate(_)).then_some(*definition)
        });
        answered.filter(|number| self.is_in_use(*number)).collect()
    }

    /// The verdict of a due check by the service account. Waits for a check that another session has begun, and takes its verdict.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub async fn check_due(
        &self,
        number: DefinitionId,
        database: &[u8],
    ) -> Result<Arc<DefinitionVerdict>, ServiceError> {
        let _turn = self.records.check_lock.lock().await;
        match self.verdict(number, database) {
            Some(verdict) => Ok(verdict),
            None => self.check(number, database).await,
        }
    }

    /// Checks one definition in one database with the service account.
    ///
    /// # Errors
    /// When there is no service account, or its queries fail.
    pub async fn check(
        &self,
        number: DefinitionId,
        database: &[u8],
    ) -> Result<Arc<DefinitionVerdict>, ServiceError> {
        let service = self.service.as_ref().ok_or(ServiceError::None)?;
        let definition = number
            .resolve(&self.definitions)
            .ok_or(ServiceError::None)?;
        let epoch = self.epoch();
        let verdict = service.check(definition, database).await?;
        Ok(self.record(number, database, verdict, epoch))
    }
}

fn max_verdicts(limits: &ProcessLimits, definitions: usize) -> NonZeroUsize {
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
        let limits = ProcessLimits::default();
        let catalogue = Catalogue::new(
            vec![TimelineDefinition::classic()],
            Default::default(),
            None,
            &limits,
        );
        let refused = || {
            DefinitionVerdict::Relay(RelayReason::NoTable {
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
