//! Append-only segments of row records.

use headwater_timeline::index::{RowKey, TableId, TimelineId};

use crate::link::{LINK_BYTES, MAX_LINKS, RowLinks};
use crate::{CacheKey, CachedRow, RowRecord};

/// The location of a record: its segment's number, of [`SEGMENT_NUMBERS`] that repeat, and its offset there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordLocation(u32);

/// Bits of an offset.
const OFFSET_BITS: u32 = 18;
/// The size of the largest segment.
pub(crate) const MAX_SEGMENT_BYTES: usize = 1 << OFFSET_BITS;
/// So many segments have numbers of their own.
pub(crate) const SEGMENT_NUMBERS: u32 = 1 << (u32::BITS - OFFSET_BITS);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// The same message under another cache key.
    pub(crate) next: Option<RecordLocation>,
    pub(crate) message: RowKey,
    pub(crate) cache_key: CacheKey,
    /// The record was used since it was written here.
    pub(crate) recently_used: bool,
    pub(crate) link_count: u8,
    pub(crate) row_length: u16,
}

/// Size of a header: next, cache key, id, length, timeline, and one byte with the used flag and the number of links.
pub(crate) const HEADER_BYTES: usize = 4 + 8 + 8 + 2 + 1 + 1;
/// Offset of the flags; the value of `next` for none.
const FLAGS_OFFSET: usize = HEADER_BYTES - 1;
/// No record begins at the last byte of a segment.
const NO_LOCATION: u32 = u32::MAX;
/// Stored instead of a length. A row with its header takes at most a fourth of a segment, which is less.
const FILTERED_OUT: u16 = u16::MAX;
const PASSES: u16 = u16::MAX - 1;

impl RecordLocation {
    pub(crate) fn new(segment: u32, offset: u32) -> RecordLocation {
        RecordLocation(segment << OFFSET_BITS | offset)
    }

    pub(crate) fn segment(self) -> u32 {
        self.0 >> OFFSET_BITS
    }

    pub(crate) fn offset(self) -> u32 {
        self.0 & ((1 << OFFSET_BITS) - 1)
    }

    fn from_bits(number: u32) -> Option<RecordLocation> {
        (number != NO_LOCATION).then_some(RecordLocation(number))
    }
}

/// Authors of timelines, and joined tables, are numbered from here on in a record.
const FIRST_AUTHORS: u8 = 64;
const FIRST_JOINED: u8 = 128;

/// A table in a record; `None`: its number is too large.
fn table_byte(table: TableId) -> Option<u8> {
    let timeline = |timeline: TimelineId| {
        let number = u8::try_from(timeline.0).ok();
        number.filter(|number| *number < FIRST_AUTHORS)
    };
    match table {
        TableId::Messages(messages) => timeline(messages),
        TableId::Authors(messages) => Some(timeline(messages)? + FIRST_AUTHORS),
        TableId::Joined(number) => u8::try_from(number).ok()?.checked_add(FIRST_JOINED),
    }
}

fn table_of(byte: u8) -> TableId {
    let timeline = |number: u8| TimelineId(usize::from(number));
    match byte {
        0..FIRST_AUTHORS => TableId::Messages(timeline(byte)),
        FIRST_AUTHORS..FIRST_JOINED => TableId::Authors(timeline(byte - FIRST_AUTHORS)),
        FIRST_JOINED.. => TableId::Joined(usize::from(byte - FIRST_JOINED)),
    }
}

impl RecordHeader {
    pub(crate) fn new(
        message: RowKey,
        cache_key: CacheKey,
        record: RowRecord<'_>,
    ) -> Option<RecordHeader> {
        table_byte(message.table)?;
        let links = record.links.len();
        let links = u8::try_from(links).ok().filter(|_| links <= MAX_LINKS)?;
        let len = match record.row {
            CachedRow::Row(row) => u16::try_from(row.len()).ok().filter(|len| *len < PASSES)?,
            CachedRow::Passes => PASSES,
            CachedRow::FilteredOut => FILTERED_OUT,
        };
        Some(RecordHeader {
            next: None,
            message,
            cache_key,
            recently_used: false,
            link_count: links,
            row_length: len,
        })
    }

    fn link_bytes(&self) -> usize {
        usize::from(self.link_count) * LINK_BYTES
    }

