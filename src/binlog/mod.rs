//! The index's only writer: follows the server's binary log, proves what it tells to be readable, and loads what is asked for.
//!
//! `stream` reads the log, of which the package [`crate::log`] makes transactions. They wait until `freshness_prover` has proof that the server
//! lets them be read; then they are applied to the index of their `cached_timeline`. `load` brings in rows that are not resident (both over
//! `control_connection` connections). `commit_fence` proves the same for what was committed before the stream began, `settings_watch` looks at what the log does
//! not tell. Whatever cannot be followed makes memory step aside: every index is emptied, and begun anew once the log can be followed
//! again.

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
use crate::index::{TimelineId, TimelinePage};
use crate::latency::LatencyHistogram;
use crate::log::joined_table::JoinedTable;
pub use crate::log::replication_state::ReplicationMark;
use crate::log::replication_state::{ReplicationState, StreamGeneration};
use crate::log::timeline_tables::TimelineTables;
use crate::source::backlog::BacklogRequest;
use crate::sql::NameCase;
use crate::sync::{Mutex, MutexGuard, RwLock};
use crate::timeline::definition::TimelineDefinition;

/// Timelines that are kept in memory; calls of others are answered by lookups.
pub const MAX_TIMELINES: usize = 64;
/// Tables whose rows are shown beside messages; rows that show others are not kept.
pub const MAX_JOINED_TABLES: usize = 64;
/// Loads that wait; what does not fit is asked for again by the next call.
const MAX_PENDING_LOADS: usize = 10_000;

/// Follows one server for all sessions.
#[derive(Debug)]
pub struct Binlog {
    account: UpstreamAccount,
    /// Its number as a replica.
    replica_id: replica_id::ReplicaId,
    freshness: FreshnessSection,
    limits: BinlogLimits,
    state: Mutex<BinlogState>,
    timelines: RwLock<Vec<Arc<CachedTimeline>>>,
    /// Tables that messages refer to: their numbers begin behind those of all places.
    joined_tables: RwLock<Vec<Arc<JoinedTable>>>,
    /// Why the log is not followed, while it is not.
    suspension: latest::Sender<Option<MemorySuspension>>,
    /// Something was received, released or lost.
    progress: Notify,
    /// Another server is to be followed.
    primary_changed: Notify,
    /// A statement in the log, or before it, may have changed a definition.
    pub changed: Notify,
    /// How the server compares names of databases and tables.
    case: latest::Sender<NameCase>,
    definition_changes: definition_changes::DefinitionChanges,
    /// Tables to listen to were added.
    rerouted: Notify,
    /// Statements of the log that could not be read for certain or are told in place of rows: each has emptied memory.
    unreadable: AtomicU64,
    /// Counts changes of the routes, so that the stream need not look at them with every event.
    routes_version: AtomicU64,
    /// Whoever looks at the list of open transactions: it is not renewed while two do.
    listing: tokio::sync::Mutex<()>,
    /// How often the rows and the log contradicted each other.
    contradictions: AtomicU64,
    /// Rows as the server sent them, where they are kept.
    row_cache: Option<Arc<RowCache>>,
    /// Answers of which rows may be kept.
    fill_permits: Arc<Semaphore>,
    proof_requester: ProofRequester,
    /// How long proofs took.
    proofs: LatencyHistogram,
    proof_pause: Mutex<ProofPause>,
    /// How places' tables are defined, beside the stream that there is.
    table_fingerprints: Mutex<HashMap<TimelineId, String>>,
    /// Streams that memory went on with.
    resumed: AtomicU64,
    /// How what was filled beside another server, or another run of this one, compares with the rows that are there now.
    comparisons: ComparisonCounters,
    /// Logs of other servers that this one's memory is shared with.
    sharing_logs: AtomicUsize,
    /// Bytes of memory for all timelines.
    total_bytes: AtomicUsize,
    /// It is not followed any more, for good.
    closed: AtomicBool,
    closing: Notify,
    /// Itself, for what goes on beside those who ask.
    weak_self: Weak<Binlog>,
    loads: mpsc::Sender<LoadRequest>,
}

