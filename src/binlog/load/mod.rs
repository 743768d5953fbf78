//! Brings rows into the indexes: what calls lack at once if it is little, everything else in the background.
//!
//! | module | what it is |
//! |---|---|
//! | `schema` | where the columns stand |
//! | `fill` | one round: follow lists, then messages of the authors on them |
//! | `ids`, `keyed` | those messages, by what orders them |
//!
//! What is left for quiet moments is the [`Backlog`]'s.

mod fill;
mod ids;
mod keyed;
mod schema;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};

use self::fill::Source;
use super::Binlog;
use super::control::Control;
use super::error::BinlogError;
use super::feed::Wish;
use super::memory::Lack;
use super::obstacles::ServerFacts;
use super::place::Place;
use super::spread::Part;
use crate::account::{Conn, Purpose};
use crate::binlog::rows::all;
use crate::clock;
use crate::index::{Item, Keyed, PlaceId};
use crate::log::following::Generation;
use crate::log::referred::Referred;
use crate::source::backlog::{Backlog, Progress, Want};
use crate::source::spans::Spans;

/// What is to be loaded.
#[derive(Debug)]
pub(super) enum Load {
    /// The columns of a place's tables.
    Schema(PlaceId),
    /// Those of a table that messages refer to.
    Referred(PlaceId),
    /// All that a page needs. Told to `done`: whether it is there now.
    Page {
        place: PlaceId,
        want: Want,
        done: oneshot::Sender<bool>,
    },
    /// A reader's follow list. Told to `done`: whether it is there now.
    List {
        place: PlaceId,
        reader: u64,
        done: oneshot::Sender<bool>,
    },
    /// What these authors' part of a page needs. Told to `done`: whether it is there now.
    Part {
        place: PlaceId,
        part: Part,
        done: oneshot::Sender<bool>,
    },
    /// What a feed's candidates need. Told to `done`: whether it is there now.
    Candidates {
        place: PlaceId,
        wish: Wish,
        done: oneshot::Sender<bool>,
    },
}

/// Loads under way at a time.
const WORKERS: usize = 2;
/// Pages that one of them takes in at a time.
const TAKEN: usize = 16;
/// A call waits for so many authors at most: more of them are left for quiet moments.
const FEW: usize = 256;
/// Rounds that a call waits for: follow list and authors, then ids of authors who have few new ones.
const QUICK_ROUNDS: usize = 3;
/// Rounds for candidates: so many authors are named at a time, and of each there may be more to be had below.
const GATHERED_ROUNDS: usize = 32;
const RETRY: Duration = Duration::from_millis(500);
/// Whatever is in the way of rows beside messages costs less, and lasts.
const RETRY_REFERRED: Duration = Duration::from_secs(60);
/// Readers that are asked for at a time.
const READERS: usize = 64;

/// Loads for good.
pub(super) async fn run(binlog: Arc<Binlog>, loads: mpsc::Receiver<Load>) {
    let loads = Arc::new(Mutex::new(loads));
    let workers = (0..WORKERS).map(|_| work(Arc::clone(&binlog), Arc::clone(&loads)));
    futures_util::future::join_all(workers).await;
}

async fn work(binlog: Arc<Binlog>, loads: Arc<Mutex<mpsc::Receiver<Load>>>) {
    let mut loader = Loader {
        binlog,
        control: Control::new(Purpose::Loads),
        generation: Generation::default(),
        backlog: Backlog::default(),
        said: BTreeMap::new(),
    };
    loop {
        let mut taken = Vec::new();
        // What is left from before goes on when nobody waits, for half of the time.
        match loader.backlog.due(clock::now()) {
            None => {
                if loads.lock().await.recv_many(&mut taken, TAKEN).await == 0 {
                    return;
                }
            }
            Some(due) => {
                let some = async { loads.lock().await.recv_many(&mut taken, TAKEN).await };
                let _ = tokio::time::timeout_at(due.into(), some).await;
            }
        }
        if taken.is_empty() {
            loader.catch_up().await;
        } else {
            loader.take(taken).await;
        }
    }
}

struct Loader {
    binlog: Arc<Binlog>,
    control: Control,
    generation: Generation,
    backlog: Backlog,
    /// The last trouble that was logged of a place, or of a table that messages refer to.
    said: BTreeMap<PlaceId, String>,
}

/// Pages that calls wait for, with those who wait.
type Waiting = BTreeMap<Want, Vec<oneshot::Sender<bool>>>;

