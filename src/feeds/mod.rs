//! The feeds that the settings name: whether each can be served from a database, and the templates of their statements.
//!
//! A session asks for a text's template and is answered at once. What is not known yet is found out beside it, by the service account:
//! the statement that came first is relayed.

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
use crate::feed::normalization::{normalized_text, shortened};
use crate::feed::outcome_counts::OutcomeCounts;
use crate::feed::template::OutcomeCounters;
use crate::feed::words::StatementWords;
use crate::feed::{FeedDefinition, FeedId, NarrowingRefusal, Template};
use crate::limits::ProcessLimits;
use crate::session::feed_decision::metadata_samples::MetadataSamples;
use crate::session::feed_decision::{FeedRelayReason, TemplateLookup};
use crate::sql::{NameCase, contains_name, hex_literal};
use discovery::DiscoveryOutcome;
pub use discovery::FeedDiscoveryMode;
pub use feed_database::row_source;
use feed_database::{FeedAvailability, FeedDatabase};
pub use feed_overview::{FeedOverview, TemplateOverview};
use feed_worker::FeedTask;
pub use feed_worker::run;
use refusal::TemplateRefusal;
pub use relay_cause::RelayCause;
use unmatched_text::UnmatchedTemplate;
pub use unmatched_text::UnmatchedTextKind;

/// Texts that wait to be looked at; what does not fit is looked at when it comes again.
const MAX_PENDING_TASKS: usize = 1_000;

/// Feeds that are made when settings are read again have numbers so far behind those of the feeds before.
const NUMBER_STRIDE: usize = 1 << 20;

/// Feeds, shared by all sessions.
#[derive(Debug)]
pub struct FeedRegistry {
    /// The number of the first one: a template of other feeds names none of these.
    first_number: usize,
    /// What is done about feeds that nobody named.
    discovery_mode: FeedDiscoveryMode,
    /// Of which tables rows are kept.
    rows_section: RowsSection,
    /// How the server compares names.
    case: NameCase,
    /// Tables of their messages, by which a text is recognised.
    messages: RwLock<Vec<String>>,
    binlog: Arc<Binlog>,
    metadata_samples: MetadataSamples,
    state: Mutex<FeedRegistryState>,
    tasks: mpsc::Sender<FeedTask>,
    /// True once the databases that hold feeds' messages were looked at.
    pub databases_checked: watch::Sender<bool>,
    /// How long what was seen of tables counts.
    lifetime: Duration,
    most_databases: usize,
}

#[derive(Debug)]
struct FeedRegistryState {
    feeds: Vec<RegisteredFeed>,
    templates: LruCache<Box<[u8]>, TemplateEntry>,
    /// Texts that name no feed's messages, and look like those of feeds.
    unmatched: LruCache<Box<[u8]>, UnmatchedTemplate>,
    /// What was said of feeds that nobody named.
    suggested: Vec<SuggestedFeed>,
    databases: HashMap<Vec<u8>, FeedDatabase>,
    /// Why the service account could not look at tables when it was asked last.
    last_failure: Option<String>,
    /// Tables, by database, of which the log was told that the service account may not see them.
    logged_unseen: BTreeSet<(String, String)>,
}

/// A feed that nobody named, and that is not served.
#[derive(Clone, Debug)]
struct SuggestedFeed {
    definition: FeedDefinition,
    database: String,
    /// What has to be mended first.
    obstacles: String,
}

/// A feed.
#[derive(Clone, Debug)]
struct RegisteredFeed {
    definition: Arc<FeedDefinition>,
    /// Nobody named it: it was found.
    is_discovered: bool,
    counted: Arc<OutcomeCounts>,
}

/// A template.
#[derive(Debug)]
struct TemplateEntry {
    /// Its first statement, for people.
    shown: String,
    counted: Arc<OutcomeCounts>,
    status: TemplateStatus,
}

/// What is known of a template.
#[derive(Clone, Debug)]
enum TemplateStatus {
    /// It is being looked at.
    Pending,
    /// It is none that can be served, or is, by the tables as they were then.
    Known {
        version: u64,
        outcome: Result<Arc<Template>, TemplateRefusal>,
    },
}

/// What has to be looked at: given to [`run`].
#[derive(Debug)]
pub struct FeedInbox(mpsc::Receiver<FeedTask>);

