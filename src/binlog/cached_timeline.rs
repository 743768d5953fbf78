//! One timeline in one database: its index, and what is known about filling it.

use std::num::NonZeroUsize;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::MemorySuspension;
use super::timeline_memory::TimelineMemory;
use crate::clock;
use crate::index::TimelineId;
use crate::log::timeline_tables::TimelineTables;
use crate::source::backlog::BacklogRequest;
use crate::source::id_density::IdDensity;
use crate::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A timeline's index, and where its rows come from.
#[derive(Debug)]
pub struct CachedTimeline {
    /// Where its rows come from.
    pub(super) tables: TimelineTables,
    index: RwLock<TimelineMemory>,
    spans: Mutex<IdDensity>,
    /// So many follows are kept of a reader at most.
    max_follows: AtomicUsize,
    /// Readers who were found to have more, and when.
    long_lists: Mutex<LruCache<u64, Instant>>,
    /// It is known where its columns stand, or was once.
    columns_known: AtomicBool,
    /// What keeps its rows out of memory, whatever the log tells.
    block_reason: Mutex<Option<MemorySuspension>>,
    /// What is loaded at the start is there, or there is no such.
    pub(super) preloaded: AtomicBool,
}

/// A follow list takes at most this share of the memory: 16 bytes a follow, and a sixteenth of it.
const FOLLOW_BYTES: usize = 16 * 16;
/// Readers with longer lists, of whom that is remembered.
const MAX_LONG_LISTS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// How long it is.
const LONG_LIST_TTL: Duration = Duration::from_secs(60);

impl CachedTimeline {
    pub(super) fn new(tables: TimelineTables, memory_bytes: usize) -> CachedTimeline {
        CachedTimeline {
            index: RwLock::new(TimelineMemory::new(
                tables.schema.key.is_some(),
                memory_bytes,
            )),
            tables,
            spans: Mutex::default(),
            max_follows: AtomicUsize::new(memory_bytes / FOLLOW_BYTES),
            long_lists: Mutex::new(LruCache::new(MAX_LONG_LISTS)),
            columns_known: AtomicBool::new(false),
            block_reason: Mutex::default(),
            preloaded: AtomicBool::new(false),
        }
    }

    /// What keeps its rows out of memory, whatever the log tells: a foreign key that acts, a right that is missing.
    #[must_use]
    pub fn block_reason(&self) -> Option<MemorySuspension> {
        let bar = self.block_reason.lock();
        bar.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once it was known where its columns stand, so that the log tells of it.
    #[must_use]
    pub fn has_known_columns(&self) -> bool {
        self.columns_known.load(Ordering::Relaxed)
    }

    /// Its columns are known, or this is in the way.
    pub(super) fn set_block_reason(&self, bar: Option<MemorySuspension>) {
        if bar.is_none() {
            self.columns_known.store(true, Ordering::Relaxed);
        }
        *self
            .block_reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = bar;
    }

    /// It takes so much memory at most from now on.
    pub(super) fn set_budget(&self, memory_bytes: usize) {
        let most = memory_bytes / FOLLOW_BYTES;
        self.max_follows.store(most, Ordering::Relaxed);
        self.index_mut().set_budget(memory_bytes);
    }

    /// Its number among the places.
    #[must_use]
    pub fn id(&self) -> TimelineId {
        self.tables.timeline_id
    }

    /// True where these tables are kept.
    pub(super) fn has_tables(&self, tables: &TimelineTables) -> bool {
        self.tables.schema.satisfies(&tables.schema) && self.tables.database == tables.database
    }

    /// True where its messages are in this table.
    #[must_use]
    pub fn has_message_table(&self, database: &str, table: &str) -> bool {
        self.tables.database == database && self.tables.schema.message.table == table
    }

    /// The database that the tables are in.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.tables.database
    }

    /// A panic elsewhere leaves an index that says less, not one that says other things.
    pub(super) fn index(&self) -> RwLockReadGuard<'_, TimelineMemory> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn index_mut(&self) -> RwLockWriteGuard<'_, TimelineMemory> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How densely its ids lie.
    pub(super) fn spans(&self) -> MutexGuard<'_, IdDensity> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many follows are kept of a reader at most.
    pub(super) fn max_follows(&self) -> usize {
        self.max_follows.load(Ordering::Relaxed)
    }

    /// A reader was found to follow more.
    pub(super) fn mark_too_long(&self, reader: u64) {
        let mut long = self
            .long_lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        long.put(reader, clock::now());
    }

    /// True when a reader was found to follow too many, a short while ago.
    pub(super) fn follows_too_many(&self, reader: u64) -> bool {
        let mut long = self
            .long_lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        long.get(&reader)
            .is_some_and(|at| clock::since(*at) < LONG_LIST_TTL)
    }

    /// True when a page is in memory.
    pub(super) fn has_page(&self, want: BacklogRequest) -> bool {
        self.index().has_page(want)
    }
}
