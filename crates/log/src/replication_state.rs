//! How far a server's log is followed, and what of it may be used: the state that stream, proofs and loads share.
//!
//! A stream begins unproven: what was committed before it may not be readable yet. Once that is proved, what is applied is exact.
//! Whatever cannot be followed steps aside, and the next stream is another generation: what was begun under an older one is void.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_timeline::index::{BinlogPosition, TimelineChange, TimelineId};

use super::applied_gtids::AppliedGtids;
use super::edits::{EditTick, EditedRow, RowEditHistory, RowEdits};
use super::evidence::TableRole;
use super::gtid::{CommittedGtid, GtidSet};
use super::queue::{CommitWatermark, LoggedTransaction, RowProbe, TransactionQueue};
use super::recent_changes::RecentChanges;
use super::routes::{TableRoute, TableRoutes};

/// Counts the streams; 0: there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamGeneration(u64);

/// Where a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamPhase {
    /// The log is not followed.
    #[default]
    Suspended,
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
    Lagging(u64),
    /// It is not known what of it can be read.
    Unknown,
    /// The stream was lost meanwhile.
    Void,
}

/// A moment, told by how much had been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationMark {
    generation: StreamGeneration,
    next: u64,
    /// Changes of rows could be read up to there.
    edit_tick: EditTick,
}

impl ReplicationMark {
    /// The number of the stream.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.0
    }
}

/// What is to be applied now: to places whose rows are told ([`ReplicationState::is_streamed`]), up to the floor.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TransactionRelease {
    /// In the order of the log.
    pub transactions: Vec<LoggedTransaction>,
    /// Up to here all is applied then.
    pub floor: BinlogPosition,
}

/// What memory was, when the stream was lost.
#[derive(Clone, Debug)]
pub struct SuspendedMemory {
    /// Up to here everything was applied.
    pub floor: BinlogPosition,
    /// The tables that were listened to, as they were known.
    pub routes: Arc<TableRoutes>,
    /// Places whose rows were told.
    pub timeline_ids: Vec<TimelineId>,
    /// Which transactions it is made of.
    pub applied_gtids: AppliedGtids,
}

/// What is known of one server's log.
#[derive(Debug, Default)]
pub struct ReplicationState {
    phase: StreamPhase,
    generation: StreamGeneration,
    queue: TransactionQueue,
    routes: Arc<TableRoutes>,
    /// From which position on each place's rows are told; `None` while they are not.
    start_positions: Vec<Option<BinlogPosition>>,
    /// The last proof failed: calls do not wait for the next one.
    suspect: bool,
    /// When the last proof that succeeded was begun.
    last_proof: Option<Instant>,
    /// What waits is being released by the list of open transactions.
    releasing: bool,
    /// What was applied lately, where answers are compared.
    recent: Option<RecentChanges>,
    /// Which rows were changed lately.
    edit_history: RowEditHistory,
    /// Which transactions all that is applied is made of.
    applied_gtids: AppliedGtids,
    /// Counts what was received, applied or lost.
    version: u64,
}

impl ReplicationState {
    /// Nothing is followed; `keeps_recent`: what is applied is remembered for a while.
    #[must_use]
    pub fn new(keeps_recent: bool) -> ReplicationState {
        ReplicationState {
            recent: keeps_recent.then(RecentChanges::default),
            ..ReplicationState::default()
        }
    }

    /// The stream that is followed, or was last.
    #[must_use]
    pub fn generation(&self) -> StreamGeneration {
        self.generation
    }