    fn row_bytes(&self) -> usize {
        match self.row_length {
            PASSES | FILTERED_OUT => 0,
            len => usize::from(len),
        }
    }
}

/// A buffer of records. It never grows beyond its capacity.
#[derive(Debug)]
pub(crate) struct RowSegment {
    bytes: Vec<u8>,
}

impl RowSegment {
    pub(crate) fn new(capacity: usize) -> RowSegment {
        RowSegment {
            bytes: Vec::with_capacity(capacity),
        }
    }

    pub(crate) fn has_room_for(&self, record: RowRecord<'_>) -> bool {
        self.bytes.len() + record_bytes(record) <= self.bytes.capacity()
    }

    pub(crate) fn append(&mut self, header: &RecordHeader, record: RowRecord<'_>) -> u32 {
        let offset = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let next = header.next.map_or(NO_LOCATION, |next| next.0);
        self.bytes.extend_from_slice(&next.to_le_bytes());
        self.bytes
            .extend_from_slice(&header.cache_key.0.to_le_bytes());
        self.bytes
            .extend_from_slice(&header.message.id.to_le_bytes());
        self.bytes
            .extend_from_slice(&header.row_length.to_le_bytes());
        // `RecordHeader::new` refuses others.
        self.bytes
            .push(table_byte(header.message.table).unwrap_or(u8::MAX));
        self.bytes
            .push(u8::from(header.recently_used) | header.link_count << 1);
        record
            .links
            .iter()
            .for_each(|link| link.write(&mut self.bytes));
        if let CachedRow::Row(row) = record.row {
            self.bytes.extend_from_slice(row);
        }
        offset
    }

    pub(crate) fn header(&self, offset: u32) -> Option<RecordHeader> {
        let at = usize::try_from(offset).ok()?;
        let bytes = self.bytes.get(at..)?;
        let (next, rest) = bytes.split_first_chunk()?;
        let (cache_key, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (table, rest) = rest.split_first()?;
        Some(RecordHeader {
            next: RecordLocation::from_bits(u32::from_le_bytes(*next)),
            message: RowKey {
                table: table_of(*table),
                id: u64::from_le_bytes(*id),
            },
            cache_key: CacheKey(u64::from_le_bytes(*cache_key)),
            recently_used: rest.first()? & 1 == 1,
            link_count: rest.first()? >> 1,
            row_length: u16::from_le_bytes(*len),
        })
    }

    pub(crate) fn row_at(&self, offset: u32) -> Option<(CachedRow<'_>, RowLinks<'_>)> {
        let header = self.header(offset)?;
        let from = usize::try_from(offset).ok()? + HEADER_BYTES;
        let (links, rest) = self
            .bytes
            .get(from..)?
            .split_at_checked(header.link_bytes())?;
        let row = match header.row_length {
            FILTERED_OUT => CachedRow::FilteredOut,
            PASSES => CachedRow::Passes,
            _ => CachedRow::Row(rest.get(..header.row_bytes())?),
        };
        Some((row, RowLinks(links)))
    }

    /// The offset of the following record, if there is one.
    pub(crate) fn next_offset(&self, offset: u32, header: &RecordHeader) -> Option<u32> {
        let from = usize::try_from(offset).ok()?;
        let next = from + HEADER_BYTES + header.link_bytes() + header.row_bytes();
        (next < self.bytes.len()).then_some(u32::try_from(next).ok()?)
    }

    pub(crate) fn mark_used(&mut self, offset: u32) {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(used) = self.bytes.get_mut(at.saturating_add(FLAGS_OFFSET)) {
            *used |= 1;
        }
    }

    pub(crate) fn set_next(&mut self, offset: u32, next: Option<RecordLocation>) {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(bytes) = self.bytes.get_mut(at..).and_then(|it| it.first_chunk_mut()) {
            *bytes = next.map_or(NO_LOCATION, |next| next.0).to_le_bytes();
        }
    }

    /// The offset of the first record, if there is one.
    pub(crate) fn first_offset(&self) -> Option<u32> {
        (!self.bytes.is_empty()).then_some(0)
    }
}

pub(crate) fn record_bytes(record: RowRecord<'_>) -> usize {
    HEADER_BYTES
        + record.links.len() * LINK_BYTES
        + match record.row {
            CachedRow::Row(row) => row.len(),
            CachedRow::Passes | CachedRow::FilteredOut => 0,
        }
}
