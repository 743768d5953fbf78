//! Entries by key, in many small shards so that no growth takes long, with their memory counted and a clock hand that evicts.

use super::shard::{TableEntry, TableShard, hash_key};
use super::vec_capacity;

/// Bytes of the budget per shard: growing one never takes long.
const SHARD_BYTES: usize = 1 << 18;
const MAX_SHARDS: usize = 1 << 16;

/// A position in a table. It visits each shard from the back, so an entry that moves up on a removal was already visited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockHand {
    shard: usize,
    /// Entries of the shard still to visit; `None` before the first.
    remaining: Option<usize>,
}

/// What happened to the entry under the hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EvictionStep {
    /// There was none, or it cannot be evicted.
    Skipped,
    /// It was used since the hand's last visit.
    SecondChance,
    /// It is gone.
    Evicted,
}

/// A map from keys to entries.
#[derive(Debug)]
pub(super) struct ShardedTable<E> {
    shards: Vec<TableShard<E>>,
    /// How far a hash is shifted to number its shard.
    shift: u32,
    hand: ClockHand,
    /// Shards that the hand has passed, over all rounds.
    passed_shards: u64,
    bytes: usize,
    len: usize,
    item_count: usize,
    loading_count: usize,
    /// Void shards that wait to be freed.
    retired_shards: Vec<TableShard<E>>,
}

