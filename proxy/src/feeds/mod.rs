//! The feeds: whether each can be served from a database, and the templates of their statements.
//!
//! A session looks up a text's template and never waits. The service account classifies unknown texts in the background: until then their
//! statements are relayed.

mod discovery;
mod feed_database;
mod feed_overview;
mod feed_worker;
mod refusal;
mod relay_cause;
mod tallies;
mod unmatched_text;

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use lru::LruCache;
use tokio::sync::{mpsc, watch};

use crate::binlog::{Binlog, CachedTimeline, RowsSection};
use crate::catalogue::DefinitionEpoch;
use crate::limits::ProcessLimits;
use discovery::DiscoveryOutcome;
pub use discovery::FeedDiscoveryMode;
pub use feed_database::row_source;
use feed_database::{FeedAvailability, FeedDatabase};
pub use feed_overview::{FeedOverview, TemplateOverview};
use feed_worker::FeedTask;
pub use feed_worker::run;
use headwater_feed::normalization::{normalized_text, shortened};
use headwater_feed::outcome_counts::OutcomeCounts;
use headwater_feed::template::OutcomeCounters;
use headwater_feed::words::StatementWords;
use headwater_feed::{FeedDefinition, FeedId, NarrowingRefusal, Template};
use headwater_session::feed_decision::metadata_samples::MetadataSamples;
use headwater_session::feed_decision::{FeedRelayReason, TemplateLookup};
use headwater_sql::{NameCase, contains_name, hex_literal};
use refusal::TemplateRefusal;
pub use relay_cause::RelayCause;
use unmatched_text::UnmatchedTemplate;
pub use unmatched_text::UnmatchedTextKind;

/// The most texts waiting to be classified; others are enqueued when they come again.
const MAX_PENDING_TASKS: usize = 1_000;

/// Distance between the first feed numbers of two registries: reloaded settings make a new one.
const NUMBER_STRIDE: usize = 1 << 20;

/// The feeds, shared by all sessions.
#[derive(Debug)]
pub struct FeedRegistry {
    /// The number of the first feed: a template of another registry names none of these.
    first_number: usize,
    /// What to do about feeds that the settings do not name.
    discovery_mode: FeedDiscoveryMode,
    /// Which tables' rows are cached.
    rows_section: RowsSection,
    case: NameCase,
    /// The feeds' message tables, by which a text is recognised.
    messages: RwLock<Vec<String>>,
    binlog: Arc<Binlog>,
    metadata_samples: MetadataSamples,
    state: Mutex<FeedRegistryState>,
    tasks: mpsc::Sender<FeedTask>,
    /// True once the databases that hold feeds' messages were checked.
    pub databases_checked: watch::Sender<bool>,
    /// How long a check of tables is valid.
    lifetime: Duration,
    most_databases: usize,
}

#[derive(Debug)]
struct FeedRegistryState {
    feeds: Vec<RegisteredFeed>,
    templates: LruCache<Box<[u8]>, TemplateEntry>,
    /// Texts that name no feed's messages and resemble those of feeds.
    unmatched: LruCache<Box<[u8]>, UnmatchedTemplate>,
    /// Feeds suggested in the log.
    suggested: Vec<SuggestedFeed>,
    databases: HashMap<Vec<u8>, FeedDatabase>,
    /// Why the service account's last check of tables failed.
    last_failure: Option<String>,
    /// Tables, by database, that were logged as invisible to the service account.
    logged_unseen: BTreeSet<(String, String)>,
}

/// A discovered feed that is not served.
#[derive(Clone, Debug)]
struct SuggestedFeed {
    definition: FeedDefinition,
    database: String,
    /// What must be fixed first.
    obstacles: String,
}

#[derive(Clone, Debug)]
struct RegisteredFeed {
    definition: Arc<FeedDefinition>,
    /// It was discovered; the settings do not name it.
    is_discovered: bool,
    counted: Arc<OutcomeCounts>,
}

/// What is known of a template.
#[derive(Debug)]
struct TemplateEntry {
    shown: String,
    counted: Arc<OutcomeCounts>,
    status: TemplateStatus,
}

/// The state of its classification.
#[derive(Clone, Debug)]
enum TemplateStatus {
    Pending,
    Known {
        version: u64,
        outcome: Result<Arc<Template>, TemplateRefusal>,
    },
}

/// Pending tasks: passed to [`run`].
#[derive(Debug)]
pub struct FeedInbox(mpsc::Receiver<FeedTask>);

