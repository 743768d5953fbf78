//! The rows of some of the messages: a table that finds them, and segments that hold them, the oldest of which makes room.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use headwater_timeline::index::PlaceId;

use crate::link::{Link, Links};
use crate::segment::{Header, Location, Segment, bytes_of};
use crate::{Kept, Message, Record, Variant};

/// A segment is so large at most, and at least; a shard has so many, if it is not too small.
const SEGMENT_BYTES: (usize, usize) = (2 * 1024, 256 * 1024);
const SEGMENTS: usize = 16;
/// A row that takes more than this part of a segment is not kept.
const ROW_PART: usize = 4;
/// So many variants of a message are kept; the one that came first makes room.
const VARIANTS: usize = 16;
/// What finding a row takes of its segment's share: the table has 8 bytes and one more for each place, and one place in two is empty
/// at worst.
const FINDING_BYTES: usize = 18;

/// What is written anew where its segment makes room.
enum Saved {
    Row(Vec<u8>),
    Passes,
    FilteredOut,
}

impl Saved {
    fn of(kept: Kept<'_>) -> Saved {
        match kept {
            Kept::Row(row) => Saved::Row(row.to_vec()),
            Kept::Passes => Saved::Passes,
            Kept::FilteredOut => Saved::FilteredOut,
        }
    }

    fn kept(&self) -> Kept<'_> {
        match self {
            Saved::Row(row) => Kept::Row(row),
            Saved::Passes => Kept::Passes,
            Saved::FilteredOut => Kept::FilteredOut,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shard {
    segment_bytes: usize,
    most_segments: usize,
    segments: VecDeque<Segment>,
    /// The number of the first segment.
    first: u32,
    /// The first record of each message.
    heads: HashTable<Location>,
    most_heads: usize,
    /// Rows that made room for others.
    evicted: u64,
}

impl Shard {
    pub(crate) fn new(memory_bytes: usize) -> Shard {
        let (least, most) = SEGMENT_BYTES;
        let segment_bytes = (memory_bytes / SEGMENTS).clamp(least, most);
        // A seventh for what finds them.
        let for_rows = memory_bytes / 7 * 6;
        Shard {
            segment_bytes,
            most_segments: (for_rows / segment_bytes).max(1),
            segments: VecDeque::new(),
            first: 0,
            heads: HashTable::new(),
            most_heads: (memory_bytes - for_rows) / FINDING_BYTES,
            evicted: 0,
        }
    }

    /// How many rows have made room for others so far.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Of how many messages something is kept.
    pub(crate) fn messages(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segments.len() * self.segment_bytes + self.heads.allocation_size()
    }

    pub(crate) fn keep(
        &mut self,
        message: Message,
        variant: Variant,
        record: Record<'_>,
        hash: u64,
        hasher: &RandomState,
    ) {
        if record.kept == Kept::Passes
            && record.links.is_empty()
            && self.look(message, variant, hash).is_some()
        {
            // A row that is known says more.
            return;
        }
        if bytes_of(record) > self.segment_bytes / ROW_PART {
            return self.unlink(message, variant, hash);
        }
        let Some(header) = Header::new(message, variant, record) else {
            return;
        };
        if !self.has_room_for(record) {
            self.make_room(hasher);
        }
        self.unlink(message, variant, hash);
        if self.heads.len() >= self.most_heads && self.head(message, hash).is_none() {
            // The oldest have to go first; many small ones are in its way.
            self.evict(hasher);
        }
        self.append(header, record, hash, hasher);
        self.forget_oldest_variant(message, hash);
    }

    pub(crate) fn look(
        &mut self,
        message: Message,
        variant: Variant,
        hash: u64,
    ) -> Option<(Kept<'_>, Links<'_>)> {
        let mut at = self.head(message, hash);
        while let Some(location) = at {
            let header = self.header(location)?;
            if header.variant == variant {
                if !header.used {
                    self.segment_mut(location)?.use_it(location.offset);
                }
                return self.segment(location)?.kept(location.offset);
            }
            at = header.next;
        }
        None
    }

    pub(crate) fn forget(&mut self, message: Message, hash: u64) {
        let (segments, first) = (&self.segments, self.first);
        let is_its = |location: &Location| is_of(segments, first, *location, message);
        if let Ok(head) = self.heads.find_entry(hash, is_its) {
            head.remove();
        }
    }

    pub(crate) fn forget_all(&mut self, place: PlaceId) {
        let (segments, first) = (&self.segments, self.first);
        self.heads.retain(|location| {
            let header = header(segments, first, *location);
            header.is_some_and(|header| header.message.0 != place)
        });
    }

    pub(crate) fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.count());
        self.segments.clear();
        self.heads.clear();
    }

    fn count(&self) -> u32 {
        u32::try_from(self.segments.len()).unwrap_or(u32::MAX)
    }

    fn has_room_for(&self, record: Record<'_>) -> bool {
        let last = self.segments.back();
        last.is_some_and(|last| last.has_room_for(record))
    }

    /// An empty segment at the end; the first one goes where there are enough.
    fn make_room(&mut self, hasher: &RandomState) {
        self.segments.push_back(Segment::new(self.segment_bytes));
        while self.segments.len() > self.most_segments && self.segments.len() > 1 {
            self.evict(hasher);
        }
    }

