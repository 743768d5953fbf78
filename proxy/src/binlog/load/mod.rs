//! Loads rows into the indexes: at once what calls lack, if it is little; the rest in the background.
//!
//! | module | what it is |
//! |---|---|
//! | `schema` | positions of the columns |
//! | `load_source` | one round: follow lists, then messages of the authors in them |
//! | `message_ids`, `keyed_messages` | those messages, by what orders them |
//!
//! What is left for idle times is in the [`PageBacklog`].

mod keyed_messages;
mod load_source;
mod message_ids;
mod schema;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};

use self::load_source::LoadSource;
use super::Binlog;
use super::cached_timeline::CachedTimeline;
use super::candidates::CandidateRequest;
use super::control_connection::ControlConnection;
use super::error::BinlogError;
use super::partial_page::PartialPageRequest;
use super::server_facts::ServerFacts;
use super::timeline_memory::MissingMessages;
use crate::account::{AccountConnection, ConnectionPurpose};
use crate::binlog::row_decoding::all_numbers;
use crate::clock;
use headwater_log::joined_table::JoinedTable;
use headwater_log::replication_state::StreamGeneration;
use headwater_lookup::backlog::{BacklogRequest, PageBacklog, PreloadProgress};
use headwater_lookup::id_density::IdDensity;
use headwater_timeline::index::{KeyedMessage, TableId, TimelineId, WindowItem};

/// A load request. `done` receives whether the entries are resident.
#[derive(Debug)]
pub(super) enum LoadRequest {
    Schema(TimelineId),
    JoinedTable(TableId),
    /// All that a page needs.
    Page {
        timeline: TimelineId,
        page: BacklogRequest,
        done: oneshot::Sender<bool>,
    },
    /// A reader's follow list.
    List {
        timeline: TimelineId,
        reader: u64,
        done: oneshot::Sender<bool>,
    },
    /// All that these authors' part of a page needs.
    PartialPage {
        timeline: TimelineId,
        request: PartialPageRequest,
        done: oneshot::Sender<bool>,
    },
    /// All that a feed's candidates need.
    Candidates {
        timeline: TimelineId,
        request: CandidateRequest,
        done: oneshot::Sender<bool>,
    },
}

/// Concurrent loads.
const WORKERS: usize = 2;
/// The most requests that one of them takes at a time.
const REQUESTS_PER_BATCH: usize = 16;
/// A call waits for this many authors at most: more are loaded in idle times.
const MAX_AWAITED_AUTHORS: usize = 256;
/// Rounds that a call waits for: follow list and authors, then ids of authors who have few new ones.
const QUICK_ROUNDS: usize = 3;
/// Rounds for candidates: each loads a limited number of authors, and each author may have more messages below.
const CANDIDATE_ROUNDS: usize = 32;
const RETRY: Duration = Duration::from_millis(500);
/// An obstacle to joined rows costs less, and lasts longer.
const RETRY_JOINED: Duration = Duration::from_secs(60);
const READERS_PER_QUERY: usize = 64;

pub(super) async fn run(binlog: Arc<Binlog>, loads: mpsc::Receiver<LoadRequest>) {
    let loads = Arc::new(Mutex::new(loads));
    let workers = (0..WORKERS).map(|_| work(Arc::clone(&binlog), Arc::clone(&loads)));
    futures_util::future::join_all(workers).await;
}

async fn work(binlog: Arc<Binlog>, loads: Arc<Mutex<mpsc::Receiver<LoadRequest>>>) {
    let mut loader = LoadWorker {
        binlog,
        control: ControlConnection::new(ConnectionPurpose::Loads),
        generation: StreamGeneration::default(),
        backlog: PageBacklog::default(),
        last_warnings: BTreeMap::new(),
    };
    loop {
        let mut taken = Vec::new();
        // The backlog runs while no request waits, for half of the time.
        match loader.backlog.due(clock::now()) {
            None => {
                if loads
                    .lock()
                    .await
                    .recv_many(&mut taken, REQUESTS_PER_BATCH)
                    .await
                    == 0
                {
                    return;
                }
            }
            Some(due) => {
                let some = async {
                    loads
                        .lock()
                        .await
                        .recv_many(&mut taken, REQUESTS_PER_BATCH)
                        .await
                };
                let _ = tokio::time::timeout_at(due.into(), some).await;
            }
        }
        if taken.is_empty() {
            loader.run_backlog().await;
        } else {
            loader.process(taken).await;
        }
    }
}

