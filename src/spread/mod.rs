//! Memory of timelines whose messages Spider keeps on data nodes: one page from several logs.
//!
//! The Spider node's log tells who follows whom; each data node's own log tells of its messages, whoever wrote them. Each is followed as any
//! other server's, and proves for itself that memory has what can be read there. A page is of one moment of all of them: of each log the
//! mark is taken first, then all are asked for a proof, and what was read of memory counts if nothing of this reader, and of these authors,
//! has changed in any of them since the marks. Else it is tried again, and then looked up.
//!
//! | module | what it is |
//! |---|---|
//! | `partition_map` | pure: which data node has whose messages |
//! | `spread_survey` | asks for that, and whether each node's table is one that can be followed |
//! | `data_nodes` | the data nodes whose logs are followed |
//! | `spread_page` | one page from several memories |

mod data_nodes;
mod partition_map;
mod spread_page;
mod spread_survey;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use self::data_nodes::{DataNode, DataNodeSet};
use self::partition_map::PartitionMap;
use self::spread_page::{FollowedTimeline, PageAttempt};
pub use self::spread_survey::obstacles;
use self::spread_survey::{ObservedMap, ReusableConnection, SpreadRefusal};
use crate::account::UpstreamAccount;
use crate::binlog::{Binlog, FreshnessSection};
use crate::clock;
use crate::index::TimelinePage;
use crate::timeline::definition::TimelineDefinition;
use crate::tls::UpstreamTlsSection;

/// Timelines that are known here.
const MOST_TIMELINES: usize = 64;
/// A page is read so often at most: something may have changed meanwhile, or be loaded first.
const ATTEMPTS: usize = 4;
/// Where everything is, is asked again after so long.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// One that was asked for longer ago counts no more.
const CHECK_TTL: Duration = Duration::from_secs(3);
/// What is in the way is looked at again after so long.
const RETRY: Duration = Duration::from_secs(5);
/// Whoever has not answered by then is asked again later.
const PATIENCE: Duration = Duration::from_secs(2);
/// So often a timeline is looked at in vain before that is said.
const EARLY_ATTEMPTS_BEFORE_WARNING: u32 = 30;
/// A timeline that nobody asks for is forgotten, with its memory.
const IDLE_TTL: Duration = Duration::from_secs(3600);
/// Timelines that wait to be looked at.
const MOST_WAITING: usize = 256;

/// A page that is wanted: of whom, up to which id, and how many.
pub type SpreadPageRequest = (u64, Option<u64>, usize);

/// All such timelines behind one Spider node.
#[derive(Debug)]
pub struct SpreadMemory {
    account: UpstreamAccount,
    /// The Spider node's.
    binlog: Arc<Binlog>,
    /// So long a page is waited for.
    limit: Duration,
    state: Mutex<SpreadState>,
    wanted: mpsc::Sender<(TimelineDefinition, String)>,
}

#[derive(Debug)]
struct SpreadState {
    nodes: DataNodeSet,
    timelines: Vec<SpreadTimeline>,
    /// It was said that there are more than are kept.
    has_logged_full: bool,
}

impl SpreadState {
    fn timeline(
        &mut self,
        definition: &TimelineDefinition,
        database: &str,
    ) -> Option<&mut SpreadTimeline> {
        let mut timelines = self.timelines.iter_mut();
        timelines.find(|timeline| timeline.is_of(definition, database))
    }
}

/// A timeline, and how it stands.
#[derive(Debug)]
struct SpreadTimeline {
    definition: TimelineDefinition,
    database: String,
    status: SpreadStatus,
    /// Its data nodes, as far as they are known.
    addresses: Vec<String>,
    /// Where its messages are, as it was read first in a stream of the Spider node's log.
    observed_map: Option<ObservedMap>,
    /// So often it was too early to tell.
    early_attempts: u32,
    /// It was found to stand so then.
    checked_at: Instant,
    /// It is to be looked at from then on.
    due_at: Instant,
    /// It waits to be looked at.
    is_queued: bool,
    /// Somebody wanted a page of it then.
    last_wanted: Instant,
}

#[derive(Debug)]
enum SpreadStatus {
    /// It was not looked at yet.
    Unknown,
    Followed(Arc<FollowedTimeline>),
    Refused(SpreadRefusal),
}

impl SpreadTimeline {
    fn is_of(&self, definition: &TimelineDefinition, database: &str) -> bool {
        self.database == database && self.definition == *definition
    }

