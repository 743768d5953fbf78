//! Records of rows, one behind the other: each is written once.

use headwater_timeline::index::PlaceId;

use crate::link::{LINK_BYTES, Links, MOST_LINKS};
use crate::{Kept, Message, Record, Variant};

/// Where a record lies: the number of its segment, and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
}

/// What stands in front of a row's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The same message under another variant.
    pub(crate) next: Option<Location>,
    pub(crate) message: Message,
    pub(crate) variant: Variant,
    /// It was looked at since it was written here.
    pub(crate) used: bool,
    /// So many links stand in front of the row's bytes.
    pub(crate) links: u8,
    pub(crate) len: u32,
}

/// So long a header is: where the next one is, variant, id, length, place, and in one byte whether it was used and how many links it has.
pub(crate) const HEADER_BYTES: usize = 8 + 8 + 8 + 4 + 1 + 1;
/// Where in it that stands, and what stands first.
const USED: usize = HEADER_BYTES - 1;
const NOWHERE: u64 = u64::MAX;
/// In the place of a length.
const FILTERED_OUT: u32 = u32::MAX;
const PASSES: u32 = u32::MAX - 1;

impl Location {
    fn number(self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.offset)
    }

    fn of(number: u64) -> Option<Location> {
        let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
        (number != NOWHERE).then(|| Location {
            segment: half(number >> 32),
            offset: half(number),
        })
    }
}

impl Header {
    pub(crate) fn new(message: Message, variant: Variant, record: Record<'_>) -> Option<Header> {
        u8::try_from(message.0.0).ok()?;
        let links = record.links.len();
        let links = u8::try_from(links).ok().filter(|_| links <= MOST_LINKS)?;
        let len = match record.kept {
            Kept::Row(row) => u32::try_from(row.len()).ok().filter(|len| *len < PASSES)?,
            Kept::Passes => PASSES,
            Kept::FilteredOut => FILTERED_OUT,
        };
        Some(Header {
            next: None,
            message,
            variant,
            used: false,
            links,
            len,
        })
    }

    fn link_bytes(&self) -> usize {
        usize::from(self.links) * LINK_BYTES
    }

    fn row_bytes(&self) -> usize {
        match self.len {
            PASSES | FILTERED_OUT => 0,
            len => usize::try_from(len).unwrap_or(usize::MAX),
        }
    }
}

/// Some records. It never grows beyond the bytes that it was made for.
#[derive(Debug)]
pub(crate) struct Segment {
    bytes: Vec<u8>,
}

impl Segment {
    pub(crate) fn new(capacity: usize) -> Segment {
        Segment {
            bytes: Vec::with_capacity(capacity),
        }
    }

    pub(crate) fn has_room_for(&self, record: Record<'_>) -> bool {
        self.bytes.len() + bytes_of(record) <= self.bytes.capacity()
    }

    /// Writes a record; tells its offset.
    pub(crate) fn push(&mut self, header: &Header, record: Record<'_>) -> u32 {
        let offset = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let (place, id) = header.message;
        let next = header.next.map_or(NOWHERE, Location::number);
        self.bytes.extend_from_slice(&next.to_le_bytes());
        self.bytes
            .extend_from_slice(&header.variant.0.to_le_bytes());
        self.bytes.extend_from_slice(&id.to_le_bytes());
        self.bytes.extend_from_slice(&header.len.to_le_bytes());
        // Headers of places beyond are not made.
        self.bytes.push(u8::try_from(place.0).unwrap_or(u8::MAX));
        self.bytes.push(u8::from(header.used) | header.links << 1);
        record
            .links
            .iter()
            .for_each(|link| link.write(&mut self.bytes));
        if let Kept::Row(row) = record.kept {
            self.bytes.extend_from_slice(row);
        }
        offset
    }

    pub(crate) fn header(&self, offset: u32) -> Option<Header> {
        let at = usize::try_from(offset).ok()?;
        let bytes = self.bytes.get(at..)?;
        let (next, rest) = bytes.split_first_chunk()?;
        let (variant, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (place, rest) = rest.split_first()?;
        Some(Header {
            next: Location::of(u64::from_le_bytes(*next)),
            message: (PlaceId(usize::from(*place)), u64::from_le_bytes(*id)),
            variant: Variant(u64::from_le_bytes(*variant)),
            used: rest.first()? & 1 == 1,
            links: rest.first()? >> 1,
            len: u32::from_le_bytes(*len),
        })
    }

    pub(crate) fn kept(&self, offset: u32) -> Option<(Kept<'_>, Links<'_>)> {
        let header = self.header(offset)?;
        let from = usize::try_from(offset).ok()? + HEADER_BYTES;
        let (links, rest) = self
            .bytes
            .get(from..)?
            .split_at_checked(header.link_bytes())?;
        let kept = match header.len {
            FILTERED_OUT => Kept::FilteredOut,
            PASSES => Kept::Passes,
            _ => Kept::Row(rest.get(..header.row_bytes())?),
        };
        Some((kept, Links(links)))
    }

    /// Where the record behind this one begins, if there is one.
    pub(crate) fn behind(&self, offset: u32, header: &Header) -> Option<u32> {
        let from = usize::try_from(offset).ok()?;
        let next = from + HEADER_BYTES + header.link_bytes() + header.row_bytes();
        (next < self.bytes.len()).then_some(u32::try_from(next).ok()?)
    }

    pub(crate) fn use_it(&mut self, offset: u32) {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(used) = self.bytes.get_mut(at.saturating_add(USED)) {
            *used |= 1;
        }
    }

    pub(crate) fn lead_on(&mut self, offset: u32, next: Option<Location>) {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(bytes) = self.bytes.get_mut(at..).and_then(|it| it.first_chunk_mut()) {
            *bytes = next.map_or(NOWHERE, Location::number).to_le_bytes();
        }
    }

    /// Where the first record begins, if there is one.
    pub(crate) fn start(&self) -> Option<u32> {
        (!self.bytes.is_empty()).then_some(0)
    }
}

/// What a record takes.
pub(crate) fn bytes_of(record: Record<'_>) -> usize {
    HEADER_BYTES
        + record.links.len() * LINK_BYTES
        + match record.kept {
            Kept::Row(row) => row.len(),
            Kept::Passes | Kept::FilteredOut => 0,
        }
}
