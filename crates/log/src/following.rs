//! How far a server's log is followed, and what of it may be used: the state that stream, proofs and loads share.
//!
//! A stream begins unproven: what was committed before it may not be readable yet. Once that is proved, what is applied is exact.
//! Whatever cannot be followed steps aside, and the next stream is another generation: what was begun under an older one is void.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_timeline::index::{Change, PlaceId, Position};

use super::edits::{Edited, Edits, Row, Tick};
use super::evidence::Table;
use super::gtid::{Gtids, Stamp};
use super::queue::{Cut, Question, Queue, Transaction};
use super::recent::Recent;
use super::routes::{Route, Routes};
use super::trail::Trail;

/// Counts the streams; 0: there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(u64);

/// Where a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The log is not followed.
    #[default]
    Aside,
    /// It is, but what was committed before may not be readable yet.
    Unproven,
    /// What is applied is readable.
    Proven,
}

/// How a proof of freshness stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofState {
    /// The index is exact.
    Proved,
    /// The stream has not told everything up to the position: it lacks so many bytes of the log at least.
    Behind(u64),
    /// It is not known what of it can be read.
    Unknown,
    /// The stream was lost meanwhile.
    Void,
}

/// A moment, told by how much had been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    generation: Generation,
    next: u64,
    /// Changes of rows could be read up to there.
    edits: Tick,
}

impl Mark {
    /// The number of the stream.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.0
    }
}

/// What is to be applied now: to places whose rows are told ([`Following::tells_of`]), up to the floor.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// In the order of the log.
    pub transactions: Vec<Transaction>,
    /// Up to here all is applied then.
    pub floor: Position,
}

/// What memory was, when the stream was lost.
#[derive(Clone, Debug)]
pub struct Left {
    /// Up to here everything was applied.
    pub floor: Position,
    /// The tables that were listened to, as they were known.
    pub routes: Arc<Routes>,
    /// Places whose rows were told.
    pub places: Vec<PlaceId>,
    /// Which transactions it is made of.
    pub trail: Trail,
}

/// What is known of one server's log.
#[derive(Debug, Default)]
pub struct Following {
    phase: Phase,
    generation: Generation,
    queue: Queue,
    routes: Arc<Routes>,
    /// From which position on each place's rows are told; `None` while they are not.
    bases: Vec<Option<Position>>,
    /// The last proof failed: calls do not wait for the next one.
    suspect: bool,
    /// When the last proof that succeeded was begun.
    fresh: Option<Instant>,
    /// What waits is being released by the list of open transactions.
    releasing: bool,
    /// What was applied lately, where answers are compared.
    recent: Option<Recent>,
    /// Which rows were changed lately.
    edited: Edited,
    /// Which transactions all that is applied is made of.
    trail: Trail,
    /// Counts what was received, applied or lost.
    version: u64,
}

impl Following {
    /// Nothing is followed; `keeps_recent`: what is applied is remembered for a while.
    #[must_use]
    pub fn new(keeps_recent: bool) -> Following {
        Following {
            recent: keeps_recent.then(Recent::default),
            ..Following::default()
        }
    }