    fn followed(&self) -> Option<&Arc<FollowedTimeline>> {
        match &self.status {
            SpreadStatus::Followed(followed) => Some(followed),
            SpreadStatus::Unknown | SpreadStatus::Refused(_) => None,
        }
    }
}

/// What drives it: given to [`SpreadMemory::run`].
#[derive(Debug)]
pub struct SpreadInbox(mpsc::Receiver<(TimelineDefinition, String)>);

impl SpreadMemory {
    /// Beside the memory of a Spider node. It does nothing until [`Self::run`].
    #[must_use]
    pub fn new(
        account: UpstreamAccount,
        binlog: Arc<Binlog>,
        freshness: FreshnessSection,
        tls: UpstreamTlsSection,
    ) -> (Arc<SpreadMemory>, SpreadInbox) {
        let (wanted, inbox) = mpsc::channel(MOST_WAITING);
        let limit = freshness.wait_ms.saturating_add(binlog.limits().wait_ms);
        let nodes = DataNodeSet::new(account.clone(), Arc::clone(&binlog), freshness, tls);
        let spread = SpreadMemory {
            account,
            binlog,
            limit: Duration::from_millis(limit),
            state: Mutex::new(SpreadState {
                nodes,
                timelines: Vec::new(),
                has_logged_full: false,
            }),
            wanted,
        };
        (Arc::new(spread), SpreadInbox(inbox))
    }