    /// True while the log is not followed.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.phase == StreamPhase::Suspended
    }

    /// True while the log is followed, and this is the stream.
    #[must_use]
    pub fn is_current(&self, generation: StreamGeneration) -> bool {
        self.generation == generation && self.phase != StreamPhase::Suspended
    }

    /// True while this stream is followed and what is applied is readable.
    #[must_use]
    pub fn is_proven(&self, generation: StreamGeneration) -> bool {
        self.generation == generation && self.phase == StreamPhase::Proven
    }

    /// The tables that are listened to.
    #[must_use]
    pub fn routes(&self) -> Arc<TableRoutes> {
        Arc::clone(&self.routes)
    }

    /// True when a place's rows are told by the stream.
    #[must_use]
    pub fn is_streamed(&self, place: TimelineId) -> bool {
        self.streamed_from(place).is_some()
    }

    /// From which position on a place's rows are told.
    #[must_use]
    pub fn streamed_from(&self, place: TimelineId) -> Option<BinlogPosition> {
        self.start_positions.get(place.0).copied().flatten()
    }

    /// True when pages of a place may be answered, once freshness is proved.
    #[must_use]
    pub fn may_serve(&self, place: TimelineId) -> bool {
        self.phase == StreamPhase::Proven && !self.suspect && self.is_streamed(place)
    }

    /// From when on a load of this place's rows can be begun: everything that is committed behind it is told by this stream.
    #[must_use]
    pub fn loads_from(
        &self,
        generation: StreamGeneration,
        place: TimelineId,
    ) -> Option<BinlogPosition> {
        self.streamed_from(place)
            .filter(|_| self.is_proven(generation))
    }

    /// When the last proof that succeeded was begun.
    #[must_use]
    pub fn last_proof(&self) -> Option<Instant> {
        self.last_proof
    }

    /// True when the last proof that succeeded was begun within so much time before `now`.
    #[must_use]
    pub fn was_fresh(&self, within: Duration, now: Instant) -> bool {
        self.last_proof
            .is_some_and(|fresh| now.saturating_duration_since(fresh) <= within)
    }

    /// True when somebody has to look at the rows: something waits, or the last proof failed.
    #[must_use]
    pub fn needs_probe(&self) -> bool {
        self.phase != StreamPhase::Suspended && (!self.queue.is_empty() || self.suspect)
    }

    /// Everything up to here was received.
    #[must_use]
    pub fn received(&self) -> BinlogPosition {
        self.queue.received()
    }

    /// How many row changes wait.
    #[must_use]
    pub fn pending_changes(&self) -> usize {
        self.queue.changes()
    }

    /// One more place, whose tables are listened to: a timeline's from the next stream on, one that is referred to from now on.
    pub fn add_timeline(
        &mut self,
        place: TimelineId,
        routes: impl IntoIterator<Item = TableRoute>,
    ) {
        if self.start_positions.len() <= place.0 {
            self.start_positions.resize(place.0 + 1, None);
        }
        let mut all = TableRoutes::clone(&self.routes);
        all.routes.extend(routes);
        self.routes = Arc::new(all);
    }

    /// A stream begins at this position, with nothing known of any place's columns.
    pub fn begin(&mut self, start: BinlogPosition, routes: TableRoutes) -> StreamGeneration {
        self.generation.0 += 1;
        self.phase = StreamPhase::Unproven;
        self.queue = TransactionQueue::starting_at(start);
        self.edit_history = RowEditHistory::default();
        self.version += 1;
        self.routes = Arc::new(routes);
        self.start_positions.fill(None);
        self.suspect = false;
        self.last_proof = None;
        self.releasing = false;
        self.applied_gtids = AppliedGtids::default();
        self.generation
    }

    /// A stream goes on where memory is of: these places' rows are told from `told_from` on, which is its first position, or where the
    /// log ended when it was asked for ([`Self::catch_up`]).
    pub fn resume(
        &mut self,
        start: BinlogPosition,
        routes: TableRoutes,
        (places, told_from): (&[TimelineId], BinlogPosition),
        trail: AppliedGtids,
    ) -> StreamGeneration {
        let generation = self.begin(start, routes);
        for place in places {
            if let Some(base) = self.start_positions.get_mut(place.0) {
                *base = Some(told_from);
            }
        }
        self.applied_gtids = trail;
        generation
    }

    /// The stream is lost. What is applied is left as it is, to be gone on with; `None`: there is no stream.
    pub fn suspend_memory(&mut self) -> Option<SuspendedMemory> {
        if self.phase == StreamPhase::Suspended {
            return None;
        }
        let floor = self.queue.floor();
        let mut trail = std::mem::take(&mut self.applied_gtids);
        trail.mark_applied_to(floor);
        trail.forget_received();
        let told = (0..self.start_positions.len()).map(TimelineId);
        let left = SuspendedMemory {
            floor,
            routes: self.routes(),
            timeline_ids: told.filter(|place| self.is_streamed(*place)).collect(),
            applied_gtids: trail,
        };
        self.suspend();
        Some(left)
    }

    /// It is known now what the log held before this stream.
    pub fn set_base(
        &mut self,
        generation: StreamGeneration,
        (base, last): (GtidSet, CommittedGtid),
    ) {
        if self.is_current(generation) {
            self.applied_gtids.set_base(base, last);
        }
    }

    /// Nothing that was learned is used any more.
    pub fn suspend(&mut self) {
        self.generation.0 += 1;
        self.phase = StreamPhase::Suspended;
        self.queue = TransactionQueue::default();
        self.edit_history = RowEditHistory::default();
        self.applied_gtids = AppliedGtids::default();
        self.version += 1;
        self.start_positions.fill(None);
        self.suspect = false;
        self.last_proof = None;
    }

    /// Rows and log do not go together: nothing is used from here on, until the stream begins anew.
    pub fn distrust(&mut self) {
        self.phase = StreamPhase::Suspended;
        self.version += 1;
    }

    /// The columns of a place's tables are known. False where that was learned beside another stream.
    pub fn set_columns(
        &mut self,
        generation: StreamGeneration,
        place: TimelineId,
        routes: impl IntoIterator<Item = TableRoute>,
    ) -> bool {
        if self.generation != generation {
            return false;
        }
        let mut all = TableRoutes::clone(&self.routes);
        all.routes.retain(|route| route.timeline_id != place);
        all.routes.extend(routes);
        self.routes = Arc::new(all);
        true
    }

    /// The stream listens by the routes as they are now, from between two transactions on: rows of places whose columns are known are
    /// told from here.
    pub fn adopt_routes(&mut self) -> Arc<TableRoutes> {
        let received = self.queue.received();
        let mut begun = RowEdits::default();
        for route in &self.routes.routes {
            if let (Some(_), Some(base @ None)) = (
                route.columns,
                self.start_positions.get_mut(route.timeline_id.0),
            ) {
                *base = Some(received);
                if route.table == TableRole::Referred {
                    // What was told before, to nobody, may not be readable yet.
                    begun.add_all(route.timeline_id);
                }
            }
        }
        self.edit_history.record(&begun, self.queue.end());
        self.routes()
    }

    /// A transaction of that number ends here, as [`Self::push`] or [`Self::advance_to`] will tell next.
    pub fn record_end(&mut self, end: BinlogPosition, stamp: Option<CommittedGtid>) {
        self.applied_gtids.mark_applied_to(self.queue.floor());
        self.applied_gtids.record_received(end, stamp);
    }

    /// The stream has told of a transaction, which changed these rows among others.
    pub fn push(
        &mut self,
        end: BinlogPosition,
        changes: Vec<(TimelineId, TimelineChange)>,
        edits: &RowEdits,
    ) {
        self.version += 1;
        // Its own number, or that of the next one.
        self.edit_history.record(edits, self.queue.end());
        match changes.is_empty() {
            true => self.queue.advance_to(end),
            false => self.queue.push(end, changes),
        }
    }

    /// The stream has told of a transaction that was in the log before the stream began, and changed these rows among others. Memory is not
    /// confirmed yet: whether they are as this left them is asked of the rows themselves.
    pub fn catch_up(&mut self, end: BinlogPosition, edits: &RowEdits) {
        self.version += 1;
        self.edit_history.record(edits, self.queue.end());
        self.queue.advance_to(end);
    }

    /// The stream has told that nothing that matters happened up to here.
    pub fn advance_to(&mut self, to: BinlogPosition) {
        self.queue.advance_to(to);
    }

    /// What was committed before the stream began can be read. False where that was known, or is about another stream.
    pub fn confirm_start(&mut self, generation: StreamGeneration) -> bool {
        let open = self.is_unproven(generation);
        if open {
            self.phase = StreamPhase::Proven;
        }
        open
    }

    /// True while it is not known whether what was committed before this stream can be read.
    #[must_use]
    pub fn is_unproven(&self, generation: StreamGeneration) -> bool {
        self.generation == generation && self.phase == StreamPhase::Unproven
    }

    /// Takes in what a look at the rows told; `None` where it was about another stream.
    pub fn apply_watermark(
        &mut self,
        generation: StreamGeneration,
        cut: CommitWatermark,
    ) -> Option<TransactionRelease> {
        if !self.is_current(generation) {
            return None;
        }
        self.version += 1;
        self.edit_history.mark_readable_below(cut.readable_below);
        if cut.readable_below > self.queue.first() {
            // Servers commit in the order of the log: what came before is readable as well.
            self.phase = StreamPhase::Proven;
        }
        let applied = match self.phase {
            StreamPhase::Proven => cut.indistinguishable_below,
            // Nothing is in memory yet; and of what came before this proves nothing.
            _ => cut.readable_below,
        };
        let transactions = self.queue.take_readable(applied);
        if let Some(recent) = &mut self.recent {
            recent.record(&transactions);
        }
        Some(TransactionRelease {
            transactions,
            floor: self.queue.floor(),
        })
    }

    /// Up to here all that was received is applied, if it is readable.
    #[must_use]
    pub fn floor(&self) -> Option<BinlogPosition> {
        (self.phase == StreamPhase::Proven).then(|| self.queue.floor())
    }

    /// The rows by which it is learned what of what waits can be read.
    #[must_use]
    pub fn row_probe(&self, generation: StreamGeneration) -> RowProbe {
        if self.generation == generation {
            self.queue.row_probe()
        } else {
            RowProbe::default()
        }
    }

    /// How a proof stands that everything up to `end` is applied, as far as it can be read. `hidden`: from this number on,
    /// transactions could not be read at a moment after the proof was begun.
    #[must_use]
    pub fn proof_state(
        &self,
        generation: StreamGeneration,
        end: BinlogPosition,
        hidden: Option<u64>,
    ) -> ProofState {
        if !self.is_current(generation) {
            ProofState::Void
        } else if self.queue.received() < end {
            ProofState::Lagging(end.bytes_after(self.queue.received()))
        } else if self.phase != StreamPhase::Proven {
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
    pub fn is_applied(&self, generation: StreamGeneration, end: BinlogPosition) -> bool {
        !self.is_current(generation)
            || self.phase == StreamPhase::Proven && self.queue.floor() >= end
    }

    /// A proof has ended that was begun then. True when calls learn something new by it.
    pub fn record_proof(
        &mut self,
        generation: StreamGeneration,
        begun: Instant,
        proved: bool,
    ) -> bool {
        if self.generation != generation {
            return false;
        }
        let new = self.suspect == proved;
        self.suspect = !proved;
        if proved {
            self.last_proof = self.last_proof.max(Some(begun));
        }
        new
    }

    /// The number behind what waits now, if something does and it is not being released already: from here on it is. (The beginning of the
    /// stream, where that is all that is open, has a look at the list of its own.)
    pub fn begin_release(&mut self, generation: StreamGeneration) -> Option<u64> {
        if self.generation != generation || self.releasing || self.queue.is_empty() {
            return None;
        }
        self.releasing = true;
        Some(self.queue.end())
    }

    /// True while transactions below this number wait.
    #[must_use]
    pub fn has_pending_below(&self, generation: StreamGeneration, end: u64) -> bool {
        self.generation == generation && self.queue.first() < end
    }

    /// The release has ended.
    pub fn end_release(&mut self, generation: StreamGeneration) {
        if self.generation == generation {
            self.releasing = false;
        }
    }

    /// This moment, for [`Self::leaves_unchanged`] where what is applied is remembered, and for [`Self::is_row_unchanged`]; `None` while the log is not
    /// followed.
    #[must_use]
    pub fn mark(&self) -> Option<ReplicationMark> {
        let next = self.recent.as_ref().map_or(0, RecentChanges::next_number);
        (self.phase == StreamPhase::Proven).then_some(ReplicationMark {
            generation: self.generation,
            next,
            edit_tick: self.edit_history.readable(),
        })
    }

    /// True while the stream is the one in which the mark was made.
    #[must_use]
    pub fn is_proven_since(&self, mark: ReplicationMark) -> bool {
        self.is_proven(mark.generation)
    }

    /// True if a row that was read since then, and before the last proof that succeeded was begun, is now what it was.
    #[must_use]
    pub fn is_row_unchanged(&self, mark: ReplicationMark, row: EditedRow) -> bool {
        self.is_proven(mark.generation) && self.edit_history.is_unchanged_since(row, mark.edit_tick)
    }

    /// Another number where anything was received, applied or lost in between.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Up to which change of a row it is not known that it can be read, while nothing else waits by which that would come out.
    #[must_use]
    pub fn unread_edits(&self, generation: StreamGeneration) -> Option<EditTick> {
        self.edit_history
            .unread_tick()
            .filter(|_| self.is_proven(generation))
    }

    /// Changes of rows can be read up to there.
    pub fn mark_edits_readable(&mut self, generation: StreamGeneration, tick: EditTick) {
        if self.is_proven(generation) {
            self.edit_history.mark_readable_to(tick);
        }
    }

    /// True if no change that was applied since then was about what these readers see. `authors`: theirs and others, ascending, where
    /// they are known.
    #[must_use]
    pub fn leaves_unchanged(
        &self,
        mark: ReplicationMark,
        place: TimelineId,
        readers: &[u64],
        authors: Option<&[u64]>,
    ) -> bool {
        self.is_proven(mark.generation)
            && self
                .recent
                .as_ref()
                .is_some_and(|recent| recent.leaves_unchanged(mark.next, place, readers, authors))
    }
}
