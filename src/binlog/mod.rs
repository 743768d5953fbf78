//! The index's only writer: follows the server's binary log, proves what it tells to be readable, and loads what is asked for.
//!
//! `stream` reads the log, of which the package [`crate::log`] makes transactions. They wait until `probe` has proof that the server
//! lets them be read; then they are applied to the index of their `place`. `load` brings in rows that are not resident (both over
//! `control` connections). `fence` proves the same for what was committed before the stream began, `watch` looks at what the log does
//! not tell. Whatever cannot be followed makes memory step aside: every index is emptied, and begun anew once the log can be followed
//! again.

mod aside;
mod ask;
mod cascades;
mod comparisons;
mod control;
mod error;
mod feed;
mod fence;
mod history;
#[cfg(all(test, feature = "interleavings"))]
#[allow(clippy::unwrap_used, clippy::panic)]
mod interleavings;
mod kept;
mod lag;
mod load;
mod made;
mod memory;
mod obstacle;
pub mod obstacles;
mod passing;
mod place;
mod probe;
pub mod random;
mod replica;
mod resume;
pub mod right;
mod rows;
mod settings;
mod spread;
mod stream;
pub mod survey;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use headwater_rows::Rows;
use tokio::sync::{Notify, Semaphore, mpsc, watch as latest};

pub use aside::Aside;
use ask::Asker;
use comparisons::Comparisons;
use error::BinlogError;
pub use error::{REASONS, STARTING};
pub use feed::{Candidates, Named, Wish};
pub use lag::Lag;
pub use place::Place;
pub use settings::{BinlogLimits, BinlogSection, Freshness, IndexSection, Mode, RowsSection};
pub use spread::Part;

use self::load::Load;
use self::obstacles::ServerFacts;
use self::probe::Resting;
use self::resume::{Remains, StreamEnd};
use crate::account::Account;
use crate::clock;
use crate::index::{Change, Page, PlaceId, Position};
use crate::latency::Histogram;
use crate::log::evidence::Key;
pub use crate::log::following::Mark;
use crate::log::following::{Following, Generation, Release};
use crate::log::queue::Cut;
use crate::log::referred::Referred;
use crate::log::tables::Tables;
use crate::source::backlog::Want;
use crate::sql::NameCase;
use crate::sync::{Mutex, MutexGuard, RwLock};
use crate::timeline::definition::Definition;

/// Timelines that are kept in memory; calls of others are answered by lookups.
pub const MOST_PLACES: usize = 64;
/// Tables whose rows are shown beside messages; rows that show others are not kept.
pub const MOST_REFERRED: usize = 64;
/// Loads that wait; what does not fit is asked for again by the next call.
const MOST_LOADS: usize = 10_000;

/// Follows one server for all sessions.
#[derive(Debug)]
pub struct Binlog {
    account: Account,
    /// Its number as a replica.
    replica: replica::Number,
    freshness: Freshness,
    limits: BinlogLimits,
    state: Mutex<State>,
    places: RwLock<Vec<Arc<Place>>>,
    /// Tables that messages refer to: their numbers begin behind those of all places.
    referred: RwLock<Vec<Arc<Referred>>>,
    /// Why the log is not followed, while it is not.
    aside: latest::Sender<Option<Aside>>,
    /// Something was received, released or lost.
    progress: Notify,
    /// Another server is to be followed.
    moved: Notify,
    /// A statement in the log, or before it, may have changed a definition.
    pub changed: Notify,
    /// How the server compares names of databases and tables.
    case: latest::Sender<NameCase>,
    made: made::Made,
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
    rows: Option<Arc<Rows>>,
    /// Answers of which rows may be kept.
    fills: Arc<Semaphore>,
    asker: Asker,
    /// How long proofs took.
    proofs: Histogram,
    resting: Mutex<Resting>,
    /// How places' tables are defined, beside the stream that there is.
    prints: Mutex<HashMap<PlaceId, String>>,
    /// Streams that memory went on with.
    resumed: AtomicU64,
    /// How what was filled beside another server, or another run of this one, compares with the rows that are there now.
    comparisons: Comparisons,
    /// Logs of other servers that this one's memory is shared with.
    others: AtomicUsize,
    /// Bytes of memory for all timelines.
    most: AtomicUsize,
    /// It is not followed any more, for good.
    closed: AtomicBool,
    closing: Notify,
    /// Itself, for what goes on beside those who ask.
    me: Weak<Binlog>,
    loads: mpsc::Sender<Load>,
}

