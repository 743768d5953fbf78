//! Brings rows into the indexes: what calls lack at once if it is little, everything else in the background.
//!
//! | module | what it is |
//! |---|---|
//! | `schema` | where the columns stand |
//! | `load_source` | one round: follow lists, then messages of the authors on them |
//! | `message_ids`, `keyed_messages` | those messages, by what orders them |
//!
//! What is left for quiet moments is the [`Backlog`]'s.

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
use crate::index::{KeyedMessage, TimelineId, WindowItem};
use crate::log::joined_table::JoinedTable;
use crate::log::replication_state::StreamGeneration;
use crate::source::backlog::{BacklogRequest, PageBacklog, PreloadProgress};
use crate::source::id_density::IdDensity;

/// What is to be loaded.
#[derive(Debug)]
pub(super) enum LoadRequest {
    /// The columns of a place's tables.
    Schema(TimelineId),
    /// Those of a table that messages refer to.
    JoinedTable(TimelineId),
    /// All that a page needs. Told to `done`: whether it is there now.
    Page {
        timeline: TimelineId,
        page: BacklogRequest,
        done: oneshot::Sender<bool>,
    },
    /// A reader's follow list. Told to `done`: whether it is there now.
    List {
        timeline: TimelineId,
        reader: u64,
        done: oneshot::Sender<bool>,
    },
    /// What these authors' part of a page needs. Told to `done`: whether it is there now.
    PartialPage {
        timeline: TimelineId,
        request: PartialPageRequest,
        done: oneshot::Sender<bool>,
    },
    /// What a feed's candidates need. Told to `done`: whether it is there now.
    Candidates {
        timeline: TimelineId,
        request: CandidateRequest,
        done: oneshot::Sender<bool>,
    },
}

/// Loads under way at a time.
const WORKERS: usize = 2;
/// Pages that one of them takes in at a time.
const REQUESTS_PER_BATCH: usize = 16;
/// A call waits for so many authors at most: more of them are left for quiet moments.
const MAX_AWAITED_AUTHORS: usize = 256;
/// Rounds that a call waits for: follow list and authors, then ids of authors who have few new ones.
const QUICK_ROUNDS: usize = 3;
/// Rounds for candidates: so many authors are named at a time, and of each there may be more to be had below.
const CANDIDATE_ROUNDS: usize = 32;
const RETRY: Duration = Duration::from_millis(500);
/// Whatever is in the way of rows beside messages costs less, and lasts.
const RETRY_JOINED: Duration = Duration::from_secs(60);
/// Readers that are asked for at a time.
const READERS_PER_QUERY: usize = 64;

/// Loads for good.
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
        // What is left from before goes on when nobody waits, for half of the time.
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
    /// The last trouble that was logged of a place, or of a table that messages refer to.
    last_warnings: BTreeMap<TimelineId, String>,
}

/// Pages that calls wait for, with those who wait.
type PageWaiters = BTreeMap<BacklogRequest, Vec<oneshot::Sender<bool>>>;

impl LoadWorker {
    async fn process(&mut self, taken: Vec<LoadRequest>) {
        let mut pages: BTreeMap<TimelineId, PageWaiters> = BTreeMap::new();
        for load in taken {
            match load {
                // Nobody waits for it any more.
                LoadRequest::List { done, .. } | LoadRequest::PartialPage { done, .. }
                    if done.is_closed() => {}
                LoadRequest::Schema(place) => self.load_schema(place).await,
                LoadRequest::JoinedTable(place) => self.load_joined_table(place).await,
                LoadRequest::Page {
                    timeline: place,
                    page: want,
                    done,
                } => {
                    let waiting = pages.entry(place).or_default();
                    waiting.entry(want).or_default().push(done);
                }
                LoadRequest::Candidates {
                    timeline: place,
                    request: wish,
                    done,
                } => {
                    if let Some(place) = self.timeline(place) {
                        let there = self.load_candidates(&place, &wish).await;
                        self.reply(&place, there, done);
                    }
                }
                LoadRequest::List {
                    timeline: place,
                    reader,
                    done,
                } => {
                    if let Some(place) = self.timeline(place) {
                        let there = self.load_list(&place, reader).await;
                        self.reply(&place, there, done);
                    }
                }
                LoadRequest::PartialPage {
                    timeline: place,
                    request: part,
                    done,
                } => {
                    if let Some(place) = self.timeline(place) {
                        let there = self.load_partial_page(&place, &part).await;
                        self.reply(&place, there, done);
                    }
                }
            }
        }
        for (number, waiting) in pages {
            if let Some(place) = self.timeline(number) {
                let done = self.load_awaited(&place, waiting).await;
                self.log_failure(&place, done);
            }
        }
    }