struct LoadWorker {
    binlog: Arc<Binlog>,
    control: ControlConnection,
    generation: StreamGeneration,
    backlog: PageBacklog,
    /// The last warning logged for a timeline or a joined table.
    last_warnings: BTreeMap<TableId, String>,
}

/// Pages that calls wait for, with their waiters.
type PageWaiters = BTreeMap<BacklogRequest, Vec<oneshot::Sender<bool>>>;

impl LoadWorker {
    async fn process(&mut self, taken: Vec<LoadRequest>) {
        let mut pages: BTreeMap<TimelineId, PageWaiters> = BTreeMap::new();
        for load in taken {
            match load {
                // The waiter is gone.
                LoadRequest::List { done, .. } | LoadRequest::PartialPage { done, .. }
                    if done.is_closed() => {}
                LoadRequest::Schema(timeline) => self.load_schema(timeline).await,
                LoadRequest::JoinedTable(table) => self.load_joined_table(table).await,
                LoadRequest::Page {
                    timeline,
                    page: page_request,
                    done,
                } => {
                    let waiting = pages.entry(timeline).or_default();
                    waiting.entry(page_request).or_default().push(done);
                }
                LoadRequest::Candidates {
                    timeline,
                    request: candidates,
                    done,
                } => {
                    if let Some(timeline) = self.timeline(timeline) {
                        let there = self.load_candidates(&timeline, &candidates).await;
                        self.reply(&timeline, there, done);
                    }
                }
                LoadRequest::List {
                    timeline,
                    reader,
                    done,
                } => {
                    if let Some(timeline) = self.timeline(timeline) {
                        let there = self.load_list(&timeline, reader).await;
                        self.reply(&timeline, there, done);
                    }
                }
                LoadRequest::PartialPage {
                    timeline,
                    request: part,
                    done,
                } => {
                    if let Some(timeline) = self.timeline(timeline) {
                        let there = self.load_partial_page(&timeline, &part).await;
                        self.reply(&timeline, there, done);
                    }
                }
            }
        }
        for (number, waiting) in pages {
            if let Some(timeline) = self.timeline(number) {
                let done = self.load_awaited(&timeline, waiting).await;
                self.log_failure(&timeline, done);
            }
        }
    }

    fn reply(
        &mut self,
        timeline: &CachedTimeline,
        there: Result<bool, BinlogError>,
        done: oneshot::Sender<bool>,
    ) {
        let _ = done.send(matches!(there, Ok(true)));
        self.log_failure(timeline, there.map(|_| ()));
    }

    fn timeline(&mut self, number: TimelineId) -> Option<Arc<CachedTimeline>> {
        self.sync_generation();
        self.binlog.cached_timelines().get(number.0).map(Arc::clone)
    }

    fn sync_generation(&mut self) {
        let generation = self.binlog.state().replication.generation();
        if self.generation != generation {
            self.generation = generation;
            self.backlog = PageBacklog::default();
        }
    }

    fn log_failure(&mut self, timeline: &CachedTimeline, done: Result<(), BinlogError>) {
        if let Err(error) = done {
            let database = timeline.database();
            let text = format!("memory cannot be filled for {database}: {error}");
            self.warn_once(timeline.id().into(), text);
        }
    }

    fn warn_once(&mut self, number: TableId, text: String) {
        if self.last_warnings.get(&number) != Some(&text) {
            tracing::warn!("{text}");
            self.last_warnings.insert(number, text);
        }
    }