#[derive(Debug)]
struct State {
    following: Following,
    /// The server whose log it is.
    server: Option<Arc<ServerFacts>>,
    /// Why the stream has to begin anew.
    anew: Option<BinlogError>,
    /// The name of its log's files, before the number.
    base: String,
    /// Since when memory has been filled.
    since: Instant,
    /// It is not known yet where in the log memory stands.
    seeking: bool,
    /// What was left of memory when a stream was lost, until there is another one.
    remains: Option<Arc<Remains>>,
    /// Where the stream ended that the next one follows at once.
    ended: Option<StreamEnd>,
    /// What is noted of how far behind memory is.
    noted: lag::Noted,
}

impl State {
    /// True where this place is answered from memory, in a session with that server where one is given.
    fn may_answer(&self, place: &Place, identity: Option<&[u8]>) -> bool {
        self.following.may_answer(place.number())
            && self.server.as_ref().is_some_and(|server| {
                identity.is_none_or(|identity| server.identity.as_bytes() == identity)
            })
    }
}

/// Whether a page may be answered from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likely {
    /// It is not there.
    No,
    /// It was there.
    Resident,
    /// It was loaded just now, and proved to be fresh.
    Fetched,
}

/// What drives a binlog besides the sessions: given to [`Binlog::run`].
#[derive(Debug)]
pub struct Inbox {
    loads: mpsc::Receiver<Load>,
}

impl Binlog {
    /// A binlog with the service account. It does nothing until [`Self::run`].
    #[must_use]
    pub fn new(
        account: Account,
        freshness: Freshness,
        limits: BinlogLimits,
    ) -> (Arc<Binlog>, Inbox) {
        let (loads, wanted) = mpsc::channel(MOST_LOADS);
        let binlog = Arc::new_cyclic(|me| Binlog {
            account,
            replica: replica::Number::draw(),
            freshness,
            limits,
            state: Mutex::new(State {
                following: Following::new(true),
                server: None,
                anew: None,
                base: String::new(),
                since: clock::now(),
                seeking: false,
                remains: None,
                ended: None,
                noted: lag::Noted::default(),
            }),
            aside: latest::Sender::new(Some(Aside {
                reason: STARTING,
                text: "the server's log is not followed yet".to_owned(),
                cure: None,
            })),
            places: RwLock::default(),
            referred: RwLock::default(),
            progress: Notify::new(),
            moved: Notify::new(),
            changed: Notify::new(),
            case: latest::Sender::new(NameCase::Kept),
            made: made::Made::default(),
            rerouted: Notify::new(),
            unreadable: AtomicU64::new(0),
            routes_version: AtomicU64::new(0),
            listing: tokio::sync::Mutex::default(),
            contradictions: AtomicU64::new(0),
            rows: (limits.rows_bytes > 0).then(|| Arc::new(Rows::new(limits.rows_bytes))),
            fills: Arc::new(Semaphore::new(kept::FILLS)),
            asker: Asker::new(Duration::from_millis(freshness.wait_ms)),
            proofs: Histogram::default(),
            resting: Mutex::new(Resting::default()),
            prints: Mutex::default(),
            resumed: AtomicU64::new(0),
            comparisons: Comparisons::default(),
            others: AtomicUsize::new(0),
            most: AtomicUsize::new(limits.index_bytes),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            me: me.clone(),
            loads,
        });
        (binlog, Inbox { loads: wanted })
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
    pub async fn run(self: Arc<Self>, inbox: Inbox) {
        tokio::join!(
            stream::run(Arc::clone(&self)),
            probe::pump(Arc::clone(&self)),
            watch::run(Arc::clone(&self)),
            fence::read_edits(Arc::clone(&self)),
            load::run(Arc::clone(&self), inbox.loads),
        );
    }

    /// The place of tables, whatever number they bear; they are listened to from now on if they were not before. `None` beyond the most
    /// that are kept in memory.
    pub fn place(&self, tables: Tables) -> Option<Arc<Place>> {
        let known = |places: &[Arc<Place>]| {
            let mut places = places.iter();
            places.find(|place| place.serves(&tables)).map(Arc::clone)
        };
        if let Some(place) = known(&self.places()) {
            return Some(place);
        }
        let mut state = self.state();
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known(&places) {
            return Some(place);
        }
        if places.len() >= MOST_PLACES {
            return None;
        }
        let tables = Tables {
            place: PlaceId(places.len()),
            ..tables
        };
        let budget = self.budget(places.len() + 1);
        for place in places.iter() {
            place.set_budget(budget);
        }
        let place = Arc::new(Place::new(tables, budget));
        places.push(Arc::clone(&place));
        let number = place.number();
        let routes = place.tables.blind_routes();
        state.following.add_place(number, routes);
        state.anew = Some(BinlogError::Late);
        drop(places);
        drop(state);
        self.routes_changed();
        self.load(Load::Schema(place.number()));
        Some(place)
    }

    /// What each of so many timelines may take.
    fn budget(&self, places: usize) -> usize {
        let others = self.others.load(Ordering::Relaxed);
        let share = self.most.load(Ordering::Relaxed) / places.saturating_add(others).max(1);
        self.limits.memory_bytes.min(share)
    }

    /// What all timelines that there are may take together.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        let places = self.timelines();
        self.budget(places).saturating_mul(places)
    }

