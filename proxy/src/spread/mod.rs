//! Memory of timelines whose messages Spider stores on data nodes: one page from several logs.
//!
//! The Spider node's log contains who follows whom; each data node's own log contains its messages, whoever wrote them. Each is followed
//! like any other server's, and proves for itself that memory has what is readable there. A page shows one moment of all of them: a mark is
//! taken of each log first, then each is asked for a proof. What was read of memory counts if nothing about this reader and these authors
//! has changed in any log since the marks. Otherwise the page is retried, and finally served by lookups.
//!
//! | module | what it is |
//! |---|---|
//! | `partition_map` | pure: which data node has whose messages |
//! | `spread_survey` | reads that, and checks whether each node's table can be followed |
//! | `data_nodes` | the data nodes whose logs are followed |
//! | `spread_page` | one page from several memories |

mod data_nodes;
mod partition_map;
mod spread_page;
mod spread_survey;

use futures_util::future::BoxFuture;
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
use crate::tls::UpstreamTlsSection;
use headwater_timeline::definition::TimelineDefinition;
use headwater_timeline::index::TimelinePage;

const MOST_TIMELINES: usize = 64;
/// The most attempts to read a page: something may change meanwhile, or must be loaded first.
const ATTEMPTS: usize = 4;
/// How often the locations are read again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a survey is valid.
const CHECK_TTL: Duration = Duration::from_secs(3);
/// Pause before an obstacle is checked again.
const RETRY: Duration = Duration::from_secs(5);
/// Timeout of a survey.
const PATIENCE: Duration = Duration::from_secs(2);
/// Early attempts before a warning is logged.
const EARLY_ATTEMPTS_BEFORE_WARNING: u32 = 30;
/// A timeline not requested for this long is dropped, with its memory.
const IDLE_TTL: Duration = Duration::from_secs(3600);
const MOST_WAITING: usize = 256;

/// A page request: the reader, the highest id, and the number of messages.
pub type SpreadPageRequest = (u64, Option<u64>, usize);

/// All such timelines behind one Spider node.
#[derive(Debug)]
pub struct SpreadMemory {
    account: UpstreamAccount,
    /// The Spider node's log.
    binlog: Arc<Binlog>,
    /// How long a page is waited for.
    limit: Duration,
    state: Mutex<SpreadState>,
    wanted: mpsc::Sender<(TimelineDefinition, String)>,
}

#[derive(Debug)]
struct SpreadState {
    nodes: DataNodeSet,
    timelines: Vec<SpreadTimeline>,
    /// It was logged that there are too many.
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

#[derive(Debug)]
struct SpreadTimeline {
    definition: TimelineDefinition,
    database: String,
    status: SpreadStatus,
    /// Its data nodes, as far as known.
    addresses: Vec<String>,
    /// The locations first read in a stream of the Spider node's log.
    observed_map: Option<ObservedMap>,
    /// How many surveys came too early.
    early_attempts: u32,
    /// When its status was last confirmed.
    checked_at: Instant,
    /// When its next survey is due.
    due_at: Instant,
    is_queued: bool,
    /// When a page of it was last requested.
    last_wanted: Instant,
}

#[derive(Debug)]
enum SpreadStatus {
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

/// Survey requests: passed to [`SpreadMemory::run`].
#[derive(Debug)]
pub struct SpreadInbox(mpsc::Receiver<(TimelineDefinition, String)>);

impl SpreadMemory {
    /// Creates it beside the memory of a Spider node. It does nothing until [`Self::run`].
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

    /// Surveys timelines forever: requested ones, and followed ones again.
    ///
    /// Boxed, so that no other package compiles it again.
    pub fn run(self: Arc<Self>, inbox: SpreadInbox) -> BoxFuture<'static, ()> {
        Box::pin(self.survey_timelines(inbox))
    }

    async fn survey_timelines(self: Arc<Self>, mut inbox: SpreadInbox) {
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

    /// Surveys what is followed again.
    async fn recheck_followed(&self, connection: &mut ReusableConnection) {
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
            self.check_timeline(&definition, &database, connection)
                .await;
        }
    }

    /// Drops idle timelines, and data nodes that no timeline uses. Returns the remaining nodes.
    fn drop_idle(&self) -> Vec<Arc<DataNode>> {
        let mut state = self.state();
        let SpreadState {
            nodes, timelines, ..
        } = &mut *state;
        timelines.retain(|timeline| clock::since(timeline.last_wanted) < IDLE_TTL);
        nodes.retain(|address| {
            let mut timelines = timelines.iter();
            timelines.any(|it| {
                it.addresses
                    .iter()
                    .any(|node_address| node_address == address)
            })
        });
        nodes.all().to_vec()
    }

    fn state(&self) -> MutexGuard<'_, SpreadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data nodes of a timeline; new ones are followed from now on.
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

    /// The map first read in this stream; `None`, and records `now`, if this is the first.
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

    /// A timeline's parts, if all of them are followed; queues a survey otherwise.
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

    async fn check_timeline(
        &self,
        definition: &TimelineDefinition,
        database: &str,
        connection: &mut ReusableConnection,
    ) {
        let before = {
            let mut state = self.state();
            let known = state.timeline(definition, database);
            known.and_then(|known| known.followed().map(Arc::clone))
        };
        let now = clock::now();
        let survey = self.survey(definition, database, before.as_deref(), connection);
        let outcome = tokio::time::timeout(PATIENCE, survey).await;
        let outcome = outcome.unwrap_or(Err(SpreadRefusal::NotFollowedYet));
        let mut state = self.state();
        let Some(timeline) = state.timeline(definition, database) else {
            return;
        };
        timeline.is_queued = false;
        timeline.due_at = clock::now() + RETRY;
        match outcome {
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
                // Its previous status is kept until more is known.
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

    /// True if a timeline is likely to be served from here, in a session with that Spider node.
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

    /// A reader's page of one moment after this call, on all nodes; `None` if memory lacks it, or not in time.
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

    /// Each data node whose log is to be followed, and whether it is.
    #[must_use]
    pub fn nodes(&self) -> Vec<(String, bool)> {
        let state = self.state();
        let nodes = state.nodes.all().iter();
        nodes
            .map(|node| (node.address.clone(), node.is_followed()))
            .collect()
    }

    /// Bytes that the memory of all data nodes may use together.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        let state = self.state();
        let nodes = state.nodes.all().iter();
        nodes.map(|node| node.binlog.max_bytes()).sum()
    }

    /// Authors evicted from memory.
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
