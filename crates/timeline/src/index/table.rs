//! Entries by key, in many small shards so that no growth is felt, with their memory counted and a hand
//! that goes round to evict what is not used.

use super::room;
use super::shard::{Entry, Shard, hash};

/// A shard for so many bytes of the budget: growing one never takes long.
const SHARD_BYTES: usize = 1 << 18;
const MOST_SHARDS: usize = 1 << 16;

/// A place in a table. It moves through each shard from the back, so that an entry that moves up
/// when another leaves has been seen already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hand {
    shard: usize,
    /// Entries of the shard that are still to be seen; `None` before the first.
    left: Option<usize>,
}

/// What became of the entry under the hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// None was there, or one that cannot go.
    Passed,
    /// It had been used since the hand was here last.
    Spared,
    /// It is gone.
    Evicted,
}

/// A map from keys to entries.
#[derive(Debug)]
pub(super) struct Table<E> {
    shards: Vec<Shard<E>>,
    /// How far a hash is shifted to number its shard.
    shift: u32,
    hand: Hand,
    /// Shards that the hand has left behind, all rounds together.
    passed: u64,
    bytes: usize,
    len: usize,
    items: usize,
    loading: usize,
    /// Shards that are void already and wait to be freed.
    dead: Vec<Shard<E>>,
}