    /// The stream that is followed, or was last.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// True while the log is not followed.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        self.phase == Phase::Aside
    }

    /// True while the log is followed, and this is the stream.
    #[must_use]
    pub fn is_current(&self, generation: Generation) -> bool {
        self.generation == generation && self.phase != Phase::Aside
    }

    /// True while this stream is followed and what is applied is readable.
    #[must_use]
    pub fn is_proven(&self, generation: Generation) -> bool {
        self.generation == generation && self.phase == Phase::Proven
    }

    /// The tables that are listened to.
    #[must_use]
    pub fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes)
    }

    /// True when a place's rows are told by the stream.
    #[must_use]
    pub fn tells_of(&self, place: PlaceId) -> bool {
        self.base(place).is_some()
    }

    /// From which position on a place's rows are told.
    #[must_use]
    pub fn base(&self, place: PlaceId) -> Option<Position> {
        self.bases.get(place.0).copied().flatten()
    }

    /// True when pages of a place may be answered, once freshness is proved.
    #[must_use]
    pub fn may_answer(&self, place: PlaceId) -> bool {
        self.phase == Phase::Proven && !self.suspect && self.tells_of(place)
    }

    /// From when on a load of this place's rows can be begun: everything that is committed behind it is told by this stream.
    #[must_use]
    pub fn loads_from(&self, generation: Generation, place: PlaceId) -> Option<Position> {
        self.base(place).filter(|_| self.is_proven(generation))
    }

    /// When the last proof that succeeded was begun.
    #[must_use]
    pub fn fresh(&self) -> Option<Instant> {
        self.fresh
    }

    /// True when the last proof that succeeded was begun within so much time before `now`.
    #[must_use]
    pub fn was_fresh(&self, within: Duration, now: Instant) -> bool {
        self.fresh
            .is_some_and(|fresh| now.saturating_duration_since(fresh) <= within)
    }

    /// True when somebody has to look at the rows: something waits, or the last proof failed.
    #[must_use]
    pub fn is_to_be_looked_at(&self) -> bool {
        self.phase != Phase::Aside && (!self.queue.is_empty() || self.suspect)
    }

    /// Everything up to here was received.
    #[must_use]
    pub fn received(&self) -> Position {
        self.queue.received()
    }

    /// How many row changes wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.changes()
    }

    /// One more place, whose tables are listened to: a timeline's from the next stream on, one that is referred to from now on.
    pub fn add_place(&mut self, place: PlaceId, routes: impl IntoIterator<Item = Route>) {
        if self.bases.len() <= place.0 {
            self.bases.resize(place.0 + 1, None);
        }
        let mut all = Routes::clone(&self.routes);
        all.routes.extend(routes);
        self.routes = Arc::new(all);
    }

    /// A stream begins at this position, with nothing known of any place's columns.
    pub fn begin(&mut self, start: Position, routes: Routes) -> Generation {
        self.generation.0 += 1;
        self.phase = Phase::Unproven;
        self.queue = Queue::starting_at(start);
        self.edited = Edited::default();
        self.version += 1;
        self.routes = Arc::new(routes);
        self.bases.fill(None);
        self.suspect = false;
        self.fresh = None;
        self.releasing = false;
        self.trail = Trail::default();
        self.generation
    }

    /// A stream goes on where memory is of: these places' rows are told from `told_from` on, which is its first position, or where the
    /// log ended when it was asked for ([`Self::catch_up`]).
    pub fn resume(
        &mut self,
        start: Position,
        routes: Routes,
        (places, told_from): (&[PlaceId], Position),
        trail: Trail,
    ) -> Generation {
        let generation = self.begin(start, routes);
        for place in places {
            if let Some(base) = self.bases.get_mut(place.0) {
                *base = Some(told_from);
            }
        }
        self.trail = trail;
        generation
    }

    /// The stream is lost. What is applied is left as it is, to be gone on with; `None`: there is no stream.
    pub fn leave(&mut self) -> Option<Left> {
        if self.phase == Phase::Aside {
            return None;
        }
        let floor = self.queue.floor();
        let mut trail = std::mem::take(&mut self.trail);
        trail.applied_to(floor);
        trail.forget_received();
        let told = (0..self.bases.len()).map(PlaceId);
        let left = Left {
            floor,
            routes: self.routes(),
            places: told.filter(|place| self.tells_of(*place)).collect(),
            trail,
        };
        self.step_aside();
        Some(left)
    }

    /// It is known now what the log held before this stream.
    pub fn learn_base(&mut self, generation: Generation, (base, last): (Gtids, Stamp)) {
        if self.is_current(generation) {
            self.trail.learn_base(base, last);
        }
    }

    /// Nothing that was learned is used any more.
    pub fn step_aside(&mut self) {
        self.generation.0 += 1;
        self.phase = Phase::Aside;
        self.queue = Queue::default();
        self.edited = Edited::default();
        self.trail = Trail::default();
        self.version += 1;
        self.bases.fill(None);
        self.suspect = false;
        self.fresh = None;
    }

    /// Rows and log do not go together: nothing is used from here on, until the stream begins anew.
    pub fn distrust(&mut self) {
        self.phase = Phase::Aside;
        self.version += 1;
    }

    /// The columns of a place's tables are known. False where that was learned beside another stream.
    pub fn learn_columns(
        &mut self,
        generation: Generation,
        place: PlaceId,
        routes: impl IntoIterator<Item = Route>,
    ) -> bool {
        if self.generation != generation {
            return false;
        }
        let mut all = Routes::clone(&self.routes);
        all.routes.retain(|route| route.place != place);
        all.routes.extend(routes);
        self.routes = Arc::new(all);
        true
    }

    /// The stream listens by the routes as they are now, from between two transactions on: rows of places whose columns are known are
    /// told from here.
    pub fn adopt_routes(&mut self) -> Arc<Routes> {
        let received = self.queue.received();
        let mut begun = Edits::default();
        for route in &self.routes.routes {
            if let (Some(_), Some(base @ None)) = (route.columns, self.bases.get_mut(route.place.0))
            {
                *base = Some(received);
                if route.table == Table::Referred {
                    // What was told before, to nobody, may not be readable yet.
                    begun.add_all(route.place);
                }
            }
        }
        self.edited.note(&begun, self.queue.end());
        self.routes()
    }

    /// A transaction of that number ends here, as [`Self::push`] or [`Self::pass`] will tell next.
    pub fn ends(&mut self, end: Position, stamp: Option<Stamp>) {
        self.trail.applied_to(self.queue.floor());
        self.trail.note(end, stamp);
    }

    /// The stream has told of a transaction, which changed these rows among others.
    pub fn push(&mut self, end: Position, changes: Vec<(PlaceId, Change)>, edits: &Edits) {
        self.version += 1;
        // Its own number, or that of the next one.
        self.edited.note(edits, self.queue.end());
        match changes.is_empty() {
            true => self.queue.pass(end),
            false => self.queue.push(end, changes),
        }
    }

    /// The stream has told of a transaction that was in the log before the stream began, and changed these rows among others. Memory is not
    /// confirmed yet: whether they are as this left them is asked of the rows themselves.
    pub fn catch_up(&mut self, end: Position, edits: &Edits) {
        self.version += 1;
        self.edited.note(edits, self.queue.end());
        self.queue.pass(end);
    }

    /// The stream has told that nothing that matters happened up to here.
    pub fn pass(&mut self, to: Position) {
        self.queue.pass(to);
    }

    /// What was committed before the stream began can be read. False where that was known, or is about another stream.
    pub fn begin_is_readable(&mut self, generation: Generation) -> bool {
        let open = self.begin_is_open(generation);
        if open {
            self.phase = Phase::Proven;
        }
        open
    }

    /// True while it is not known whether what was committed before this stream can be read.
    #[must_use]
    pub fn begin_is_open(&self, generation: Generation) -> bool {
        self.generation == generation && self.phase == Phase::Unproven
    }

    /// Takes in what a look at the rows told; `None` where it was about another stream.
    pub fn learn(&mut self, generation: Generation, cut: Cut) -> Option<Release> {
        if !self.is_current(generation) {
            return None;
        }
        self.version += 1;
        self.edited.readable_below(cut.readable);
        if cut.readable > self.queue.first() {
            // Servers commit in the order of the log: what came before is readable as well.
            self.phase = Phase::Proven;
        }
        let applied = match self.phase {
            Phase::Proven => cut.alike,
            // Nothing is in memory yet; and of what came before this proves nothing.
            _ => cut.readable,
        };
        let transactions = self.queue.take(applied);
        if let Some(recent) = &mut self.recent {
            recent.note(&transactions);
        }
        Some(Release {
            transactions,
            floor: self.queue.floor(),
        })
    }

    /// Up to here all that was received is applied, if it is readable.
    #[must_use]
    pub fn floor(&self) -> Option<Position> {
        (self.phase == Phase::Proven).then(|| self.queue.floor())
    }

    /// The rows by which it is learned what of what waits can be read.
    #[must_use]
    pub fn question(&self, generation: Generation) -> Question {
        if self.generation == generation {
            self.queue.question()
        } else {
            Question::default()
        }
    }

    /// How a proof stands that everything up to `end` is applied, as far as it can be read. `hidden`: from this number on,
    /// transactions could not be read at a moment after the proof was begun.
    #[must_use]
    pub fn stands(&self, generation: Generation, end: Position, hidden: Option<u64>) -> ProofState {
        if !self.is_current(generation) {
            ProofState::Void
        } else if self.queue.received() < end {
            ProofState::Behind(end.bytes_behind(self.queue.received()))
        } else if self.phase != Phase::Proven {
            ProofState::Unknown
        } else if self.queue.floor() >= end
            || hidden.is_some_and(|hidden| self.queue.first() >= hidden)
        {
            ProofState::Proved
        } else {
            ProofState::Unknown
        }
    }

    /// True when nothing that waits is in the way of a proof up to `end`, or the stream is lost.
    #[must_use]
    pub fn is_applied(&self, generation: Generation, end: Position) -> bool {
        !self.is_current(generation) || self.phase == Phase::Proven && self.queue.floor() >= end
    }

    /// A proof has ended that was begun then. True when calls learn something new by it.
    pub fn proof_ended(&mut self, generation: Generation, begun: Instant, proved: bool) -> bool {
        if self.generation != generation {
            return false;
        }
        let new = self.suspect == proved;
        self.suspect = !proved;
        if proved {
            self.fresh = self.fresh.max(Some(begun));
        }
        new
    }

    /// The number behind what waits now, if something does and it is not being released already: from here on it is. (The beginning of the
    /// stream, where that is all that is open, has a look at the list of its own.)
    pub fn begin_release(&mut self, generation: Generation) -> Option<u64> {
        if self.generation != generation || self.releasing || self.queue.is_empty() {
            return None;
        }
        self.releasing = true;
        Some(self.queue.end())
    }

    /// True while transactions below this number wait.
    #[must_use]
    pub fn awaits(&self, generation: Generation, end: u64) -> bool {
        self.generation == generation && self.queue.first() < end
    }

    /// The release has ended.
    pub fn end_release(&mut self, generation: Generation) {
        if self.generation == generation {
            self.releasing = false;
        }
    }

    /// This moment, for [`Self::spared`] where what is applied is remembered, and for [`Self::has_kept`]; `None` while the log is not
    /// followed.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        let next = self.recent.as_ref().map_or(0, Recent::next);
        (self.phase == Phase::Proven).then_some(Mark {
            generation: self.generation,
            next,
            edits: self.edited.readable(),
        })
    }

    /// True while the stream is the one in which the mark was made.
    #[must_use]
    pub fn is_proven_since(&self, mark: Mark) -> bool {
        self.is_proven(mark.generation)
    }

    /// True if a row that was read since then, and before the last proof that succeeded was begun, is now what it was.
    #[must_use]
    pub fn has_kept(&self, mark: Mark, row: Row) -> bool {
        self.is_proven(mark.generation) && self.edited.is_as_before(row, mark.edits)
    }

    /// Another number where anything was received, applied or lost in between.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Up to which change of a row it is not known that it can be read, while nothing else waits by which that would come out.
    #[must_use]
    pub fn unread_edits(&self, generation: Generation) -> Option<Tick> {
        self.edited.unread().filter(|_| self.is_proven(generation))
    }

    /// Changes of rows can be read up to there.
    pub fn edits_are_readable(&mut self, generation: Generation, tick: Tick) {
        if self.is_proven(generation) {
            self.edited.readable_to(tick);
        }
    }

    /// True if no change that was applied since then was about what these readers see. `authors`: theirs and others, ascending, where
    /// they are known.
    #[must_use]
    pub fn spared(
        &self,
        mark: Mark,
        place: PlaceId,
        readers: &[u64],
        authors: Option<&[u64]>,
    ) -> bool {
        self.is_proven(mark.generation)
            && self
                .recent
                .as_ref()
                .is_some_and(|recent| recent.spared(mark.next, place, readers, authors))
    }
}