#[derive(Debug)]
struct BinlogState {
    following: ReplicationState,
    /// The server whose log it is.
    server: Option<Arc<ServerFacts>>,
    /// Why the stream has to begin anew.
    restart_reason: Option<BinlogError>,
    /// The name of its log's files, before the number.
    log_base_name: String,
    /// Since when memory has been filled.
    filled_since: Instant,
    /// It is not known yet where in the log memory stands.
    seeking: bool,
    /// What was left of memory when a stream was lost, until there is another one.
    checkpoint: Option<Arc<ResumeCheckpoint>>,
    /// Where the stream ended that the next one follows at once.
    stream_end: Option<StreamEnd>,
    /// What is noted of how far behind memory is.
    lag: lag::LagRecord,
}

impl BinlogState {
    /// True where this place is answered from memory, in a session with that server where one is given.
    fn may_answer(&self, place: &CachedTimeline, identity: Option<&[u8]>) -> bool {
        self.following.may_serve(place.id())
            && self.server.as_ref().is_some_and(|server| {
                identity.is_none_or(|identity| server.identity.as_bytes() == identity)
            })
    }
}

/// Whether a page may be answered from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageResidency {
    /// It is not there.
    No,
    /// It was there.
    Resident,
    /// It was loaded just now, and proved to be fresh.
    Fetched,
}

/// What drives a binlog besides the sessions: given to [`Binlog::run`].
#[derive(Debug)]
pub struct BinlogInbox {
    loads: mpsc::Receiver<LoadRequest>,
}

impl Binlog {
    /// A binlog with the service account. It does nothing until [`Self::run`].
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
                following: ReplicationState::new(true),
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

    /// How fresh answers from memory are: the setting's name, with its bound where it has one.
    #[must_use]
    pub fn mode(&self) -> String {
        self.freshness.to_string()
    }

    /// Its bounds, and those of memory.
    #[must_use]
    pub fn limits(&self) -> &BinlogLimits {
        &self.limits
    }

    /// How many statements of the log could not be read for certain, or are told in place of rows: each has emptied memory.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Follows the server's log for good.
    pub async fn run(self: Arc<Self>, inbox: BinlogInbox) {
        tokio::join!(
            stream::run(Arc::clone(&self)),
            freshness_prover::pump(Arc::clone(&self)),
            settings_watch::run(Arc::clone(&self)),
            commit_fence::prove_edits_readable(Arc::clone(&self)),
            load::run(Arc::clone(&self), inbox.loads),
        );
    }

    /// The place of tables, whatever number they bear; they are listened to from now on if they were not before. `None` beyond the most
    /// that are kept in memory.
    pub fn cached_timeline(&self, tables: TimelineTables) -> Option<Arc<CachedTimeline>> {
        let known = |places: &[Arc<CachedTimeline>]| {
            let mut places = places.iter();
            places
                .find(|place| place.has_tables(&tables))
                .map(Arc::clone)
        };
        if let Some(place) = known(&self.cached_timelines()) {
            return Some(place);
        }
        let mut state = self.state();
        let mut places = self
            .timelines
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known(&places) {
            return Some(place);
        }
        if places.len() >= MAX_TIMELINES {
            return None;
        }
        let tables = TimelineTables {
            timeline_id: TimelineId(places.len()),
            ..tables
        };
        let budget = self.budget(places.len() + 1);
        for place in places.iter() {
            place.set_budget(budget);
        }
        let place = Arc::new(CachedTimeline::new(tables, budget));
        places.push(Arc::clone(&place));
        let number = place.id();
        let routes = place.tables.blind_routes();
        state.following.add_timeline(number, routes);
        state.restart_reason = Some(BinlogError::TimelineAdded);
        drop(places);
        drop(state);
        self.routes_changed();
        self.load(LoadRequest::Schema(place.id()));
        Some(place)
    }

