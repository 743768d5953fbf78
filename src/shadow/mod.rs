//! Has the real procedure look over Headwater's shoulder: for a share of the owned calls it runs as well, on a connection of
//! the service account, and its answer is compared.
//!
//! The two answers are not given at one moment. Between them nothing may have happened to what they tell of: the binlog
//! names every change that was applied from before the first answer until after the second one, with a proof of
//! freshness behind that. Where there was one, a new pair is taken. A difference without one is a fault of
//! Headwater, or a change that no log tells of: it is logged with both answers, and the definition is relayed from then on.

mod page_pacing;
pub(crate) mod procedure_call;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use crate::binlog::{Binlog, CachedTimeline, PageResidency, ReplicationMark};
use crate::catalogue::MOST_DEFINITIONS;
use crate::clock;
use crate::session::session_counters::COMPARED;
use crate::source::lookup::LookupResult;
use crate::timeline::definition::{DefinitionId, ProcedureForm, TimelineDefinition};
use page_pacing::PageComparisonPacing;

/// Comparisons that wait; calls beyond them are not compared.
const MAX_PENDING: usize = 1_000;
/// Pairs of answers that are taken until one has seen no change.
const MAX_ATTEMPTS: usize = 10;

/// Decides which calls are compared, and knows how that went.
#[derive(Debug)]
pub struct Shadow {
    /// Of a million calls so many are compared.
    millionths: AtomicU64,
    /// Nobody asked for it: the account need not have the right.
    by_default: AtomicBool,
    /// Where calls are not compared for want of that.
    excluded: Mutex<HashSet<(DefinitionId, String)>>,
    calls: AtomicU64,
    queue: mpsc::Sender<ComparedAnswer>,
    distrusted: Vec<AtomicBool>,
    /// A page of kept rows was wrong.
    distrusts_rows: AtomicBool,
    page_pacing: PageComparisonPacing,
    counts: ShadowCounters,
    /// Written with a difference, and read by those who watch.
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
    /// The call.
    pub call: String,
    /// What Headwater answered.
    pub headwater: LookupResult,
    /// What the procedure did.
    pub procedure: LookupResult,
}

/// How a comparison went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOutcome {
    /// Both are the same.
    Same,
    /// They are not.
    Different,
    /// They could not be compared.
    Unsure,
}

/// How comparisons went.
#[derive(Debug, Default)]
struct ShadowCounters {
    same: AtomicU64,
    different: AtomicU64,
    unsure: AtomicU64,
}

