//! Ids that were removed by a log event without their author.
//!
//! Any window may hold such an id. Until a sweep has visited all windows, only the owner in the id's tombstone shows it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::WindowItem;
use super::shard::hash_key;

#[derive(Clone, Copy, Debug)]
struct Tombstone<I> {
    /// The last author to get the id since then, and the item.
    owner: Option<(u64, I)>,
    /// How many sweeps had begun when the tombstone was added.
    round: u64,
}

/// Hashes one number as the tables do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = hash_key(self.0 ^ number);
    }
}

/// The ids that windows may show wrongly.
#[derive(Debug)]
pub(super) struct TombstoneSet<I> {
    by_id: HashMap<u64, Tombstone<I>, BuildHasherDefault<IdHasher>>,
    round: u64,
}

impl<I> Default for TombstoneSet<I> {
    fn default() -> Self {
        TombstoneSet {
            by_id: HashMap::default(),
            round: 0,
        }
    }
}

impl<I: WindowItem> TombstoneSet<I> {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        // At most seven of eight buckets are used, and each has one extra byte.
        self.by_id.capacity() * 8 / 7 * (size_of::<(u64, Tombstone<I>)>() + 1)
    }

    /// True if it is uncertain whose window holds this id.
    pub(super) fn contains(&self, id: u64) -> bool {
        !self.by_id.is_empty() && self.by_id.contains_key(&id)
    }

    /// Records that an id is gone, whoever had it.
    pub(super) fn insert(&mut self, id: u64) {
        let round = self.round;
        self.by_id.insert(id, Tombstone { owner: None, round });
    }

    /// Records an id's new owner. If a later removal in the log has the author, that window drops the id as usual.
    pub(super) fn assign_owner(&mut self, item: I, author: u64) {
        if self.by_id.is_empty() {
            return;
        }
        if let Some(tombstone) = self.by_id.get_mut(&item.id()) {
            if tombstone.owner.is_some_and(|owner| owner != (author, item)) {
                tombstone.round = self.round;
            }
            tombstone.owner = Some((author, item));
        }
    }

    /// Whether an author's window may show this item.
    pub(super) fn is_visible(&self, item: I, author: u64) -> bool {
        if self.by_id.is_empty() {
            return true;
        }
        let tombstone = self.by_id.get(&item.id());
        tombstone.is_none_or(|tombstone| tombstone.owner == Some((author, item)))
    }

    /// The items of a window that it may show, newest first.
    pub(super) fn visible_items<'a>(
        &'a self,
        items: &'a [I],
        author: u64,
    ) -> impl Iterator<Item = I> + 'a {
        let items = items.iter().rev().copied();
        items.filter(move |item| self.is_visible(*item, author))
    }

    pub(super) fn begin_sweep(&mut self) {
        self.round += 1;
    }

    /// Ends a sweep that has visited all windows: drops the tombstones from before it.
    pub(super) fn end_sweep(&mut self) {
        let round = self.round;
        self.by_id.retain(|_, tombstone| tombstone.round >= round);
        self.by_id.shrink_to_fit();
    }

    /// For when no windows are left.
    pub(super) fn clear(&mut self) {
        *self = TombstoneSet::default();
    }
}