    fn reply(
        &mut self,
        place: &CachedTimeline,
        there: Result<bool, BinlogError>,
        done: oneshot::Sender<bool>,
    ) {
        let _ = done.send(matches!(there, Ok(true)));
        self.log_failure(place, there.map(|_| ()));
    }

    fn timeline(&mut self, number: TimelineId) -> Option<Arc<CachedTimeline>> {
        self.sync_generation();
        self.binlog.cached_timelines().get(number.0).map(Arc::clone)
    }

    fn sync_generation(&mut self) {
        let generation = self.binlog.state().following.generation();
        if self.generation != generation {
            self.generation = generation;
            self.backlog = PageBacklog::default();
        }
    }

    fn log_failure(&mut self, place: &CachedTimeline, done: Result<(), BinlogError>) {
        if let Err(error) = done {
            let database = place.database();
            let text = format!("memory cannot be filled for {database}: {error}");
            self.warn_once(place.id(), text);
        }
    }

    /// Says it once.
    fn warn_once(&mut self, number: TimelineId, text: String) {
        if self.last_warnings.get(&number) != Some(&text) {
            tracing::warn!("{text}");
            self.last_warnings.insert(number, text);
        }
    }

    /// Asks for it again after this time, if nobody else does: all is asked for anew when the log is followed anew.
    fn retry_later(&self, load: LoadRequest, after: Duration) {
        let (binlog, generation) = (Arc::clone(&self.binlog), self.generation);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if binlog.state().following.is_current(generation) {
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
            server.filter(|_| state.following.is_current(self.generation))
        };
        let Some(server) = server else {
            return Ok(None);
        };
        let conn = self.control.take(&self.binlog, self.generation, &server);
        Ok(Some((Arc::clone(&server), conn.await?)))
    }

    async fn load_schema(&mut self, number: TimelineId) {
        let Some(place) = self.timeline(number) else {
            return;
        };
        let done = self.load_columns(&place).await;
        if let Err(error) = &done {
            if error.blocks_tables() {
                self.block_timeline(&place, error);
            }
            self.retry_later(LoadRequest::Schema(number), RETRY);
        }
        self.log_failure(&place, done);
    }

    /// Keeps a place's rows out of memory, unless the stream is another one by now: its own loader says what is in the way, and nobody would
    /// take this back.
    fn block_timeline(&self, place: &CachedTimeline, error: &BinlogError) {
        let state = self.binlog.state();
        if state.following.is_current(self.generation) {
            place.set_block_reason(Some(error.suspension(self.binlog.user())));
            drop(state);
            self.binlog.notify_suspension();
        }
    }

