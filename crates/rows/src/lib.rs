//! Rows as the server sent them, kept by the message that they show.
//!
//! What a statement shows of a message depends on its template, its other literals and the session's settings: together these are a
//! *variant*. Under a variant a message is a row, or it is filtered out. Whoever keeps rows says when they are what they were no
//! more: [`RowCache::invalidate`].
//!
//! | module | what it is |
//! |---|---|
//! | `shard` | the rows of some of the messages |
//! | `link` | which other rows one was made of |
//! | `segment` | where their bytes lie, one behind the other |
//! | `page` | packets of a reply, made of rows |
//! | `template` | variants of one template, and what stands around their rows |

mod link;
mod page;
mod segment;
mod shard;
mod sync;
pub mod template;

use std::hash::{BuildHasher, RandomState};
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;

use headwater_timeline::index::TimelineId;

pub use link::{MAX_LINKS, RowLink, RowLinks};
pub use page::{PagePackets, PageSource};
use shard::CacheShard;
use sync::{Mutex, MutexGuard};

/// A message: of which place, and its id.
pub type MessageKey = (TimelineId, u64);

/// What a message looks like under one template, other literals and settings: a number that is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey(pub u64);

/// What the server said of a message under a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedRow<'a> {
    /// This row, as it stands in a packet.
    Row(&'a [u8]),
    /// It passes the conditions; its row is not known.
    Passes,
    /// It does not pass the conditions.
    FilteredOut,
}

/// What is written of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRecord<'a> {
    pub(crate) row: CachedRow<'a>,
    pub(crate) links: &'a [RowLink],
}

/// Shards are locked one by one, so that sessions are not in each other's way.
const SHARDS: usize = 16;

/// Rows of all places.
#[derive(Debug)]
pub struct RowCache {
    shards: [Mutex<CacheShard>; SHARDS],
    hasher: RandomState,
    /// The last stamp that was given.
    last_version: AtomicU64,
}

impl RowCache {
    /// None yet, and about so many bytes of them at most, what it takes to find them included.
    #[must_use]
    pub fn new(memory_bytes: usize) -> RowCache {
        RowCache {
            shards: std::array::from_fn(|_| Mutex::new(CacheShard::new(memory_bytes / SHARDS))),
            hasher: RandomState::new(),
            last_version: AtomicU64::new(0),
        }
    }

    /// Keeps what the server said of a message, in place of what was kept; `links`: which other rows that was made of. A row that is too
    /// long is not kept.
    pub fn insert(
        &self,
        message: MessageKey,
        variant: CacheKey,
        kept: CachedRow<'_>,
        links: &[RowLink],
    ) {
        let (hash, mut shard) = self.shard_of(message);
        shard.insert(
            message,
            variant,
            RowRecord { row: kept, links },
            hash,
            &self.hasher,
        );
    }

    /// Tells what is kept of a message, and its links; `None`: nothing.
    pub fn lookup<T>(
        &self,
        message: MessageKey,
        variant: CacheKey,
        tell: impl FnOnce(CachedRow<'_>, RowLinks<'_>) -> T,
    ) -> Option<T> {
        let (hash, mut shard) = self.shard_of(message);
        let (kept, links) = shard.lookup(message, variant, hash)?;
        Some(tell(kept, links))
    }

    /// A message has changed: nothing that was kept of it holds any more.
    pub fn invalidate(&self, message: MessageKey) {
        let (hash, mut shard) = self.shard_of(message);
        shard.invalidate(message, hash);
    }

    /// All messages of a place may have changed.
    pub fn invalidate_timeline(&self, place: TimelineId) {
        for number in 0..SHARDS {
            self.shard(number).invalidate_timeline(place);
        }
    }

    /// Nothing is kept any more.
    pub fn clear(&self) {
        for number in 0..SHARDS {
            self.shard(number).clear();
        }
    }

    /// How many bytes they take, with what it takes to find them.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        (0..SHARDS)
            .map(|number| self.shard(number).memory_bytes())
            .sum()
    }

    /// How many rows have made room for others so far.
    #[must_use]
    pub fn evicted_rows(&self) -> u64 {
        (0..SHARDS)
            .map(|number| self.shard(number).evicted_rows())
            .sum()
    }

    /// Of how many messages something is kept; rows beside them are among these.
    #[must_use]
    pub fn cached_messages(&self) -> usize {
        (0..SHARDS)
            .map(|number| self.shard(number).cached_messages())
            .sum()
    }

    fn shard_of(&self, message: MessageKey) -> (u64, MutexGuard<'_, CacheShard>) {
        let hash = self.hasher.hash_one(message);
        // The table within a shard goes by the lowest and by the highest bits.
        let number = usize::try_from(hash >> 32).unwrap_or_default() % SHARDS;
        (hash, self.shard(number))
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "a number below the count of shards"
    )]
    fn shard(&self, number: usize) -> MutexGuard<'_, CacheShard> {
        // A panic elsewhere leaves rows that can be read, or are not found.
        self.shards[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
