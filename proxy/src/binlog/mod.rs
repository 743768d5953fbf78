//! The index's only writer: follows the server's binary log, proves that its transactions are readable, and loads missing rows.
//!
//! `stream` reads the log; the package [`headwater_log`] assembles its events into transactions. They are pending until `freshness_prover`
//! proves that the server lets them be read; then they are applied to the index of their `cached_timeline`. `load` brings in rows that are
//! not resident. Both use `control_connection` connections. `commit_fence` proves the same for what was committed before the stream began.
//! `settings_watch` checks what the log does not contain. If the log cannot be followed, memory is suspended; what cannot be resumed is
//! emptied and filled again.

mod cached_timeline;
mod candidates;
mod commit_fence;
mod comparisons;
mod control_connection;
mod definition_changes;
mod error;
mod foreign_keys;
mod freshness_prover;
mod history;
mod index_writer;
#[cfg(all(test, feature = "interleavings"))]
#[allow(clippy::unwrap_used, clippy::panic)]
mod interleavings;
mod lag;
mod load;
mod obstacle;
pub mod obstacle_survey;
mod partial_page;
pub mod privilege;
mod proof_request;
pub mod random;
mod replica_id;
mod resume_filter;
mod resumption;
mod row_caching;
mod row_decoding;
pub mod server_facts;
mod settings;
mod settings_watch;
mod stream;
mod suspension;
mod timeline_memory;

use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use headwater_rows::RowCache;
use tokio::sync::{Notify, Semaphore, mpsc, watch as latest};

pub use cached_timeline::CachedTimeline;
pub use candidates::{CandidateMessages, CandidateRequest, CandidateSnapshot};
use comparisons::ComparisonCounters;
use error::BinlogError;
pub use error::{REASONS, STARTING};
pub use lag::MemoryLag;
pub use partial_page::PartialPageRequest;
use proof_request::ProofRequester;
pub use settings::{
    BinlogLimits, BinlogSection, FreshnessMode, FreshnessSection, IndexSection, RowsSection,
};
pub use suspension::MemorySuspension;

use self::freshness_prover::ProofPause;
use self::load::LoadRequest;
use self::resumption::{ResumeCheckpoint, StreamEnd};
use self::server_facts::ServerFacts;
use crate::account::UpstreamAccount;
use crate::clock;
use crate::latency::LatencyHistogram;
use crate::sync::{Mutex, MutexGuard, RwLock};
use headwater_log::joined_table::JoinedTable;
pub use headwater_log::replication_state::ReplicationMark;
use headwater_log::replication_state::{ReplicationState, StreamGeneration};
use headwater_log::timeline_tables::TimelineTables;
use headwater_lookup::backlog::BacklogRequest;
use headwater_sql::NameCase;
use headwater_timeline::definition::TimelineDefinition;
use headwater_timeline::index::{TableId, TimelineId, TimelinePage};

/// The most timelines in memory; calls of others are served by lookups.
pub const MAX_TIMELINES: usize = 64;
/// The most tables whose rows are shown beside messages; rows that show others are not cached.
pub const MAX_JOINED_TABLES: usize = 64;
/// The most pending loads; the next call requests again what does not fit.
const MAX_PENDING_LOADS: usize = 10_000;