    /// Requests a load again after this time, in the same stream: a new stream requests all loads again.
    fn retry_later(&self, load: LoadRequest, after: Duration) {
        let (binlog, generation) = (Arc::clone(&self.binlog), self.generation);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if binlog.state().replication.is_current(generation) {
                let _ = binlog.loads.try_send(load);
            }
        });
    }

    /// The server and a connection to it; `None` while its log is not followed.
    async fn connection(
        &mut self,
    ) -> Result<Option<(Arc<ServerFacts>, AccountConnection)>, BinlogError> {
        let server = {
            let state = self.binlog.state();
            let server = state.server.clone();
            server.filter(|_| state.replication.is_current(self.generation))
        };
        let Some(server) = server else {
            return Ok(None);
        };
        let conn = self.control.take(&self.binlog, self.generation, &server);
        Ok(Some((Arc::clone(&server), conn.await?)))
    }

    async fn load_schema(&mut self, number: TimelineId) {
        let Some(timeline) = self.timeline(number) else {
            return;
        };
        let done = self.load_columns(&timeline).await;
        if let Err(error) = &done {
            if error.blocks_tables() {
                self.block_timeline(&timeline, error);
            }
            self.retry_later(LoadRequest::Schema(number), RETRY);
        }
        self.log_failure(&timeline, done);
    }

    /// Blocks a timeline, unless another stream runs by now: that stream's loader finds obstacles itself, and this block would never be
    /// lifted.
    fn block_timeline(&self, timeline: &CachedTimeline, error: &BinlogError) {
        let state = self.binlog.state();
        if state.replication.is_current(self.generation) {
            timeline.set_block_reason(Some(error.suspension(self.binlog.user())));
            drop(state);
            self.binlog.notify_suspension();
        }
    }

    async fn load_joined_table(&mut self, id: TableId) {
        self.sync_generation();
        let Some(table) = self.binlog.joined_table(id) else {
            return;
        };
        if let Err(error) = self.load_joined_columns(&table).await {
            let (database, name) = (&table.database, &table.table);
            let text = format!("rows that show those of {database}.{name} are not kept: {error}");
            self.warn_once(id, text);
            self.retry_later(LoadRequest::JoinedTable(id), RETRY_JOINED);
        }
    }

    async fn load_joined_columns(&mut self, table: &JoinedTable) -> Result<(), BinlogError> {
        let Some((_, mut conn)) = self.connection().await? else {
            return Ok(());
        };
        schema::load_joined_columns(&self.binlog, self.generation, table, &mut conn).await?;
        self.control.put_back(self.generation, conn);
        Ok(())
    }

    async fn load_columns(&mut self, timeline: &CachedTimeline) -> Result<(), BinlogError> {
        let Some((_, mut conn)) = self.connection().await? else {
            return Ok(());
        };
        if schema::load_columns(&self.binlog, self.generation, timeline, &mut conn).await? {
            let failed = BinlogError::while_doing("the tables cannot be read");
            if let Some(top) = timeline.tables.max_id_query() {
                // NULL, or below 0: then nothing is known.
                let top = conn.rows(&top).await.map_err(&failed)?;
                let top = top.row(0).and_then(|row| row.u64(0));
                *timeline.spans() = IdDensity::with_max_id(top.unwrap_or(0));
            }
            if let Some(count) = timeline.tables.reader_count_query()
                && self.binlog.limits.preload
                && !timeline.tables.schema.elsewhere
            {
                let readers = conn.rows(&count).await.map_err(&failed)?;
                let readers = readers.row(0).and_then(|row| row.u64(0));
                let readers = readers.unwrap_or(0);
                self.backlog.preload(timeline.id(), readers, clock::now());
            } else {
                timeline.preloaded.store(true, Ordering::Relaxed);
            }
            // The load succeeded, so their rows are readable too.
            timeline.set_block_reason(None);
            self.binlog.notify_suspension();
        }
        self.control.put_back(self.generation, conn);
        Ok(())
    }

    /// Loads what calls wait for. A call that lacks much fails at once and is served by lookups; its page is loaded for the next call.
    async fn load_awaited(
        &mut self,
        timeline: &CachedTimeline,
        mut waiting: PageWaiters,
    ) -> Result<(), BinlogError> {
        for _ in 0..QUICK_ROUNDS {
            let requests: Vec<BacklogRequest> = waiting.keys().copied().collect();
            let remainder = self
                .load_round(timeline, &requests, MAX_AWAITED_AUTHORS)
                .await?;
            for request in &remainder.oversized {
                self.backlog.push(timeline.id(), *request);
                waiting.remove(request);
            }
            // Loaded entries are usable once everything before them is known to be readable; resident ones, once they are as fresh as the
            // waiting calls.
            if !self.binlog.prove().await {
                break;
            }
            let (done, open): (PageWaiters, PageWaiters) = waiting
                .into_iter()
                .partition(|(request, _)| timeline.has_page(*request));
            for done in done.into_values().flatten() {
                let _ = done.send(true);
            }
            waiting = open;
            if remainder.met_negative {
                return Ok(());
            }
            if waiting.is_empty() || !remainder.has_loaded {
                break;
            }
        }
        for request in waiting.into_keys() {
            if !timeline.follows_too_many(request.reader) {
                self.backlog.push(timeline.id(), request);
            }
        }
        Ok(())
    }

    /// Loads what candidates need. True if they are resident afterwards.
    async fn load_candidates(
        &mut self,
        timeline: &CachedTimeline,
        request: &CandidateRequest,
    ) -> Result<bool, BinlogError> {
        let to_request = |reader| BacklogRequest {
            reader,
            bound: None,
            n: 0,
        };
        let readers: Vec<BacklogRequest> =
            request.readers.iter().copied().map(to_request).collect();
        for _ in 0..CANDIDATE_ROUNDS {
            let Some((server, mut conn)) = self.connection().await? else {
                return Ok(false);
            };
            let mut source = self.source(timeline, &server, &mut conn);
            let lists = source.load_follows(&readers).await?;
            let missing = request.missing(&timeline.index(), &lists);
            if let Some(missing) = &missing {
                let to_missing = |author: &u64| MissingMessages {
                    author: *author,
                    bound: request.range.upper,
                    n: request.required_count(),
                };
                let missing_messages: Vec<MissingMessages> =
                    missing.iter().map(to_missing).collect();
                source.load_messages(&missing_messages).await?;
            }
            let met_negative = source.met_negative;
            self.control.put_back(self.generation, conn);
            if !self.binlog.prove().await {
                return Ok(false);
            }
            if request.newest_messages(&timeline.index()).is_ok() {
                return Ok(true);
            }
            // Nothing can be loaded: a list is too long, or is being loaded elsewhere.
            if missing.is_none() || met_negative {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Loads a follow list. True if it is resident afterwards.
    async fn load_list(
        &mut self,
        timeline: &CachedTimeline,
        reader: u64,
    ) -> Result<bool, BinlogError> {
        let Some((server, mut conn)) = self.connection().await? else {
            return Ok(false);
        };
        let request = BacklogRequest {
            reader,
            bound: None,
            n: 0,
        };
        self.source(timeline, &server, &mut conn)
            .load_follows(&[request])
            .await?;
        self.control.put_back(self.generation, conn);
        Ok(self.binlog.prove().await && timeline.index().has_reader(reader))
    }

    /// Loads what these authors' part of a page needs. True if it is resident afterwards.
    async fn load_partial_page(
        &mut self,
        timeline: &CachedTimeline,
        part: &PartialPageRequest,
    ) -> Result<bool, BinlogError> {
        for _ in 0..CANDIDATE_ROUNDS {
            let Some(missing) = part.partial_page(&timeline.index()).err() else {
                return Ok(true);
            };
            let Some((server, mut conn)) = self.connection().await? else {
                return Ok(false);
            };
            let to_missing = |author| MissingMessages {
                author,
                bound: part.bound.map(|id| KeyedMessage::from_key_and_id(0, id)),
                n: part.n,
            };
            let missing_messages: Vec<MissingMessages> =
                missing.into_iter().map(to_missing).collect();
            let mut source = self.source(timeline, &server, &mut conn);
            source.load_messages(&missing_messages).await?;
            let met_negative = source.met_negative;
            self.control.put_back(self.generation, conn);
            if !self.binlog.prove().await {
                return Ok(false);
            }
            if met_negative {
                return Ok(part.partial_page(&timeline.index()).is_ok());
            }
        }
        Ok(false)
    }

    async fn run_backlog(&mut self) {
        let begun = clock::now();
        let Some(number) = self.backlog.next_timeline() else {
            return;
        };
        if let Some(timeline) = self.timeline(number) {
            if !self.binlog.state().may_answer(&timeline, None) {
                self.backlog.postpone(clock::now());
                return;
            }
            let done = self.continue_preload(&timeline).await;
            if done.is_err() {
                self.backlog.drop_timeline(number);
            }
            self.log_failure(&timeline, done);
        }
        self.backlog.back_off(clock::since(begun), clock::now());
    }

    async fn continue_preload(&mut self, timeline: &CachedTimeline) -> Result<(), BinlogError> {
        if let Some(last_reader) = self.backlog.next_readers_after(timeline.id())
            && let Some(query) = timeline
                .tables
                .readers_query(last_reader, READERS_PER_QUERY)
            && let Some((_, mut conn)) = self.connection().await?
        {
            let failed = BinlogError::while_doing("the follow table cannot be read");
            let readers = conn.rows(&query).await.map_err(&failed)?;
            let readers = all_numbers::<1>(&readers).ok_or_else(load_source::not_a_number)?;
            let readers: Vec<u64> = readers.into_iter().flatten().collect();
            self.control.put_back(self.generation, conn);
            let full = timeline.index().is_nearly_full();
            let pages = (&*readers, timeline.tables.page_ids);
            let progress = self
                .backlog
                .add_readers(timeline.id(), pages, full, clock::now());
            if let Some(progress) = progress {
                let full = full && !readers.is_empty();
                let memory_bytes = self.binlog.budget(self.binlog.timeline_count());
                if progress.took.is_some() {
                    timeline.preloaded.store(true, Ordering::Relaxed);
                }
                report_preload(timeline, progress, full.then_some(memory_bytes));
            }
        }
        let waiting = self.backlog.next_pages(timeline.id());
        let requests: Vec<BacklogRequest> = waiting.iter().map(|waiting| waiting.request).collect();
        let remainder = self.load_round(timeline, &requests, usize::MAX).await?;
        if remainder.has_loaded {
            self.binlog.prove().await;
        }
        // Entries that do not fit would be evicted and loaded again without end.
        let full = timeline.index().is_nearly_full();
        for waiting in waiting {
            let request = waiting.request;
            if !full
                && !remainder.met_negative
                && !timeline.has_page(request)
                && !timeline.follows_too_many(request.reader)
            {
                self.backlog.requeue(timeline.id(), waiting);
            }
        }
        Ok(())
    }

    fn source<'a>(
        &'a self,
        timeline: &'a CachedTimeline,
        server: &ServerFacts,
        conn: &'a mut AccountConnection,
    ) -> LoadSource<'a> {
        LoadSource {
            binlog: &self.binlog,
            generation: self.generation,
            timeline,
            status: server.status,
            conn,
            met_negative: false,
        }
    }

    /// Loads what these pages lack, except pages that lack more authors than `most`.
    async fn load_round(
        &mut self,
        timeline: &CachedTimeline,
        requests: &[BacklogRequest],
        most: usize,
    ) -> Result<RoundRemainder, BinlogError> {
        let mut remainder = RoundRemainder::default();
        if requests.is_empty() {
            return Ok(remainder);
        }
        let Some((server, mut conn)) = self.connection().await? else {
            return Ok(remainder);
        };
        let mut source = self.source(timeline, &server, &mut conn);
        let lists = source.load_follows(requests).await?;
        remainder.has_loaded = !lists.is_empty();
        let mut missing_messages: Vec<MissingMessages> = Vec::new();
        for request in requests {
            let list = lists.get(&request.reader);
            let missing = timeline
                .index()
                .missing_authors(*request, list.map(Vec::as_slice));
            if missing.len() > most {
                remainder.oversized.push(*request);
            } else {
                missing_messages.extend(missing.into_iter().map(|author| MissingMessages {
                    author,
                    bound: request.bound.map(|id| KeyedMessage::from_key_and_id(0, id)),
                    n: request.n,
                }));
            }
        }
        if !missing_messages.is_empty() {
            remainder.has_loaded = true;
            source.load_messages(&missing_messages).await?;
        }
        remainder.met_negative = source.met_negative;
        self.control.put_back(self.generation, conn);
        Ok(remainder)
    }
}

/// Logs the progress of a preload. `full`: the memory size, if memory was full.
fn report_preload(timeline: &CachedTimeline, progress: PreloadProgress, full: Option<usize>) {
    let PreloadProgress {
        done,
        total: of,
        took,
    } = progress;
    let database = timeline.database();
    let Some(took) = took else {
        tracing::info!("preload of {database}: {done} of {of} readers");
        return;
    };
    let [bytes, follows, authors, ids] = timeline.index().sizes();
    let end = full.map_or_else(String::new, |bytes| {
        format!("; then memory was full ({bytes} bytes, by index.memory_bytes and memory.limit), of {of} readers")
    });
    tracing::info!(
        "preload of {database}: {done} readers, {follows} follows, {authors} authors, {ids} ids, {:.0} MiB in {:.1} s{end}",
        bytes as f64 / 1_048_576.0,
        took.as_secs_f64(),
    );
}

/// What a round left undone.
#[derive(Default)]
struct RoundRemainder {
    /// Pages that lack too many authors.
    oversized: Vec<BacklogRequest>,
    has_loaded: bool,
    /// A list holds a number below 0. Who waits for it need not wait longer.
    met_negative: bool,
}
