//! A part of a table: a list of entries, and an open-addressed index that finds them by key.
//!
//! The index holds each entry's list position and 12 bits of its hash, so that a lookup usually reads one slot and one entry.

use super::vec_capacity;

/// An entry of a table.
pub(super) trait TableEntry {
    fn key(&self) -> u64;
    /// Bytes that it owns on the heap.
    fn heap_bytes(&self) -> usize;
    fn item_count(&self) -> usize;
    /// True if a load into it is pending, or not valid yet.
    fn is_loading(&self) -> bool;
    /// True if it was used since the last call.
    fn take_used(&mut self) -> bool;
}

const ENTRY_INDEX_MASK: u32 = (1 << 20) - 1;
const FREE_SLOT: u32 = u32::MAX;
const MIN_SLOTS: usize = 8;

/// Spreads a key over all 64 bits: the highest choose the shard, the lowest the slot, bits from 32 on are the tag.
pub(super) fn hash_key(key: u64) -> u64 {
    let mut mixed = key ^ (key >> 32);
    mixed = mixed.wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^= mixed >> 32;
    mixed = mixed.wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

fn home_slot(hash: u64) -> usize {
    usize::try_from(hash & 0xffff_ffff).unwrap_or(0)
}

fn hash_tag(hash: u64) -> u32 {
    u32::try_from((hash >> 32) & 0xfff).unwrap_or(0) << 20
}

fn entry_index_of(slot: u32) -> usize {
    (slot & ENTRY_INDEX_MASK) as usize
}

#[derive(Debug)]
pub(super) struct TableShard<E> {
    entries: Vec<E>,
    slots: Vec<u32>,
}

impl<E: TableEntry> TableShard<E> {
    pub(super) fn new() -> Self {
        TableShard {
            entries: Vec::new(),
            slots: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the two lists, without what entries own elsewhere.
    pub(super) fn bytes(&self) -> usize {
        vec_capacity::vec_bytes(&self.entries) + vec_capacity::vec_bytes(&self.slots)
    }

    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    /// The slot of a key, and the list position of its entry.
    fn find(&self, key: u64) -> Option<(usize, usize)> {
        if self.slots.is_empty() {
            return None;
        }
        let hash = hash_key(key);
        let (tag, mask) = (hash_tag(hash), self.mask());
        let mut at = home_slot(hash) & mask;
        loop {
            let slot = *self.slots.get(at)?;
            if slot == FREE_SLOT {
                return None;
            }
            if slot & !ENTRY_INDEX_MASK == tag {
                let index = entry_index_of(slot);
                if self.entries.get(index)?.key() == key {
                    return Some((at, index));
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// The list position of a key's entry.
    pub(super) fn entry_index(&self, key: u64) -> Option<usize> {
        self.find(key).map(|(_, index)| index)
    }

    pub(super) fn get(&self, key: u64) -> Option<&E> {
        let (_, index) = self.find(key)?;
        self.entries.get(index)
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut E> {
        let (_, index) = self.find(key)?;
        self.entries.get_mut(index)
    }

    pub(super) fn entry_mut(&mut self, index: usize) -> Option<&mut E> {
        self.entries.get_mut(index)
    }

    /// Adds an entry whose key is not present. False: the shard is full.
    pub(super) fn insert(&mut self, entry: E) -> bool {
        let Some(index) = u32::try_from(self.entries.len())
            .ok()
            .filter(|count| *count < ENTRY_INDEX_MASK)
        else {
            return false;
        };
        if (self.entries.len() + 1) * 2 > self.slots.len() {
            self.rebuild_slots((self.slots.len() * 2).max(MIN_SLOTS));
        }
        self.link_slot(hash_key(entry.key()), index);
        vec_capacity::reserve_one(&mut self.entries);
        self.entries.push(entry);
        true
    }

    /// Rebuilds the index with this many slots, a power of two.
    fn rebuild_slots(&mut self, slots: usize) {
        self.slots = vec![FREE_SLOT; slots];
        for index in 0..self.entries.len() {
            let key = self.entries.get(index).map(TableEntry::key);
            if let (Some(key), Ok(slot_value)) = (key, u32::try_from(index)) {
                self.link_slot(hash_key(key), slot_value);
            }
        }
    }

    /// Writes a list position into the first free slot for a hash.
    fn link_slot(&mut self, hash: u64, index: u32) {
        let mask = self.mask();
        let mut at = home_slot(hash) & mask;
        while let Some(slot) = self.slots.get_mut(at) {
            if *slot == FREE_SLOT {
                *slot = hash_tag(hash) | index;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Removes an entry; the last one moves to its position.
    pub(super) fn remove(&mut self, index: usize) -> Option<E> {
        let key = self.entries.get(index)?.key();
        let (slot, _) = self.find(key)?;
        let last = self.entries.last()?.key();
        let (last_slot, _) = self.find(last)?;
        if let (Some(slot), Ok(to)) = (self.slots.get_mut(last_slot), u32::try_from(index)) {
            *slot = hash_tag(hash_key(last)) | to;
        }
        let entry = self.entries.swap_remove(index);
        self.free_slot(slot);
        vec_capacity::release_excess(&mut self.entries);
        if self.slots.len() > MIN_SLOTS && self.entries.len() * 16 < self.slots.len() {
            self.rebuild_slots(self.slots.len() / 2);
        }
        Some(entry)
    }

    /// Frees a slot, and moves up the displaced ones after it.
    fn free_slot(&mut self, mut hole: usize) {
        let mask = self.mask();
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some(&slot) = self.slots.get(at).filter(|slot| **slot != FREE_SLOT) else {
                break;
            };
            let Some(entry) = self.entries.get(entry_index_of(slot)) else {
                break;
            };
            let from_home = at.wrapping_sub(home_slot(hash_key(entry.key()))) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                if let Some(free) = self.slots.get_mut(hole) {
                    *free = slot;
                }
                hole = at;
            }
        }
        if let Some(free) = self.slots.get_mut(hole) {
            *free = FREE_SLOT;
        }
    }

    pub(super) fn entries(&self) -> &[E] {
        &self.entries
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    struct BareEntry(u64);

    impl TableEntry for BareEntry {
        fn key(&self) -> u64 {
            self.0
        }

        fn heap_bytes(&self) -> usize {
            0
        }

        fn item_count(&self) -> usize {
            0
        }

        fn is_loading(&self) -> bool {
            false
        }

        fn take_used(&mut self) -> bool {
            false
        }
    }

    proptest! {
        #[test]
        fn entries_come_and_go(steps in proptest::collection::vec((0u64..60, any::<bool>()), 1..300)) {
            let mut shard = TableShard::new();
            let mut expected = BTreeSet::new();
            for (key, add) in steps {
                // Many with the same tag and home slot, as in a large shard.
                let key = key << 40;
                match (shard.entry_index(key), add) {
                    (None, true) => prop_assert!(shard.insert(BareEntry(key)) && expected.insert(key)),
                    (Some(place), false) => {
                        prop_assert_eq!(shard.remove(place).map(|entry| entry.0), Some(key));
                        expected.remove(&key);
                    }
                    (place, _) => prop_assert_eq!(place.is_some(), expected.contains(&key)),
                }
                prop_assert!(expected.iter().all(|key| shard.get(*key).is_some()));
                prop_assert_eq!(shard.len(), expected.len());
            }
        }
    }

    #[test]
    fn keys_in_a_row_or_far_apart_spread_evenly() {
        for step in [1, 2, 1_024, 1 << 20, 1 << 32, 1 << 40] {
            for bits in [0..10, 22..32, 32..42, 54..64u32] {
                let mut counts = [0u32; 1_024];
                for key in 0..65_536u64 {
                    let hash = hash_key(key * step) << (64 - bits.end) >> (64 - bits.len());
                    counts[usize::try_from(hash).unwrap()] += 1;
                }
                let most = counts.iter().max();
                assert!(most < Some(&110), "{step}, {bits:?}: {most:?}");
            }
        }
    }
}
