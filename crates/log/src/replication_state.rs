//! How far a server's log is followed, and which of it may be used: the state that stream, proofs and loads share.
//!
//! A stream begins unproven: what was committed before it may not be readable yet. Once it is proven, the applied transactions are
//! exact. When the log cannot be followed, the state is suspended. The next stream has a new generation, and work of older ones is void.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_timeline::index::{BinlogPosition, RowKey, TableId, TimelineChange, TimelineId};

use super::applied_gtids::AppliedGtids;
use super::edits::{EditTick, RowEditHistory, RowEdits};
use super::evidence::TableRole;
use super::gtid::{CommittedGtid, GtidSet};
use super::queue::{CommitWatermark, LoggedTransaction, RowProbe, TransactionQueue};
use super::recent_changes::RecentChanges;
use super::routes::{TableRoute, TableRoutes};

/// Counts the streams; 0: none so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamGeneration(u64);

/// The phase of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamPhase {
    /// The log is not followed.
    #[default]
    Suspended,
    /// The log is followed, but what was committed before the stream may not be readable yet.
    Unproven,
    /// What is applied is readable.
    Proven,
}

/// The state of a freshness proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofState {
    /// The index is exact.
    Proved,
    /// The stream has not received everything up to the position: at least this many bytes of the log are missing.
    Lagging(u64),
    /// It is not known which of the received transactions are readable.
    Unknown,
    /// The stream was lost meanwhile.
    Void,
}

/// A moment, defined by how much had been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationMark {
    generation: StreamGeneration,
    next: u64,
    /// Row changes below this tick were readable.
    edit_tick: EditTick,
}

impl ReplicationMark {
    /// The stream's number.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.0
    }
}

/// What is to be applied now, to streamed timelines ([`ReplicationState::is_streamed`]), up to the floor.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TransactionRelease {
    /// In log order.
    pub transactions: Vec<LoggedTransaction>,
    /// Everything up to here is applied then.
    pub floor: BinlogPosition,
}

/// The state of memory when the stream was lost.
#[derive(Clone, Debug)]
pub struct SuspendedMemory {
    /// Everything up to here was applied.
    pub floor: BinlogPosition,
    /// The watched tables, as far as they were known.
    pub routes: Arc<TableRoutes>,
    /// Tables whose rows were streamed.
    pub tables: Vec<TableId>,
    /// The transactions that memory contains.
    pub applied_gtids: AppliedGtids,
}

/// What is known of one server's log.
#[derive(Debug, Default)]
pub struct ReplicationState {
    phase: StreamPhase,
    generation: StreamGeneration,
    queue: TransactionQueue,
    routes: Arc<TableRoutes>,
    /// The position from which each table's rows are streamed; none while they are not.
    start_positions: BTreeMap<TableId, BinlogPosition>,
    /// The last proof failed: calls do not wait for the next one.
    suspect: bool,
    last_proof: Option<Instant>,
    /// Pending transactions are being released by the list of open transactions.
    releasing: bool,
    /// Recently applied changes, if answers are compared.
    recent: Option<RecentChanges>,
    /// Which rows were changed recently.
    edit_history: RowEditHistory,
    applied_gtids: AppliedGtids,
    /// Incremented when something is received, applied or lost.
    version: u64,
}

impl ReplicationState {
    /// Starts suspended. `keeps_recent`: recently applied changes are remembered.
    #[must_use]
    pub fn new(keeps_recent: bool) -> ReplicationState {
        ReplicationState {
            recent: keeps_recent.then(RecentChanges::default),
            ..ReplicationState::default()
        }
    }

    /// The generation of the current stream, or of the last one.
    #[must_use]
    pub fn generation(&self) -> StreamGeneration {
        self.generation
    }