impl<E: Entry> Table<E> {
    /// An empty table that will hold so many bytes at most.
    pub(super) fn new(memory_bytes: usize) -> Self {
        let wanted = (memory_bytes / SHARD_BYTES).clamp(1, MOST_SHARDS);
        let bits = wanted.ilog2();
        let shards = empty(1 << bits);
        Table {
            bytes: room::bytes(&shards),
            shards,
            shift: 63 - bits,
            hand: Hand::default(),
            passed: 0,
            len: 0,
            items: 0,
            loading: 0,
            dead: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What a visit to all entries costs beside what `change` says.
    pub(super) fn stops(&self) -> usize {
        self.len + self.shards.len()
    }

    pub(super) fn items(&self) -> usize {
        self.items
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + room::bytes(&self.dead)
    }

    /// Entries that may be evicted.
    pub(super) fn evictable(&self) -> usize {
        self.len.saturating_sub(self.loading)
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    fn shard_of(&self, key: u64) -> usize {
        // Twice, since a shift by all 64 bits is not defined.
        usize::try_from((hash(key) >> 1) >> self.shift).unwrap_or(0)
    }

    pub(super) fn get(&self, key: u64) -> Option<&E> {
        self.shards.get(self.shard_of(key))?.get(key)
    }

    /// Lets an entry be changed, and counts what it holds then.
    pub(super) fn edit<R>(&mut self, key: u64, change: impl FnOnce(&mut E) -> R) -> Option<R> {
        let place = self.shard_of(key);
        let entry = self.shards.get_mut(place)?.get_mut(key)?;
        let (heap, items, loading) = (entry.heap(), entry.items(), entry.is_loading());
        let result = change(entry);
        self.bytes = self.bytes + entry.heap() - heap;
        self.items = self.items + entry.items() - items;
        self.loading = self.loading + usize::from(entry.is_loading()) - usize::from(loading);
        Some(result)
    }

    /// Adds an entry whose key is not here yet. False if that cannot be.
    pub(super) fn insert(&mut self, entry: E) -> bool {
        let place = self.shard_of(entry.key());
        let Some(shard) = self.shards.get_mut(place) else {
            return false;
        };
        let (heap, items, loading) = (entry.heap(), entry.items(), entry.is_loading());
        let before = shard.bytes();
        if !shard.insert(entry) {
            return false;
        }
        self.bytes = self.bytes + shard.bytes() - before + heap;
        self.items += items;
        self.loading += usize::from(loading);
        self.len += 1;
        true
    }

    pub(super) fn remove(&mut self, key: u64) {
        let shard = self.shard_of(key);
        let place = self.shards.get(shard).and_then(|shard| shard.place(key));
        if let Some(place) = place {
            self.remove_at(shard, place);
        }
    }

    fn remove_at(&mut self, shard: usize, place: usize) {
        let Some(shard) = self.shards.get_mut(shard) else {
            return;
        };
        let before = shard.bytes();
        let Some(entry) = shard.remove(place) else {
            return;
        };
        self.bytes = self.bytes + shard.bytes() - before - entry.heap();
        self.items -= entry.items();
        self.loading -= usize::from(entry.is_loading());
        self.len -= 1;
    }

    /// Entries whose loads are under way, or not valid yet, are gone.
    pub(super) fn remove_loading(&mut self) {
        let mut hand = Hand::default();
        while self.loading > 0 && hand.shard < self.shards.len() {
            let shard = hand.shard;
            let Some(place) = self.advance(&mut hand) else {
                continue;
            };
            let entry = self
                .shards
                .get(shard)
                .and_then(|shard| shard.entries().get(place));
            if entry.is_some_and(Entry::is_loading) {
                self.remove_at(shard, place);
            }
        }
    }

    /// Where a hand points next, moved there; `None` when it leaves a shard.
    fn advance(&self, hand: &mut Hand) -> Option<usize> {
        let len = self.shards.get(hand.shard).map_or(0, Shard::len);
        match hand.left.unwrap_or(len).min(len).checked_sub(1) {
            Some(place) => {
                hand.left = Some(place);
                Some(place)
            }
            None => {
                *hand = Hand {
                    shard: hand.shard + 1,
                    left: None,
                };
                None
            }
        }
    }

    /// The clock's hand moves on by one. An entry that was used since the last round is spared once,
    /// if `sparing`.
    pub(super) fn step(&mut self, sparing: bool) -> Step {
        let mut hand = self.hand;
        let place = self.advance(&mut hand);
        let shard = hand.shard;
        if place.is_none() {
            self.passed += 1;
            hand.shard %= self.shards.len();
        }
        self.hand = hand;
        let entry = place.and_then(|place| self.shards.get_mut(shard)?.at(place));
        match (entry, place) {
            (Some(entry), Some(place)) if !entry.is_loading() => {
                if entry.take_used() && sparing {
                    return Step::Spared;
                }
                self.remove_at(shard, place);
                Step::Evicted
            }
            _ => Step::Passed,
        }
    }

    /// Shows the entries behind a hand to `change` until `work` is spent; what it returns is the cost of
    /// each. True when all have been seen.
    pub(super) fn visit(
        &mut self,
        hand: &mut Hand,
        mut work: usize,
        mut change: impl FnMut(&mut E) -> usize,
    ) -> bool {
        while work > 0 && hand.shard < self.shards.len() {
            let shard = hand.shard;
            let mut cost = 1;
            if let Some(place) = self.advance(hand) {
                let entry = self.shards.get_mut(shard).and_then(|shard| shard.at(place));
                if let Some(entry) = entry {
                    let (heap, items) = (entry.heap(), entry.items());
                    cost += change(entry);
                    self.bytes = self.bytes + entry.heap() - heap;
                    self.items = self.items + entry.items() - items;
                }
            }
            work = work.saturating_sub(cost);
        }
        hand.shard >= self.shards.len()
    }

    /// Shows all entries to `change`.
    pub(super) fn each(&mut self, mut change: impl FnMut(&mut E)) {
        self.visit(&mut Hand::default(), usize::MAX, |entry| {
            change(entry);
            0
        });
    }

    /// All entries are void at once. Their memory is given back later, by `bury`.
    pub(super) fn clear(&mut self) {
        if self.len == 0 {
            return;
        }
        let fresh = empty(self.shards.len());
        let mut old = std::mem::replace(&mut self.shards, fresh);
        if self.dead.is_empty() {
            self.dead = old;
        } else {
            self.dead.append(&mut old);
        }
        self.len = 0;
        self.items = 0;
        self.loading = 0;
    }

    /// Frees void shards, with `most` entries or a little more. False if there are none.
    pub(super) fn bury(&mut self, most: usize) -> bool {
        if self.dead.is_empty() {
            return false;
        }
        let mut freed = 0;
        while freed <= most
            && let Some(shard) = self.dead.pop()
        {
            self.bytes -= shard.bytes() + shard.entries().iter().map(Entry::heap).sum::<usize>();
            freed += 1 + shard.len();
        }
        if self.dead.is_empty() {
            self.dead = Vec::new();
        }
        true
    }
}

/// Shards with nothing in them.
fn empty<E: Entry>(shards: usize) -> Vec<Shard<E>> {
    (0..shards).map(|_| Shard::new()).collect()
}

#[cfg(test)]
impl<E: Entry> Table<E> {
    /// The bytes counted anew, entry by entry. The other sums are held against the entries as well.
    pub(super) fn counted(&self) -> usize {
        let all = || self.shards.iter().flat_map(Shard::entries);
        assert_eq!(all().count(), self.len);
        assert_eq!(all().map(Entry::items).sum::<usize>(), self.items);
        assert_eq!(
            all().filter(|entry| entry.is_loading()).count(),
            self.loading
        );
        let shards = || self.shards.iter().chain(&self.dead);
        room::bytes(&self.shards)
            + room::bytes(&self.dead)
            + shards().map(Shard::bytes).sum::<usize>()
            + shards()
                .flat_map(Shard::entries)
                .map(Entry::heap)
                .sum::<usize>()
    }
}