impl Loader {
    async fn take(&mut self, taken: Vec<Load>) {
        let mut pages: BTreeMap<PlaceId, Waiting> = BTreeMap::new();
        for load in taken {
            match load {
                // Nobody waits for it any more.
                Load::List { done, .. } | Load::Part { done, .. } if done.is_closed() => {}
                Load::Schema(place) => self.schema(place).await,
                Load::Referred(place) => self.referred(place).await,
                Load::Page { place, want, done } => {
                    let waiting = pages.entry(place).or_default();
                    waiting.entry(want).or_default().push(done);
                }
                Load::Candidates { place, wish, done } => {
                    if let Some(place) = self.place(place) {
                        let there = self.gather(&place, &wish).await;
                        self.tell(&place, there, done);
                    }
                }
                Load::List {
                    place,
                    reader,
                    done,
                } => {
                    if let Some(place) = self.place(place) {
                        let there = self.list(&place, reader).await;
                        self.tell(&place, there, done);
                    }
                }
                Load::Part { place, part, done } => {
                    if let Some(place) = self.place(place) {
                        let there = self.part(&place, &part).await;
                        self.tell(&place, there, done);
                    }
                }
            }
        }
        for (number, waiting) in pages {
            if let Some(place) = self.place(number) {
                let done = self.quickly(&place, waiting).await;
                self.complain(&place, done);
            }
        }
    }

    fn tell(
        &mut self,
        place: &Place,
        there: Result<bool, BinlogError>,
        done: oneshot::Sender<bool>,
    ) {
        let _ = done.send(matches!(there, Ok(true)));
        self.complain(place, there.map(|_| ()));
    }

    fn place(&mut self, number: PlaceId) -> Option<Arc<Place>> {
        self.keep_up();
        self.binlog.places().get(number.0).map(Arc::clone)
    }

    fn keep_up(&mut self) {
        let generation = self.binlog.state().following.generation();
        if self.generation != generation {
            self.generation = generation;
            self.backlog = Backlog::default();
        }
    }

    fn complain(&mut self, place: &Place, done: Result<(), BinlogError>) {
        if let Err(error) = done {
            let database = place.database();
            let text = format!("memory cannot be filled for {database}: {error}");
            self.warn(place.number(), text);
        }
    }

    /// Says it once.
    fn warn(&mut self, number: PlaceId, text: String) {
        if self.said.get(&number) != Some(&text) {
            tracing::warn!("{text}");
            self.said.insert(number, text);
        }
    }