impl ShadowCounters {
    fn add(&self, went: ComparisonOutcome) {
        let count = match went {
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
    /// Where its memory is.
    pub timeline: Arc<CachedTimeline>,
    /// Which procedure.
    pub form: ProcedureForm,
    /// Whose timeline.
    pub reader: u64,
    /// Up to which id.
    pub bound: Option<u64>,
    /// From before the answer was begun.
    pub mark: ReplicationMark,
    /// What the client was told.
    pub answer: LookupResult,
}

/// What compares: given to [`run`].
#[derive(Debug)]
pub struct ShadowInbox {
    shadow: Arc<Shadow>,
    account: UpstreamAccount,
    pending: mpsc::Receiver<ComparedAnswer>,
}

impl Shadow {
    /// Compares this share of the calls, as the service account; `by_default`: where that may run the procedures.
    #[must_use]
    pub fn new(
        (rate, unasked): (f64, bool),
        account: UpstreamAccount,
    ) -> (Arc<Shadow>, ShadowInbox) {
        let (asks, asked) = mpsc::channel(MAX_PENDING);
        let shadow = Shadow {
            millionths: AtomicU64::new(millionths(rate)),
            by_default: AtomicBool::new(unasked),
            excluded: Mutex::default(),
            calls: AtomicU64::new(0),
            queue: asks,
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
            pending: asked,
        };
        (shadow, inbox)
    }

    /// Compares this share of the calls from now on.
    pub fn set_rate(&self, (rate, unasked): (f64, bool)) {
        self.millionths.store(millionths(rate), Ordering::Relaxed);
        self.by_default.store(unasked, Ordering::Relaxed);
    }

    /// How often comparisons went how.
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

    /// True if the call that is answered now is one to compare.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        let millionths = self.millionths.load(Ordering::Relaxed);
        let before = self.calls.fetch_add(1, Ordering::Relaxed) * millionths;
        before / 1_000_000 != (before + millionths) / 1_000_000
    }

    /// True where nobody asked for comparisons.
    #[must_use]
    pub fn is_by_default(&self) -> bool {
        self.by_default.load(Ordering::Relaxed)
    }

    /// Calls of this definition in this database are not compared: the account may not run its procedures.
    pub fn exclude(&self, definition: DefinitionId, database: &str) {
        self.excluded().insert((definition, database.to_owned()));
    }

    /// Whether calls are, of those that are chosen.
    #[must_use]
    pub fn may_compare(&self, definition: DefinitionId, database: &str) -> bool {
        !self.excluded().contains(&(definition, database.to_owned()))
    }

    /// The account may have been given the right: it is tried again.
    pub fn clear_exclusions(&self) {
        self.excluded().clear();
    }

    fn excluded(&self) -> std::sync::MutexGuard<'_, HashSet<(DefinitionId, String)>> {
        self.excluded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an answer compared.
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

    /// True if the page of kept rows that was made now is one to compare; `takes`: how long the server takes for its statement, as far as
    /// is known. Where nobody asked for that, nobody waits for it long.
    #[must_use]
    pub fn is_page_sampled(&self, takes: impl FnOnce() -> Option<Duration>) -> bool {
        self.is_sampled()
            && (!self.is_by_default() || self.page_pacing.allows(takes(), clock::now()))
    }

    /// A page of kept rows was compared with the server's reply, which took so long.
    pub fn record_page(&self, went: ComparisonOutcome, took: Duration) {
        self.page_pacing.record(took, clock::now());
        if went == ComparisonOutcome::Different {
            self.distrusts_rows.store(true, Ordering::Relaxed);
        }
        self.counts.add(went);
    }

    /// True once a page of kept rows was wrong.
    #[must_use]
    pub fn distrusts_rows(&self) -> bool {
        self.distrusts_rows.load(Ordering::Relaxed)
    }

    /// Has definitions be answered again whose answers differed, and rows be kept; returns how many there were.
    ///
    /// What memory held then is not to be trusted: it has to be emptied before.
    pub fn restore_trust(&self) -> usize {
        let mut lifted = 0;
        for flag in self.flags() {
            lifted += usize::from(flag.swap(false, Ordering::Relaxed));
        }
        lifted
    }

    /// True while a definition is relayed for an answer that differed, or no rows are kept.
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

/// Of a million calls so many.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn millionths(rate: f64) -> u64 {
    (rate.clamp(0.0, 1.0) * 1e6).round() as u64
}

/// Compares for good, by the definitions as they are then.
pub async fn run(
    binlog: Arc<Binlog>,
    definition_of: impl Fn(DefinitionId) -> Option<TimelineDefinition>,
    mut inbox: ShadowInbox,
) {
    let shadow = Arc::clone(&inbox.shadow);
    let mut kept = None;
    let mut said = None;
    while let Some(compared) = inbox.pending.recv().await {
        let Some(definition) = definition_of(compared.definition) else {
            continue;
        };
        if shadow.distrusts(compared.definition) {
            continue;
        }
        let number = compared.definition;
        let place = Arc::clone(&compared.timeline);
        let judged = match connection(&mut kept, &inbox.account).await {
            Ok(conn) => compare_answer(&binlog, &definition, compared, conn).await,
            Err(error) => Err(error),
        };
        let went = match judged {
            Ok(ShadowVerdict::Same) => ComparisonOutcome::Same,
            Ok(ShadowVerdict::Unsure) => ComparisonOutcome::Unsure,
            Ok(ShadowVerdict::OtherServer) => {
                // The next connection may lead to where memory is of.
                kept = None;
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
                shadow.exclude(number, place.database());
                continue;
            }
            Err(error) => {
                kept = None;
                let text = error.to_string();
                if said.as_ref() != Some(&text) {
                    tracing::warn!("answers cannot be compared (shadow.rate): {text}");
                    said = Some(text);
                }
                ComparisonOutcome::Unsure
            }
        };
        shadow.counts.add(went);
    }
}

/// True where the account may not run the procedure.
fn is_denied(error: &AccountError) -> bool {
    let code = error.code();
    code.is_some_and(|code| procedure_call::EXECUTE_DENIED.contains(&code))
}

/// The connection on which the procedure runs, made when it is needed and again when it was lost.
async fn connection<'a>(
    kept: &'a mut Option<AccountConnection>,
    account: &UpstreamAccount,
) -> Result<&'a mut AccountConnection, AccountError> {
    if kept.as_mut().is_some_and(|conn| !conn.is_open()) {
        *kept = None;
    }
    if kept.is_none() {
        *kept = Some(procedure_call::connect(account, ConnectionPurpose::Comparisons).await?);
    }
    kept.as_mut().ok_or(AccountError::Unexpected)
}

enum ShadowVerdict {
    Same,
    /// It changed all the time.
    Unsure,
    /// The procedure would run on another server than the one that memory is of.
    OtherServer,
    /// For the log, and for those who watch.
    Different(String, Box<ShadowDifference>),
}

async fn compare_answer(
    binlog: &Binlog,
    definition: &TimelineDefinition,
    compared: ComparedAnswer,
    conn: &mut AccountConnection,
) -> Result<ShadowVerdict, AccountError> {
    let ComparedAnswer {
        timeline: place,
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
            procedure_call::run_procedure(definition, &place, form, (reader, bound), conn).await?;
        if procedure_call::has_same_rows(form, &answer, &real) {
            return Ok(ShadowVerdict::Same);
        }
        if binlog.is_timeline_unchanged(&place, mark, reader).await {
            let asked = (reader, bound);
            let text =
                procedure_call::difference_text(definition, &place, form, asked, &answer, &real);
            let difference = ShadowDifference {
                at: SystemTime::now(),
                definition: definition.name.clone(),
                database: place.database().to_owned(),
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
        let page = binlog.page(&place, None, wanted, true, PageResidency::Resident);
        let Some(page) = page.await else {
            break;
        };
        answer = LookupResult::from_page(page, form);
    }
    Ok(ShadowVerdict::Unsure)
}