    /// Listens to a table that messages refer to, whatever number it bears, and tells its number. `None` beyond the most that are
    /// listened to.
    pub fn refer(&self, table: Referred) -> Option<PlaceId> {
        let mut state = self.state();
        let mut all = self
            .referred
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.is_same(&table)) {
            return Some(known.place);
        }
        if all.len() >= MOST_REFERRED {
            return None;
        }
        let place = PlaceId(MOST_PLACES + all.len());
        let table = Referred { place, ..table };
        state.following.add_place(place, [table.blind_route()]);
        all.push(Arc::new(table));
        drop(all);
        drop(state);
        self.routes_changed();
        self.load(Load::Referred(place));
        Some(place)
    }

    fn referred(&self) -> Vec<Arc<Referred>> {
        let all = self.referred.read();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn referred_at(&self, place: PlaceId) -> Option<Arc<Referred>> {
        let mut all = self.referred().into_iter();
        all.find(|table| table.place == place)
    }

    /// The place of a definition's timeline in a database.
    pub fn place_of(&self, definition: &Definition, database: &str) -> Option<Arc<Place>> {
        self.place(Tables::of(PlaceId(0), definition, database))
    }

    /// Whom a reader of this definition follows, as far as memory has it; in whatever database it has.
    #[must_use]
    pub fn follows_of(&self, definition: &Definition, reader: u64) -> Option<Vec<u64>> {
        let names = Tables::of(PlaceId(0), definition, "").names;
        let places = self.places().into_iter();
        let mut own = places.filter(|place| place.tables.names.serve(&names));
        own.find_map(|place| place.index().follows(reader))
    }

    /// Has something loaded that nobody asks for again.
    fn load(&self, load: Load) {
        if let Err(mpsc::error::TrySendError::Full(load)) = self.loads.try_send(load) {
            let loads = self.loads.clone();
            tokio::spawn(async move { loads.send(load).await });
        }
    }

    /// Has a timeline loaded from the start, where that is set (`index.preload`).
    pub fn preload(&self, definition: &Definition, database: &str) {
        if self.limits.preload && self.place_of(definition, database).is_none() {
            tracing::warn!(
                "{database} is not loaded: {MOST_PLACES} timelines are in memory already"
            );
        }
    }

    /// True where nothing is left of what is loaded from the start.
    #[must_use]
    pub fn is_preloaded(&self) -> bool {
        let loaded = |place: &Arc<Place>| place.preloaded.load(Ordering::Relaxed);
        !self.limits.preload || self.places().iter().all(loaded)
    }

    /// Looks whether a page of this reader is likely to be in memory, and may be used in a session with this server. What
    /// is missing is loaded: while this waits if it is little, else for the next call.
    pub async fn may_have(
        &self,
        place: &Place,
        identity: Option<&[u8]>,
        (reader, bound, n): (u64, Option<u64>, usize),
    ) -> Likely {
        if !self.is_followed(place, identity) {
            return Likely::No;
        }
        if place.index().has_reader(reader) {
            return Likely::Resident;
        }
        if place.follows_too_many(reader) {
            return Likely::No;
        }
        match self.fetch(place, Want { reader, bound, n }).await {
            true => Likely::Fetched,
            false => Likely::No,
        }
    }

    /// A reader's page from memory, with everything in it that was committed before [`Self::may_have`] was asked, and
    /// nothing that cannot be read yet. `None` where memory has not got it, or not in time: then it is loaded for the next
    /// call.
    ///
    /// `identity` is the server that the session talks to; `proves`: that memory is fresh has to be proved ([`Self::must_prove`]).
    pub async fn page(
        &self,
        place: &Place,
        identity: Option<&[u8]>,
        page: (u64, Option<u64>, usize),
        proves: bool,
        likely: Likely,
    ) -> Option<Page> {
        let (reader, bound, n) = page;
        let limit = Duration::from_millis(self.freshness.wait_ms);
        let begun = clock::now();
        let mut proved = match likely {
            Likely::No => return None,
            Likely::Resident => !proves,
            Likely::Fetched => true,
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
            let fetch = self.fetch(place, Want { reader, bound, n });
            let left = limit.saturating_sub(clock::since(begun));
            proved = tokio::time::timeout(left, fetch).await.unwrap_or(false);
            if !proved {
                return None;
            }
        }
        None
    }

    /// This moment, for [`Self::spared`]; `None` while the log is not followed.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        self.state().following.mark()
    }

    /// True if nothing that could be read since then, or before this was asked, has changed a reader's timeline.
    pub async fn spared(&self, place: &Place, mark: Mark, reader: u64) -> bool {
        if !self.prove().await {
            return false;
        }
        let state = self.state();
        let follows = place.index().follows(reader);
        let number = place.number();
        state
            .following
            .spared(mark, number, &[reader], follows.as_deref())
    }

    /// Has what a page lacks loaded. True if it is there soon: with a proof of freshness that was begun after this.
    async fn fetch(&self, place: &Place, want: Want) -> bool {
        let place = place.number();
        self.loaded(|done| Load::Page { place, want, done }).await
    }

    fn is_followed(&self, place: &Place, identity: Option<&[u8]>) -> bool {
        self.state().may_answer(place, identity)
    }

    /// As [`Self::mark`], where this place may be answered from memory in a session with that server.
    #[must_use]
    pub fn mark_of(&self, place: &Place, identity: &[u8]) -> Option<Mark> {
        self.mark_at(place, Some(identity))
    }

    /// The same, in whatever session where none is given.
    #[must_use]
    pub fn mark_at(&self, place: &Place, identity: Option<&[u8]>) -> Option<Mark> {
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
            Mode::Strict => true,
            Mode::Bounded => {
                let within = Duration::from_millis(self.freshness.bounded_ms);
                !following.was_fresh(within, clock::now())
            }
            Mode::Session => sent || following.fresh().is_none(),
        }
    }

    /// True where the server whose log is followed, or was last, is a node of a Galera cluster.
    #[must_use]
    pub fn is_galera(&self) -> bool {
        let state = self.state();
        let server = state.server.as_ref();
        server.is_some_and(|server| server.asked().galera)
    }

    /// Empties memory, and has it filled anew.
    pub fn empty(&self) {
        self.step_aside();
        self.state().anew = Some(BinlogError::Asked);
        self.routes_changed();
    }

    /// Another server is the primary: nothing is answered from memory, the stream ends at once, and begins on that one without a wait.
    pub fn server_moved(&self) {
        self.leave();
        self.moved.notify_one();
    }

    /// Has the stream begin anew.
    fn begin_anew(&self, generation: Generation, why: BinlogError) {
        let mut state = self.state();
        if state.following.generation() == generation {
            state.anew = Some(why);
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
    pub async fn is_fresh_now(&self) -> bool {
        self.prove().await
    }

    /// Bytes, follows, authors and messages of all timelines in memory.
    #[must_use]
    pub fn sizes(&self) -> [usize; 4] {
        let places = self.places();
        let sizes = places.iter().map(|place| place.index().sizes());
        sizes.fold([0; 4], |[a, b, c, d], [e, f, g, h]| {
            [a + e, b + f, c + g, d + h]
        })
    }

    /// How many authors and readers have made room for others in all timelines.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        let places = self.places();
        places.iter().map(|place| place.index().evicted()).sum()
    }

    /// How long proofs of freshness took.
    #[must_use]
    pub fn proofs(&self) -> &Histogram {
        &self.proofs
    }

    /// How many timelines are in memory.
    #[must_use]
    pub fn timelines(&self) -> usize {
        self.places().len()
    }

    /// Asks for a proof that is begun from now on, and waits for it.
    pub async fn prove(&self) -> bool {
        let start = |asks| {
            if let Some(binlog) = self.me.upgrade() {
                tokio::spawn(probe::run(binlog, asks));
            }
        };
        self.asker.prove(start).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> Vec<Arc<Place>> {
        self.places
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn routes_changed(&self) {
        self.routes_version.fetch_add(1, Ordering::AcqRel);
        self.rerouted.notify_one();
    }

    /// Takes in what is known of the rows by another way than a proof, if it is about the same stream.
    fn learn(&self, generation: Generation, cut: Cut) {
        let mut state = self.state();
        if let Some(release) = state.following.learn(generation, cut) {
            self.apply(&mut state, &release);
        }
        drop(state);
        self.progress.notify_waiters();
    }

    /// A row is as it cannot be by what the log tells.
    fn contradicted(&self, state: &mut State, key: Key) {
        let places = self.places();
        let database = places.get(key.place.0).map_or("", |place| place.database());
        let (table, first, second) = (key.table, key.first, key.second);
        let row = format!(
            "{database}: {table:?} row {first}, {second}, is neither as before nor as after a change"
        );
        self.alarm(state, row);
    }

    /// From here on nothing in memory is used; the stream begins anew, and says why.
    fn alarm(&self, state: &mut State, what: String) {
        self.contradictions.fetch_add(1, Ordering::Relaxed);
        state.following.distrust();
        state.anew = Some(BinlogError::Contradiction(what));
        self.routes_changed();
    }

    /// How often rows and log contradicted each other: each time memory was emptied.
    #[must_use]
    pub fn contradictions(&self) -> u64 {
        self.contradictions.load(Ordering::Relaxed)
    }

    /// Applies what is released. What cannot have happened so is an alarm.
    fn apply(&self, state: &mut State, release: &Release) {
        if state.following.floor().is_none() {
            return;
        }
        let mut contradiction = None;
        for place in self.places() {
            if !state.following.tells_of(place.number()) {
                continue;
            }
            let mut own = Vec::new();
            let mut index = None;
            for transaction in &release.transactions {
                own.clear();
                let changes = transaction.changes.iter();
                own.extend(
                    changes
                        .filter(|(number, _)| *number == place.number())
                        .map(|(_, change)| *change),
                );
                if !own.is_empty() {
                    let index = index.get_or_insert_with(|| place.index_mut());
                    index.apply(&own, transaction.end);
                    if let Some(change) = index.take_contradiction() {
                        contradiction = Some(format!("{}: {change:?}", place.database()));
                    }
                }
            }
            if index.is_some() || place.index().position() < release.floor {
                index
                    .get_or_insert_with(|| place.index_mut())
                    .apply(&[], release.floor);
            }
        }
        if let Some(what) = contradiction {
            self.alarm(state, what);
        }
        state.note_waiting(clock::now());
    }

    /// Applies a transaction to what is not confirmed yet.
    fn apply_unconfirmed(&self, changes: &[(PlaceId, Change)], end: Position) {
        for place in self.places() {
            let own = changes
                .iter()
                .filter(|(number, _)| *number == place.number());
            let own: Vec<Change> = own.map(|(_, change)| *change).collect();
            if !own.is_empty() {
                place.index_mut().apply(&own, end);
            }
        }
    }

    /// Moves every index up to where all is applied.
    fn catch_up(&self, state: &mut State) {
        if let Some(floor) = state.following.floor() {
            let release = Release {
                transactions: Vec::new(),
                floor,
            };
            self.apply(state, &release);
        }
    }

    /// The stream is lost: nothing is answered from memory, which is left as it is until there is another one.
    fn leave(&self) {
        let mut state = self.state();
        if state.remains.is_some() && state.following.is_aside() {
            return;
        }
        let (left, server) = (state.following.leave(), state.server.clone());
        let (Some(left), Some(server)) = (left, server) else {
            drop(state);
            return self.step_aside();
        };
        for place in self.places() {
            match left.places.contains(&place.number()) {
                true => place.index_mut().leave(),
                false => place.index_mut().clear(),
            }
        }
        self.rows.iter().for_each(|rows| rows.clear());
        state.remains = Some(Arc::new(Remains {
            server,
            base: state.base.clone(),
            stands: !state.seeking,
            since: state.since,
            left,
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

    fn prints(&self) -> MutexGuard<'_, HashMap<PlaceId, String>> {
        self.prints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a place's tables were defined when memory learned of them.
    fn print_of(&self, place: PlaceId) -> Option<String> {
        self.prints().get(&place).cloned()
    }

    /// Stands aside: nothing in memory is used any more.
    pub fn step_aside(&self) {
        let mut state = self.state();
        state.remains = None;
        state.following.step_aside();
        for place in self.places() {
            place.index_mut().clear();
        }
        self.rows.iter().for_each(|rows| rows.clear());
        drop(state);
        self.progress.notify_waiters();
    }
}
