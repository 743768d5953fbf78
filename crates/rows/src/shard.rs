//! The rows of some of the messages: a hash table that finds them, and segments that hold them. The oldest segment is evicted first.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use headwater_timeline::index::{RowKey, TableId};

use crate::link::{RowLink, RowLinks};
use crate::segment::{
    MAX_SEGMENT_BYTES, RecordHeader, RecordLocation, RowSegment, SEGMENT_NUMBERS, record_bytes,
};
use crate::{CacheKey, CachedRow, RowRecord};

/// Minimum and maximum size of a segment; number of segments in a shard, if it is not too small.
const SEGMENT_BYTES: (usize, usize) = (2 * 1024, MAX_SEGMENT_BYTES);
const SEGMENTS: usize = 16;
/// A row that takes more than this part of a segment is not cached.
const MAX_ROW_FRACTION: usize = 4;
/// How many cache keys of a message are cached; the oldest is evicted.
const MAX_KEYS_PER_MESSAGE: usize = 16;
/// Bytes of the hash table per message: an entry has 4 bytes and one more, and at worst every other entry is empty.
const HEAD_BYTES: usize = 10;
/// Most segments of a shard: one more is there for a moment.
const MAX_SEGMENTS: usize = SEGMENT_NUMBERS as usize - 2;

/// A row that is copied because its segment is evicted.
enum RetainedRow {
    Row(Vec<u8>),
    Passes,
    FilteredOut,
}

impl RetainedRow {
    fn from_cached(cached: CachedRow<'_>) -> RetainedRow {
        match cached {
            CachedRow::Row(row) => RetainedRow::Row(row.to_vec()),
            CachedRow::Passes => RetainedRow::Passes,
            CachedRow::FilteredOut => RetainedRow::FilteredOut,
        }
    }

    fn as_cached(&self) -> CachedRow<'_> {
        match self {
            RetainedRow::Row(row) => CachedRow::Row(row),
            RetainedRow::Passes => CachedRow::Passes,
            RetainedRow::FilteredOut => CachedRow::FilteredOut,
        }
    }
}

#[derive(Debug)]
pub(crate) struct CacheShard {
    segment_bytes: usize,
    max_segments: usize,
    segments: VecDeque<RowSegment>,
    first_segment: u32,
    /// The first record of each message.
    heads: HashTable<RecordLocation>,
    max_heads: usize,
    evicted_rows: u64,
}

impl CacheShard {
    pub(crate) fn new(memory_bytes: usize) -> CacheShard {
        let (least, most) = SEGMENT_BYTES;
        let segment_bytes = (memory_bytes / SEGMENTS).clamp(least, most);
        // One tenth is for the hash table.
        let for_rows = memory_bytes / 10 * 9;
        CacheShard {
            segment_bytes,
            max_segments: (for_rows / segment_bytes).clamp(1, MAX_SEGMENTS),
            segments: VecDeque::new(),
            first_segment: 0,
            heads: HashTable::new(),
            max_heads: (memory_bytes - for_rows) / HEAD_BYTES,
            evicted_rows: 0,
        }
    }

    pub(crate) fn evicted_rows(&self) -> u64 {
        self.evicted_rows
    }

    /// The number of messages with something cached.
    pub(crate) fn cached_messages(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.segments.len() * self.segment_bytes + self.heads.allocation_size()
    }

    pub(crate) fn insert(
        &mut self,
        message: RowKey,
        cache_key: CacheKey,
        record: RowRecord<'_>,
        hash: u64,
        hasher: &RandomState,
    ) {
        if record.row == CachedRow::Passes
            && record.links.is_empty()
            && self.lookup(message, cache_key, hash).is_some()
        {
            // A known row says more.
            return;
        }
        if record_bytes(record) > self.segment_bytes / MAX_ROW_FRACTION {
            return self.unlink(message, cache_key, hash);
        }
        let Some(header) = RecordHeader::new(message, cache_key, record) else {
            return;
        };
        if !self.has_room_for(record) {
            self.make_room(hasher);
        }
        self.unlink(message, cache_key, hash);
        if self.heads.len() >= self.max_heads && self.head(message, hash).is_none() {
            // The oldest records must be evicted first: many small ones fill the table.
            self.evict_segment(hasher);
        }
        self.append(header, record, hash, hasher);
        self.evict_oldest_key(message, hash);
    }