    /// Looks at timelines for good: at what is asked for, and again at what is followed.
    pub async fn run(self: Arc<Self>, mut inbox: SpreadInbox) {
        let mut tick = tokio::time::interval(RECHECK_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut asker = ReusableConnection::default();
        loop {
            tokio::select! {
                wanted = inbox.0.recv() => match wanted {
                    Some((definition, database)) => self.check_timeline(&definition, &database, &mut asker).await,
                    None => return,
                },
                _ = tick.tick() => self.recheck_followed(&mut asker).await,
            }
        }
    }

    /// Looks again at what is followed.
    async fn recheck_followed(&self, asker: &mut ReusableConnection) {
        let nodes = self.drop_idle();
        let leads = data_nodes::check_addresses(&nodes);
        let _ = tokio::time::timeout(PATIENCE, leads).await;
        let followed: Vec<(TimelineDefinition, String)> = {
            let state = self.state();
            let timelines = state.timelines.iter();
            let followed = timelines.filter(|timeline| timeline.followed().is_some());
            let named = followed.map(|it| (it.definition.clone(), it.database.clone()));
            named.collect()
        };
        for (definition, database) in followed {
            self.check_timeline(&definition, &database, asker).await;
        }
    }

    /// Forgets what nobody asks for, and data nodes that no timeline is on any more. Returns those that there are.
    fn drop_idle(&self) -> Vec<Arc<DataNode>> {
        let mut state = self.state();
        let SpreadState {
            nodes, timelines, ..
        } = &mut *state;
        timelines.retain(|timeline| clock::since(timeline.last_wanted) < IDLE_TTL);
        nodes.retain(|address| {
            let mut timelines = timelines.iter();
            timelines.any(|it| it.addresses.iter().any(|own| own == address))
        });
        nodes.all().to_vec()
    }

    fn state(&self) -> MutexGuard<'_, SpreadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data nodes of a timeline, followed from now on.
    fn nodes_of(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        addresses: &[String],
    ) -> Result<Vec<Arc<DataNode>>, SpreadRefusal> {
        let mut state = self.state();
        let timeline = state
            .timeline(definition, database)
            .ok_or(SpreadRefusal::NotFollowedYet)?;
        addresses.clone_into(&mut timeline.addresses);
        state.nodes.follow_addresses(addresses)
    }

    /// The map that was read first in this stream, if another one was.
    fn first_observed_map(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        now: ObservedMap,
    ) -> Option<PartitionMap> {
        let mut state = self.state();
        let timeline = state.timeline(definition, database)?;
        match &timeline.observed_map {
            Some((stream, first)) if *stream == now.0 => Some(first.clone()),
            _ => {
                timeline.observed_map = Some(now);
                None
            }
        }
    }

    /// Where a timeline's parts are, if all of them are followed; has it looked at, where it was not.
    fn followed_timeline(
        &self,
        definition: &TimelineDefinition,
        database: &str,
    ) -> Option<Arc<FollowedTimeline>> {
        let mut state = self.state();
        let now = clock::now();
        let timelines = &mut state.timelines;
        let known = timelines
            .iter()
            .position(|timeline| timeline.is_of(definition, database));
        let at = match known {
            Some(at) => at,
            None if timelines.len() < MOST_TIMELINES => {
                timelines.push(SpreadTimeline {
                    definition: definition.clone(),
                    database: database.to_owned(),
                    status: SpreadStatus::Unknown,
                    addresses: Vec::new(),
                    observed_map: None,
                    early_attempts: 0,
                    checked_at: now,
                    due_at: now,
                    is_queued: false,
                    last_wanted: now,
                });
                timelines.len() - 1
            }
            None => {
                if !std::mem::replace(&mut state.has_logged_full, true) {
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
        timeline.last_wanted = now;
        if let Some(followed) = timeline.followed() {
            let is_sure = now.saturating_duration_since(timeline.checked_at) < CHECK_TTL;
            return is_sure.then(|| Arc::clone(followed));
        }
        if !timeline.is_queued && timeline.due_at <= now {
            let wanted = (definition.clone(), database.to_owned());
            timeline.is_queued = self.wanted.try_send(wanted).is_ok();
        }
        None
    }

    /// Looks at a timeline, and says what is new about it.
    async fn check_timeline(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        asker: &mut ReusableConnection,
    ) {
        let before = {
            let mut state = self.state();
            let known = state.timeline(definition, database);
            known.and_then(|known| known.followed().map(Arc::clone))
        };
        let now = clock::now();
        let survey = self.survey(definition, database, before.as_deref(), asker);
        let found = tokio::time::timeout(PATIENCE, survey).await;
        let found = found.unwrap_or(Err(SpreadRefusal::NotFollowedYet));
        let mut state = self.state();
        let Some(timeline) = state.timeline(definition, database) else {
            return;
        };
        timeline.is_queued = false;
        timeline.due_at = clock::now() + RETRY;
        match found {
            Ok(None) => timeline.checked_at = now,
            Ok(Some(followed)) => {
                let nodes = match timeline.addresses.len() {
                    1 => "a data node".to_owned(),
                    nodes => format!("{nodes} data nodes"),
                };
                tracing::info!(
                    "definition {} in database {database}: answered from memory by the logs of the Spider node and of {nodes}",
                    definition.name
                );
                timeline.checked_at = now;
                timeline.early_attempts = 0;
                timeline.status = SpreadStatus::Followed(Arc::new(followed));
            }
            Err(SpreadRefusal::NotFollowedYet) => {
                timeline.due_at = clock::now() + RECHECK_INTERVAL;
                timeline.early_attempts += 1;
                if timeline.early_attempts == EARLY_ATTEMPTS_BEFORE_WARNING {
                    tracing::warn!(
                        "definition {} in database {database}: answered by lookups alone, not from memory, for a while: {}",
                        definition.name,
                        SpreadRefusal::NotFollowedYet
                    );
                }
                // What was said of it is so as long as nothing else is known.
                if timeline
                    .followed()
                    .is_some_and(|followed| !followed.is_current())
                {
                    timeline.status = SpreadStatus::Unknown;
                }
            }
            Err(why) => {
                let was_said =
                    matches!(&timeline.status, SpreadStatus::Refused(before) if *before == why);
                if !was_said {
                    tracing::warn!(
                        "definition {} in database {database}: answered by lookups alone, not from memory: {why}",
                        definition.name
                    );
                }
                timeline.status = SpreadStatus::Refused(why);
            }
        }
    }

    /// True where a timeline is likely to be answered from here, in a session with that Spider node.
    #[must_use]
    pub fn is_likely_resident(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        identity: Option<&[u8]>,
    ) -> bool {
        let followed = self.followed_timeline(definition, database);
        followed.is_some_and(|followed| followed.lists.mark(identity).is_some())
    }

    /// A reader's page of one moment behind this question, on all nodes; `None` where memory has not got it, or not in time.
    pub async fn page(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        identity: &[u8],
        wanted: SpreadPageRequest,
    ) -> Option<TimelinePage> {
        let followed = self.followed_timeline(definition, database)?;
        let tries = async {
            for _ in 0..ATTEMPTS {
                match followed.try_page(identity, wanted).await {
                    PageAttempt::Page(page) => return Some(page),
                    PageAttempt::Retry => {}
                    PageAttempt::Unavailable => return None,
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
    pub fn max_bytes(&self) -> usize {
        let state = self.state();
        let nodes = state.nodes.all().iter();
        nodes.map(|node| node.binlog.max_bytes()).sum()
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
