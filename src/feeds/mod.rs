//! The feeds that the settings name: whether each can be served from a database, and the templates of their statements.
//!
//! A session asks for a text's template and is answered at once. What is not known yet is found out beside it, by the service account:
//! the statement that came first is relayed.

mod cause;
mod database;
mod found;
mod refusal;
mod seen;
mod stranger;
mod tallies;
mod work;

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use lru::LruCache;
use tokio::sync::{mpsc, watch};

use crate::binlog::{Binlog, Place, RowsSection};
use crate::catalogue::Epoch;
use crate::feed::counted::Counted;
use crate::feed::shown::{shortened, shown};
use crate::feed::template::Tallies;
use crate::feed::words::Words;
use crate::feed::{FeedDefinition, FeedId, Refused, Template};
use crate::limits::Limits;
use crate::session::narrowing::lessons::Lessons;
use crate::session::narrowing::{Known, Why};
use crate::sql::{NameCase, hex, holds_name};
pub use cause::Cause;
pub use database::rows_of;
use database::{Database, Served};
pub use found::Auto;
use found::Found;
use refusal::Refusal;
pub use seen::{FeedSeen, TemplateSeen};
pub use stranger::Met;
use stranger::Stranger;
use work::Work;
pub use work::run;

/// Texts that wait to be looked at; what does not fit is looked at when it comes again.
const WAITING: usize = 1_000;

/// Feeds that are made when settings are read again have numbers so far behind those of the feeds before.
const NUMBERS: usize = 1 << 20;

/// Feeds, shared by all sessions.
#[derive(Debug)]
pub struct Feeds {
    /// The number of the first one: a template of other feeds names none of these.
    first: usize,
    /// What is done about feeds that nobody named.
    auto: Auto,
    /// Of which tables rows are kept.
    rows: RowsSection,
    /// How the server compares names.
    case: NameCase,
    /// Tables of their messages, by which a text is recognised.
    messages: RwLock<Vec<String>>,
    binlog: Arc<Binlog>,
    lessons: Lessons,
    state: Mutex<State>,
    work: mpsc::Sender<Work>,
    /// True once the databases that hold feeds' messages were looked at.
    pub looked: watch::Sender<bool>,
    /// How long what was seen of tables counts.
    lifetime: Duration,
    most_databases: usize,
}

#[derive(Debug)]
struct State {
    feeds: Vec<Feed>,
    templates: LruCache<Box<[u8]>, Entry>,
    /// Texts that name no feed's messages, and look like those of feeds.
    strangers: LruCache<Box<[u8]>, Stranger>,
    /// What was said of feeds that nobody named.
    suggested: Vec<Suggested>,
    databases: HashMap<Vec<u8>, Database>,
    /// Why the service account could not look at tables when it was asked last.
    failing: Option<String>,
    /// Tables, by database, of which the log was told that the service account may not see them.
    unseen: BTreeSet<(String, String)>,
}

/// A feed that nobody named, and that is not served.
#[derive(Clone, Debug)]
struct Suggested {
    definition: FeedDefinition,
    database: String,
    /// What has to be mended first.
    obstacles: String,
}

/// A feed.
#[derive(Clone, Debug)]
struct Feed {
    definition: Arc<FeedDefinition>,
    /// Nobody named it: it was found.
    found: bool,
    counted: Arc<Counted>,
}

/// A template.
#[derive(Debug)]
struct Entry {
    /// Its first statement, for people.
    shown: String,
    counted: Arc<Counted>,
    is: Is,
}

/// What is known of a template.
#[derive(Clone, Debug)]
enum Is {
    /// It is being looked at.
    Asked,
    /// It is none that can be served, or is, by the tables as they were then.
    Known {
        version: u64,
        is: Result<Arc<Template>, Refusal>,
    },
}

/// What has to be looked at: given to [`run`].
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Work>);

