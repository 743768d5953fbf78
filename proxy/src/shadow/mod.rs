//! Compares Headwater's answers with the real procedure's: for a share of the served calls the procedure runs too, on a connection of the
//! service account.
//!
//! The two answers are not of one moment, so nothing that they show may have changed in between. The binlog knows every change that was
//! applied from before the first answer until after the second, with a proof of freshness after that. If there was one, a new pair is
//! taken. A difference without one is a fault of Headwater, or an unlogged change: it is logged with both answers, and the definition is
//! relayed from then on.

mod page_pacing;
pub mod procedure_call;

use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use crate::account::error::EXECUTE_DENIED;
use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use crate::binlog::{Binlog, CachedTimeline, PageResidency, ReplicationMark};
use crate::catalogue::MOST_DEFINITIONS;
use crate::clock;
use crate::counter_definition::{CounterDefinition, counter};
use headwater_lookup::lookup::LookupResult;
use headwater_timeline::definition::{DefinitionId, ProcedureForm, TimelineDefinition};
use page_pacing::PageComparisonPacing;

/// The most pending comparisons; further calls are not compared.
const MAX_PENDING: usize = 1_000;
/// The most pairs of answers taken until none changed in between.
const MAX_ATTEMPTS: usize = 10;

/// Results of comparisons (`shadow.rate`): equal, different, impossible.
pub const COMPARED: [CounterDefinition; 3] = [
    counter(
        "shadow_same",
        "comparisons that found equal answers (`shadow.rate`)",
    ),
    counter(
        "shadow_different",
        "comparisons that found a difference (logged)",
    ),
    counter(
        "shadow_unsure",
        "comparisons impossible: rows kept changing, queue full, or `EXECUTE` missing",
    ),
];

/// Decides which calls are compared, and counts the outcomes.
#[derive(Debug)]
pub struct Shadow {
    millionths: AtomicU64,
    /// The settings do not name a rate: the account need not have the privilege.
    by_default: AtomicBool,
    /// Where calls are not compared, since the account lacks it.
    excluded: Mutex<HashSet<(DefinitionId, String)>>,
    calls: AtomicU64,
    queue: mpsc::Sender<ComparedAnswer>,
    distrusted: Vec<AtomicBool>,
    /// A page of cached rows was wrong.
    distrusts_rows: AtomicBool,
    page_pacing: PageComparisonPacing,
    counts: ShadowCounters,
    /// Written with a difference, read for monitoring.
    last_difference: Mutex<Option<ShadowDifference>>,
}

