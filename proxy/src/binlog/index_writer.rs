//! Applies readable transactions to the index of each timeline.

use std::sync::atomic::Ordering;

use super::error::BinlogError;
use super::{Binlog, BinlogState};
use crate::clock;
use headwater_log::evidence::TableRowKey;
use headwater_log::queue::CommitWatermark;
use headwater_log::replication_state::{StreamGeneration, TransactionRelease};
use headwater_timeline::index::{BinlogPosition, TimelineChange, TimelineId};

impl Binlog {
    /// Applies a watermark that does not come from a proof, if it belongs to the same stream.
    pub(super) fn receive_watermark(
        &self,
        generation: StreamGeneration,
        watermark: CommitWatermark,
    ) {
        let mut state = self.state();
        if let Some(release) = state.replication.apply_watermark(generation, watermark) {
            self.apply(&mut state, &release);
        }
        drop(state);
        self.progress.notify_waiters();
    }

    /// Reports a row that matches the log neither before nor after a change.
    pub(super) fn report_contradiction(&self, state: &mut BinlogState, key: TableRowKey) {
        let timelines = self.cached_timelines();
        let database = timelines
            .get(key.timeline_id.0)
            .map_or("", |timeline| timeline.database());
        let (table, first, second) = (key.table, key.first, key.second);
        let row = format!(
            "{database}: {table:?} row {first}, {second}, is neither as before nor as after a change"
        );
        self.alarm(state, row);
    }

    /// Distrusts all memory from now on; the stream restarts with this contradiction.
    pub(super) fn alarm(&self, state: &mut BinlogState, what: String) {
        self.contradictions.fetch_add(1, Ordering::Relaxed);
        state.replication.distrust();
        state.restart_reason = Some(BinlogError::Contradiction(what));
        self.routes_changed();
    }

    /// How often rows and log contradicted each other; each time emptied memory.
    #[must_use]
    pub fn contradictions(&self) -> u64 {
        self.contradictions.load(Ordering::Relaxed)
    }

    /// Applies released transactions. An impossible change raises an alarm.
    pub(super) fn apply(&self, state: &mut BinlogState, release: &TransactionRelease) {
        if state.replication.floor().is_none() {
            return;
        }
        let mut contradiction = None;
        for timeline in self.cached_timelines() {
            if !state.replication.is_streamed(timeline.id().into()) {
                continue;
            }
            let mut timeline_changes = Vec::new();
            let mut index = None;
            for transaction in &release.transactions {
                timeline_changes.clear();
                let changes = transaction.changes.iter();
                timeline_changes.extend(
                    changes
                        .filter(|(number, _)| *number == timeline.id())
                        .map(|(_, change)| *change),
                );
                if !timeline_changes.is_empty() {
                    let index = index.get_or_insert_with(|| timeline.index_mut());
                    index.apply(&timeline_changes, transaction.end);
                    if let Some(change) = index.take_contradiction() {
                        contradiction = Some(format!("{}: {change:?}", timeline.database()));
                    }
                }
            }
            if index.is_some() || timeline.index().position() < release.floor {
                index
                    .get_or_insert_with(|| timeline.index_mut())
                    .apply(&[], release.floor);
            }
        }
        if let Some(what) = contradiction {
            self.alarm(state, what);
        }
        state.note_waiting(clock::now());
    }

    /// Applies a transaction to entries that are not confirmed yet.
    pub(super) fn apply_unconfirmed(
        &self,
        changes: &[(TimelineId, TimelineChange)],
        end: BinlogPosition,
    ) {
        for timeline in self.cached_timelines() {
            let timeline_changes = changes
                .iter()
                .filter(|(number, _)| *number == timeline.id());
            let timeline_changes: Vec<TimelineChange> =
                timeline_changes.map(|(_, change)| *change).collect();
            if !timeline_changes.is_empty() {
                timeline.index_mut().apply(&timeline_changes, end);
            }
        }
    }

    /// Advances every index to the position up to which all is applied.
    pub(super) fn catch_up(&self, state: &mut BinlogState) {
        if let Some(floor) = state.replication.floor() {
            let release = TransactionRelease {
                transactions: Vec::new(),
                floor,
            };
            self.apply(state, &release);
        }
    }
}