impl<E: TableEntry> ShardedTable<E> {
    /// An empty table for a budget of this many bytes.
    pub(super) fn new(memory_bytes: usize) -> Self {
        let shard_count = (memory_bytes / SHARD_BYTES).clamp(1, MAX_SHARDS);
        let bits = shard_count.ilog2();
        let shards = empty_shards(1 << bits);
        ShardedTable {
            bytes: vec_capacity::vec_bytes(&shards),
            shards,
            shift: 63 - bits,
            hand: ClockHand::default(),
            passed_shards: 0,
            len: 0,
            item_count: 0,
            loading_count: 0,
            retired_shards: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The cost of visiting all entries, without what `change` returns.
    pub(super) fn visit_cost(&self) -> usize {
        self.len + self.shards.len()
    }

    pub(super) fn item_count(&self) -> usize {
        self.item_count
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + vec_capacity::vec_bytes(&self.retired_shards)
    }

    pub(super) fn evictable_count(&self) -> usize {
        self.len.saturating_sub(self.loading_count)
    }

    pub(super) fn passed_shards(&self) -> u64 {
        self.passed_shards
    }

    fn shard_index(&self, key: u64) -> usize {
        // Two shifts, since a shift by all 64 bits is undefined.
        usize::try_from((hash_key(key) >> 1) >> self.shift).unwrap_or(0)
    }

    pub(super) fn get(&self, key: u64) -> Option<&E> {
        self.shards.get(self.shard_index(key))?.get(key)
    }

    /// Changes an entry, and updates the counts by what it then holds.
    pub(super) fn edit<R>(&mut self, key: u64, change: impl FnOnce(&mut E) -> R) -> Option<R> {
        let shard_index = self.shard_index(key);
        let entry = self.shards.get_mut(shard_index)?.get_mut(key)?;
        let (heap, items, loading) = (entry.heap_bytes(), entry.item_count(), entry.is_loading());
        let result = change(entry);
        self.bytes = self.bytes + entry.heap_bytes() - heap;
        self.item_count = self.item_count + entry.item_count() - items;
        self.loading_count =
            self.loading_count + usize::from(entry.is_loading()) - usize::from(loading);
        Some(result)
    }

    /// Adds an entry whose key is not present. False if that is impossible.
    pub(super) fn insert(&mut self, entry: E) -> bool {
        let shard_index = self.shard_index(entry.key());
        let Some(shard) = self.shards.get_mut(shard_index) else {
            return false;
        };
        let (heap, items, loading) = (entry.heap_bytes(), entry.item_count(), entry.is_loading());
        let before = shard.bytes();
        if !shard.insert(entry) {
            return false;
        }
        self.bytes = self.bytes + shard.bytes() - before + heap;
        self.item_count += items;
        self.loading_count += usize::from(loading);
        self.len += 1;
        true
    }

    pub(super) fn remove(&mut self, key: u64) {
        let shard = self.shard_index(key);
        let entry_index = self
            .shards
            .get(shard)
            .and_then(|shard| shard.entry_index(key));
        if let Some(index) = entry_index {
            self.remove_at(shard, index);
        }
    }

    fn remove_at(&mut self, shard: usize, entry_index: usize) {
        let Some(shard) = self.shards.get_mut(shard) else {
            return;
        };
        let before = shard.bytes();
        let Some(entry) = shard.remove(entry_index) else {
            return;
        };
        self.bytes = self.bytes + shard.bytes() - before - entry.heap_bytes();
        self.item_count -= entry.item_count();
        self.loading_count -= usize::from(entry.is_loading());
        self.len -= 1;
    }

    /// Removes entries whose loads are pending or not valid yet.
    pub(super) fn remove_loading(&mut self) {
        let mut hand = ClockHand::default();
        while self.loading_count > 0 && hand.shard < self.shards.len() {
            let shard = hand.shard;
            let Some(entry_index) = self.advance(&mut hand) else {
                continue;
            };
            let entry = self
                .shards
                .get(shard)
                .and_then(|shard| shard.entries().get(entry_index));
            if entry.is_some_and(TableEntry::is_loading) {
                self.remove_at(shard, entry_index);
            }
        }
    }

    /// Moves a hand on, and returns the entry's list position; `None` when it leaves a shard.
    fn advance(&self, hand: &mut ClockHand) -> Option<usize> {
        let len = self.shards.get(hand.shard).map_or(0, TableShard::len);
        match hand.remaining.unwrap_or(len).min(len).checked_sub(1) {
            Some(entry_index) => {
                hand.remaining = Some(entry_index);
                Some(entry_index)
            }
            None => {
                *hand = ClockHand {
                    shard: hand.shard + 1,
                    remaining: None,
                };
                None
            }
        }
    }

    /// Moves the clock's hand on by one. If `sparing`, an entry that was used since the last round is spared once.
    pub(super) fn advance_clock(&mut self, sparing: bool) -> EvictionStep {
        let mut hand = self.hand;
        let entry_index = self.advance(&mut hand);
        let shard = hand.shard;
        if entry_index.is_none() {
            self.passed_shards += 1;
            hand.shard %= self.shards.len();
        }
        self.hand = hand;
        let entry = entry_index.and_then(|place| self.shards.get_mut(shard)?.entry_mut(place));
        match (entry, entry_index) {
            (Some(entry), Some(index)) if !entry.is_loading() => {
                if entry.take_used() && sparing {
                    return EvictionStep::SecondChance;
                }
                self.remove_at(shard, index);
                EvictionStep::Evicted
            }
            _ => EvictionStep::Skipped,
        }
    }

    /// Passes the entries after a hand to `change` until `work` is spent; `change` returns the cost of each. True: all were visited.
    pub(super) fn visit(
        &mut self,
        hand: &mut ClockHand,
        mut work: usize,
        mut change: impl FnMut(&mut E) -> usize,
    ) -> bool {
        while work > 0 && hand.shard < self.shards.len() {
            let shard = hand.shard;
            let mut cost = 1;
            if let Some(entry_index) = self.advance(hand) {
                let entry = self
                    .shards
                    .get_mut(shard)
                    .and_then(|shard| shard.entry_mut(entry_index));
                if let Some(entry) = entry {
                    let (heap, items) = (entry.heap_bytes(), entry.item_count());
                    cost += change(entry);
                    self.bytes = self.bytes + entry.heap_bytes() - heap;
                    self.item_count = self.item_count + entry.item_count() - items;
                }
            }
            work = work.saturating_sub(cost);
        }
        hand.shard >= self.shards.len()
    }

    pub(super) fn for_each(&mut self, mut change: impl FnMut(&mut E)) {
        self.visit(&mut ClockHand::default(), usize::MAX, |entry| {
            change(entry);
            0
        });
    }

    /// Voids all entries at once. `free_retired` frees their memory later.
    pub(super) fn clear(&mut self) {
        if self.len == 0 {
            return;
        }
        let empty = empty_shards(self.shards.len());
        let mut retired = std::mem::replace(&mut self.shards, empty);
        if self.retired_shards.is_empty() {
            self.retired_shards = retired;
        } else {
            self.retired_shards.append(&mut retired);
        }
        self.len = 0;
        self.item_count = 0;
        self.loading_count = 0;
    }

    /// Frees void shards, with `max_entries` entries or a little more. False: there are none.
    pub(super) fn free_retired(&mut self, max_entries: usize) -> bool {
        if self.retired_shards.is_empty() {
            return false;
        }
        let mut freed = 0;
        while freed <= max_entries
            && let Some(shard) = self.retired_shards.pop()
        {
            self.bytes -= shard.bytes()
                + shard
                    .entries()
                    .iter()
                    .map(TableEntry::heap_bytes)
                    .sum::<usize>();
            freed += 1 + shard.len();
        }
        if self.retired_shards.is_empty() {
            self.retired_shards = Vec::new();
        }
        true
    }
}

fn empty_shards<E: TableEntry>(shards: usize) -> Vec<TableShard<E>> {
    (0..shards).map(|_| TableShard::new()).collect()
}

#[cfg(test)]
impl<E: TableEntry> ShardedTable<E> {
    /// Recounts the bytes, entry by entry, and checks the other sums against the entries.
    pub(super) fn counted(&self) -> usize {
        let all = || self.shards.iter().flat_map(TableShard::entries);
        assert_eq!(all().count(), self.len);
        assert_eq!(
            all().map(TableEntry::item_count).sum::<usize>(),
            self.item_count
        );
        assert_eq!(
            all().filter(|entry| entry.is_loading()).count(),
            self.loading_count
        );
        let shards = || self.shards.iter().chain(&self.retired_shards);
        vec_capacity::vec_bytes(&self.shards)
            + vec_capacity::vec_bytes(&self.retired_shards)
            + shards().map(TableShard::bytes).sum::<usize>()
            + shards()
                .flat_map(TableShard::entries)
                .map(TableEntry::heap_bytes)
                .sum::<usize>()
    }
}
