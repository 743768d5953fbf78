//! A cache of rows as the server sent them, by the message that they show.
//!
//! How a statement shows a message depends on its template, its other literals and the session's settings: together these are a
//! *cache key*. Under a cache key a message is a row, or it is filtered out. The cache's owner reports when rows are stale:
//! [`RowCache::invalidate`].
//!
//! | module | what it is |
//! |---|---|
//! | `shard` | the rows of some of the messages |
//! | `link` | which other rows a row depends on |
//! | `segment` | where the bytes of rows are stored |
//! | `page` | packets of a reply, built from rows |
//! | `template` | cache keys of one template, and the result-set envelopes of its replies |

mod link;
mod page;
mod segment;
mod shard;
mod sync;
pub mod template;

use std::hash::{BuildHasher, RandomState};
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;

use headwater_timeline::index::{RowKey, TableId};

pub use link::{MAX_LINKS, RowLink, RowLinks};
pub use page::{PagePackets, PageSource};
use shard::CacheShard;
use sync::{Mutex, MutexGuard};

/// A template with other literals and settings, under which messages are shown: a number that is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey(pub u64);

/// What the server sent for a message under a cache key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedRow<'a> {
    /// The row's bytes, as in a packet.
    Row(&'a [u8]),
    /// It passes the conditions; its row is not known.
    Passes,
    /// It does not pass the conditions.
    FilteredOut,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRecord<'a> {
    pub(crate) row: CachedRow<'a>,
    pub(crate) links: &'a [RowLink],
}

/// Shards are locked one by one, so that sessions rarely contend.
const SHARDS: usize = 16;

/// Cached rows of all timelines.
#[derive(Debug)]
pub struct RowCache {
    shards: [Mutex<CacheShard>; SHARDS],
    hasher: RandomState,
    /// The last row version that was assigned.
    last_version: AtomicU64,
}

impl RowCache {
    /// An empty cache of about `memory_bytes` at most, including its hash tables.
    #[must_use]
    pub fn new(memory_bytes: usize) -> RowCache {
        RowCache {
            shards: std::array::from_fn(|_| Mutex::new(CacheShard::new(memory_bytes / SHARDS))),
            hasher: RandomState::new(),
            last_version: AtomicU64::new(0),
        }
    }

    /// Caches what the server sent for a message, replacing what was cached; `links`: the other rows it depends on. A row that is too
    /// large is not cached.
    pub fn insert(
        &self,
        message: RowKey,
        cache_key: CacheKey,
        row: CachedRow<'_>,
        links: &[RowLink],
    ) {
        let (hash, mut shard) = self.shard_of(message);
        shard.insert(
            message,
            cache_key,
            RowRecord { row, links },
            hash,
            &self.hasher,
        );
    }

    /// Passes what is cached for a message, and its links, to `read`; `None` if nothing is.
    pub fn lookup<T>(
        &self,
        message: RowKey,
        cache_key: CacheKey,
        read: impl FnOnce(CachedRow<'_>, RowLinks<'_>) -> T,
    ) -> Option<T> {
        let (hash, mut shard) = self.shard_of(message);
        let (row, links) = shard.lookup(message, cache_key, hash)?;
        Some(read(row, links))
    }

    /// A message has changed: drops everything cached for it.
    pub fn invalidate(&self, message: RowKey) {
        let (hash, mut shard) = self.shard_of(message);
        shard.invalidate(message, hash);
    }

    /// Any row of a table may have changed: drops everything cached for it.
    pub fn invalidate_table(&self, table: TableId) {
        for number in 0..SHARDS {
            self.shard(number).invalidate_table(table);
        }
    }

    /// Drops everything.
    pub fn clear(&self) {
        for number in 0..SHARDS {
            self.shard(number).clear();
        }
    }

    /// Bytes in use, including the hash tables.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        (0..SHARDS)
            .map(|number| self.shard(number).memory_bytes())
            .sum()
    }

    /// How many rows have been evicted so far.
    #[must_use]
    pub fn evicted_rows(&self) -> u64 {
        (0..SHARDS)
            .map(|number| self.shard(number).evicted_rows())
            .sum()
    }

    /// The number of messages with something cached; joined rows count as messages.
    #[must_use]
    pub fn cached_messages(&self) -> usize {
        (0..SHARDS)
            .map(|number| self.shard(number).cached_messages())
            .sum()
    }

    fn shard_of(&self, message: RowKey) -> (u64, MutexGuard<'_, CacheShard>) {
        let hash = self.hasher.hash_one(message);
        // The hash table within a shard uses the lowest and highest bits.
        let number = usize::try_from(hash >> 32).unwrap_or_default() % SHARDS;
        (hash, self.shard(number))
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "a number below the count of shards"
    )]
    fn shard(&self, number: usize) -> MutexGuard<'_, CacheShard> {
        // A panic elsewhere leaves rows that are valid, or are not found.
        self.shards[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
