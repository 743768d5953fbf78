//! Memory of timelines whose messages Spider keeps on data nodes: one page from several logs.
//!
//! The Spider node's log tells who follows whom; each data node's own log tells of its messages, whoever wrote them. Each is followed as any
//! other server's, and proves for itself that memory has what can be read there. A page is of one moment of all of them: of each log the
//! mark is taken first, then all are asked for a proof, and what was read of memory counts if nothing of this reader, and of these authors,
//! has changed in any of them since the marks. Else it is tried again, and then looked up.
//!
//! | module | what it is |
//! |---|---|
//! | `map` | pure: which data node has whose messages |
//! | `survey` | asks for that, and whether each node's table is one that can be followed |
//! | `nodes` | the data nodes whose logs are followed |
//! | `page` | one page from several memories |

mod map;
mod nodes;
mod page;
mod survey;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use self::map::Map;
use self::nodes::{Node, Nodes};
use self::page::{Followed, Tried};
pub use self::survey::obstacles;
use self::survey::{Asker, Seen, Why};
use crate::account::Account;
use crate::binlog::{Binlog, Freshness};
use crate::clock;
use crate::index::Page;
use crate::timeline::definition::Definition;
use crate::tls::UpstreamTlsSection;

/// Timelines that are known here.
const MOST_TIMELINES: usize = 64;
/// A page is read so often at most: something may have changed meanwhile, or be loaded first.
const ATTEMPTS: usize = 4;
/// Where everything is, is asked again after so long.
const RECHECK: Duration = Duration::from_secs(1);
/// One that was asked for longer ago counts no more.
const STALE: Duration = Duration::from_secs(3);
/// What is in the way is looked at again after so long.
const RETRY: Duration = Duration::from_secs(5);
/// Whoever has not answered by then is asked again later.
const PATIENCE: Duration = Duration::from_secs(2);
/// So often a timeline is looked at in vain before that is said.
const TOO_EARLY: u32 = 30;
/// A timeline that nobody asks for is forgotten, with its memory.
const IDLE: Duration = Duration::from_secs(3600);
/// Timelines that wait to be looked at.
const MOST_WAITING: usize = 256;

/// A page that is wanted: of whom, up to which id, and how many.
pub type Wanted = (u64, Option<u64>, usize);

/// All such timelines behind one Spider node.
#[derive(Debug)]
pub struct Spread {
    account: Account,
    /// The Spider node's.
    binlog: Arc<Binlog>,
    /// So long a page is waited for.
    limit: Duration,
    state: Mutex<State>,
    wanted: mpsc::Sender<(Definition, String)>,
}

#[derive(Debug)]
struct State {
    nodes: Nodes,
    timelines: Vec<Timeline>,
    /// It was said that there are more than are kept.
    said_full: bool,
}

impl State {
    fn timeline(&mut self, definition: &Definition, database: &str) -> Option<&mut Timeline> {
        let mut timelines = self.timelines.iter_mut();
        timelines.find(|timeline| timeline.is_of(definition, database))
    }
}

/// A timeline, and how it stands.
#[derive(Debug)]
struct Timeline {
    definition: Definition,
    database: String,
    stands: Stands,
    /// Its data nodes, as far as they are known.
    addresses: Vec<String>,
    /// Where its messages are, as it was read first in a stream of the Spider node's log.
    seen: Option<Seen>,
    /// So often it was too early to tell.
    too_early: u32,
    /// It was found to stand so then.
    checked: Instant,
    /// It is to be looked at from then on.
    due: Instant,
    /// It waits to be looked at.
    asked: bool,
    /// Somebody wanted a page of it then.
    wanted: Instant,
}

#[derive(Debug)]
enum Stands {
    /// It was not looked at yet.
    Unknown,
    Followed(Arc<Followed>),
    Refused(Why),
}

impl Timeline {
    fn is_of(&self, definition: &Definition, database: &str) -> bool {
        self.database == database && self.definition == *definition
    }

    fn followed(&self) -> Option<&Arc<Followed>> {
        match &self.stands {
            Stands::Followed(followed) => Some(followed),
            Stands::Unknown | Stands::Refused(_) => None,
        }
    }
}

/// What drives it: given to [`Spread::run`].
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<(Definition, String)>);