    /// Gives the first segment up. Of what was used in it, half a segment at most is written anew at the end.
    fn evict(&mut self, hasher: &RandomState) {
        let number = self.first;
        if self.segments.len() < 2 {
            self.segments.push_back(Segment::new(self.segment_bytes));
        }
        let mut saved = 0;
        let mut next = self.segments.front().and_then(Segment::start);
        while let Some(offset) = next {
            let location = Location {
                segment: number,
                offset,
            };
            let Some(header) = self.header(location) else {
                break;
            };
            next = self
                .segments
                .front()
                .and_then(|going| going.behind(offset, &header));
            let hash = hasher.hash_one(header.message);
            if !self.is_found(location, header.message, hash) {
                continue;
            }
            let room = self.segment_bytes / 2 - saved;
            let going = self.segment(location).and_then(|going| going.kept(offset));
            let saved_one = going.and_then(|(kept, links)| {
                let links: Vec<Link> = links.iter().collect();
                let record = Record {
                    kept,
                    links: &links,
                };
                let bytes = bytes_of(record);
                let stays = header.used && bytes <= room && self.has_room_for(record);
                stays.then(|| (Saved::of(kept), links, bytes))
            });
            self.unlink(header.message, header.variant, hash);
            self.evicted += u64::from(saved_one.is_none());
            if let Some((row, links, bytes)) = saved_one {
                saved += bytes;
                let record = Record {
                    kept: row.kept(),
                    links: &links,
                };
                let anew = Header {
                    used: false,
                    ..header
                };
                self.append(anew, record, hash, hasher);
            }
        }
        self.segments.pop_front();
        self.first = self.first.wrapping_add(1);
    }

    /// True where a record is in its message's chain.
    fn is_found(&self, location: Location, message: Message, hash: u64) -> bool {
        let mut at = self.head(message, hash);
        while let Some(found) = at {
            if found == location {
                return true;
            }
            at = self.header(found).and_then(|header| header.next);
        }
        false
    }

    fn append(&mut self, header: Header, record: Record<'_>, hash: u64, hasher: &RandomState) {
        let next = self.head(header.message, hash);
        let segment = self.first.wrapping_add(self.count().wrapping_sub(1));
        let Some(last) = self.segments.back_mut() else {
            return;
        };
        if !last.has_room_for(record) {
            return;
        }
        let offset = last.push(&Header { next, ..header }, record);
        let location = Location { segment, offset };
        let (segments, first) = (&self.segments, self.first);
        let is_its = |at: &Location| is_of(segments, first, *at, header.message);
        if let Some(head) = self.heads.find_mut(hash, is_its) {
            *head = location;
            return;
        }
        self.heads.insert_unique(hash, location, |at| {
            let message = crate::shard::header(segments, first, *at).map(|it| it.message);
            message.map_or(0, |message| hasher.hash_one(message))
        });
    }

    /// Takes what is kept under one variant out of a message's chain.
    fn unlink(&mut self, message: Message, variant: Variant, hash: u64) {
        let mut before: Option<Location> = None;
        let mut at = self.head(message, hash);
        while let Some(location) = at {
            let Some(header) = self.header(location) else {
                return;
            };
            if header.variant != variant {
                before = at;
                at = header.next;
                continue;
            }
            match (before, header.next) {
                (Some(before), next) => {
                    if let Some(segment) = self.segment_mut(before) {
                        segment.lead_on(before.offset, next);
                    }
                }
                (None, Some(next)) => {
                    let (segments, first) = (&self.segments, self.first);
                    let is_its = |at: &Location| is_of(segments, first, *at, message);
                    if let Some(head) = self.heads.find_mut(hash, is_its) {
                        *head = next;
                    }
                }
                (None, None) => self.forget(message, hash),
            }
            return;
        }
    }

    fn forget_oldest_variant(&mut self, message: Message, hash: u64) {
        let mut at = self.head(message, hash);
        for _ in 1..VARIANTS {
            let Some(location) = at else {
                return;
            };
            at = self.header(location).and_then(|header| header.next);
        }
        if let Some(last) = at
            && let Some(segment) = self.segment_mut(last)
        {
            segment.lead_on(last.offset, None);
        }
    }

    fn head(&self, message: Message, hash: u64) -> Option<Location> {
        let is_its = |at: &Location| is_of(&self.segments, self.first, *at, message);
        self.heads.find(hash, is_its).copied()
    }

    fn header(&self, location: Location) -> Option<Header> {
        header(&self.segments, self.first, location)
    }

    fn segment(&self, location: Location) -> Option<&Segment> {
        segment(&self.segments, self.first, location)
    }

    fn segment_mut(&mut self, location: Location) -> Option<&mut Segment> {
        let place = usize::try_from(location.segment.wrapping_sub(self.first)).ok()?;
        self.segments.get_mut(place)
    }
}

fn segment(segments: &VecDeque<Segment>, first: u32, location: Location) -> Option<&Segment> {
    let place = usize::try_from(location.segment.wrapping_sub(first)).ok()?;
    segments.get(place)
}

fn header(segments: &VecDeque<Segment>, first: u32, location: Location) -> Option<Header> {
    segment(segments, first, location)?.header(location.offset)
}

fn is_of(segments: &VecDeque<Segment>, first: u32, location: Location, message: Message) -> bool {
    header(segments, first, location).is_some_and(|header| header.message == message)
}
