//! One timeline in one database: its index, and what is known about filling it.

use std::num::NonZeroUsize;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::Aside;
use super::memory::Memory;
use crate::clock;
use crate::index::PlaceId;
use crate::log::tables::Tables;
use crate::source::backlog::Want;
use crate::source::spans::Spans;
use crate::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A timeline's index, and where its rows come from.
#[derive(Debug)]
pub struct Place {
    /// Where its rows come from.
    pub(super) tables: Tables,
    index: RwLock<Memory>,
    spans: Mutex<Spans>,
    /// So many follows are kept of a reader at most.
    most_follows: AtomicUsize,
    /// Readers who were found to have more, and when.
    long: Mutex<LruCache<u64, Instant>>,
    /// It is known where its columns stand, or was once.
    learned: AtomicBool,
    /// What keeps its rows out of memory, whatever the log tells.
    bar: Mutex<Option<Aside>>,
    /// What is loaded at the start is there, or there is no such.
    pub(super) preloaded: AtomicBool,
}

/// A follow list takes at most this share of the memory: 16 bytes a follow, and a sixteenth of it.
const FOLLOW_BYTES: usize = 16 * 16;
/// Readers with longer lists, of whom that is remembered.
const LONG_LISTS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// How long it is.
const LONG_FOR: Duration = Duration::from_secs(60);

impl Place {
    pub(super) fn new(tables: Tables, memory_bytes: usize) -> Place {
        Place {
            index: RwLock::new(Memory::new(tables.names.key.is_some(), memory_bytes)),
            tables,
            spans: Mutex::default(),
            most_follows: AtomicUsize::new(memory_bytes / FOLLOW_BYTES),
            long: Mutex::new(LruCache::new(LONG_LISTS)),
            learned: AtomicBool::new(false),
            bar: Mutex::default(),
            preloaded: AtomicBool::new(false),
        }
    }

    /// What keeps its rows out of memory, whatever the log tells: a foreign key that acts, a right that is missing.
    #[must_use]
    pub fn bar(&self) -> Option<Aside> {
        let bar = self.bar.lock();
        bar.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once it was known where its columns stand, so that the log tells of it.
    #[must_use]
    pub fn was_learned(&self) -> bool {
        self.learned.load(Ordering::Relaxed)
    }

    /// Its columns are known, or this is in the way.
    pub(super) fn learns(&self, bar: Option<Aside>) {
        if bar.is_none() {
            self.learned.store(true, Ordering::Relaxed);
        }
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }

    /// It takes so much memory at most from now on.
    pub(super) fn set_budget(&self, memory_bytes: usize) {
        let most = memory_bytes / FOLLOW_BYTES;
        self.most_follows.store(most, Ordering::Relaxed);
        self.index_mut().set_budget(memory_bytes);
    }

    /// Its number among the places.
    #[must_use]
    pub fn number(&self) -> PlaceId {
        self.tables.place
    }

    /// True where these tables are kept.
    pub(super) fn serves(&self, tables: &Tables) -> bool {
        self.tables.names.serve(&tables.names) && self.tables.database == tables.database
    }

    /// True where its messages are in this table.
    #[must_use]
    pub fn is_of(&self, database: &str, table: &str) -> bool {
        self.tables.database == database && self.tables.names.message.table == table
    }

    /// The database that the tables are in.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.tables.database
    }

    /// A panic elsewhere leaves an index that says less, not one that says other things.
    pub(super) fn index(&self) -> RwLockReadGuard<'_, Memory> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn index_mut(&self) -> RwLockWriteGuard<'_, Memory> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How densely its ids lie.
    pub(super) fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many follows are kept of a reader at most.
    pub(super) fn most_follows(&self) -> usize {
        self.most_follows.load(Ordering::Relaxed)
    }

    /// A reader was found to follow more.
    pub(super) fn leave_out(&self, reader: u64) {
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        long.put(reader, clock::now());
    }

    /// True when a reader was found to follow too many, a short while ago.
    pub(super) fn follows_too_many(&self, reader: u64) -> bool {
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        long.get(&reader)
            .is_some_and(|at| clock::since(*at) < LONG_FOR)
    }

    /// True when a page is in memory.
    pub(super) fn has(&self, want: Want) -> bool {
        self.index().has(want)
    }
}