impl Spread {
    /// Beside the memory of a Spider node. It does nothing until [`Self::run`].
    #[must_use]
    pub fn new(
        account: Account,
        binlog: Arc<Binlog>,
        freshness: Freshness,
        tls: UpstreamTlsSection,
    ) -> (Arc<Spread>, Inbox) {
        let (wanted, inbox) = mpsc::channel(MOST_WAITING);
        let limit = freshness.wait_ms.saturating_add(binlog.limits().wait_ms);
        let nodes = Nodes::new(account.clone(), Arc::clone(&binlog), freshness, tls);
        let spread = Spread {
            account,
            binlog,
            limit: Duration::from_millis(limit),
            state: Mutex::new(State {
                nodes,
                timelines: Vec::new(),
                said_full: false,
            }),
            wanted,
        };
        (Arc::new(spread), Inbox(inbox))
    }

    /// Looks at timelines for good: at what is asked for, and again at what is followed.
    pub async fn run(self: Arc<Self>, mut inbox: Inbox) {
        let mut tick = tokio::time::interval(RECHECK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut asker = Asker::default();
        loop {
            tokio::select! {
                wanted = inbox.0.recv() => match wanted {
                    Some((definition, database)) => self.look(&definition, &database, &mut asker).await,
                    None => return,
                },
                _ = tick.tick() => self.look_again(&mut asker).await,
            }
        }
    }

    /// Looks again at what is followed.
    async fn look_again(&self, asker: &mut Asker) {
        let nodes = self.tidy();
        let leads = nodes::look_where_they_lead(&nodes);
        let _ = tokio::time::timeout(PATIENCE, leads).await;
        let followed: Vec<(Definition, String)> = {
            let state = self.state();
            let timelines = state.timelines.iter();
            let followed = timelines.filter(|timeline| timeline.followed().is_some());
            let named = followed.map(|it| (it.definition.clone(), it.database.clone()));
            named.collect()
        };
        for (definition, database) in followed {
            self.look(&definition, &database, asker).await;
        }
    }

    /// Forgets what nobody asks for, and data nodes that no timeline is on any more. Returns those that there are.
    fn tidy(&self) -> Vec<Arc<Node>> {
        let mut state = self.state();
        let State {
            nodes, timelines, ..
        } = &mut *state;
        timelines.retain(|timeline| clock::since(timeline.wanted) < IDLE);
        nodes.retain(|address| {
            let mut timelines = timelines.iter();
            timelines.any(|it| it.addresses.iter().any(|own| own == address))
        });
        nodes.all().to_vec()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data nodes of a timeline, followed from now on.
    fn nodes_of(
        &self,
        definition: &Definition,
        database: &str,
        addresses: &[String],
    ) -> Result<Vec<Arc<Node>>, Why> {
        let mut state = self.state();
        let timeline = state.timeline(definition, database).ok_or(Why::NotYet)?;
        addresses.clone_into(&mut timeline.addresses);
        state.nodes.at(addresses)
    }

    /// The map that was read first in this stream, if another one was.
    fn seen_first(&self, definition: &Definition, database: &str, now: Seen) -> Option<Map> {
        let mut state = self.state();
        let timeline = state.timeline(definition, database)?;
        match &timeline.seen {
            Some((stream, first)) if *stream == now.0 => Some(first.clone()),
            _ => {
                timeline.seen = Some(now);
                None
            }
        }
    }

    /// Where a timeline's parts are, if all of them are followed; has it looked at, where it was not.
    fn at(&self, definition: &Definition, database: &str) -> Option<Arc<Followed>> {
        let mut state = self.state();
        let now = clock::now();
        let timelines = &mut state.timelines;
        let known = timelines
            .iter()
            .position(|timeline| timeline.is_of(definition, database));
        let at = match known {
            Some(at) => at,
            None if timelines.len() < MOST_TIMELINES => {
                timelines.push(Timeline {
                    definition: definition.clone(),
                    database: database.to_owned(),
                    stands: Stands::Unknown,
                    addresses: Vec::new(),
                    seen: None,
                    too_early: 0,
                    checked: now,
                    due: now,
                    asked: false,
                    wanted: now,
                });
                timelines.len() - 1
            }
            None => {
                if !std::mem::replace(&mut state.said_full, true) {
                    tracing::warn!(
                        "definition {} in database {database}: answered by lookups alone, not from memory: {MOST_TIMELINES} timelines \
                         on data nodes are in memory already",
                        definition.name
                    );
                }
                return None;
            }
        };
        let timeline = timelines.get_mut(at)?;
        timeline.wanted = now;
        if let Some(followed) = timeline.followed() {
            let is_sure = now.saturating_duration_since(timeline.checked) < STALE;
            return is_sure.then(|| Arc::clone(followed));
        }
        if !timeline.asked && timeline.due <= now {
            let wanted = (definition.clone(), database.to_owned());
            timeline.asked = self.wanted.try_send(wanted).is_ok();
        }
        None
    }

    /// Looks at a timeline, and says what is new about it.
    async fn look(&self, definition: &Definition, database: &str, asker: &mut Asker) {
        let before = {
            let mut state = self.state();
            let known = state.timeline(definition, database);
            known.and_then(|known| known.followed().map(Arc::clone))
        };
        let now = clock::now();
        let survey = self.survey(definition, database, before.as_deref(), asker);
        let found = tokio::time::timeout(PATIENCE, survey).await;
        let found = found.unwrap_or(Err(Why::NotYet));
        let mut state = self.state();
        let Some(timeline) = state.timeline(definition, database) else {
            return;
        };
        timeline.asked = false;
        timeline.due = clock::now() + RETRY;
        match found {
            Ok(None) => timeline.checked = now,
            Ok(Some(followed)) => {
                let nodes = match timeline.addresses.len() {
                    1 => "a data node".to_owned(),
                    nodes => format!("{nodes} data nodes"),
                };
                tracing::info!(
                    "definition {} in database {database}: answered from memory by the logs of the Spider node and of {nodes}",
                    definition.name
                );
                timeline.checked = now;
                timeline.too_early = 0;
                timeline.stands = Stands::Followed(Arc::new(followed));
            }
            Err(Why::NotYet) => {
                timeline.due = clock::now() + RECHECK;
                timeline.too_early += 1;
                if timeline.too_early == TOO_EARLY {
                    tracing::warn!(
                        "definition {} in database {database}: answered by lookups alone, not from memory, for a while: {}",
                        definition.name,
                        Why::NotYet
                    );
                }
                // What was said of it is so as long as nothing else is known.
                if timeline
                    .followed()
                    .is_some_and(|followed| !followed.is_current())
                {
                    timeline.stands = Stands::Unknown;
                }
            }
            Err(why) => {
                let was_said =
                    matches!(&timeline.stands, Stands::Refused(before) if *before == why);
                if !was_said {
                    tracing::warn!(
                        "definition {} in database {database}: answered by lookups alone, not from memory: {why}",
                        definition.name
                    );
                }
                timeline.stands = Stands::Refused(why);
            }
        }
    }

    /// True where a timeline is likely to be answered from here, in a session with that Spider node.
    #[must_use]
    pub fn may_have(
        &self,
        definition: &Definition,
        database: &str,
        identity: Option<&[u8]>,
    ) -> bool {
        let followed = self.at(definition, database);
        followed.is_some_and(|followed| followed.lists.mark(identity).is_some())
    }

    /// A reader's page of one moment behind this question, on all nodes; `None` where memory has not got it, or not in time.
    pub async fn page(
        &self,
        definition: &Definition,
        database: &str,
        identity: &[u8],
        wanted: Wanted,
    ) -> Option<Page> {
        let followed = self.at(definition, database)?;
        let tries = async {
            for _ in 0..ATTEMPTS {
                match followed.page(identity, wanted).await {
                    Tried::Page(page) => return Some(page),
                    Tried::Again => {}
                    Tried::No => return None,
                }
            }
            None
        };
        tokio::time::timeout(self.limit, tries).await.ok()?
    }

    /// Each data node whose log is followed, or would be, and whether it is.
    #[must_use]
    pub fn nodes(&self) -> Vec<(String, bool)> {
        let state = self.state();
        let nodes = state.nodes.all().iter();
        nodes
            .map(|node| (node.address.clone(), node.is_followed()))
            .collect()
    }

    /// What the memory of all data nodes may take together, in bytes.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        let state = self.state();
        let nodes = state.nodes.all().iter();
        nodes.map(|node| node.binlog.most_bytes()).sum()
    }

    /// How many authors have made room for others.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        let state = self.state();
        let nodes = state.nodes.all().iter();
        nodes.map(|node| node.binlog.evicted()).sum()
    }

    /// Bytes, follows, authors and messages in memory, of all data nodes.
    #[must_use]
    pub fn sizes(&self) -> [usize; 4] {
        let state = self.state();
        let sizes = state.nodes.all().iter().map(|node| node.binlog.sizes());
        sizes.fold([0; 4], |[a, b, c, d], [e, f, g, h]| {
            [a + e, b + f, c + g, d + h]
        })
    }
}