/// Follows one server's log for all sessions.
#[derive(Debug)]
pub struct Binlog {
    account: UpstreamAccount,
    /// The server id of its stream.
    replica_id: replica_id::ReplicaId,
    freshness: FreshnessSection,
    limits: BinlogLimits,
    state: Mutex<BinlogState>,
    timelines: RwLock<Vec<Arc<CachedTimeline>>>,
    /// Tables that messages refer to. Their ids follow those of all timelines.
    joined_tables: RwLock<Vec<Arc<JoinedTable>>>,
    /// Why the log is not followed; `None` while it is followed.
    suspension: latest::Sender<Option<MemorySuspension>>,
    /// Notified when something was received, released or lost.
    progress: Notify,
    /// Somebody has read rows whose last changes are not known to be readable.
    edits_wanted: Notify,
    /// Notified when another server is to be followed.
    primary_changed: Notify,
    /// Notified when a statement in the log, or before it, may have changed a definition.
    pub changed: Notify,
    /// How the server compares names of databases and tables.
    case: latest::Sender<NameCase>,
    definition_changes: definition_changes::DefinitionChanges,
    /// Notified when tables to follow were added.
    rerouted: Notify,
    /// Statements of the log that were unreadable or logged in place of rows; each has emptied memory.
    unreadable: AtomicU64,
    /// Counts changes of the routes, so that the stream need not compare them with every event.
    routes_version: AtomicU64,
    /// Held while the list of open transactions is polled: the server does not renew it while two clients do.
    listing: tokio::sync::Mutex<()>,
    /// How often rows and log contradicted each other.
    contradictions: AtomicU64,
    /// Cached rows, as the server sent them; `None` if caching is off.
    row_cache: Option<Arc<RowCache>>,
    /// Permits for replies whose rows wait to be cached.
    fill_permits: Arc<Semaphore>,
    proof_requester: ProofRequester,
    proofs: LatencyHistogram,
    proof_pause: Mutex<ProofPause>,
    /// How the timelines' tables were defined in the current stream.
    table_fingerprints: Mutex<HashMap<TableId, String>>,
    /// Number of streams that resumed memory.
    resumed: AtomicU64,
    /// Compares entries filled from another server, or an earlier run of it, with the rows loaded now.
    comparisons: ComparisonCounters,
    /// Number of other servers' logs that share this memory.
    sharing_logs: AtomicUsize,
    /// Bytes of memory for all timelines.
    total_bytes: AtomicUsize,
    closed: AtomicBool,
    closing: Notify,
    /// For tasks that outlive the caller.
    weak_self: Weak<Binlog>,
    loads: mpsc::Sender<LoadRequest>,
}

#[derive(Debug)]
struct BinlogState {
    replication: ReplicationState,
    server: Option<Arc<ServerFacts>>,
    restart_reason: Option<BinlogError>,
    /// The base name of its log files, before the number.
    log_base_name: String,
    filled_since: Instant,
    /// The position of memory in the log is not known yet.
    seeking: bool,
    /// Suspended memory of the lost stream, until the next stream begins.
    checkpoint: Option<Arc<ResumeCheckpoint>>,
    /// Where the stream ended, if the next one continues at once.
    stream_end: Option<StreamEnd>,
    lag: lag::LagRecord,
}

impl BinlogState {
    /// True if this timeline can be served from memory; with `identity`, in a session with that server.
    fn may_answer(&self, timeline: &CachedTimeline, identity: Option<&[u8]>) -> bool {
        self.replication.is_proven_for(timeline.id())
            && self.server.as_ref().is_some_and(|server| {
                identity.is_none_or(|identity| server.identity.as_bytes() == identity)
            })
    }
}

/// Whether a page can be served from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageResidency {
    /// The page is not in memory.
    No,
    /// The page is resident.
    Resident,
    /// The page was loaded just now, and proved to be fresh.
    Fetched,
}

/// Receives the load requests: passed to [`Binlog::run`].
#[derive(Debug)]
pub struct BinlogInbox {
    loads: mpsc::Receiver<LoadRequest>,
}

