//! The feeds that the settings name: whether each can be served from a database, and the templates of their statements.
//!
//! A session asks for a text's template and is answered at once. What is not known yet is found out beside it, by the service account:
//! the statement that came first is relayed.

mod database;
mod work;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::sync::mpsc;

use crate::binlog::{Binlog, Place};
use crate::catalogue::Epoch;
use crate::feed::words::Words;
use crate::feed::{FeedDefinition, FeedId, Refused, Template};
use crate::limits::Limits;
use crate::session::narrowing::{Known, Why};
use crate::sql::hex;
pub use database::rows_of;
use database::{Database, Served};
use work::Work;
pub use work::run;

/// Texts that wait to be looked at; what does not fit is looked at when it comes again.
const WAITING: usize = 1_000;

/// Feeds, shared by all sessions.
#[derive(Debug)]
pub struct Feeds {
    definitions: Box<[FeedDefinition]>,
    binlog: Arc<Binlog>,
    state: Mutex<State>,
    work: mpsc::Sender<Work>,
    /// How long what was seen of tables counts.
    lifetime: Duration,
    most_databases: usize,
}

#[derive(Debug)]
struct State {
    templates: LruCache<Box<[u8]>, Entry>,
    databases: HashMap<Vec<u8>, Database>,
}

/// What is known of a template.
#[derive(Clone, Debug)]
enum Entry {
    /// It is being looked at.
    Asked,
    /// It is none that can be served, or is, by the tables as they were then.
    Known {
        version: u64,
        is: Result<Arc<Template>, Refused>,
    },
}

/// What has to be looked at: given to [`run`].
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Work>);

impl Feeds {
    /// Feeds that are checked once [`run`] does.
    #[must_use]
    pub fn new(
        definitions: Vec<FeedDefinition>,
        binlog: Arc<Binlog>,
        limits: &Limits,
    ) -> (Arc<Feeds>, Inbox) {
        let (work, inbox) = mpsc::channel(WAITING);
        let templates = NonZeroUsize::new(limits.templates).unwrap_or(NonZeroUsize::MIN);
        let feeds = Feeds {
            definitions: definitions.into(),
            binlog,
            state: Mutex::new(State {
                templates: LruCache::new(templates),
                databases: HashMap::new(),
            }),
            work,
            // A round may be lost.
            lifetime: Duration::from_millis(limits.recheck_ms).saturating_mul(3),
            most_databases: limits.databases,
        };
        (Arc::new(feeds), Inbox(inbox))
    }

    /// Tables of messages, by which a text is recognised.
    #[must_use]
    pub fn messages(definitions: &[FeedDefinition]) -> Box<[Box<[u8]>]> {
        let table = |definition: &FeedDefinition| definition.message.table.as_bytes().into();
        definitions.iter().map(table).collect()
    }

    /// Every feed.
    fn definitions(&self) -> impl Iterator<Item = (FeedId, &FeedDefinition)> {
        (0..).map(FeedId).zip(&self.definitions)
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
        } = &mut *state;
        let known = databases.get(database);
        let Some(known) = known.filter(|known| known.is_fresh(epoch, self.lifetime)) else {
            drop(state);
            self.look(Work::Database(database.to_vec()));
            return Known::Not(Why::Unchecked);
        };
        let current = known.version();
        let key = key(database, words);
        match templates.get(&*key) {
            Some(Entry::Asked) => Known::Not(Why::New),
            Some(Entry::Known { version, is }) if *version == current => match is {
                Ok(template) => Known::Ready(Arc::clone(template)),
                Err(refused) => Known::Not((*refused).into()),
            },
            _ => {
                templates.put(key.clone(), Entry::Asked);
                drop(state);
                let work = Work::Template {
                    key: key.clone(),
                    database: database.to_vec(),
                    text: text.to_vec(),
                };
                if !self.look(work) {
                    self.state().templates.pop(&*key);
                }
                Known::Not(Why::New)
            }
        }
    }

    fn look(&self, work: Work) -> bool {
        self.work.try_send(work).is_ok()
    }

    /// Where a feed's messages are kept in memory.
    #[must_use]
    pub fn place(&self, feed: FeedId, database: &str) -> Option<Arc<Place>> {
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

/// Lists the databases that hold a feed's messages, at most `limit`.
#[must_use]
pub fn databases_query(definition: &FeedDefinition, limit: usize) -> String {
    format!(
        "SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = {} ORDER BY TABLE_SCHEMA LIMIT {limit}",
        hex(&definition.message.table)
    )
}

/// Where a template is found: its words, in a database.
fn key(database: &[u8], words: &Words) -> Box<[u8]> {
    [database, &[0], &words.key].concat().into()
}
