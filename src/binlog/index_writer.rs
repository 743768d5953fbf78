//! Writes what the log tells to the index of each timeline, once it can be read.

use std::sync::atomic::Ordering;

use super::error::BinlogError;
use super::{Binlog, BinlogState};
use crate::clock;
use crate::index::{BinlogPosition, TimelineChange, TimelineId};
use crate::log::evidence::TableRowKey;
use crate::log::queue::CommitWatermark;
use crate::log::replication_state::{StreamGeneration, TransactionRelease};

impl Binlog {
    /// Takes in what is known of the rows by another way than a proof, if it is about the same stream.
    pub(super) fn receive_watermark(&self, generation: StreamGeneration, cut: CommitWatermark) {
        let mut state = self.state();
        if let Some(release) = state.following.apply_watermark(generation, cut) {
            self.apply(&mut state, &release);
        }
        drop(state);
        self.progress.notify_waiters();
    }

    /// A row is as it cannot be by what the log tells.
    pub(super) fn report_contradiction(&self, state: &mut BinlogState, key: TableRowKey) {
        let places = self.cached_timelines();
        let database = places
            .get(key.timeline_id.0)
            .map_or("", |place| place.database());
        let (table, first, second) = (key.table, key.first, key.second);
        let row = format!(
            "{database}: {table:?} row {first}, {second}, is neither as before nor as after a change"
        );
        self.alarm(state, row);
    }

    /// From here on nothing in memory is used; the stream begins anew, and says why.
    pub(super) fn alarm(&self, state: &mut BinlogState, what: String) {
        self.contradictions.fetch_add(1, Ordering::Relaxed);
        state.following.distrust();
        state.restart_reason = Some(BinlogError::Contradiction(what));
        self.routes_changed();
    }

    /// How often rows and log contradicted each other: each time memory was emptied.
    #[must_use]
    pub fn contradictions(&self) -> u64 {
        self.contradictions.load(Ordering::Relaxed)
    }

    /// Applies what is released. What cannot have happened so is an alarm.
    pub(super) fn apply(&self, state: &mut BinlogState, release: &TransactionRelease) {
        if state.following.floor().is_none() {
            return;
        }
        let mut contradiction = None;
        for place in self.cached_timelines() {
            if !state.following.is_streamed(place.id()) {
                continue;
            }
            let mut own = Vec::new();
            let mut index = None;
            for transaction in &release.transactions {
                own.clear();
                let changes = transaction.changes.iter();
                own.extend(
                    changes
                        .filter(|(number, _)| *number == place.id())
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
    pub(super) fn apply_unconfirmed(
        &self,
        changes: &[(TimelineId, TimelineChange)],
        end: BinlogPosition,
    ) {
        for place in self.cached_timelines() {
            let own = changes.iter().filter(|(number, _)| *number == place.id());
            let own: Vec<TimelineChange> = own.map(|(_, change)| *change).collect();
            if !own.is_empty() {
                place.index_mut().apply(&own, end);
            }
        }
    }

    /// Moves every index up to where all is applied.
    pub(super) fn catch_up(&self, state: &mut BinlogState) {
        if let Some(floor) = state.following.floor() {
            let release = TransactionRelease {
                transactions: Vec::new(),
                floor,
            };
            self.apply(state, &release);
        }
    }
}