    pub(crate) fn lookup(
        &mut self,
        message: RowKey,
        cache_key: CacheKey,
        hash: u64,
    ) -> Option<(CachedRow<'_>, RowLinks<'_>)> {
        let mut at = self.head(message, hash);
        while let Some(location) = at {
            let header = self.header(location)?;
            if header.cache_key == cache_key {
                if !header.recently_used {
                    self.segment_mut(location)?.mark_used(location.offset());
                }
                return self.segment(location)?.row_at(location.offset());
            }
            at = header.next;
        }
        None
    }

    pub(crate) fn invalidate(&mut self, message: RowKey, hash: u64) {
        let (segments, first) = (&self.segments, self.first_segment);
        let is_its = |location: &RecordLocation| is_record_of(segments, first, *location, message);
        if let Ok(head) = self.heads.find_entry(hash, is_its) {
            head.remove();
        }
    }

    pub(crate) fn invalidate_table(&mut self, table: TableId) {
        let (segments, first) = (&self.segments, self.first_segment);
        self.heads.retain(|location| {
            let header = header(segments, first, *location);
            header.is_some_and(|header| header.message.table != table)
        });
    }

    pub(crate) fn clear(&mut self) {
        self.first_segment = self.first_segment.wrapping_add(self.segment_count());
        self.segments.clear();
        self.heads.clear();
    }

    fn segment_count(&self) -> u32 {
        u32::try_from(self.segments.len()).unwrap_or(u32::MAX)
    }

    fn has_room_for(&self, record: RowRecord<'_>) -> bool {
        let last = self.segments.back();
        last.is_some_and(|last| last.has_room_for(record))
    }

    /// Adds an empty segment at the end; evicts the first one if there are enough.
    fn make_room(&mut self, hasher: &RandomState) {
        self.segments.push_back(RowSegment::new(self.segment_bytes));
        while self.segments.len() > self.max_segments && self.segments.len() > 1 {
            self.evict_segment(hasher);
        }
    }

    /// Evicts the first segment. Of its used records, at most half a segment is copied to the end.
    fn evict_segment(&mut self, hasher: &RandomState) {
        let number = self.first_segment;
        if self.segments.len() < 2 {
            self.segments.push_back(RowSegment::new(self.segment_bytes));
        }
        let mut saved = 0;
        let mut next = self.segments.front().and_then(RowSegment::first_offset);
        while let Some(offset) = next {
            let location = RecordLocation::new(number, offset);
            let Some(header) = self.header(location) else {
                break;
            };
            next = self
                .segments
                .front()
                .and_then(|segment| segment.next_offset(offset, &header));
            let hash = hasher.hash_one(header.message);
            if !self.is_linked(location, header.message, hash) {
                continue;
            }
            let room = self.segment_bytes / 2 - saved;
            let cached = self
                .segment(location)
                .and_then(|segment| segment.row_at(offset));
            let retained = cached.and_then(|(cached_row, links)| {
                let links: Vec<RowLink> = links.iter().collect();
                let record = RowRecord {
                    row: cached_row,
                    links: &links,
                };
                let bytes = record_bytes(record);
                let is_retained =
                    header.recently_used && bytes <= room && self.has_room_for(record);
                is_retained.then(|| (RetainedRow::from_cached(cached_row), links, bytes))
            });
            self.unlink(header.message, header.cache_key, hash);
            self.evicted_rows += u64::from(retained.is_none());
            if let Some((row, links, bytes)) = retained {
                saved += bytes;
                let record = RowRecord {
                    row: row.as_cached(),
                    links: &links,
                };
                let moved_header = RecordHeader {
                    recently_used: false,
                    ..header
                };
                self.append(moved_header, record, hash, hasher);
            }
        }
        self.segments.pop_front();
        self.first_segment = self.first_segment.wrapping_add(1);
    }

    fn is_linked(&self, location: RecordLocation, message: RowKey, hash: u64) -> bool {
        let mut at = self.head(message, hash);
        while let Some(candidate) = at {
            if candidate == location {
                return true;
            }
            at = self.header(candidate).and_then(|header| header.next);
        }
        false
    }

