//! One timeline in one database: its index, and the state of filling it.

use std::num::NonZeroUsize;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::MemorySuspension;
use super::comparisons::ComparedIndexEntry;
use super::timeline_memory::TimelineMemory;
use crate::clock;
use crate::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use headwater_log::timeline_tables::TimelineTables;
use headwater_lookup::backlog::BacklogRequest;
use headwater_lookup::id_density::IdDensity;
use headwater_timeline::index::TimelineId;

/// A timeline's index, and the tables it is filled from.
#[derive(Debug)]
pub struct CachedTimeline {
    pub(super) tables: TimelineTables,
    index: RwLock<TimelineMemory>,
    spans: Mutex<IdDensity>,
    /// The most follows cached for a reader.
    max_follows: AtomicUsize,
    /// Readers with longer lists, and when that was observed.
    long_lists: Mutex<LruCache<u64, Instant>>,
    /// The positions of its columns are known, or once were.
    columns_known: AtomicBool,
    /// A number below 0 was logged.
    warned_of_negative: AtomicBool,
    /// Keeps its rows out of memory, whatever the log contains.
    block_reason: Mutex<Option<MemorySuspension>>,
    /// Its preload is complete, or there is none.
    pub(super) preloaded: AtomicBool,
}

/// A follow list may use 1/16 of the memory, at 16 bytes a follow.
const FOLLOW_BYTES: usize = 16 * 16;
/// The most readers whose long lists are remembered.
const MAX_LONG_LISTS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// How long they are remembered.
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
            warned_of_negative: AtomicBool::new(false),
            block_reason: Mutex::default(),
            preloaded: AtomicBool::new(false),
        }
    }

    /// Why its rows are kept out of memory, whatever the log contains: a cascading foreign key, or a missing privilege.
    #[must_use]
    pub fn block_reason(&self) -> Option<MemorySuspension> {
        let reason = self.block_reason.lock();
        reason.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once the positions of its columns were known, so that its row events can be read.
    #[must_use]
    pub fn has_known_columns(&self) -> bool {
        self.columns_known.load(Ordering::Relaxed)
    }

    /// Sets the block reason; `None`: its columns are known, and nothing blocks it.
    pub(super) fn set_block_reason(&self, reason: Option<MemorySuspension>) {
        if reason.is_none() {
            self.columns_known.store(true, Ordering::Relaxed);
        }
        *self
            .block_reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Logs, once, that a list holds a number below 0 and so is not cached.
    pub(super) fn warn_of_negative(&self, entry: ComparedIndexEntry) {
        if !self.warned_of_negative.swap(true, Ordering::Relaxed) {
            let whose = match entry {
                ComparedIndexEntry::Reader(reader) => format!("reader {reader} follows an author"),
                ComparedIndexEntry::Author(author) => format!("author {author} has a message"),
            };
            tracing::warn!(
                "{}: {whose} whose id is below 0: the server answers where that counts (logged once)",
                self.database(),
            );
        }
    }

    pub(super) fn set_budget(&self, memory_bytes: usize) {
        let most = memory_bytes / FOLLOW_BYTES;
        self.max_follows.store(most, Ordering::Relaxed);
        self.index_mut().set_budget(memory_bytes);
    }

    /// Its id among the timelines.
    #[must_use]
    pub fn id(&self) -> TimelineId {
        self.tables.timeline_id
    }

    pub(super) fn has_tables(&self, tables: &TimelineTables) -> bool {
        self.tables.schema.satisfies(&tables.schema) && self.tables.database == tables.database
    }

    /// True if its messages are in this table.
    #[must_use]
    pub fn has_message_table(&self, database: &str, table: &str) -> bool {
        self.tables.database == database && self.tables.schema.message.table == table
    }

    /// The database of its tables.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.tables.database
    }

    /// A panic elsewhere leaves an index with missing entries, never with wrong ones.
    pub(super) fn index(&self) -> RwLockReadGuard<'_, TimelineMemory> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn index_mut(&self) -> RwLockWriteGuard<'_, TimelineMemory> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spans(&self) -> MutexGuard<'_, IdDensity> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most follows cached for a reader.
    pub(super) fn max_follows(&self) -> usize {
        self.max_follows.load(Ordering::Relaxed)
    }

    pub(super) fn mark_too_long(&self, reader: u64) {
        let mut long = self
            .long_lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        long.put(reader, clock::now());
    }

    /// True if a reader was observed to follow too many, within [`LONG_LIST_TTL`].
    pub(super) fn follows_too_many(&self, reader: u64) -> bool {
        let mut long = self
            .long_lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        long.get(&reader)
            .is_some_and(|at| clock::since(*at) < LONG_LIST_TTL)
    }

    pub(super) fn has_page(&self, request: BacklogRequest) -> bool {
        self.index().has_page(request)
    }
}