    /// What each of so many timelines may take.
    fn budget(&self, places: usize) -> usize {
        let others = self.sharing_logs.load(Ordering::Relaxed);
        let share = self.total_bytes.load(Ordering::Relaxed) / places.saturating_add(others).max(1);
        self.limits.memory_bytes.min(share)
    }

    /// What all timelines that there are may take together.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        let places = self.timeline_count();
        self.budget(places).saturating_mul(places)
    }

    /// Listens to a table that messages refer to, whatever number it bears, and tells its number. `None` beyond the most that are
    /// listened to.
    pub fn register_joined_table(&self, table: JoinedTable) -> Option<TimelineId> {
        let mut state = self.state();
        let mut all = self
            .joined_tables
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.is_same_table(&table)) {
            return Some(known.timeline_id);
        }
        if all.len() >= MAX_JOINED_TABLES {
            return None;
        }
        let place = TimelineId(MAX_TIMELINES + all.len());
        let table = JoinedTable {
            timeline_id: place,
            ..table
        };
        state.following.add_timeline(place, [table.blind_route()]);
        all.push(Arc::new(table));
        drop(all);
        drop(state);
        self.routes_changed();
        self.load(LoadRequest::JoinedTable(place));
        Some(place)
    }

    fn joined_tables(&self) -> Vec<Arc<JoinedTable>> {
        let all = self.joined_tables.read();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn joined_table(&self, place: TimelineId) -> Option<Arc<JoinedTable>> {
        let mut all = self.joined_tables().into_iter();
        all.find(|table| table.timeline_id == place)
    }

    /// The place of a definition's timeline in a database.
    pub fn timeline_of(
        &self,
        definition: &TimelineDefinition,
        database: &str,
    ) -> Option<Arc<CachedTimeline>> {
        self.cached_timeline(TimelineTables::of(TimelineId(0), definition, database))
    }

    /// Whom a reader of this definition follows, as far as memory has it; in whatever database it has.
    #[must_use]
    pub fn follows_of(&self, definition: &TimelineDefinition, reader: u64) -> Option<Vec<u64>> {
        let names = TimelineTables::of(TimelineId(0), definition, "").schema;
        let places = self.cached_timelines().into_iter();
        let mut own = places.filter(|place| place.tables.schema.satisfies(&names));
        own.find_map(|place| place.index().follows(reader))
    }

    /// Has something loaded that nobody asks for again.
    fn load(&self, load: LoadRequest) {
        if let Err(mpsc::error::TrySendError::Full(load)) = self.loads.try_send(load) {
            let loads = self.loads.clone();
            tokio::spawn(async move { loads.send(load).await });
        }
    }

    /// Has a timeline loaded from the start, where that is set (`index.preload`).
    pub fn preload(&self, definition: &TimelineDefinition, database: &str) {
        if self.limits.preload && self.timeline_of(definition, database).is_none() {
            tracing::warn!(
                "{database} is not loaded: {MAX_TIMELINES} timelines are in memory already"
            );
        }
    }

    /// True where nothing is left of what is loaded from the start.
    #[must_use]
    pub fn is_preloaded(&self) -> bool {
        let loaded = |place: &Arc<CachedTimeline>| place.preloaded.load(Ordering::Relaxed);
        !self.limits.preload || self.cached_timelines().iter().all(loaded)
    }

    /// Looks whether a page of this reader is likely to be in memory, and may be used in a session with this server. What
    /// is missing is loaded: while this waits if it is little, else for the next call.
    pub async fn page_residency(
        &self,
        place: &CachedTimeline,
        identity: Option<&[u8]>,
        (reader, bound, n): (u64, Option<u64>, usize),
    ) -> PageResidency {
        if !self.is_followed(place, identity) {
            return PageResidency::No;
        }
        if place.index().has_reader(reader) {
            return PageResidency::Resident;
        }
        if place.follows_too_many(reader) {
            return PageResidency::No;
        }
        match self.fetch(place, BacklogRequest { reader, bound, n }).await {
            true => PageResidency::Fetched,
            false => PageResidency::No,
        }
    }

    /// A reader's page from memory, with everything in it that was committed before [`Self::page_residency`] was asked, and
    /// nothing that cannot be read yet. `None` where memory has not got it, or not in time: then it is loaded for the next
    /// call.
    ///
    /// `identity` is the server that the session talks to; `proves`: that memory is fresh has to be proved ([`Self::must_prove`]).
    pub async fn page(
        &self,
        place: &CachedTimeline,
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
            if !self.is_followed(place, identity) {
                return None;
            }
            let page = place.index().page(reader, bound, n);
            if let Ok(page) = page {
                return Some(page);
            }
            if fetched {
                return None;
            }
            let fetch = self.fetch(place, BacklogRequest { reader, bound, n });
            let left = limit.saturating_sub(clock::since(begun));
            proved = tokio::time::timeout(left, fetch).await.unwrap_or(false);
            if !proved {
                return None;
            }
        }
        None
    }

    /// This moment, for [`Self::is_timeline_unchanged`]; `None` while the log is not followed.
    #[must_use]
    pub fn mark(&self) -> Option<ReplicationMark> {
        self.state().following.mark()
    }

    /// True if nothing that could be read since then, or before this was asked, has changed a reader's timeline.
    pub async fn is_timeline_unchanged(
        &self,
        place: &CachedTimeline,
        mark: ReplicationMark,
        reader: u64,
    ) -> bool {
        if !self.prove().await {
            return false;
        }
        let state = self.state();
        let follows = place.index().follows(reader);
        let number = place.id();
        state
            .following
            .leaves_unchanged(mark, number, &[reader], follows.as_deref())
    }

    /// Has what a page lacks loaded. True if it is there soon: with a proof of freshness that was begun after this.
    async fn fetch(&self, place: &CachedTimeline, want: BacklogRequest) -> bool {
        let place = place.id();
        self.request_load(|done| LoadRequest::Page {
            timeline: place,
            page: want,
            done,
        })
        .await
    }

    fn is_followed(&self, place: &CachedTimeline, identity: Option<&[u8]>) -> bool {
        self.state().may_answer(place, identity)
    }

    /// As [`Self::mark`], where this place may be answered from memory in a session with that server.
    #[must_use]
    pub fn mark_of(&self, place: &CachedTimeline, identity: &[u8]) -> Option<ReplicationMark> {
        self.mark_at(place, Some(identity))
    }

    /// The same, in whatever session where none is given.
    #[must_use]
    pub fn mark_at(
        &self,
        place: &CachedTimeline,
        identity: Option<&[u8]>,
    ) -> Option<ReplicationMark> {
        let state = self.state();
        let may = state.may_answer(place, identity);
        may.then(|| state.following.mark())?
    }

    /// True when freshness has to be proved for a call that comes now; `sent`: its session has asked the server for anything since its last
    /// page from memory.
    #[must_use]
    pub fn must_prove(&self, sent: bool) -> bool {
        let state = self.state();
        let following = &state.following;
        match self.freshness.mode {
            FreshnessMode::Strict => true,
            FreshnessMode::Bounded => {
                let within = Duration::from_millis(self.freshness.bounded_ms);
                !following.was_fresh(within, clock::now())
            }
            FreshnessMode::Session => sent || following.last_proof().is_none(),
        }
    }

    /// True where the server whose log is followed, or was last, is a node of a Galera cluster.
    #[must_use]
    pub fn is_galera(&self) -> bool {
        let state = self.state();
        let server = state.server.as_ref();
        server.is_some_and(|server| server.session_request().galera)
    }

    /// Empties memory, and has it filled anew.
    pub fn refill(&self) {
        self.discard_memory();
        self.state().restart_reason = Some(BinlogError::RefillRequested);
        self.routes_changed();
    }

    /// Another server is the primary: nothing is answered from memory, the stream ends at once, and begins on that one without a wait.
    pub fn change_primary(&self) {
        self.suspend();
        self.primary_changed.notify_one();
    }

    /// Has the stream begin anew.
    fn restart_stream(&self, generation: StreamGeneration, why: BinlogError) {
        let mut state = self.state();
        if state.following.generation() == generation {
            state.restart_reason = Some(why);
            drop(state);
            self.routes_changed();
        }
    }

    /// The service account's name.
    #[must_use]
    pub fn user(&self) -> &str {
        self.account.user()
    }

    /// True if it can be proved now that memory is up to date. Whoever asks here is asked for by this thread from now on.
    pub async fn prove_freshness_now(&self) -> bool {
        self.prove().await
    }

    /// Bytes, follows, authors and messages of all timelines in memory.
    #[must_use]
    pub fn sizes(&self) -> [usize; 4] {
        let places = self.cached_timelines();
        let sizes = places.iter().map(|place| place.index().sizes());
        sizes.fold([0; 4], |[a, b, c, d], [e, f, g, h]| {
            [a + e, b + f, c + g, d + h]
        })
    }

    /// How many authors and readers have made room for others in all timelines.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        let places = self.cached_timelines();
        places.iter().map(|place| place.index().evicted()).sum()
    }

    /// How long proofs of freshness took.
    #[must_use]
    pub fn proofs(&self) -> &LatencyHistogram {
        &self.proofs
    }

    /// How many timelines are in memory.
    #[must_use]
    pub fn timeline_count(&self) -> usize {
        self.cached_timelines().len()
    }

    /// Asks for a proof that is begun from now on, and waits for it.
    pub async fn prove(&self) -> bool {
        let start = |asks| {
            if let Some(binlog) = self.weak_self.upgrade() {
                tokio::spawn(freshness_prover::run(binlog, asks));
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

    /// The stream is lost: nothing is answered from memory, which is left as it is until there is another one.
    fn suspend(&self) {
        let mut state = self.state();
        if state.checkpoint.is_some() && state.following.is_suspended() {
            return;
        }
        let (left, server) = (state.following.suspend_memory(), state.server.clone());
        let (Some(left), Some(server)) = (left, server) else {
            drop(state);
            return self.discard_memory();
        };
        for place in self.cached_timelines() {
            match left.timeline_ids.contains(&place.id()) {
                true => place.index_mut().suspend(),
                false => place.index_mut().clear(),
            }
        }
        self.row_cache.iter().for_each(|rows| rows.clear());
        state.checkpoint = Some(Arc::new(ResumeCheckpoint {
            server,
            base: state.log_base_name.clone(),
            has_position: !state.seeking,
            since: state.filled_since,
            suspended: left,
        }));
        drop(state);
        self.progress.notify_waiters();
    }

    /// How many streams memory went on with, in place of being filled anew.
    #[must_use]
    pub fn resumed(&self) -> u64 {
        self.resumed.load(Ordering::Relaxed)
    }

    /// How many entries of another server's memory were compared with the rows that are there now and equal, and how many were not.
    #[must_use]
    pub fn confirmed(&self) -> [u64; 2] {
        self.comparisons.counts()
    }

    fn is_mariadb(&self) -> bool {
        let server = self.state().server.clone();
        server.is_some_and(|server| server.mariadb)
    }

    fn table_fingerprints(&self) -> MutexGuard<'_, HashMap<TimelineId, String>> {
        self.table_fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// How a place's tables were defined when memory learned of them.
    fn table_fingerprint(&self, place: TimelineId) -> Option<String> {
        self.table_fingerprints().get(&place).cloned()
    }

    /// Stands aside: nothing in memory is used any more.
    pub fn discard_memory(&self) {
        let mut state = self.state();
        state.checkpoint = None;
        state.following.suspend();
        for place in self.cached_timelines() {
            place.index_mut().clear();
        }
        self.row_cache.iter().for_each(|rows| rows.clear());
        drop(state);
        self.progress.notify_waiters();
    }
}