impl Binlog {
    /// A binlog that uses the service account. It does nothing until [`Self::run`].
    #[must_use]
    pub fn new(
        account: UpstreamAccount,
        freshness: FreshnessSection,
        limits: BinlogLimits,
    ) -> (Arc<Binlog>, BinlogInbox) {
        let (loads, wanted) = mpsc::channel(MAX_PENDING_LOADS);
        let binlog = Arc::new_cyclic(|me| Binlog {
            account,
            replica_id: replica_id::ReplicaId::draw(),
            freshness,
            limits,
            state: Mutex::new(BinlogState {
                replication: ReplicationState::new(true),
                server: None,
                restart_reason: None,
                log_base_name: String::new(),
                filled_since: clock::now(),
                seeking: false,
                checkpoint: None,
                stream_end: None,
                lag: lag::LagRecord::default(),
            }),
            suspension: latest::Sender::new(Some(MemorySuspension {
                reason: STARTING,
                text: "the server's log is not followed yet".to_owned(),
                cure: None,
            })),
            timelines: RwLock::default(),
            joined_tables: RwLock::default(),
            progress: Notify::new(),
            edits_wanted: Notify::new(),
            primary_changed: Notify::new(),
            changed: Notify::new(),
            case: latest::Sender::new(NameCase::Sensitive),
            definition_changes: definition_changes::DefinitionChanges::default(),
            rerouted: Notify::new(),
            unreadable: AtomicU64::new(0),
            routes_version: AtomicU64::new(0),
            listing: tokio::sync::Mutex::default(),
            contradictions: AtomicU64::new(0),
            row_cache: (limits.rows_bytes > 0).then(|| Arc::new(RowCache::new(limits.rows_bytes))),
            fill_permits: Arc::new(Semaphore::new(row_caching::MAX_PENDING_FILLS)),
            proof_requester: ProofRequester::new(Duration::from_millis(freshness.wait_ms)),
            proofs: LatencyHistogram::default(),
            proof_pause: Mutex::new(ProofPause::default()),
            table_fingerprints: Mutex::default(),
            resumed: AtomicU64::new(0),
            comparisons: ComparisonCounters::default(),
            sharing_logs: AtomicUsize::new(0),
            total_bytes: AtomicUsize::new(limits.index_bytes),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            weak_self: me.clone(),
            loads,
        });
        (binlog, BinlogInbox { loads: wanted })
    }

    /// The freshness mode: the setting's name, with its bound if it has one.
    #[must_use]
    pub fn mode(&self) -> String {
        self.freshness.to_string()
    }

    /// The bounds of following the log, and of memory.
    #[must_use]
    pub fn limits(&self) -> &BinlogLimits {
        &self.limits
    }