impl FeedRegistry {
    /// Feeds that are checked once [`run`] does. They go on counting where feeds of the same names, and templates, of `before` ended.
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
            // The one that was used last comes last.
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
            // A round may be lost.
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(3),
            most_databases: limits.databases,
        };
        (Arc::new(feeds), FeedInbox(inbox))
    }

    /// Tables of messages, by which a text is recognised.
    #[must_use]
    pub fn messages(definitions: &[FeedDefinition]) -> Box<[Box<[u8]>]> {
        let table = |definition| table_of(definition).into_bytes().into();
        definitions.iter().map(table).collect()
    }

    /// True where there is a feed.
    #[must_use]
    pub fn has_feeds(&self) -> bool {
        let messages = self.messages.read();
        !messages.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// True once every database was looked at.
    #[must_use]
    pub fn has_checked_databases(&self) -> bool {
        *self.databases_checked.borrow()
    }

    /// True where one is served in some database.
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

    /// Each feed by its name, and what became of its statements.
    #[must_use]
    pub fn counted(&self) -> Vec<(String, Arc<OutcomeCounts>)> {
        let state = self.state();
        let feeds = state.feeds.iter();
        feeds
            .map(|feed| (feed.definition.name.clone(), Arc::clone(&feed.counted)))
            .collect()
    }

    /// True where a text names a feed's messages, as far as a glance tells.
    #[must_use]
    pub fn names_feed_messages(&self, text: &[u8]) -> bool {
        let messages = self.messages.read();
        let messages = messages.unwrap_or_else(PoisonError::into_inner);
        let mut tables = messages.iter();
        tables.any(|table| contains_name(text, table.as_bytes()))
    }

    /// Lessons that are on their way.
    #[must_use]
    pub fn metadata_samples(&self) -> &MetadataSamples {
        &self.metadata_samples
    }

    /// Forgets the templates, since no more of them come here: whoever still asks is told that they are new.
    pub fn retire(&self) {
        let mut state = self.state();
        state.templates.clear();
        state.unmatched.clear();
    }

    fn state(&self) -> MutexGuard<'_, FeedRegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The template of a text that is sent in a database.
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

    /// Tells the log what became of each feed, where that is new.
    fn log_changes(&self) {
        let aside = self.binlog.suspension();
        let mut state = self.state();
        let FeedRegistryState {
            feeds, databases, ..
        } = &mut *state;
        for known in databases.values_mut() {
            known.log_changes(feeds, aside.as_ref());
        }
    }

    fn enqueue(&self, work: FeedTask) -> bool {
        self.tasks.try_send(work).is_ok()
    }

    /// Where a feed's messages are kept in memory.
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

    /// Everything is to be looked at again: tables may have changed.
    pub fn refresh(&self) {
        for database in self.databases() {
            self.enqueue(FeedTask::Database(database));
        }
    }

    /// Every database that was looked at.
    fn databases(&self) -> Vec<Vec<u8>> {
        self.state().databases.keys().cloned().collect()
    }
}

impl FeedRegistryState {
    /// The feed that has this number, where the first one has that.
    fn feed(&self, feed: FeedId, first: usize) -> Option<&RegisteredFeed> {
        self.feeds.get(feed.0.checked_sub(first)?)
    }
}

impl RegisteredFeed {
    /// One that the settings name.
    fn from_settings(definition: FeedDefinition) -> RegisteredFeed {
        RegisteredFeed {
            definition: Arc::new(definition),
            is_discovered: false,
            counted: Arc::default(),
        }
    }
}

impl TemplateEntry {
    /// The same, which is to be looked at again when it comes.
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

    /// Of a text that was not met before.
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

/// By which a form of statements is known in the log and in `SHOW HEADWATER STATEMENTS`: the same after a restart (FNV-1a).
#[must_use]
pub fn digest(database: &[u8], words: &StatementWords) -> u64 {
    digest_of(&template_key(database, words))
}

fn digest_of(key: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    key.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A digest as it is shown.
#[must_use]
pub fn hex_digest(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Where a template is found: its words, in a database.
fn template_key(database: &[u8], words: &StatementWords) -> Box<[u8]> {
    [database, &[0], &words.key].concat().into()
}
