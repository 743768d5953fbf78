//! What has to be done beside every change, a little at a time.

use std::cmp::Reverse;

use super::table::{Hand, Step};
use super::{Index, Item, Position, Whose};

/// How much is put off, and how much of it is done at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// More tombstones than this begin a sweep.
    pub(super) tombstones: usize,
    /// A sweep ends before so many more have been laid.
    pub(super) sweep_within: usize,
    /// Ids that a sweep looks at with each transaction, at least.
    pub(super) sweep_work: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            tombstones: 1_024,
            sweep_within: 32_768,
            sweep_work: 4_096,
        }
    }
}

/// The hand passes so many entries that were used before it takes one all the same.
const PATIENCE: usize = 64;
/// Void entries that are freed with each transaction.
const BURY: usize = 256;

/// A walk through all windows, to take out what tombstones cover.
#[derive(Debug)]
pub(super) struct Sweep {
    hand: Hand,
    /// Ids that it looks at for each new tombstone.
    pace: usize,
    /// Loads up to this ticket may bring such ids still.
    tickets: u64,
    seen_all: bool,
}

impl<I: Item> Index<I> {
    /// Ends the loads that have become valid.
    pub(super) fn settle(&mut self) {
        let position = self.position;
        while let Some(Reverse((valid_from, whose))) = self.settling.peek() {
            if *valid_from > position {
                break;
            }
            match *whose {
                Whose::Reader(reader) => self.readers.edit(reader, |list| list.settle(position)),
                Whose::Author(author) => self.authors.edit(author, |w| w.settle(position)),
            };
            self.settling.pop();
        }
    }

    /// Goes on with the sweep, or begins one if there are many tombstones.
    pub(super) fn sweep(&mut self, laid: usize) {
        if self.sweep.is_none() && self.tombstones.len() > self.pace.tombstones {
            self.tombstones.begin_sweep();
            self.sweep = Some(Sweep {
                hand: Hand::default(),
                pace: (self.authors.items() + self.authors.stops()) / self.pace.sweep_within + 1,
                tickets: self.tickets,
                seen_all: false,
            });
        }
        let Some(sweep) = &mut self.sweep else {
            return;
        };
        let tombstones = &self.tombstones;
        if !sweep.seen_all {
            let work = self
                .pace
                .sweep_work
                .saturating_add(sweep.pace.saturating_mul(laid));
            let purge = |window: &mut super::Window<I>| window.purge(tombstones);
            sweep.seen_all = self.authors.visit(&mut sweep.hand, work, purge);
        }
        if !sweep.seen_all {
            return;
        }
        let tickets = sweep.tickets;
        let in_excess = tombstones.len() > 2 * self.pace.sweep_within;
        while let Some((&ticket, &author)) = self.asked.first_key_value()
            && ticket <= tickets
        {
            if !in_excess {
                return;
            }
            self.asked.remove(&ticket);
            self.give_up_author(author);
        }
        self.tombstones.end_sweep();
        self.sweep = None;
    }

    /// The load of an author is void.
    pub(super) fn give_up_author(&mut self, author: u64) {
        let was = self.authors.edit(author, |w| (w.ticket(), w.give_up()));
        if let Some((ticket, kept)) = was {
            if let Some(ticket) = ticket {
                self.asked.remove(&ticket);
            }
            if !kept {
                self.authors.remove(author);
            }
        }
    }

    /// Evicts what was not used lately until the budget is kept.
    pub(super) fn shrink(&mut self) {
        self.authors.bury(BURY);
        self.readers.bury(BURY);
        let mut patience = PATIENCE;
        while self.bytes() > self.budget {
            if self.authors.bury(BURY) || self.readers.bury(BURY) {
                continue;
            }
            if self.authors.evictable() + self.readers.evictable() == 0 {
                break;
            }
            // Both hands go round at one speed.
            let step = match self.authors.passed() <= self.readers.passed() {
                true => self.authors.step(patience > 0),
                false => self.readers.step(patience > 0),
            };
            match step {
                Step::Evicted => {
                    self.evicted += 1;
                    patience = PATIENCE;
                }
                Step::Spared => patience -= 1,
                Step::Passed => {}
            }
        }
    }

    /// Bytes beside the tables.
    pub(super) fn upkeep_bytes(&self) -> usize {
        let settling = self.settling.capacity() * size_of::<Reverse<(Position, Whose)>>();
        let asked = self.asked.len() * 3 * size_of::<u64>();
        self.tombstones.bytes() + settling + asked
    }
}
