//! Offsets of column definitions and status flags in a complete reply, so that they can be changed.

use std::ops::Range;

use crate::capability::Capabilities;
use crate::cursor::PacketCursor;
use crate::packet::{HEADER_BYTES, MAX_BODY, PacketHeader, encode};
use crate::status;

/// First byte of an EOF, and of an OK in its place.
const EOF: u8 = 0xfe;
/// First byte of an OK.
const OK: u8 = 0x00;

/// The layout of a reply of one result set, in offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyLayout {
    /// The payload of each column definition; `None`: they are omitted, as the client has them.
    pub definitions: Option<Vec<Range<usize>>>,
    /// Offset of the two bytes of status flags after the columns, where there is an EOF.
    pub columns_end_status: Option<usize>,
    /// Offset of the two bytes of status flags at the end.
    pub end_status: usize,
}

impl ReplyLayout {
    /// Reads a complete reply that ended without an error. `None`: it is no single result set.
    #[must_use]
    pub fn read(reply: &[u8], capabilities: Capabilities) -> Option<ReplyLayout> {
        let mut packets = PacketRanges { reply, offset: 0 };
        let count = packets.next()?;
        let mut first = PacketCursor::new(reply.get(count)?);
        let columns = first.lenenc_int().ok().filter(|count| *count > 0)?;
        // Where definitions may be omitted, a byte after the count shows whether they follow.
        let definitions = match first.rest() {
            [] | [1] => Some(
                (0..columns)
                    .map(|_| packets.next())
                    .collect::<Option<_>>()?,
            ),
            [0] => None,
            _ => return None,
        };
        let deprecates = capabilities.contains(Capabilities::DEPRECATE_EOF);
        let columns_end = match deprecates {
            true => None,
            false => Some(eof_status_offset(reply, packets.next()?)?),
        };
        let last = packets.last()?;
        let last = match deprecates {
            true => ok_status_offset(reply, last, EOF)?,
            false => eof_status_offset(reply, last)?,
        };
        Some(ReplyLayout {
            definitions,
            columns_end_status: columns_end,
            end_status: last,
        })
    }
}

/// The parts of a complete reply of one result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSetParts {
    /// The payload of each column definition.
    pub definitions: Vec<Range<usize>>,
    /// Offset of the first row's packet, or of the one after the columns if there is no row.
    pub rows_start: usize,
    /// The payload of each row.
    pub rows: Vec<Range<usize>>,
    /// The payload of the last packet.
    pub end_packet: Range<usize>,
    /// Offset of its two bytes of status flags.
    pub status_at: usize,
}

impl ResultSetParts {
    /// Splits a complete reply that ended without an error. `None`: it omits its column definitions, or is no single result set.
    #[must_use]
    pub fn read(reply: &[u8], capabilities: Capabilities) -> Option<ResultSetParts> {
        let layout = ReplyLayout::read(reply, capabilities)?;
        let definitions = layout.definitions?;
        let mut packets = PacketRanges {
            reply,
            offset: definitions.last()?.end,
        };
        if layout.columns_end_status.is_some() {
            packets.next()?;
        }
        let rows_from = packets.offset;
        let mut rows = Vec::new();
        while let Some(packet) = packets.next() {
            rows.push(packet);
        }
        let last = rows.pop()?;
        (last.end == reply.len()).then_some(ResultSetParts {
            definitions,
            rows_start: rows_from,
            rows,
            end_packet: last,
            status_at: layout.end_status,
        })
    }
}

/// A complete reply without its column definitions, for a client that has them. `None`: it has none.
#[must_use]
pub fn without_definitions(reply: &[u8], capabilities: Capabilities) -> Option<Vec<u8>> {
    let layout = ReplyLayout::read(reply, capabilities)?;
    let (first, last) = layout.definitions.as_deref().and_then(first_and_last)?;
    let [count @ .., _] = reply.get(HEADER_BYTES..first.start.checked_sub(HEADER_BYTES)?)? else {
        return None;
    };
    let mut bytes = Vec::with_capacity(reply.len());
    let mut seq = encode(1, &[count, &[0]].concat(), &mut bytes);
    let mut packets = PacketRanges {
        reply,
        offset: last.end,
    };
    while let Some(packet) = packets.next() {
        seq = encode(seq, reply.get(packet)?, &mut bytes);
    }
    Some(bytes)
}

fn first_and_last(ranges: &[Range<usize>]) -> Option<(&Range<usize>, &Range<usize>)> {
    Some((ranges.first()?, ranges.last()?))
}

