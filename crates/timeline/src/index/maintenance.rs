//! Deferred work, done in small steps with every transaction.

use std::cmp::Reverse;

use super::sharded_table::{ClockHand, EvictionStep};
use super::{BinlogPosition, LoadTarget, TimelineIndex, WindowItem};

/// How much work is deferred, and how much is done at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SweepPace {
    /// More tombstones than this start a sweep.
    pub(super) max_tombstones: usize,
    /// A sweep ends before this many more tombstones are added.
    pub(super) sweep_within: usize,
    /// The least number of ids that a sweep checks per transaction.
    pub(super) sweep_work: usize,
}

impl Default for SweepPace {
    fn default() -> Self {
        SweepPace {
            max_tombstones: 1_024,
            sweep_within: 32_768,
            sweep_work: 4_096,
        }
    }
}

/// The hand spares this many used entries before it evicts one anyway.
const MAX_SECOND_CHANCES: usize = 64;
/// Retired entries that are freed per transaction.
const FREED_PER_TRANSACTION: usize = 256;

/// A sweep over all windows that removes items under tombstones.
#[derive(Debug)]
pub(super) struct TombstoneSweep {
    hand: ClockHand,
    /// Ids to check per new tombstone.
    work_per_tombstone: usize,
    /// Loads up to this ticket may still bring such ids.
    last_ticket: u64,
    scan_complete: bool,
}

impl<I: WindowItem> TimelineIndex<I> {
    /// Ends the loads that have become valid.
    pub(super) fn complete_loads(&mut self) {
        let position = self.position;
        while let Some(Reverse((valid_from, target))) = self.pending_loads.peek() {
            if *valid_from > position {
                break;
            }
            match *target {
                LoadTarget::Reader(reader) => self
                    .readers
                    .edit(reader, |list| list.complete_load(position)),
                LoadTarget::Author(author) => {
                    self.authors.edit(author, |w| w.complete_load(position))
                }
            };
            self.pending_loads.pop();
        }
    }

    /// Continues the sweep, or starts one if there are many tombstones.
    pub(super) fn continue_sweep(&mut self, new_tombstones: usize) {
        if self.sweep.is_none() && self.tombstones.len() > self.sweep_pace.max_tombstones {
            self.tombstones.begin_sweep();
            self.sweep = Some(TombstoneSweep {
                hand: ClockHand::default(),
                work_per_tombstone: (self.authors.item_count() + self.authors.visit_cost())
                    / self.sweep_pace.sweep_within
                    + 1,
                last_ticket: self.tickets,
                scan_complete: false,
            });
        }
        let Some(sweep) = &mut self.sweep else {
            return;
        };
        let tombstones = &self.tombstones;
        if !sweep.scan_complete {
            let work = self
                .sweep_pace
                .sweep_work
                .saturating_add(sweep.work_per_tombstone.saturating_mul(new_tombstones));
            let purge = |window: &mut super::AuthorWindow<I>| window.purge(tombstones);
            sweep.scan_complete = self.authors.visit(&mut sweep.hand, work, purge);
        }
        if !sweep.scan_complete {
            return;
        }
        let last_ticket = sweep.last_ticket;
        let in_excess = tombstones.len() > 2 * self.sweep_pace.sweep_within;
        while let Some((&ticket, &author)) = self.pending_authors.first_key_value()
            && ticket <= last_ticket
        {
            if !in_excess {
                return;
            }
            self.pending_authors.remove(&ticket);
            self.abandon_author_load(author);
        }
        self.tombstones.end_sweep();
        self.sweep = None;
    }

    /// Voids an author's load.
    pub(super) fn abandon_author_load(&mut self, author: u64) {
        let outcome = self
            .authors
            .edit(author, |w| (w.ticket(), w.abandon_load()));
        if let Some((ticket, had_items)) = outcome {
            if let Some(ticket) = ticket {
                self.pending_authors.remove(&ticket);
            }
            if !had_items {
                self.authors.remove(author);
            }
        }
    }

    /// Evicts what was not used recently until the budget is met.
    pub(super) fn evict_to_budget(&mut self) {
        self.authors.free_retired(FREED_PER_TRANSACTION);
        self.readers.free_retired(FREED_PER_TRANSACTION);
        let mut second_chances = MAX_SECOND_CHANCES;
        while self.bytes() > self.budget {
            if self.authors.free_retired(FREED_PER_TRANSACTION)
                || self.readers.free_retired(FREED_PER_TRANSACTION)
            {
                continue;
            }
            if self.authors.evictable_count() + self.readers.evictable_count() == 0 {
                break;
            }
            // Both hands move at the same speed.
            let step = match self.authors.passed_shards() <= self.readers.passed_shards() {
                true => self.authors.advance_clock(second_chances > 0),
                false => self.readers.advance_clock(second_chances > 0),
            };
            match step {
                EvictionStep::Evicted => {
                    self.evicted += 1;
                    second_chances = MAX_SECOND_CHANCES;
                }
                EvictionStep::SecondChance => second_chances -= 1,
                EvictionStep::Skipped => {}
            }
        }
    }

    /// Bytes outside the tables.
    pub(super) fn maintenance_bytes(&self) -> usize {
        let pending_loads_bytes =
            self.pending_loads.capacity() * size_of::<Reverse<(BinlogPosition, LoadTarget)>>();
        let pending_authors_bytes = self.pending_authors.len() * 3 * size_of::<u64>();
        self.tombstones.bytes() + pending_loads_bytes + pending_authors_bytes
    }
}