    /// How many statements of the log were unreadable or logged in place of rows; each has emptied memory.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Follows the server's log forever.
    ///
    /// Boxed, so that no other package compiles it again.
    pub fn run(self: Arc<Self>, inbox: BinlogInbox) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            tokio::join!(
                stream::run(Arc::clone(&self)),
                freshness_prover::pump(Arc::clone(&self)),
                settings_watch::run(Arc::clone(&self)),
                commit_fence::prove_edits_readable(Arc::clone(&self)),
                load::run(Arc::clone(&self), inbox.loads),
            );
        })
    }

    /// The cached timeline of these tables, whatever id they carry; new tables are followed from now on. `None` beyond [`MAX_TIMELINES`].
    pub fn cached_timeline(&self, tables: TimelineTables) -> Option<Arc<CachedTimeline>> {
        let known = |timelines: &[Arc<CachedTimeline>]| {
            let mut timelines = timelines.iter();
            timelines
                .find(|timeline| timeline.has_tables(&tables))
                .map(Arc::clone)
        };
        if let Some(timeline) = known(&self.cached_timelines()) {
            return Some(timeline);
        }
        let mut state = self.state();
        let mut timelines = self
            .timelines
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(timeline) = known(&timelines) {
            return Some(timeline);
        }
        if timelines.len() >= MAX_TIMELINES {
            return None;
        }
        let tables = TimelineTables {
            timeline_id: TimelineId(timelines.len()),
            ..tables
        };
        let budget = self.budget(timelines.len() + 1);
        for timeline in timelines.iter() {
            timeline.set_budget(budget);
        }
        let timeline = Arc::new(CachedTimeline::new(tables, budget));
        timelines.push(Arc::clone(&timeline));
        state.replication.add_routes(timeline.tables.blind_routes());
        state.restart_reason = Some(BinlogError::TimelineAdded);
        drop(timelines);
        drop(state);
        self.routes_changed();
        self.load(LoadRequest::Schema(timeline.id()));
        Some(timeline)
    }

    fn budget(&self, timelines: usize) -> usize {
        let others = self.sharing_logs.load(Ordering::Relaxed);
        let share =
            self.total_bytes.load(Ordering::Relaxed) / timelines.saturating_add(others).max(1);
        self.limits.memory_bytes.min(share)
    }

    /// Bytes that all timelines may use together.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        let timelines = self.timeline_count();
        self.budget(timelines).saturating_mul(timelines)
    }

    /// Follows a table that messages refer to, whatever id it carries; returns its id. `None` beyond [`MAX_JOINED_TABLES`].
    pub fn register_joined_table(&self, table: JoinedTable) -> Option<TableId> {
        let mut state = self.state();
        let mut all = self
            .joined_tables
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.is_same_table(&table)) {
            return Some(known.table_id);
        }
        if all.len() >= MAX_JOINED_TABLES {
            return None;
        }
        let table_id = TableId::Joined(all.len());
        let table = JoinedTable { table_id, ..table };
        state.replication.add_routes([table.blind_route()]);
        all.push(Arc::new(table));
        drop(all);
        drop(state);
        self.routes_changed();
        self.load(LoadRequest::JoinedTable(table_id));
        Some(table_id)
    }

    fn joined_tables(&self) -> Vec<Arc<JoinedTable>> {
        let all = self.joined_tables.read();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn joined_table(&self, table_id: TableId) -> Option<Arc<JoinedTable>> {
        let mut all = self.joined_tables().into_iter();
        all.find(|table| table.table_id == table_id)
    }

    /// The cached timeline of a definition in a database.
    pub fn timeline_of(
        &self,
        definition: &TimelineDefinition,
        database: &str,
    ) -> Option<Arc<CachedTimeline>> {
        self.cached_timeline(TimelineTables::of(TimelineId(0), definition, database))
    }

    /// The cached follow list of a reader of this definition, in whatever database.
    #[must_use]
    pub fn follows_of(&self, definition: &TimelineDefinition, reader: u64) -> Option<Vec<u64>> {
        let names = TimelineTables::of(TimelineId(0), definition, "").schema;
        let timelines = self.cached_timelines().into_iter();
        let mut matching = timelines.filter(|timeline| timeline.tables.schema.satisfies(&names));
        matching.find_map(|timeline| timeline.index().follows(reader))
    }

    /// Requests a load, and waits in the background if the queue is full: no caller will request it again.
    fn load(&self, load: LoadRequest) {
        if let Err(mpsc::error::TrySendError::Full(load)) = self.loads.try_send(load) {
            let loads = self.loads.clone();
            tokio::spawn(async move { loads.send(load).await });
        }
    }

    /// Preloads a timeline, if `index.preload` is set.
    pub fn preload(&self, definition: &TimelineDefinition, database: &str) {
        if self.limits.preload && self.timeline_of(definition, database).is_none() {
            tracing::warn!(
                "{database} is not loaded: {MAX_TIMELINES} timelines are in memory already"
            );
        }
    }

    /// True once everything to be preloaded is loaded.
    #[must_use]
    pub fn is_preloaded(&self) -> bool {
        let loaded = |timeline: &Arc<CachedTimeline>| timeline.preloaded.load(Ordering::Relaxed);
        !self.limits.preload || self.cached_timelines().iter().all(loaded)
    }

    /// Checks whether a reader's page is likely in memory and usable in a session with this server. Missing entries are loaded; this waits
    /// up to `index.wait_ms` for that.
    pub async fn page_residency(
        &self,
        timeline: &CachedTimeline,
        identity: Option<&[u8]>,
        (reader, bound, n): (u64, Option<u64>, usize),
    ) -> PageResidency {
        if !self.state().may_answer(timeline, identity) {
            return PageResidency::No;
        }
        if timeline.index().has_reader(reader) {
            return PageResidency::Resident;
        }
        if timeline.follows_too_many(reader) {
            return PageResidency::No;
        }
        match self
            .fetch(timeline, BacklogRequest { reader, bound, n })
            .await
        {
            true => PageResidency::Fetched,
            false => PageResidency::No,
        }
    }

    /// A reader's page from memory. It contains everything committed before [`Self::page_residency`] was called, and nothing that is not
    /// readable yet. `None` if memory lacks it or is too slow: then it is loaded for the next call.
    ///
    /// `identity`: the session's server. `proves`: a proof of freshness is required ([`Self::must_prove`]).
    pub async fn page(
        &self,
        timeline: &CachedTimeline,
        identity: Option<&[u8]>,
        page: (u64, Option<u64>, usize),
        proves: bool,
        likely: PageResidency,
    ) -> Option<TimelinePage> {
        let (reader, bound, n) = page;
        let limit = Duration::from_millis(self.freshness.wait_ms);
        let begun = clock::now();
        let mut proved = match likely {
            PageResidency::No => return None,
            PageResidency::Resident => !proves,
            PageResidency::Fetched => true,
        };
        for fetched in [false, true] {
            if !proved && !self.prove().await {
                return None;
            }
            if !self.state().may_answer(timeline, identity) {
                return None;
            }
            let page = timeline.index().page(reader, bound, n);
            if let Ok(page) = page {
                return Some(page);
            }
            if fetched {
                return None;
            }
            let fetch = self.fetch(timeline, BacklogRequest { reader, bound, n });
            let remaining = limit.saturating_sub(clock::since(begun));
            proved = tokio::time::timeout(remaining, fetch)
                .await
                .unwrap_or(false);
            if !proved {
                return None;
            }
        }
        None
    }

    /// A mark of this moment, for [`Self::is_timeline_unchanged`]; `None` while the log is not followed.
    #[must_use]
    pub fn mark(&self) -> Option<ReplicationMark> {
        self.state().replication.mark()
    }

    /// True if nothing readable before this call has changed a reader's timeline since the mark. Waits for a proof of freshness.
    pub async fn is_timeline_unchanged(
        &self,
        timeline: &CachedTimeline,
        mark: ReplicationMark,
        reader: u64,
    ) -> bool {
        if !self.prove().await {
            return false;
        }
        let state = self.state();
        let follows = timeline.index().follows(reader);
        let number = timeline.id();
        state
            .replication
            .leaves_unchanged(mark, number, &[reader], follows.as_deref())
    }

    /// Loads what a page lacks. True if it arrives in time, proved fresh after this call.
    async fn fetch(&self, timeline: &CachedTimeline, request: BacklogRequest) -> bool {
        let timeline = timeline.id();
        self.request_load(|done| LoadRequest::Page {
            timeline,
            page: request,
            done,
        })
        .await
    }

    /// As [`Self::mark`], if this timeline can be served from memory in a session with that server.
    #[must_use]
    pub fn mark_of(&self, timeline: &CachedTimeline, identity: &[u8]) -> Option<ReplicationMark> {
        self.mark_at(timeline, Some(identity))
    }

    /// The same; without `identity`, for any session.
    #[must_use]
    pub fn mark_at(
        &self,
        timeline: &CachedTimeline,
        identity: Option<&[u8]>,
    ) -> Option<ReplicationMark> {
        let state = self.state();
        let may = state.may_answer(timeline, identity);
        may.then(|| state.replication.mark())?
    }

    /// True if a call that comes now requires a proof of freshness. `sent`: its session has sent the server anything since its last page
    /// from memory.
    #[must_use]
    pub fn must_prove(&self, sent: bool) -> bool {
        let state = self.state();
        let replication = &state.replication;
        match self.freshness.mode {
            FreshnessMode::Strict => true,
            FreshnessMode::Bounded => {
                let within = Duration::from_millis(self.freshness.bounded_ms);
                !replication.was_fresh(within, clock::now())
            }
            FreshnessMode::Session => sent || replication.last_proof().is_none(),
        }
    }

    /// True if the server followed now, or last, is a node of a Galera cluster.
    #[must_use]
    pub fn is_galera(&self) -> bool {
        let state = self.state();
        let server = state.server.as_ref();
        server.is_some_and(|server| server.session_request().galera)
    }

    /// Empties memory and fills it again.
    pub fn refill(&self) {
        self.discard_memory();
        self.state().restart_reason = Some(BinlogError::RefillRequested);
        self.routes_changed();
    }

    /// Another server is the primary: memory is suspended, and the stream restarts on that server without a wait.
    pub fn change_primary(&self) {
        self.suspend();
        self.primary_changed.notify_one();
    }

    /// Restarts the stream, if it is still this one.
    fn restart_stream(&self, generation: StreamGeneration, why: BinlogError) {
        let mut state = self.state();
        if state.replication.generation() == generation {
            state.restart_reason = Some(why);
            drop(state);
            self.routes_changed();
        }
    }

    /// The service account's user name.
    #[must_use]
    pub fn user(&self) -> &str {
        self.account.user()
    }

    /// True if memory can be proved fresh now. The calling thread requests its proofs here from now on.
    pub async fn prove_freshness_now(&self) -> bool {
        self.prove().await
    }

    /// Bytes, follows, authors and messages of all timelines in memory.
    #[must_use]
    pub fn sizes(&self) -> [usize; 4] {
        let timelines = self.cached_timelines();
        let sizes = timelines.iter().map(|timeline| timeline.index().sizes());
        sizes.fold([0; 4], |[a, b, c, d], [e, f, g, h]| {
            [a + e, b + f, c + g, d + h]
        })
    }

    /// Authors and readers evicted from all timelines.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        let timelines = self.cached_timelines();
        timelines
            .iter()
            .map(|timeline| timeline.index().evicted())
            .sum()
    }

    /// Duration of the proofs of freshness.
    #[must_use]
    pub fn proofs(&self) -> &LatencyHistogram {
        &self.proofs
    }

    /// Number of timelines in memory.
    #[must_use]
    pub fn timeline_count(&self) -> usize {
        self.cached_timelines().len()
    }

    /// Requests a proof that begins from now on, and waits for its outcome.
    pub async fn prove(&self) -> bool {
        let start = |requests| {
            if let Some(binlog) = self.weak_self.upgrade() {
                tokio::spawn(freshness_prover::run(binlog, requests));
            }
        };
        self.proof_requester.prove(start).await
    }

    fn state(&self) -> MutexGuard<'_, BinlogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached_timelines(&self) -> Vec<Arc<CachedTimeline>> {
        self.timelines
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn routes_changed(&self) {
        self.routes_version.fetch_add(1, Ordering::AcqRel);
        self.rerouted.notify_one();
    }

    /// The stream is lost: suspends memory, which stays as it is until the next stream.
    fn suspend(&self) {
        let mut state = self.state();
        if state.checkpoint.is_some() && state.replication.is_suspended() {
            return;
        }
        let (suspended, server) = (state.replication.suspend(), state.server.clone());
        let (Some(suspended), Some(server)) = (suspended, server) else {
            drop(state);
            return self.discard_memory();
        };
        for timeline in self.cached_timelines() {
            match suspended.tables.contains(&timeline.id().into()) {
                true => timeline.index_mut().suspend(),
                false => timeline.index_mut().clear(),
            }
        }
        self.row_cache.iter().for_each(|rows| rows.clear());
        state.checkpoint = Some(Arc::new(ResumeCheckpoint {
            server,
            base: state.log_base_name.clone(),
            has_position: !state.seeking,
            since: state.filled_since,
            suspended,
        }));
        drop(state);
        self.progress.notify_waiters();
    }

    /// Number of streams that resumed memory, instead of filling it again.
    #[must_use]
    pub fn resumed(&self) -> u64 {
        self.resumed.load(Ordering::Relaxed)
    }

    /// How many entries from another server's memory matched the rows loaded now, and how many did not.
    #[must_use]
    pub fn confirmed(&self) -> [u64; 2] {
        self.comparisons.counts()
    }

    fn is_mariadb(&self) -> bool {
        let server = self.state().server.clone();
        server.is_some_and(|server| server.mariadb)
    }

    fn table_fingerprints(&self) -> MutexGuard<'_, HashMap<TableId, String>> {
        self.table_fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The definitions of a timeline's tables when memory read their columns.
    fn table_fingerprint(&self, table: TableId) -> Option<String> {
        self.table_fingerprints().get(&table).cloned()
    }

    /// Discards memory: suspends the log's state, and empties every index.
    pub fn discard_memory(&self) {
        let mut state = self.state();
        state.checkpoint = None;
        state.replication.discard();
        for timeline in self.cached_timelines() {
            timeline.index_mut().clear();
        }
        self.row_cache.iter().for_each(|rows| rows.clear());
        drop(state);
        self.progress.notify_waiters();
    }
}