/// Sets the flag for further results in a complete reply that ended without an error; returns its number of packets. `None`: its layout
/// is not known.
#[must_use]
pub fn set_more_results(reply: &mut [u8], capabilities: Capabilities) -> Option<usize> {
    let mut packets = PacketRanges { reply, offset: 0 };
    let first = packets.next()?;
    let is_ok = reply.get(first.start) == Some(&OK) && first.end == reply.len();
    let (columns_end, last) = match is_ok {
        true => (None, ok_status_offset(reply, first, OK)?),
        false => {
            let layout = ReplyLayout::read(reply, capabilities)?;
            (layout.columns_end_status, layout.end_status)
        }
    };
    let count = PacketRanges { reply, offset: 0 }.count()?;
    for at in columns_end.into_iter().chain([last]) {
        write_status_flags(reply, at, status::MORE_RESULTS, status::MORE_RESULTS);
    }
    Some(count)
}

/// Sets these status flags wherever a complete reply that ended without an error has some.
pub fn set_status_flags(reply: &mut [u8], capabilities: Capabilities, flags: u16) {
    let offsets =
        ReplyLayout::read(reply, capabilities).map(|it| (it.columns_end_status, it.end_status));
    if let Some((columns_end, last)) = offsets {
        for at in columns_end.into_iter().chain([last]) {
            write_status_flags(reply, at, flags, flags);
        }
    }
}

/// The status flags at an offset.
#[must_use]
pub fn status_flags_at(reply: &[u8], at: usize) -> Option<u16> {
    let bytes = reply.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

/// Sets the flags of `mask` at an offset to those of `to`.
pub fn write_status_flags(reply: &mut [u8], at: usize, mask: u16, to: u16) {
    if let Some(current) = status_flags_at(reply, at)
        && let Some(bytes) = reply.get_mut(at..at + 2)
    {
        bytes.copy_from_slice(&(current & !mask | to & mask).to_le_bytes());
    }
}

/// The offset of an EOF's status: warnings, then status.
fn eof_status_offset(reply: &[u8], packet: Range<usize>) -> Option<usize> {
    let payload = reply.get(packet.clone())?;
    let is_eof = payload.len() == 5 && payload.first() == Some(&EOF);
    is_eof.then_some(packet.start + 3)
}

/// The offset of an OK's status: rows, last id, status, warnings.
fn ok_status_offset(reply: &[u8], packet: Range<usize>, begins: u8) -> Option<usize> {
    let mut payload = PacketCursor::new(reply.get(packet.clone())?);
    (payload.u8().ok()? == begins).then_some(())?;
    payload.lenenc_int().ok()?;
    payload.lenenc_int().ok()?;
    let remaining = payload.rest().len();
    (remaining >= 2).then(|| packet.end - remaining)
}

/// Iterates over the payloads of packets. Ends at a packet that is continued.
struct PacketRanges<'a> {
    reply: &'a [u8],
    offset: usize,
}