impl FeedRegistry {
    /// Feeds that are checked once [`run`] runs. Counters of feeds of the same names, and of templates, continue those of `before`.
    #[must_use]
    pub fn new(
        definitions: Vec<FeedDefinition>,
        (auto, rows): (FeedDiscoveryMode, RowsSection),
        case: NameCase,
        binlog: Arc<Binlog>,
        limits: &ProcessLimits,
        before: Option<&FeedRegistry>,
    ) -> (Arc<FeedRegistry>, FeedInbox) {
        let (work, inbox) = mpsc::channel(MAX_PENDING_TASKS);
        let most = NonZeroUsize::new(limits.templates).unwrap_or(NonZeroUsize::MIN);
        let messages = definitions.iter().map(table_of).collect();
        let mut feeds: Vec<RegisteredFeed> = definitions
            .into_iter()
            .map(RegisteredFeed::from_settings)
            .collect();
        let mut templates = LruCache::new(most);
        if let Some(before) = before {
            let before = before.state();
            for feed in &mut feeds {
                let mut known = before.feeds.iter();
                let known = known.find(|own| own.definition.name == feed.definition.name);
                if let Some(known) = known {
                    feed.counted = Arc::clone(&known.counted);
                }
            }
            // In the order of use: the most recent one last.
            for (key, entry) in before.templates.iter().rev() {
                templates.put(key.clone(), entry.reset());
            }
        }
        let feeds = FeedRegistry {
            first_number: before.map_or(0, |before| {
                before.first_number.saturating_add(NUMBER_STRIDE)
            }),
            discovery_mode: auto,
            rows_section: rows,
            case,
            messages: RwLock::new(messages),
            binlog,
            metadata_samples: MetadataSamples::default(),
            state: Mutex::new(FeedRegistryState {
                feeds,
                templates,
                unmatched: LruCache::new(most),
                suggested: Vec::new(),
                databases: HashMap::new(),
                last_failure: None,
                logged_unseen: BTreeSet::new(),
            }),
            tasks: work,
            databases_checked: watch::Sender::new(false),
            // A verdict may outlive a lost round.
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(3),
            most_databases: limits.databases,
        };
        (Arc::new(feeds), FeedInbox(inbox))
    }

    /// The message tables of feeds, by which a text is recognised.
    #[must_use]
    pub fn messages(definitions: &[FeedDefinition]) -> Box<[Box<[u8]>]> {
        let table = |definition| table_of(definition).into_bytes().into();
        definitions.iter().map(table).collect()
    }