    /// Asks for it again after this time, if nobody else does: all is asked for anew when the log is followed anew.
    fn again(&self, load: Load, after: Duration) {
        let (binlog, generation) = (Arc::clone(&self.binlog), self.generation);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if binlog.state().following.is_current(generation) {
                let _ = binlog.loads.try_send(load);
            }
        });
    }

    /// The server and a connection to it; `None` while its log is not followed.
    async fn connection(&mut self) -> Result<Option<(Arc<ServerFacts>, Conn)>, BinlogError> {
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

    async fn schema(&mut self, number: PlaceId) {
        let Some(place) = self.place(number) else {
            return;
        };
        let done = self.learn(&place).await;
        if let Err(error) = &done {
            if error.bars_tables() {
                self.bar(&place, error);
            }
            self.again(Load::Schema(number), RETRY);
        }
        self.complain(&place, done);
    }

    /// Keeps a place's rows out of memory, unless the stream is another one by now: its own loader says what is in the way, and nobody would
    /// take this back.
    fn bar(&self, place: &Place, error: &BinlogError) {
        let state = self.binlog.state();
        if state.following.is_current(self.generation) {
            place.learns(Some(error.aside(self.binlog.user())));
            drop(state);
            self.binlog.tell_asides();
        }
    }

    async fn referred(&mut self, number: PlaceId) {
        self.keep_up();
        let Some(table) = self.binlog.referred_at(number) else {
            return;
        };
        if let Err(error) = self.learn_referred(&table).await {
            let (database, name) = (&table.database, &table.table);
            let text = format!("rows that show those of {database}.{name} are not kept: {error}");
            self.warn(number, text);
            self.again(Load::Referred(number), RETRY_REFERRED);
        }
    }

    async fn learn_referred(&mut self, table: &Referred) -> Result<(), BinlogError> {
        let Some((_, mut conn)) = self.connection().await? else {
            return Ok(());
        };
        schema::learn_referred(&self.binlog, self.generation, table, &mut conn).await?;
        self.control.put_back(self.generation, conn);
        Ok(())
    }

    async fn learn(&mut self, place: &Place) -> Result<(), BinlogError> {
        let Some((_, mut conn)) = self.connection().await? else {
            return Ok(());
        };
        if schema::learn(&self.binlog, self.generation, place, &mut conn).await? {
            let failed = BinlogError::while_doing("the tables cannot be read");
            if let Some(top) = place.tables.top_query() {
                // NULL, or below 0: then nothing is known.
                let top = conn.rows(&top).await.map_err(&failed)?;
                let top = top.row(0).and_then(|row| row.u64(0));
                *place.spans() = Spans::below(top.unwrap_or(0));
            }
            if let Some(count) = place.tables.count_query()
                && self.binlog.limits.preload
                && !place.tables.names.elsewhere
            {
                let readers = conn.rows(&count).await.map_err(&failed)?;
                let readers = readers.row(0).and_then(|row| row.u64(0));
                let readers = readers.unwrap_or(0);
                self.backlog.preload(place.number(), readers, clock::now());
            } else {
                place.preloaded.store(true, Ordering::Relaxed);
            }
            // Their rows can be read, too.
            place.learns(None);
            self.binlog.tell_asides();
        }
        self.control.put_back(self.generation, conn);
        Ok(())
    }

    /// Loads what calls wait for. Whoever lacks much is told so at once, and looks it up; it is loaded for the next call.
    async fn quickly(&mut self, place: &Place, mut waiting: Waiting) -> Result<(), BinlogError> {
        for _ in 0..QUICK_ROUNDS {
            let wants: Vec<Want> = waiting.keys().copied().collect();
            let left = self.round(place, &wants, FEW).await?;
            for want in &left.much {
                self.backlog.push(place.number(), *want);
                waiting.remove(want);
            }
            // What was loaded may be used once everything before is known to be readable; and whatever is here, if it is as
            // new as those who wait.
            if !self.binlog.prove().await {
                break;
            }
            let (done, open): (Waiting, Waiting) =
                waiting.into_iter().partition(|(want, _)| place.has(*want));
            for done in done.into_values().flatten() {
                let _ = done.send(true);
            }
            waiting = open;
            if waiting.is_empty() || !left.began {
                break;
            }
        }
        for want in waiting.into_keys() {
            if !place.follows_too_many(want.reader) {
                self.backlog.push(place.number(), want);
            }
        }
        Ok(())
    }

    /// Loads what candidates need. True if they are there then.
    async fn gather(&mut self, place: &Place, wish: &Wish) -> Result<bool, BinlogError> {
        let want = |reader| Want {
            reader,
            bound: None,
            n: 0,
        };
        let readers: Vec<Want> = wish.readers.iter().copied().map(want).collect();
        for _ in 0..GATHERED_ROUNDS {
            let Some((server, mut conn)) = self.connection().await? else {
                return Ok(false);
            };
            let mut source = self.source(place, &server, &mut conn);
            let lists = source.follows(&readers).await?;
            let missing = wish.missing(&place.index(), &lists);
            if let Some(missing) = &missing {
                let lack = |author: &u64| Lack {
                    author: *author,
                    bound: wish.range.upper,
                    n: wish.most(),
                };
                let lacks: Vec<Lack> = missing.iter().map(lack).collect();
                source.messages(&lacks).await?;
            }
            self.control.put_back(self.generation, conn);
            if !self.binlog.prove().await {
                return Ok(false);
            }
            if wish.of(&place.index()).is_ok() {
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
    async fn list(&mut self, place: &Place, reader: u64) -> Result<bool, BinlogError> {
        let Some((server, mut conn)) = self.connection().await? else {
            return Ok(false);
        };
        let want = Want {
            reader,
            bound: None,
            n: 0,
        };
        self.source(place, &server, &mut conn)
            .follows(&[want])
            .await?;
        self.control.put_back(self.generation, conn);
        Ok(self.binlog.prove().await && place.index().has_reader(reader))
    }

    /// Loads what these authors' part of a page needs. True if it is there then.
    async fn part(&mut self, place: &Place, part: &Part) -> Result<bool, BinlogError> {
        for _ in 0..GATHERED_ROUNDS {
            let Some(missing) = part.of(&place.index()).err() else {
                return Ok(true);
            };
            let Some((server, mut conn)) = self.connection().await? else {
                return Ok(false);
            };
            let lack = |author| Lack {
                author,
                bound: part.bound.map(|id| Keyed::of(0, id)),
                n: part.n,
            };
            let lacks: Vec<Lack> = missing.into_iter().map(lack).collect();
            self.source(place, &server, &mut conn)
                .messages(&lacks)
                .await?;
            self.control.put_back(self.generation, conn);
            if !self.binlog.prove().await {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// One round for what is left.
    async fn catch_up(&mut self) {
        let begun = clock::now();
        let Some(number) = self.backlog.place() else {
            return;
        };
        if let Some(place) = self.place(number) {
            if !self.binlog.is_followed(&place, None) {
                self.backlog.wait(clock::now());
                return;
            }
            let done = self.go_on(&place).await;
            if done.is_err() {
                self.backlog.give_up(number);
            }
            self.complain(&place, done);
        }
        self.backlog.rest(clock::since(begun), clock::now());
    }

    async fn go_on(&mut self, place: &Place) -> Result<(), BinlogError> {
        if let Some(behind) = self.backlog.readers_behind(place.number())
            && let Some(query) = place.tables.readers_query(behind, READERS)
            && let Some((_, mut conn)) = self.connection().await?
        {
            let failed = BinlogError::while_doing("the follow table cannot be read");
            let readers = conn.rows(&query).await.map_err(&failed)?;
            let readers = all::<1>(&readers).ok_or_else(fill::no_number)?;
            let readers: Vec<u64> = readers.into_iter().flatten().collect();
            self.control.put_back(self.generation, conn);
            let full = place.index().is_nearly_full();
            let pages = (&*readers, place.tables.n);
            let progress = self
                .backlog
                .add_readers(place.number(), pages, full, clock::now());
            if let Some(progress) = progress {
                let full = full && !readers.is_empty();
                let memory_bytes = self.binlog.budget(self.binlog.timelines());
                if progress.took.is_some() {
                    place.preloaded.store(true, Ordering::Relaxed);
                }
                say(place, progress, full.then_some(memory_bytes));
            }
        }
        let waiting = self.backlog.next(place.number());
        let wants: Vec<Want> = waiting.iter().map(|waiting| waiting.want).collect();
        if self.round(place, &wants, usize::MAX).await?.began {
            self.binlog.prove().await;
        }
        // What does not fit is evicted again: there is no end to that.
        let full = place.index().is_nearly_full();
        for waiting in waiting {
            let want = waiting.want;
            if !full && !place.has(want) && !place.follows_too_many(want.reader) {
                self.backlog.again(place.number(), waiting);
            }
        }
        Ok(())
    }

    fn source<'a>(
        &'a self,
        place: &'a Place,
        server: &ServerFacts,
        conn: &'a mut Conn,
    ) -> Source<'a> {
        Source {
            binlog: &self.binlog,
            generation: self.generation,
            place,
            status: server.status,
            conn,
        }
    }

    /// Begins whatever these pages lack, but for those that lack more authors than this.
    async fn round(
        &mut self,
        place: &Place,
        wants: &[Want],
        most: usize,
    ) -> Result<Left, BinlogError> {
        let mut left = Left::default();
        if wants.is_empty() {
            return Ok(left);
        }
        let Some((server, mut conn)) = self.connection().await? else {
            return Ok(left);
        };
        let mut source = self.source(place, &server, &mut conn);
        let lists = source.follows(wants).await?;
        left.began = !lists.is_empty();
        let mut lacks: Vec<Lack> = Vec::new();
        for want in wants {
            let list = lists.get(&want.reader);
            let missing = place.index().lacking(*want, list.map(Vec::as_slice));
            if missing.len() > most {
                left.much.push(*want);
            } else {
                lacks.extend(missing.into_iter().map(|author| Lack {
                    author,
                    bound: want.bound.map(|id| Keyed::of(0, id)),
                    n: want.n,
                }));
            }
        }
        if !lacks.is_empty() {
            left.began = true;
            source.messages(&lacks).await?;
        }
        self.control.put_back(self.generation, conn);
        Ok(left)
    }
}

/// Says how far a preload has come. `full`: memory was, which is so large.
fn say(place: &Place, progress: Progress, full: Option<usize>) {
    let Progress { done, of, took } = progress;
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
struct Left {
    /// Pages that lack too much.
    much: Vec<Want>,
    /// Something was loaded.
    began: bool,
}