impl PacketRanges<'_> {
    fn next(&mut self) -> Option<Range<usize>> {
        let header = PacketHeader::parse(self.reply.get(self.offset..)?)?;
        let start = self.offset + HEADER_BYTES;
        let end = start + header.len;
        let whole = header.len < MAX_BODY && end <= self.reply.len();
        whole.then(|| {
            self.offset = end;
            start..end
        })
    }

    fn count(&mut self) -> Option<usize> {
        let mut count = 0;
        while self.offset < self.reply.len() {
            self.next()?;
            count += 1;
        }
        Some(count)
    }

    fn last(&mut self) -> Option<Range<usize>> {
        let mut last = self.next()?;
        while self.offset < self.reply.len() {
            last = self.next()?;
        }
        Some(last)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn reply(packets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut seq = 1;
        for packet in packets {
            seq = encode(seq, packet, &mut bytes);
        }
        bytes
    }

    const NEW: Capabilities = Capabilities::DEPRECATE_EOF;

    #[test]
    fn both_ends_are_found_with_and_without_an_eof_after_the_columns() {
        let mut old = reply(&[
            b"\x02",
            b"one",
            b"two",
            &[EOF, 0, 0, 0x22, 0],
            b"row",
            b"\xfelong row",
            &[EOF, 0, 0, 0x02, 0],
        ]);
        let layout = ReplyLayout::read(&old, Capabilities::NONE).unwrap();
        let definitions = layout.definitions.unwrap();
        let definitions: Vec<&[u8]> = definitions
            .iter()
            .map(|range| &old[range.clone()])
            .collect();
        assert_eq!(definitions, [b"one", b"two"]);
        let columns_end = layout.columns_end_status.unwrap();
        assert_eq!(status_flags_at(&old, columns_end), Some(0x22));
        assert_eq!(status_flags_at(&old, layout.end_status), Some(0x02));
        write_status_flags(&mut old, layout.end_status, 0x30, 0xffff);
        assert_eq!(status_flags_at(&old, layout.end_status), Some(0x32));

        let new = reply(&[b"\x01", b"one", b"row", &[EOF, 0, 0, 0x22, 0, 0, 0]]);
        let layout = ReplyLayout::read(&new, NEW).unwrap();
        assert_eq!(layout.definitions.map(|all| all.len()), Some(1));
        assert_eq!(layout.columns_end_status, None);
        assert_eq!(status_flags_at(&new, layout.end_status), Some(0x22));
        let complete = reply(&[b"\x01\x01", b"one", &[EOF, 0, 0, 2, 0, 0, 0]]);
        assert!(ReplyLayout::read(&complete, NEW).is_some());
        let left_out = reply(&[b"\x01\x00", b"row", &[EOF, 0, 0, 0x22, 0, 0, 0]]);
        let layout = ReplyLayout::read(&left_out, NEW).unwrap();
        assert_eq!(
            (
                layout.definitions,
                status_flags_at(&left_out, layout.end_status)
            ),
            (None, Some(0x22))
        );
    }

    #[test]
    fn definitions_that_the_client_has_are_left_out() {
        let (end, new_end) = (&[EOF, 0, 0, 2, 0][..], &[EOF, 0, 0, 2, 0, 0, 0][..]);
        let old = reply(&[b"\x02\x01", b"one", b"two", end, b"row", end]);
        let left_out = reply(&[b"\x02\x00", end, b"row", end]);
        assert_eq!(
            without_definitions(&old, Capabilities::NONE),
            Some(left_out)
        );
        let new = reply(&[b"\x01\x01", b"one", b"row", b"row", new_end]);
        let left_out = reply(&[b"\x01\x00", b"row", b"row", new_end]);
        assert_eq!(without_definitions(&new, NEW).as_ref(), Some(&left_out));
        assert_eq!(without_definitions(&left_out, NEW), None);
    }

    #[test]
    fn every_end_of_a_reply_has_the_flag_for_further_results() {
        let old = [
            &b"\x01"[..],
            b"one",
            &[EOF, 0, 0, 2, 0],
            b"row",
            &[EOF, 0, 0, 2, 0],
        ];
        let expected = [
            &b"\x01"[..],
            b"one",
            &[EOF, 0, 0, 10, 0],
            b"row",
            &[EOF, 0, 0, 10, 0],
        ];
        let new = [&b"\x01"[..], b"one", b"row", &[EOF, 0, 0, 2, 0, 0, 0]];
        let told_new = [&b"\x01"[..], b"one", b"row", &[EOF, 0, 0, 10, 0, 0, 0]];
        let ok = [&[OK, 1, 0, 2, 0, 0, 0][..]];
        let told_ok = [&[OK, 1, 0, 10, 0, 0, 0][..]];
        for (packets, told, capabilities) in [
            (&old[..], &expected[..], Capabilities::NONE),
            (&new, &told_new, NEW),
            (&ok, &told_ok, NEW),
        ] {
            let mut bytes = reply(packets);
            assert_eq!(
                set_more_results(&mut bytes, capabilities),
                Some(packets.len())
            );
            assert_eq!(bytes, reply(told));
        }
        let mut error = reply(&[b"\xff\x28\x04"]);
        assert_eq!(set_more_results(&mut error, NEW), None);
    }

    #[test]
    fn what_is_no_result_set_has_no_layout() {
        for packets in [
            &[&b"\x00\x00\x00\x02\x00\x00\x00"[..]][..],
            &[b"\xff\x00\x00"],
            &[b"\x01\x02", b"row", &[EOF, 0, 0, 2, 0, 0, 0]],
            &[b"\x02", b"one"],
            &[b"\x01", b"one", b"row"],
        ] {
            assert_eq!(ReplyLayout::read(&reply(packets), NEW), None, "{packets:?}");
        }
        let cut = reply(&[b"\x01", b"one", &[EOF, 0, 0, 2, 0, 0, 0]]);
        assert_eq!(ReplyLayout::read(&cut[..cut.len() - 1], NEW), None);
    }
}
