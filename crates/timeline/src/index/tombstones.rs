//! Ids that were removed without a word about whose they were.
//!
//! Any window may hold such an id. Until all windows have been looked through, a tombstone says who owns
//! the id now, and no other window shows it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Item;
use super::shard::hash;

#[derive(Clone, Copy, Debug)]
struct Tombstone<I> {
    /// Who got the id last since then, and as which item.
    owner: Option<(u64, I)>,
    /// How many sweeps had begun when it was laid.
    round: u64,
}

/// Hashes one number as the tables do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers(u64);

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = hash(self.0 ^ number);
    }
}

/// The ids that are not what windows say they are.
#[derive(Debug)]
pub(super) struct Tombstones<I> {
    laid: HashMap<u64, Tombstone<I>, BuildHasherDefault<Numbers>>,
    round: u64,
}

impl<I> Default for Tombstones<I> {
    fn default() -> Self {
        Tombstones {
            laid: HashMap::default(),
            round: 0,
        }
    }
}

impl<I: Item> Tombstones<I> {
    pub(super) fn len(&self) -> usize {
        self.laid.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.laid.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        // At most seven of eight buckets are used, and each has a byte of its own.
        self.laid.capacity() * 8 / 7 * (size_of::<(u64, Tombstone<I>)>() + 1)
    }

    /// It is not known for certain whose window holds this id.
    pub(super) fn covers(&self, id: u64) -> bool {
        !self.laid.is_empty() && self.laid.contains_key(&id)
    }

    /// An id is gone, whoever had it.
    pub(super) fn lay(&mut self, id: u64) {
        let round = self.round;
        self.laid.insert(id, Tombstone { owner: None, round });
    }

    /// An author has an id now. If it goes again and the log says whose it was, its window loses it as usual.
    pub(super) fn own(&mut self, item: I, author: u64) {
        if self.laid.is_empty() {
            return;
        }
        if let Some(tombstone) = self.laid.get_mut(&item.id()) {
            if tombstone.owner.is_some_and(|owner| owner != (author, item)) {
                tombstone.round = self.round;
            }
            tombstone.owner = Some((author, item));
        }
    }

    /// May an author's window show this item?
    pub(super) fn shows(&self, item: I, author: u64) -> bool {
        if self.laid.is_empty() {
            return true;
        }
        let tombstone = self.laid.get(&item.id());
        tombstone.is_none_or(|tombstone| tombstone.owner == Some((author, item)))
    }

    /// The items of a window that it may show, newest first.
    pub(super) fn shown<'a>(&'a self, items: &'a [I], author: u64) -> impl Iterator<Item = I> + 'a {
        let items = items.iter().rev().copied();
        items.filter(move |item| self.shows(*item, author))
    }

    /// A sweep begins.
    pub(super) fn begin_sweep(&mut self) {
        self.round += 1;
    }

    /// All windows have been looked through since the sweep began.
    pub(super) fn end_sweep(&mut self) {
        let round = self.round;
        self.laid.retain(|_, tombstone| tombstone.round >= round);
        self.laid.shrink_to_fit();
    }

    /// There are no windows left.
    pub(super) fn clear(&mut self) {
        *self = Tombstones::default();
    }
}