    /// True while the log is not followed.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.phase == StreamPhase::Suspended
    }

    /// True while the log is followed and this is the stream.
    #[must_use]
    pub fn is_current(&self, generation: StreamGeneration) -> bool {
        self.generation == generation && self.phase != StreamPhase::Suspended
    }

    /// True while this stream is followed and what is applied is readable.
    #[must_use]
    pub fn is_proven(&self, generation: StreamGeneration) -> bool {
        self.generation == generation && self.phase == StreamPhase::Proven
    }

    /// The watched tables.
    #[must_use]
    pub fn routes(&self) -> Arc<TableRoutes> {
        Arc::clone(&self.routes)
    }

    /// True if the stream contains a table's rows.
    #[must_use]
    pub fn is_streamed(&self, table: TableId) -> bool {
        self.start_positions.contains_key(&table.logged())
    }

    /// The position from which a timeline's rows are streamed.
    #[must_use]
    pub fn streamed_from(&self, timeline_id: TimelineId) -> Option<BinlogPosition> {
        self.start_positions.get(&timeline_id.into()).copied()
    }

    /// True if pages of a timeline may be served, once freshness is proved.
    #[must_use]
    pub fn is_proven_for(&self, timeline_id: TimelineId) -> bool {
        self.phase == StreamPhase::Proven && !self.suspect && self.is_streamed(timeline_id.into())
    }

    /// The position from which a load of this timeline's rows can begin: the stream contains everything committed after it.
    #[must_use]
    pub fn loads_from(
        &self,
        generation: StreamGeneration,
        timeline_id: TimelineId,
    ) -> Option<BinlogPosition> {
        self.streamed_from(timeline_id)
            .filter(|_| self.is_proven(generation))
    }

    /// When the last successful proof began.
    #[must_use]
    pub fn last_proof(&self) -> Option<Instant> {
        self.last_proof
    }

    /// True if the last successful proof began at most `within` before `now`.
    #[must_use]
    pub fn was_fresh(&self, within: Duration, now: Instant) -> bool {
        self.last_proof
            .is_some_and(|fresh| now.saturating_duration_since(fresh) <= within)
    }

    /// True if a probe is needed: transactions are pending, or the last proof failed.
    #[must_use]
    pub fn needs_probe(&self) -> bool {
        self.phase != StreamPhase::Suspended && (!self.queue.is_empty() || self.suspect)
    }

    /// Everything up to here was received.
    #[must_use]
    pub fn received(&self) -> BinlogPosition {
        self.queue.received()
    }

    /// The number of pending row changes.
    #[must_use]
    pub fn pending_changes(&self) -> usize {
        self.queue.changes()
    }

    /// Watches further tables. Those of a timeline are streamed from the next stream on, a joined table from now on.
    pub fn add_routes(&mut self, routes: impl IntoIterator<Item = TableRoute>) {
        let mut all = TableRoutes::clone(&self.routes);
        all.routes.extend(routes);
        all.spread_copies();
        self.routes = Arc::new(all);
    }

    /// Begins a stream at this position; no timeline's columns are known.
    pub fn begin(&mut self, start: BinlogPosition, mut routes: TableRoutes) -> StreamGeneration {
        routes.spread_copies();
        self.generation.0 += 1;
        self.phase = StreamPhase::Unproven;
        self.queue = TransactionQueue::starting_at(start);
        self.edit_history = RowEditHistory::default();
        self.version += 1;
        self.routes = Arc::new(routes);
        self.start_positions.clear();
        self.suspect = false;
        self.last_proof = None;
        self.releasing = false;
        self.applied_gtids = AppliedGtids::default();
        self.generation
    }

    /// Begins a stream that continues memory: these tables' rows are streamed from the given position on, which is its first, or
    /// where the log ended when the server was asked for it ([`Self::catch_up`]).
    pub fn resume(
        &mut self,
        start: BinlogPosition,
        routes: TableRoutes,
        (tables, stream_start): (&[TableId], BinlogPosition),
        applied_gtids: AppliedGtids,
    ) -> StreamGeneration {
        let generation = self.begin(start, routes);
        let positions = tables.iter().map(|table| (*table, stream_start));
        self.start_positions.extend(positions);
        self.applied_gtids = applied_gtids;
        generation
    }

    /// Suspends the stream, and returns what is applied so that it can be resumed; `None` if there is no stream.
    pub fn suspend(&mut self) -> Option<SuspendedMemory> {
        if self.phase == StreamPhase::Suspended {
            return None;
        }
        let floor = self.queue.floor();
        let mut applied_gtids = std::mem::take(&mut self.applied_gtids);
        applied_gtids.mark_applied_to(floor);
        applied_gtids.forget_received();
        let memory = SuspendedMemory {
            floor,
            routes: self.routes(),
            tables: self.start_positions.keys().copied().collect(),
            applied_gtids,
        };
        self.discard();
        Some(memory)
    }

    /// Sets what the log contained before this stream.
    pub fn set_base(
        &mut self,
        generation: StreamGeneration,
        (base, last): (GtidSet, CommittedGtid),
    ) {
        if self.is_current(generation) {
            self.applied_gtids.set_base(base, last);
        }
    }

    /// Suspends the stream and discards what it received.
    pub fn discard(&mut self) {
        self.generation.0 += 1;
        self.phase = StreamPhase::Suspended;
        self.queue = TransactionQueue::default();
        self.edit_history = RowEditHistory::default();
        self.applied_gtids = AppliedGtids::default();
        self.version += 1;
        self.start_positions.clear();
        self.suspect = false;
        self.last_proof = None;
    }

    /// Suspends because rows and log do not match: nothing is used until a new stream begins.
    pub fn distrust(&mut self) {
        self.phase = StreamPhase::Suspended;
        self.version += 1;
    }

    /// Sets a table's routes with known columns. False if they were read for another stream.
    pub fn set_columns(
        &mut self,
        generation: StreamGeneration,
        table: TableId,
        routes: impl IntoIterator<Item = TableRoute>,
    ) -> bool {
        if self.generation != generation {
            return false;
        }
        let mut all = TableRoutes::clone(&self.routes);
        all.routes.retain(|route| route.table_id != table);
        all.routes.extend(routes);
        all.spread_copies();
        self.routes = Arc::new(all);
        true
    }

    /// The stream reads by the current routes from now on, between two transactions: timelines with known columns are streamed from here.
    pub fn adopt_routes(&mut self) -> Arc<TableRoutes> {
        let received = self.queue.received();
        let mut newly_streamed = RowEdits::default();
        for route in &self.routes.routes {
            if route.columns.is_some()
                && let Entry::Vacant(position) = self.start_positions.entry(route.table_id)
            {
                position.insert(received);
                // What the log contained before may not be readable yet.
                if route.table == TableRole::Referred {
                    newly_streamed.add_all(route.table_id);
                } else if let Some(timeline) = route.table_id.timeline() {
                    newly_streamed.add_all(TableId::Authors(timeline));
                }
            }
        }
        self.edit_history.record(&newly_streamed, self.queue.end());
        self.routes()
    }

    /// Records a transaction's GTID and end, before [`Self::push`] or [`Self::advance_to`].
    pub fn record_end(&mut self, end: BinlogPosition, gtid: Option<CommittedGtid>) {
        self.applied_gtids.mark_applied_to(self.queue.floor());
        self.applied_gtids.record_received(end, gtid);
    }

    /// Adds a received transaction, with the rows that it edited.
    pub fn push(
        &mut self,
        end: BinlogPosition,
        changes: Vec<(TimelineId, TimelineChange)>,
        edits: &RowEdits,
    ) {
        self.version += 1;
        // The transaction's number, or that of the next one.
        self.edit_history.record(edits, self.queue.end());
        match changes.is_empty() {
            true => self.queue.advance_to(end),
            false => self.queue.push(end, changes),
        }
    }

    /// Adds edits of a received transaction that was in the log before the stream began. Memory is not confirmed yet: probes of the rows
    /// show whether they are as this transaction left them.
    pub fn catch_up(&mut self, end: BinlogPosition, edits: &RowEdits) {
        self.version += 1;
        self.edit_history.record(edits, self.queue.end());
        self.queue.advance_to(end);
    }

    /// Nothing relevant happened up to here.
    pub fn advance_to(&mut self, to: BinlogPosition) {
        self.queue.advance_to(to);
    }

    /// What was committed before the stream began is readable. False if that was known, or for another stream.
    pub fn confirm_start(&mut self, generation: StreamGeneration) -> bool {
        let open = self.is_unproven(generation);
        if open {
            self.phase = StreamPhase::Proven;
        }
        open
    }

    /// True while it is not known whether what was committed before this stream is readable.
    #[must_use]
    pub fn is_unproven(&self, generation: StreamGeneration) -> bool {
        self.generation == generation && self.phase == StreamPhase::Unproven
    }

    /// Applies the result of a probe; `None` if it is for another stream.
    pub fn apply_watermark(
        &mut self,
        generation: StreamGeneration,
        watermark: CommitWatermark,
    ) -> Option<TransactionRelease> {
        if !self.is_current(generation) {
            return None;
        }
        self.version += 1;
        self.edit_history
            .mark_readable_below(watermark.readable_below);
        if watermark.readable_below > self.queue.first() {
            // Servers commit in log order: what came before is readable as well.
            self.phase = StreamPhase::Proven;
        }
        let applied = match self.phase {
            StreamPhase::Proven => watermark.indistinguishable_below,
            // Memory is empty so far; and identical rows prove nothing about what came before.
            _ => watermark.readable_below,
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

    /// Everything received up to here is applied, if it is readable.
    #[must_use]
    pub fn floor(&self) -> Option<BinlogPosition> {
        (self.phase == StreamPhase::Proven).then(|| self.queue.floor())
    }

    /// The rows to probe to learn which pending transactions are readable.
    #[must_use]
    pub fn row_probe(&self, generation: StreamGeneration) -> RowProbe {
        if self.generation == generation {
            self.queue.row_probe()
        } else {
            RowProbe::default()
        }
    }

    /// The state of a proof that everything readable up to `end` is applied. `hidden`: from this number on, transactions were not readable
    /// at a moment after the proof began.
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

    /// True if no pending transaction prevents a proof up to `end`, or the stream is lost.
    #[must_use]
    pub fn is_applied(&self, generation: StreamGeneration, end: BinlogPosition) -> bool {
        !self.is_current(generation)
            || self.phase == StreamPhase::Proven && self.queue.floor() >= end
    }

    /// Records the result of a proof and when it began. True if the result differs from that of the last proof.
    pub fn record_proof(
        &mut self,
        generation: StreamGeneration,
        started: Instant,
        proved: bool,
    ) -> bool {
        if self.generation != generation {
            return false;
        }
        let new = self.suspect == proved;
        self.suspect = !proved;
        if proved {
            self.last_proof = self.last_proof.max(Some(started));
        }
        new
    }

    /// Starts a release and returns the number after the pending transactions; `None` if none are pending or one is running. (If only
    /// the start of the stream is unproven, that has a check of the open transactions of its own.)
    pub fn begin_release(&mut self, generation: StreamGeneration) -> Option<u64> {
        if self.generation != generation || self.releasing || self.queue.is_empty() {
            return None;
        }
        self.releasing = true;
        Some(self.queue.end())
    }

    /// True while transactions below this number are pending.
    #[must_use]
    pub fn has_pending_below(&self, generation: StreamGeneration, end: u64) -> bool {
        self.generation == generation && self.queue.first() < end
    }

    /// Ends the release.
    pub fn end_release(&mut self, generation: StreamGeneration) {
        if self.generation == generation {
            self.releasing = false;
        }
    }

    /// The current moment, for [`Self::leaves_unchanged`] (if applied changes are remembered) and [`Self::is_row_unchanged`]; `None` while
    /// the log is not followed.
    #[must_use]
    pub fn mark(&self) -> Option<ReplicationMark> {
        let next = self.recent.as_ref().map_or(0, RecentChanges::next_number);
        (self.phase == StreamPhase::Proven).then_some(ReplicationMark {
            generation: self.generation,
            next,
            edit_tick: self.edit_history.readable(),
        })
    }

    /// True while the stream is the one of the mark.
    #[must_use]
    pub fn is_proven_since(&self, mark: ReplicationMark) -> bool {
        self.is_proven(mark.generation)
    }

    /// True if a row that was read since the mark, and before the last successful proof began, is still current.
    #[must_use]
    pub fn is_row_unchanged(&self, mark: ReplicationMark, row: RowKey) -> bool {
        self.is_proven(mark.generation) && self.edit_history.is_unchanged_since(row, mark.edit_tick)
    }

    /// Changes when anything is received, applied or lost.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The tick up to which row changes are not known to be readable, while no pending transaction would show it.
    #[must_use]
    pub fn unread_edits(&self, generation: StreamGeneration) -> Option<EditTick> {
        self.edit_history
            .unread_tick()
            .filter(|_| self.is_proven(generation))
    }

    /// True if row changes of this stream are not known to be readable.
    #[must_use]
    pub fn has_unread_edits(&self) -> bool {
        self.unread_edits(self.generation).is_some()
    }

    /// Marks row changes up to this tick as readable.
    pub fn mark_edits_readable(&mut self, generation: StreamGeneration, tick: EditTick) {
        if self.is_proven(generation) {
            self.edit_history.mark_readable_to(tick);
        }
    }

    /// True if no change applied since the mark affects what these readers see. `authors`: at least those they follow, ascending, if known.
    #[must_use]
    pub fn leaves_unchanged(
        &self,
        mark: ReplicationMark,
        timeline_id: TimelineId,
        readers: &[u64],
        authors: Option<&[u64]>,
    ) -> bool {
        self.is_proven(mark.generation)
            && self.recent.as_ref().is_some_and(|recent| {
                recent.leaves_unchanged(mark.next, timeline_id, readers, authors)
            })
    }
}