/// An answer that differed from the procedure's.
#[derive(Clone, Debug)]
pub struct ShadowDifference {
    /// When it was found.
    pub at: SystemTime,
    /// The definition's name.
    pub definition: String,
    /// Its database.
    pub database: String,
    /// The call statement.
    pub call: String,
    /// Headwater's answer.
    pub headwater: LookupResult,
    /// The procedure's answer.
    pub procedure: LookupResult,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOutcome {
    /// Both answers are the same.
    Same,
    /// They differ.
    Different,
    /// They could not be compared.
    Unsure,
}

#[derive(Debug, Default)]
struct ShadowCounters {
    same: AtomicU64,
    different: AtomicU64,
    unsure: AtomicU64,
}

impl ShadowCounters {
    fn add(&self, outcome: ComparisonOutcome) {
        let count = match outcome {
            ComparisonOutcome::Same => &self.same,
            ComparisonOutcome::Different => &self.different,
            ComparisonOutcome::Unsure => &self.unsure,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// An answer to be compared.
#[derive(Debug)]
pub struct ComparedAnswer {
    /// The definition's number.
    pub definition: DefinitionId,
    /// Its cached timeline.
    pub timeline: Arc<CachedTimeline>,
    /// Which procedure.
    pub form: ProcedureForm,
    /// The reader.
    pub reader: u64,
    /// The highest id.
    pub bound: Option<u64>,
    /// A mark taken before the answer was begun.
    pub mark: ReplicationMark,
    /// The answer sent to the client.
    pub answer: LookupResult,
}

/// Pending comparisons: passed to [`run`].
#[derive(Debug)]
pub struct ShadowInbox {
    shadow: Arc<Shadow>,
    account: UpstreamAccount,
    pending: mpsc::Receiver<ComparedAnswer>,
}

impl Shadow {
    /// Compares this share of the calls, as the service account. The flag: only where the account may run the procedures.
    #[must_use]
    pub fn new(
        (rate, unasked): (f64, bool),
        account: UpstreamAccount,
    ) -> (Arc<Shadow>, ShadowInbox) {
        let (queue, pending) = mpsc::channel(MAX_PENDING);
        let shadow = Shadow {
            millionths: AtomicU64::new(millionths(rate)),
            by_default: AtomicBool::new(unasked),
            excluded: Mutex::default(),
            calls: AtomicU64::new(0),
            queue,
            distrusted: (0..MOST_DEFINITIONS)
                .map(|_| AtomicBool::new(false))
                .collect(),
            distrusts_rows: AtomicBool::new(false),
            page_pacing: PageComparisonPacing::default(),
            counts: ShadowCounters::default(),
            last_difference: Mutex::default(),
        };
        let shadow = Arc::new(shadow);
        let inbox = ShadowInbox {
            shadow: Arc::clone(&shadow),
            account,
            pending,
        };
        (shadow, inbox)
    }

    /// Sets the share of the calls to compare.
    pub fn set_rate(&self, (rate, unasked): (f64, bool)) {
        self.millionths.store(millionths(rate), Ordering::Relaxed);
        self.by_default.store(unasked, Ordering::Relaxed);
    }

    /// Counts of comparisons by outcome.
    #[must_use]
    pub fn compared(&self) -> [(&'static str, u64); 3] {
        let ShadowCounters {
            same,
            different,
            unsure,
        } = &self.counts;
        [("same", same), ("different", different), ("unsure", unsure)]
            .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    /// The last call whose answer differed.
    #[must_use]
    pub fn last_difference(&self) -> Option<ShadowDifference> {
        let last = self
            .last_difference
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }

    /// Counts a call; true if it is to be compared.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        let millionths = self.millionths.load(Ordering::Relaxed);
        let before = self.calls.fetch_add(1, Ordering::Relaxed) * millionths;
        before / 1_000_000 != (before + millionths) / 1_000_000
    }

    /// True if the settings do not name a rate.
    #[must_use]
    pub fn is_by_default(&self) -> bool {
        self.by_default.load(Ordering::Relaxed)
    }

    /// Excludes calls of this definition in this database: the account may not run its procedures.
    pub fn exclude(&self, definition: DefinitionId, database: &str) {
        self.excluded().insert((definition, database.to_owned()));
    }

    /// False if this definition is excluded in this database.
    #[must_use]
    pub fn may_compare(&self, definition: DefinitionId, database: &str) -> bool {
        !self.excluded().contains(&(definition, database.to_owned()))
    }

    /// Tries excluded definitions again: the account may have got the privilege.
    pub fn clear_exclusions(&self) {
        self.excluded().clear();
    }

    fn excluded(&self) -> std::sync::MutexGuard<'_, HashSet<(DefinitionId, String)>> {
        self.excluded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues an answer; counts it as unsure if the queue is full.
    pub fn compare(&self, answer: ComparedAnswer) {
        if self.queue.try_send(answer).is_err() {
            self.counts.add(ComparisonOutcome::Unsure);
        }
    }

    /// True once an answer to a call of this definition was wrong.
    #[must_use]
    pub fn distrusts(&self, definition: DefinitionId) -> bool {
        let flag = self.distrusted.get(definition.0);
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// True if the current page of cached rows is to be compared. `takes`: the server's expected time for its statement. Without a rate in
    /// the settings, clients do not wait long for comparisons.
    #[must_use]
    pub fn is_page_sampled(&self, takes: impl FnOnce() -> Option<Duration>) -> bool {
        self.is_sampled()
            && (!self.is_by_default() || self.page_pacing.allows(takes(), clock::now()))
    }

    /// Records a comparison of a page of cached rows with the server's reply, which took this long.
    pub fn record_page(&self, outcome: ComparisonOutcome, took: Duration) {
        self.page_pacing.record(took, clock::now());
        if outcome == ComparisonOutcome::Different {
            self.distrusts_rows.store(true, Ordering::Relaxed);
        }
        self.counts.add(outcome);
    }

    /// True once a page of cached rows was wrong.
    #[must_use]
    pub fn distrusts_rows(&self) -> bool {
        self.distrusts_rows.load(Ordering::Relaxed)
    }

    /// Serves distrusted definitions, and caches rows, again; returns how many there were.
    ///
    /// Memory of that time must not be trusted: empty it first.
    pub fn restore_trust(&self) -> usize {
        let mut lifted = 0;
        for flag in self.flags() {
            lifted += usize::from(flag.swap(false, Ordering::Relaxed));
        }
        lifted
    }

    /// True while a definition is relayed for a wrong answer, or no rows are cached for one.
    #[must_use]
    pub fn distrusts_any(&self) -> bool {
        self.flags().any(|flag| flag.load(Ordering::Relaxed))
    }

    fn flags(&self) -> impl Iterator<Item = &AtomicBool> {
        self.distrusted.iter().chain([&self.distrusts_rows])
    }

    /// Every counter as `name=value`, in the order of [`COMPARED`].
    #[must_use]
    pub fn summary(&self) -> String {
        let ShadowCounters {
            same,
            different,
            unsure,
        } = &self.counts;
        let values = COMPARED.iter().zip([same, different, unsure]);
        let named = values
            .map(|(counter, value)| format!("{}={}", counter.name, value.load(Ordering::Relaxed)));
        named.collect::<Vec<_>>().join(" ")
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn millionths(rate: f64) -> u64 {
    (rate.clamp(0.0, 1.0) * 1e6).round() as u64
}

/// Finds a definition by its number, as it is at the time.
pub type DefinitionSource<'s> =
    Box<dyn Fn(DefinitionId) -> Option<TimelineDefinition> + Send + Sync + 's>;

/// Runs comparisons forever, with the definitions current at the time.
///
/// Boxed, so that no other package compiles it again.
pub fn run(
    binlog: Arc<Binlog>,
    definition_of: DefinitionSource<'_>,
    inbox: ShadowInbox,
) -> BoxFuture<'_, ()> {
    Box::pin(run_comparisons(binlog, definition_of, inbox))
}

async fn run_comparisons(
    binlog: Arc<Binlog>,
    definition_of: DefinitionSource<'_>,
    mut inbox: ShadowInbox,
) {
    let shadow = Arc::clone(&inbox.shadow);
    let mut cached = None;
    let mut warned = None;
    while let Some(compared) = inbox.pending.recv().await {
        let Some(definition) = definition_of(compared.definition) else {
            continue;
        };
        if shadow.distrusts(compared.definition) {
            continue;
        }
        let number = compared.definition;
        let timeline = Arc::clone(&compared.timeline);
        let verdict = match connection(&mut cached, &inbox.account).await {
            Ok(conn) => compare_answer(&binlog, &definition, compared, conn).await,
            Err(error) => Err(error),
        };
        let outcome = match verdict {
            Ok(ShadowVerdict::Same) => ComparisonOutcome::Same,
            Ok(ShadowVerdict::Unsure) => ComparisonOutcome::Unsure,
            Ok(ShadowVerdict::OtherServer) => {
                // The next connection may lead to the server that memory follows.
                cached = None;
                ComparisonOutcome::Unsure
            }
            Ok(ShadowVerdict::Different(text, difference)) => {
                tracing::error!("definition {}: {text}", definition.name);
                tracing::error!(
                    "definition {} is relayed from now on. Either rows were changed where the server's log does not tell it (look for \
                     sql_log_bin = 0), or Headwater has a fault (please report the two answers). SIGHUP empties memory and has \
                     calls answered again",
                    definition.name
                );
                *shadow
                    .last_difference
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(*difference);
                if let Some(flag) = shadow.distrusted.get(number.0) {
                    flag.store(true, Ordering::Relaxed);
                }
                ComparisonOutcome::Different
            }
            Err(error) if shadow.is_by_default() && is_denied(&error) => {
                shadow.exclude(number, timeline.database());
                continue;
            }
            Err(error) => {
                cached = None;
                let text = error.to_string();
                if warned.as_ref() != Some(&text) {
                    tracing::warn!("answers cannot be compared (shadow.rate): {text}");
                    warned = Some(text);
                }
                ComparisonOutcome::Unsure
            }
        };
        shadow.counts.add(outcome);
    }
}

fn is_denied(error: &AccountError) -> bool {
    let code = error.code();
    code.is_some_and(|code| EXECUTE_DENIED.contains(&code))
}

/// The connection on which the procedure runs, opened on demand and again after a loss.
async fn connection<'a>(
    cached: &'a mut Option<AccountConnection>,
    account: &UpstreamAccount,
) -> Result<&'a mut AccountConnection, AccountError> {
    if cached.as_mut().is_some_and(|conn| !conn.is_open()) {
        *cached = None;
    }
    if cached.is_none() {
        *cached = Some(procedure_call::connect(account, ConnectionPurpose::Comparisons).await?);
    }
    cached.as_mut().ok_or(AccountError::Unexpected)
}

enum ShadowVerdict {
    Same,
    /// It changed all the time.
    Unsure,
    /// The procedure would run on another server than the one that memory follows.
    OtherServer,
    /// For the log, and for monitoring.
    Different(String, Box<ShadowDifference>),
}

async fn compare_answer(
    binlog: &Binlog,
    definition: &TimelineDefinition,
    compared: ComparedAnswer,
    conn: &mut AccountConnection,
) -> Result<ShadowVerdict, AccountError> {
    let ComparedAnswer {
        timeline,
        form,
        reader,
        bound,
        mut mark,
        mut answer,
        ..
    } = compared;
    if !binlog.leads_to_followed_server(conn).await? {
        return Ok(ShadowVerdict::OtherServer);
    }
    for _ in 0..MAX_ATTEMPTS {
        let real =
            procedure_call::run_procedure(definition, &timeline, form, (reader, bound), conn)
                .await?;
        if procedure_call::has_same_rows(form, &answer, &real) {
            return Ok(ShadowVerdict::Same);
        }
        if binlog.is_timeline_unchanged(&timeline, mark, reader).await {
            let arguments = (reader, bound);
            let text = procedure_call::difference_text(
                definition, &timeline, form, arguments, &answer, &real,
            );
            let difference = ShadowDifference {
                at: SystemTime::now(),
                definition: definition.name.clone(),
                database: timeline.database().to_owned(),
                call: procedure_call::call_statement(definition, form, reader, bound),
                headwater: answer,
                procedure: real,
            };
            return Ok(ShadowVerdict::Different(text, Box::new(difference)));
        }
        let n = usize::try_from(definition.n).unwrap_or(usize::MAX);
        let Some(next) = binlog.mark() else {
            break;
        };
        mark = next;
        let wanted = (reader, bound, n);
        let page = binlog.page(&timeline, None, wanted, true, PageResidency::Resident);
        let Some(page) = page.await else {
            break;
        };
        answer = LookupResult::from_page(page, form);
    }
    Ok(ShadowVerdict::Unsure)
}