    async fn load_joined_table(&mut self, number: TimelineId) {
        self.sync_generation();
        let Some(table) = self.binlog.joined_table(number) else {
            return;
        };
        if let Err(error) = self.load_joined_columns(&table).await {
            let (database, name) = (&table.database, &table.table);
            let text = format!("rows that show those of {database}.{name} are not kept: {error}");
            self.warn_once(number, text);
            self.retry_later(LoadRequest::JoinedTable(number), RETRY_JOINED);
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

    async fn load_columns(&mut self, place: &CachedTimeline) -> Result<(), BinlogError> {
        let Some((_, mut conn)) = self.connection().await? else {
            return Ok(());
        };
        if schema::load_columns(&self.binlog, self.generation, place, &mut conn).await? {
            let failed = BinlogError::while_doing("the tables cannot be read");
            if let Some(top) = place.tables.max_id_query() {
                // NULL, or below 0: then nothing is known.
                let top = conn.rows(&top).await.map_err(&failed)?;
                let top = top.row(0).and_then(|row| row.u64(0));
                *place.spans() = IdDensity::with_max_id(top.unwrap_or(0));
            }
            if let Some(count) = place.tables.reader_count_query()
                && self.binlog.limits.preload
                && !place.tables.schema.elsewhere
            {
                let readers = conn.rows(&count).await.map_err(&failed)?;
                let readers = readers.row(0).and_then(|row| row.u64(0));
                let readers = readers.unwrap_or(0);
                self.backlog.preload(place.id(), readers, clock::now());
            } else {
                place.preloaded.store(true, Ordering::Relaxed);
            }
            // Their rows can be read, too.
            place.set_block_reason(None);
            self.binlog.notify_suspension();
        }
        self.control.put_back(self.generation, conn);
        Ok(())
    }

    /// Loads what calls wait for. Whoever lacks much is told so at once, and looks it up; it is loaded for the next call.
    async fn load_awaited(
        &mut self,
        place: &CachedTimeline,
        mut waiting: PageWaiters,
    ) -> Result<(), BinlogError> {
        for _ in 0..QUICK_ROUNDS {
            let wants: Vec<BacklogRequest> = waiting.keys().copied().collect();
            let left = self.load_round(place, &wants, MAX_AWAITED_AUTHORS).await?;
            for want in &left.oversized {
                self.backlog.push(place.id(), *want);
                waiting.remove(want);
            }
            // What was loaded may be used once everything before is known to be readable; and whatever is here, if it is as
            // new as those who wait.
            if !self.binlog.prove().await {
                break;
            }
            let (done, open): (PageWaiters, PageWaiters) = waiting
                .into_iter()
                .partition(|(want, _)| place.has_page(*want));
            for done in done.into_values().flatten() {
                let _ = done.send(true);
            }
            waiting = open;
            if waiting.is_empty() || !left.has_loaded {
                break;
            }
        }
        for want in waiting.into_keys() {
            if !place.follows_too_many(want.reader) {
                self.backlog.push(place.id(), want);
            }
        }
        Ok(())
    }

    /// Loads what candidates need. True if they are there then.
    async fn load_candidates(
        &mut self,
        place: &CachedTimeline,
        wish: &CandidateRequest,
    ) -> Result<bool, BinlogError> {
        let want = |reader| BacklogRequest {
            reader,
            bound: None,
            n: 0,
        };
        let readers: Vec<BacklogRequest> = wish.readers.iter().copied().map(want).collect();
        for _ in 0..CANDIDATE_ROUNDS {
            let Some((server, mut conn)) = self.connection().await? else {
                return Ok(false);
            };
            let mut source = self.source(place, &server, &mut conn);
            let lists = source.load_follows(&readers).await?;
            let missing = wish.missing(&place.index(), &lists);
            if let Some(missing) = &missing {
                let lack = |author: &u64| MissingMessages {
                    author: *author,
                    bound: wish.range.upper,
                    n: wish.required_count(),
                };
                let lacks: Vec<MissingMessages> = missing.iter().map(lack).collect();
                source.load_messages(&lacks).await?;
            }
            self.control.put_back(self.generation, conn);
            if !self.binlog.prove().await {
                return Ok(false);
            }
            if wish.newest_messages(&place.index()).is_ok() {
                return Ok(true);
            }
            // Nothing is missing that could be loaded: a list that is too long, or a load under way elsewhere.
            if missing.is_none() {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Loads a follow list. True if it is there then.
    async fn load_list(
        &mut self,
        place: &CachedTimeline,
        reader: u64,
    ) -> Result<bool, BinlogError> {
        let Some((server, mut conn)) = self.connection().await? else {
            return Ok(false);
        };
        let want = BacklogRequest {
            reader,
            bound: None,
            n: 0,
        };
        self.source(place, &server, &mut conn)
            .load_follows(&[want])
            .await?;
        self.control.put_back(self.generation, conn);
        Ok(self.binlog.prove().await && place.index().has_reader(reader))
    }

    /// Loads what these authors' part of a page needs. True if it is there then.
    async fn load_partial_page(
        &mut self,
        place: &CachedTimeline,
        part: &PartialPageRequest,
    ) -> Result<bool, BinlogError> {
        for _ in 0..CANDIDATE_ROUNDS {
            let Some(missing) = part.partial_page(&place.index()).err() else {
                return Ok(true);
            };
            let Some((server, mut conn)) = self.connection().await? else {
                return Ok(false);
            };
            let lack = |author| MissingMessages {
                author,
                bound: part.bound.map(|id| KeyedMessage::from_key_and_id(0, id)),
                n: part.n,
            };
            let lacks: Vec<MissingMessages> = missing.into_iter().map(lack).collect();
            self.source(place, &server, &mut conn)
                .load_messages(&lacks)
                .await?;
            self.control.put_back(self.generation, conn);
            if !self.binlog.prove().await {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// One round for what is left.
    async fn run_backlog(&mut self) {
        let begun = clock::now();
        let Some(number) = self.backlog.next_timeline() else {
            return;
        };
        if let Some(place) = self.timeline(number) {
            if !self.binlog.is_followed(&place, None) {
                self.backlog.postpone(clock::now());
                return;
            }
            let done = self.continue_preload(&place).await;
            if done.is_err() {
                self.backlog.drop_timeline(number);
            }
            self.log_failure(&place, done);
        }
        self.backlog.back_off(clock::since(begun), clock::now());
    }

    async fn continue_preload(&mut self, place: &CachedTimeline) -> Result<(), BinlogError> {
        if let Some(behind) = self.backlog.next_readers_after(place.id())
            && let Some(query) = place.tables.readers_query(behind, READERS_PER_QUERY)
            && let Some((_, mut conn)) = self.connection().await?
        {
            let failed = BinlogError::while_doing("the follow table cannot be read");
            let readers = conn.rows(&query).await.map_err(&failed)?;
            let readers = all_numbers::<1>(&readers).ok_or_else(load_source::not_a_number)?;
            let readers: Vec<u64> = readers.into_iter().flatten().collect();
            self.control.put_back(self.generation, conn);
            let full = place.index().is_nearly_full();
            let pages = (&*readers, place.tables.page_ids);
            let progress = self
                .backlog
                .add_readers(place.id(), pages, full, clock::now());
            if let Some(progress) = progress {
                let full = full && !readers.is_empty();
                let memory_bytes = self.binlog.budget(self.binlog.timeline_count());
                if progress.took.is_some() {
                    place.preloaded.store(true, Ordering::Relaxed);
                }
                report_preload(place, progress, full.then_some(memory_bytes));
            }
        }
        let waiting = self.backlog.next_pages(place.id());
        let wants: Vec<BacklogRequest> = waiting.iter().map(|waiting| waiting.request).collect();
        if self.load_round(place, &wants, usize::MAX).await?.has_loaded {
            self.binlog.prove().await;
        }
        // What does not fit is evicted again: there is no end to that.
        let full = place.index().is_nearly_full();
        for waiting in waiting {
            let want = waiting.request;
            if !full && !place.has_page(want) && !place.follows_too_many(want.reader) {
                self.backlog.requeue(place.id(), waiting);
            }
        }
        Ok(())
    }

    fn source<'a>(
        &'a self,
        place: &'a CachedTimeline,
        server: &ServerFacts,
        conn: &'a mut AccountConnection,
    ) -> LoadSource<'a> {
        LoadSource {
            binlog: &self.binlog,
            generation: self.generation,
            timeline: place,
            status: server.status,
            conn,
        }
    }

    /// Begins whatever these pages lack, but for those that lack more authors than this.
    async fn load_round(
        &mut self,
        place: &CachedTimeline,
        wants: &[BacklogRequest],
        most: usize,
    ) -> Result<RoundRemainder, BinlogError> {
        let mut left = RoundRemainder::default();
        if wants.is_empty() {
            return Ok(left);
        }
        let Some((server, mut conn)) = self.connection().await? else {
            return Ok(left);
        };
        let mut source = self.source(place, &server, &mut conn);
        let lists = source.load_follows(wants).await?;
        left.has_loaded = !lists.is_empty();
        let mut lacks: Vec<MissingMessages> = Vec::new();
        for want in wants {
            let list = lists.get(&want.reader);
            let missing = place
                .index()
                .missing_authors(*want, list.map(Vec::as_slice));
            if missing.len() > most {
                left.oversized.push(*want);
            } else {
                lacks.extend(missing.into_iter().map(|author| MissingMessages {
                    author,
                    bound: want.bound.map(|id| KeyedMessage::from_key_and_id(0, id)),
                    n: want.n,
                }));
            }
        }
        if !lacks.is_empty() {
            left.has_loaded = true;
            source.load_messages(&lacks).await?;
        }
        self.control.put_back(self.generation, conn);
        Ok(left)
    }
}

/// Says how far a preload has come. `full`: memory was, which is so large.
fn report_preload(place: &CachedTimeline, progress: PreloadProgress, full: Option<usize>) {
    let PreloadProgress {
        done,
        total: of,
        took,
    } = progress;
    let database = place.database();
    let Some(took) = took else {
        tracing::info!("preload of {database}: {done} of {of} readers");
        return;
    };
    let [bytes, follows, authors, ids] = place.index().sizes();
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
    /// Pages that lack too much.
    oversized: Vec<BacklogRequest>,
    /// Something was loaded.
    has_loaded: bool,
}