impl Feeds {
    /// Feeds that are checked once [`run`] does. They go on counting where feeds of the same names, and templates, of `before` ended.
    #[must_use]
    pub fn new(
        definitions: Vec<FeedDefinition>,
        (auto, rows): (Auto, RowsSection),
        case: NameCase,
        binlog: Arc<Binlog>,
        limits: &Limits,
        before: Option<&Feeds>,
    ) -> (Arc<Feeds>, Inbox) {
        let (work, inbox) = mpsc::channel(WAITING);
        let most = NonZeroUsize::new(limits.templates).unwrap_or(NonZeroUsize::MIN);
        let messages = definitions.iter().map(table_of).collect();
        let mut feeds: Vec<Feed> = definitions.into_iter().map(Feed::named).collect();
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
                templates.put(key.clone(), entry.unjudged());
            }
        }
        let feeds = Feeds {
            first: before.map_or(0, |before| before.first.saturating_add(NUMBERS)),
            auto,
            rows,
            case,
            messages: RwLock::new(messages),
            binlog,
            lessons: Lessons::default(),
            state: Mutex::new(State {
                feeds,
                templates,
                strangers: LruCache::new(most),
                suggested: Vec::new(),
                databases: HashMap::new(),
                failing: None,
                unseen: BTreeSet::new(),
            }),
            work,
            looked: watch::Sender::new(false),
            // A round may be lost.
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(3),
            most_databases: limits.databases,
        };
        (Arc::new(feeds), Inbox(inbox))
    }

    /// Tables of messages, by which a text is recognised.
    #[must_use]
    pub fn messages(definitions: &[FeedDefinition]) -> Box<[Box<[u8]>]> {
        let table = |definition| table_of(definition).into_bytes().into();
        definitions.iter().map(table).collect()
    }

    /// True where there is a feed.
    #[must_use]
    pub fn are_any(&self) -> bool {
        let messages = self.messages.read();
        !messages.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// True once every database was looked at.
    #[must_use]
    pub fn have_looked(&self) -> bool {
        *self.looked.borrow()
    }

    /// True where one is served in some database.
    #[must_use]
    pub fn serve_any(&self) -> bool {
        let state = self.state();
        let mut databases = state.databases.values();
        let feeds = || 0..state.feeds.len();
        databases.any(|known| feeds().any(|feed| known.served(feed).is_some_and(Served::is_served)))
    }

    /// Each feed by its name, and what became of its statements.
    #[must_use]
    pub fn counted(&self) -> Vec<(String, Arc<Counted>)> {
        let state = self.state();
        let feeds = state.feeds.iter();
        feeds
            .map(|feed| (feed.definition.name.clone(), Arc::clone(&feed.counted)))
            .collect()
    }

    /// True where a text names a feed's messages, as far as a glance tells.
    #[must_use]
    pub fn are_named(&self, text: &[u8]) -> bool {
        let messages = self.messages.read();
        let messages = messages.unwrap_or_else(PoisonError::into_inner);
        let mut tables = messages.iter();
        tables.any(|table| holds_name(text, table.as_bytes()))
    }

    /// Lessons that are on their way.
    #[must_use]
    pub fn lessons(&self) -> &Lessons {
        &self.lessons
    }

    /// Forgets the templates, since no more of them come here: whoever still asks is told that they are new.
    pub fn retire(&self) {
        let mut state = self.state();
        state.templates.clear();
        state.strangers.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The template of a text that is sent in a database.
    #[must_use]
    pub fn template(&self, database: &[u8], words: &Words, text: &[u8], epoch: Epoch) -> Known {
        let mut state = self.state();
        let State {
            templates,
            databases,
            feeds,
            ..
        } = &mut *state;
        let known = databases.get(database);
        let Some(known) = known.filter(|known| known.is_fresh(epoch, self.lifetime)) else {
            drop(state);
            self.look(Work::Database(database.to_vec()));
            return Known::Not(Why::Unchecked, None);
        };
        let current = known.version();
        let key = key(database, words);
        let tallies;
        let why = match templates.get_mut(&*key) {
            Some(Entry { is, counted, .. }) => {
                let mut counts = Tallies {
                    own: Arc::clone(counted),
                    feed: None,
                };
                let why = match is {
                    Is::Asked => Some(Why::New),
                    Is::Known { version, is } if *version == current => match is {
                        Ok(template) => {
                            let at = template.feed.0.checked_sub(self.first);
                            let served = at.and_then(|at| known.served(at));
                            if !served.is_some_and(Served::is_barred) {
                                return Known::Ready(Arc::clone(template));
                            }
                            let feed = at.and_then(|at| feeds.get(at));
                            counts.feed = feed.map(|feed| Arc::clone(&feed.counted));
                            Some(Why::Refused)
                        }
                        Err(refusal) => {
                            let feed = refusal.feed().and_then(|at| feeds.get(at));
                            counts.feed = feed.map(|feed| Arc::clone(&feed.counted));
                            Some(refusal.why())
                        }
                    },
                    Is::Known { .. } => {
                        *is = Is::Asked;
                        None
                    }
                };
                tallies = Some(counts);
                why
            }
            None => {
                let entry = Entry::new(text);
                tallies = Some(Tallies {
                    own: Arc::clone(&entry.counted),
                    feed: None,
                });
                templates.put(key.clone(), entry);
                None
            }
        };
        drop(state);
        if let Some(why) = why {
            return Known::Not(why, tallies);
        }
        let work = Work::Template {
            key: key.clone(),
            database: database.to_vec(),
            text: text.to_vec(),
        };
        if !self.look(work) {
            self.state().templates.pop(&*key);
        }
        Known::Not(Why::New, tallies)
    }

    /// Tells the log what became of each feed, where that is new.
    fn announce(&self) {
        let aside = self.binlog.aside();
        let mut state = self.state();
        let State {
            feeds, databases, ..
        } = &mut *state;
        for known in databases.values_mut() {
            known.announce(feeds, aside.as_ref());
        }
    }

    fn look(&self, work: Work) -> bool {
        self.work.try_send(work).is_ok()
    }

    /// Where a feed's messages are kept in memory.
    #[must_use]
    pub fn place(&self, feed: FeedId, database: &str) -> Option<Arc<Place>> {
        let feed = feed.0.checked_sub(self.first)?;
        let state = self.state();
        match state.databases.get(database.as_bytes())?.served(feed)? {
            Served::Yes { place, .. } => place.clone(),
            Served::No(_) | Served::Elsewhere => None,
        }
    }

    /// Everything is to be looked at again: tables may have changed.
    pub fn refresh(&self) {
        for database in self.databases() {
            self.look(Work::Database(database));
        }
    }

    /// Every database that was looked at.
    fn databases(&self) -> Vec<Vec<u8>> {
        self.state().databases.keys().cloned().collect()
    }
}

impl State {
    /// The feed that has this number, where the first one has that.
    fn feed(&self, feed: FeedId, first: usize) -> Option<&Feed> {
        self.feeds.get(feed.0.checked_sub(first)?)
    }
}

impl Feed {
    /// One that the settings name.
    fn named(definition: FeedDefinition) -> Feed {
        Feed {
            definition: Arc::new(definition),
            found: false,
            counted: Arc::default(),
        }
    }
}

impl Entry {
    /// The same, which is to be looked at again when it comes.
    fn unjudged(&self) -> Entry {
        Entry {
            shown: self.shown.clone(),
            counted: Arc::clone(&self.counted),
            is: Is::Known {
                // No tables have this version.
                version: u64::MAX,
                is: Err(Refused::Names.into()),
            },
        }
    }

    /// Of a text that was not met before.
    fn new(text: &[u8]) -> Entry {
        Entry {
            shown: shortened(&shown(text)),
            counted: Arc::default(),
            is: Is::Asked,
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
        hex(&definition.message.table)
    )
}

/// By which a form of statements is known in the log and in `SHOW HEADWATER STATEMENTS`: the same after a restart (FNV-1a).
#[must_use]
pub fn digest(database: &[u8], words: &Words) -> u64 {
    digest_of(&key(database, words))
}

fn digest_of(key: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    key.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A digest as it is shown.
#[must_use]
pub fn in_letters(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Where a template is found: its words, in a database.
fn key(database: &[u8], words: &Words) -> Box<[u8]> {
    [database, &[0], &words.key].concat().into()
}