    /// True if there is a feed.
    #[must_use]
    pub fn has_feeds(&self) -> bool {
        let messages = self.messages.read();
        !messages.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// True once every database was checked.
    #[must_use]
    pub fn has_checked_databases(&self) -> bool {
        *self.databases_checked.borrow()
    }

    /// True if a feed is served in some database.
    #[must_use]
    pub fn serves_any(&self) -> bool {
        let state = self.state();
        let mut databases = state.databases.values();
        let feeds = || 0..state.feeds.len();
        databases.any(|known| {
            feeds().any(|feed| {
                known
                    .availability(feed)
                    .is_some_and(FeedAvailability::is_served)
            })
        })
    }

    /// Each feed's name and outcome counters.
    #[must_use]
    pub fn counted(&self) -> Vec<(String, Arc<OutcomeCounts>)> {
        let state = self.state();
        let feeds = state.feeds.iter();
        feeds
            .map(|feed| (feed.definition.name.clone(), Arc::clone(&feed.counted)))
            .collect()
    }

    /// True if a text seems to name a feed's messages; a cheap test.
    #[must_use]
    pub fn names_feed_messages(&self, text: &[u8]) -> bool {
        let messages = self.messages.read();
        let messages = messages.unwrap_or_else(PoisonError::into_inner);
        let mut tables = messages.iter();
        tables.any(|table| contains_name(text, table.as_bytes()))
    }

    /// Pending metadata samples.
    #[must_use]
    pub fn metadata_samples(&self) -> &MetadataSamples {
        &self.metadata_samples
    }

    /// Clears the templates of a registry that gets no new ones: later lookups treat each text as new.
    pub fn retire(&self) {
        let mut state = self.state();
        state.templates.clear();
        state.unmatched.clear();
    }

    fn state(&self) -> MutexGuard<'_, FeedRegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up the template of a text sent in a database. Never waits; unknown texts are enqueued.
    #[must_use]
    pub fn template(
        &self,
        database: &[u8],
        words: &StatementWords,
        text: &[u8],
        epoch: DefinitionEpoch,
    ) -> TemplateLookup {
        let mut state = self.state();
        let FeedRegistryState {
            templates,
            databases,
            feeds,
            ..
        } = &mut *state;
        let known = databases.get(database);
        let Some(known) = known.filter(|known| known.is_fresh(epoch, self.lifetime)) else {
            drop(state);
            self.enqueue(FeedTask::Database(database.to_vec()));
            return TemplateLookup::Unserved(FeedRelayReason::Unchecked, None);
        };
        let current = known.version();
        let key = template_key(database, words);
        let tallies;
        let why = match templates.get_mut(&*key) {
            Some(TemplateEntry {
                status: is,
                counted,
                ..
            }) => {
                let mut counts = OutcomeCounters {
                    template: Arc::clone(counted),
                    feed: None,
                };
                let why = match is {
                    TemplateStatus::Pending => Some(FeedRelayReason::New),
                    TemplateStatus::Known {
                        version,
                        outcome: is,
                    } if *version == current => match is {
                        Ok(template) => {
                            let at = template.feed.0.checked_sub(self.first_number);
                            let served = at.and_then(|at| known.availability(at));
                            if !served.is_some_and(FeedAvailability::is_blocked) {
                                return TemplateLookup::Ready(Arc::clone(template));
                            }
                            let feed = at.and_then(|at| feeds.get(at));
                            counts.feed = feed.map(|feed| Arc::clone(&feed.counted));
                            Some(FeedRelayReason::Refused)
                        }
                        Err(refusal) => {
                            let feed = refusal.feed().and_then(|at| feeds.get(at));
                            counts.feed = feed.map(|feed| Arc::clone(&feed.counted));
                            Some(refusal.why())
                        }
                    },
                    TemplateStatus::Known { .. } => {
                        *is = TemplateStatus::Pending;
                        None
                    }
                };
                tallies = Some(counts);
                why
            }
            None => {
                let entry = TemplateEntry::new(text);
                tallies = Some(OutcomeCounters {
                    template: Arc::clone(&entry.counted),
                    feed: None,
                });
                templates.put(key.clone(), entry);
                None
            }
        };
        drop(state);
        if let Some(why) = why {
            return TemplateLookup::Unserved(why, tallies);
        }
        let work = FeedTask::Template {
            key: key.clone(),
            database: database.to_vec(),
            text: text.to_vec(),
        };
        if !self.enqueue(work) {
            self.state().templates.pop(&*key);
        }
        TemplateLookup::Unserved(FeedRelayReason::New, tallies)
    }

    fn log_changes(&self) {
        let suspension = self.binlog.suspension();
        let mut state = self.state();
        let FeedRegistryState {
            feeds, databases, ..
        } = &mut *state;
        for known in databases.values_mut() {
            known.log_changes(feeds, suspension.as_ref());
        }
    }

    fn enqueue(&self, work: FeedTask) -> bool {
        self.tasks.try_send(work).is_ok()
    }

    /// The cached timeline of a feed's messages.
    #[must_use]
    pub fn cached_timeline(&self, feed: FeedId, database: &str) -> Option<Arc<CachedTimeline>> {
        let feed = feed.0.checked_sub(self.first_number)?;
        let state = self.state();
        match state
            .databases
            .get(database.as_bytes())?
            .availability(feed)?
        {
            FeedAvailability::Available {
                timeline: place, ..
            } => place.clone(),
            FeedAvailability::Obstructed(_) | FeedAvailability::Elsewhere => None,
        }
    }

    /// Enqueues a check of every database: tables may have changed.
    pub fn refresh(&self) {
        for database in self.databases() {
            self.enqueue(FeedTask::Database(database));
        }
    }

    fn databases(&self) -> Vec<Vec<u8>> {
        self.state().databases.keys().cloned().collect()
    }
}

impl FeedRegistryState {
    /// The feed with this number; `first`: the number of the first feed.
    fn feed(&self, feed: FeedId, first: usize) -> Option<&RegisteredFeed> {
        self.feeds.get(feed.0.checked_sub(first)?)
    }
}

impl RegisteredFeed {
    fn from_settings(definition: FeedDefinition) -> RegisteredFeed {
        RegisteredFeed {
            definition: Arc::new(definition),
            is_discovered: false,
            counted: Arc::default(),
        }
    }
}

impl TemplateEntry {
    /// The same entry, to be classified again when its text comes.
    fn reset(&self) -> TemplateEntry {
        TemplateEntry {
            shown: self.shown.clone(),
            counted: Arc::clone(&self.counted),
            status: TemplateStatus::Known {
                // No tables have this version.
                version: u64::MAX,
                outcome: Err(NarrowingRefusal::Names.into()),
            },
        }
    }

    fn new(text: &[u8]) -> TemplateEntry {
        TemplateEntry {
            shown: shortened(&normalized_text(text)),
            counted: Arc::default(),
            status: TemplateStatus::Pending,
        }
    }
}

fn table_of(definition: &FeedDefinition) -> String {
    definition.message.table.clone()
}

/// Lists the databases that hold a feed's messages, at most `limit`.
#[must_use]
pub fn databases_query(definition: &FeedDefinition, limit: usize) -> String {
    format!(
        "SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = {} ORDER BY TABLE_SCHEMA LIMIT {limit}",
        hex_literal(&definition.message.table)
    )
}

/// The digest of a statement's form, shown in the log and in `SHOW HEADWATER STATEMENTS`: the same after a restart (FNV-1a).
#[must_use]
pub fn digest(database: &[u8], words: &StatementWords) -> u64 {
    digest_of(&template_key(database, words))
}

fn digest_of(key: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    key.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A digest as displayed.
#[must_use]
pub fn hex_digest(digest: u64) -> String {
    format!("{digest:016x}")
}

/// The key of a template: its words, in a database.
fn template_key(database: &[u8], words: &StatementWords) -> Box<[u8]> {
    [database, &[0], &words.key].concat().into()
}