    fn append(
        &mut self,
        header: RecordHeader,
        record: RowRecord<'_>,
        hash: u64,
        hasher: &RandomState,
    ) {
        let next = self.head(header.message, hash);
        let segment = self
            .first_segment
            .wrapping_add(self.segment_count().wrapping_sub(1));
        let Some(last) = self.segments.back_mut() else {
            return;
        };
        if !last.has_room_for(record) {
            return;
        }
        let offset = last.append(&RecordHeader { next, ..header }, record);
        let location = RecordLocation::new(segment, offset);
        let (segments, first) = (&self.segments, self.first_segment);
        let is_its = |at: &RecordLocation| is_record_of(segments, first, *at, header.message);
        if let Some(head) = self.heads.find_mut(hash, is_its) {
            *head = location;
            return;
        }
        self.heads.insert_unique(hash, location, |at| {
            let message = crate::shard::header(segments, first, *at).map(|it| it.message);
            message.map_or(0, |message| hasher.hash_one(message))
        });
    }

    /// Removes a message's record under one cache key from its chain.
    fn unlink(&mut self, message: RowKey, cache_key: CacheKey, hash: u64) {
        let mut before: Option<RecordLocation> = None;
        let mut at = self.head(message, hash);
        while let Some(location) = at {
            let Some(header) = self.header(location) else {
                return;
            };
            if header.cache_key != cache_key {
                before = at;
                at = header.next;
                continue;
            }
            match (before, header.next) {
                (Some(before), next) => {
                    if let Some(segment) = self.segment_mut(before) {
                        segment.set_next(before.offset(), next);
                    }
                }
                (None, Some(next)) => {
                    let (segments, first) = (&self.segments, self.first_segment);
                    let is_its = |at: &RecordLocation| is_record_of(segments, first, *at, message);
                    if let Some(head) = self.heads.find_mut(hash, is_its) {
                        *head = next;
                    }
                }
                (None, None) => self.invalidate(message, hash),
            }
            return;
        }
    }

    fn evict_oldest_key(&mut self, message: RowKey, hash: u64) {
        let mut at = self.head(message, hash);
        for _ in 1..MAX_KEYS_PER_MESSAGE {
            let Some(location) = at else {
                return;
            };
            at = self.header(location).and_then(|header| header.next);
        }
        if let Some(last) = at
            && let Some(segment) = self.segment_mut(last)
        {
            segment.set_next(last.offset(), None);
        }
    }

    fn head(&self, message: RowKey, hash: u64) -> Option<RecordLocation> {
        let is_its =
            |at: &RecordLocation| is_record_of(&self.segments, self.first_segment, *at, message);
        self.heads.find(hash, is_its).copied()
    }

    fn header(&self, location: RecordLocation) -> Option<RecordHeader> {
        header(&self.segments, self.first_segment, location)
    }

    fn segment(&self, location: RecordLocation) -> Option<&RowSegment> {
        segment(&self.segments, self.first_segment, location)
    }

    fn segment_mut(&mut self, location: RecordLocation) -> Option<&mut RowSegment> {
        let index = segment_index(self.first_segment, location)?;
        self.segments.get_mut(index)
    }
}

fn segment(
    segments: &VecDeque<RowSegment>,
    first: u32,
    location: RecordLocation,
) -> Option<&RowSegment> {
    segments.get(segment_index(first, location)?)
}

/// The position of a record's segment behind the first one.
fn segment_index(first: u32, location: RecordLocation) -> Option<usize> {
    usize::try_from(location.segment().wrapping_sub(first) % SEGMENT_NUMBERS).ok()
}

fn header(
    segments: &VecDeque<RowSegment>,
    first: u32,
    location: RecordLocation,
) -> Option<RecordHeader> {
    segment(segments, first, location)?.header(location.offset())
}

fn is_record_of(
    segments: &VecDeque<RowSegment>,
    first: u32,
    location: RecordLocation,
    message: RowKey,
) -> bool {
    header(segments, first, location).is_some_and(|header| header.message == message)
}
