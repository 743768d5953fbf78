//! Finds the SQL text of a query after its query attributes.

use std::ops::Range;

use super::Command;
use crate::capability::Capabilities;
use crate::cursor::{MalformedPacket, PacketCursor};

/// The range of the SQL text in the payload of a COM_QUERY or COM_STMT_PREPARE.
///
/// `payload` starts with the command byte and must be complete. With QUERY_ATTRIBUTES, COM_QUERY has the parameter
/// count, the count of parameter sets and the parameters before the text (manual, COM_QUERY); COM_STMT_PREPARE never
/// does. `None` for other commands, and where a parameter is malformed or of a type without a known width.
#[must_use]
pub fn query_text_range(payload: &[u8], capabilities: Capabilities) -> Option<Range<usize>> {
    let mut cursor = PacketCursor::new(payload);
    match Command::from_byte(cursor.u8().ok()?) {
        Command::StmtPrepare => {}
        Command::Query => {
            if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
                skip_attributes(&mut cursor).ok()?;
            }
        }
        _ => return None,
    }
    Some(cursor.position()..payload.len())
}

/// The payload with another text; the bytes before it stay.
#[must_use]
pub fn with_query_text(payload: &[u8], capabilities: Capabilities, text: &[u8]) -> Option<Vec<u8>> {
    let range = query_text_range(payload, capabilities)?;
    Some([payload.get(..range.start)?, text].concat())
}

fn skip_attributes(cursor: &mut PacketCursor<'_>) -> Result<(), MalformedPacket> {
    let parameters = cursor.lenenc_int()?;
    expect_value(cursor, 1, PacketCursor::lenenc_int)?;
    if parameters == 0 {
        return Ok(());
    }
    let bytes = usize::try_from(parameters.div_ceil(8)).unwrap_or(usize::MAX);
    let nulls = cursor.take(bytes)?;
    // The types are always sent: they do not last from one COM_QUERY to the next.
    expect_value(cursor, 1, |cursor| cursor.u8().map(u64::from))?;
    let mut types = Vec::new();
    for _ in 0..parameters {
        let [code, _sign] = cursor.u16()?.to_le_bytes();
        cursor.lenenc_bytes()?;
        types.push(code);
    }
    for (index, code) in types.iter().enumerate() {
        let null = nulls
            .get(index / 8)
            .is_some_and(|byte| byte >> (index % 8) & 1 == 1);
        if !null {
            skip_value(cursor, *code)?;
        }
    }
    Ok(())
}

fn expect_value<'a>(
    cursor: &mut PacketCursor<'a>,
    wanted: u64,
    read: impl FnOnce(&mut PacketCursor<'a>) -> Result<u64, MalformedPacket>,
) -> Result<(), MalformedPacket> {
    let at = cursor.position();
    let value = read(cursor)?;
    if value == wanted {
        Ok(())
    } else {
        Err(MalformedPacket::Unexpected { at, value })
    }
}

/// Skips a value of the binary protocol (manual, Binary Protocol Value).
pub(super) fn skip_value(cursor: &mut PacketCursor<'_>, code: u8) -> Result<(), MalformedPacket> {
    let width = match code {
        // NULL
        6 => 0,
        // TINY
        1 => 1,
        // SHORT, YEAR
        2 | 13 => 2,
        // LONG, FLOAT, INT24
        3 | 4 | 9 => 4,
        // DOUBLE, LONGLONG
        5 | 8 => 8,
        // TIMESTAMP, DATE, TIME, DATETIME: a byte of length
        7 | 10..=12 => usize::from(cursor.u8()?),
        // DECIMAL, VARCHAR, BIT, JSON, NEWDECIMAL, ENUM, SET, blobs, strings, GEOMETRY: a length-encoded string
        0 | 15 | 16 | 245..=255 => return cursor.lenenc_bytes().map(drop),
        unknown => {
            return Err(MalformedPacket::Unexpected {
                at: cursor.position(),
                value: unknown.into(),
            });
        }
    };
    cursor.take(width).map(drop)
}

/// The payload of a COM_QUERY, without query attributes.
#[must_use]
pub fn query_payload(sql: &[u8], capabilities: Capabilities) -> Vec<u8> {
    let mut payload = Vec::with_capacity(sql.len() + 3);
    payload.push(Command::Query.byte());
    if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
        // No attributes: a parameter count of 0 and the parameter set count, always 1.
        payload.extend_from_slice(&[0, 1]);
    }
    payload.extend_from_slice(sql);
    payload
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn text(payload: &[u8], capabilities: Capabilities) -> Option<&[u8]> {
        query_text_range(payload, capabilities).map(|range| &payload[range])
    }

    #[test]
    fn text_follows_the_command_byte_without_attributes() {
        assert_eq!(text(b"\x03DO 1", Capabilities::NONE), Some(&b"DO 1"[..]));
        assert_eq!(
            text(b"\x16DO 1", Capabilities::QUERY_ATTRIBUTES),
            Some(&b"DO 1"[..])
        );
        assert_eq!(text(b"\x0e", Capabilities::NONE), None);
        assert_eq!(text(b"", Capabilities::NONE), None);
    }

    #[test]
    fn text_follows_two_counts_when_there_are_no_attributes() {
        assert_eq!(
            text(b"\x03\x00\x01DO 1", Capabilities::QUERY_ATTRIBUTES),
            Some(&b"DO 1"[..])
        );
        assert_eq!(
            text(b"\x03\x00\x02DO 1", Capabilities::QUERY_ATTRIBUTES),
            None
        );
        assert_eq!(text(b"\x03\x00", Capabilities::QUERY_ATTRIBUTES), None);
    }

    /// Payload of one attribute named `a`.
    fn one_attribute(code: u8, value: &[u8]) -> Vec<u8> {
        let mut payload = vec![0x03, 1, 1, 0, 1, code, 0, 1, b'a'];
        payload.extend_from_slice(value);
        payload.extend_from_slice(b"DO 1");
        payload
    }

    #[test]
    fn attributes_of_every_type_are_skipped() {
        for (code, value) in [
            (1, &b"\x05"[..]),
            (2, b"\x05\0"),
            (13, b"\xe9\x07"),
            (3, b"\x05\0\0\0"),
            (9, b"\x05\0\0\0"),
            (4, b"\0\0\0\0"),
            (5, b"\0\0\0\0\0\0\0\0"),
            (8, b"\x05\0\0\0\0\0\0\0"),
            (6, b""),
            (10, b"\x04\xea\x07\x01\x02"),
            (12, b"\x0b\xea\x07\x01\x02\x03\x04\x05\x06\0\0\0"),
            (11, b"\x08\0\x01\0\0\0\x01\x02\x03"),
            (7, b"\0"),
            (246, b"\x041.25"),
            (245, b"\x02{}"),
            (253, b"\x03abc"),
            (254, b"\xfc\x03\0abc"),
        ] {
            let payload = one_attribute(code, value);
            assert_eq!(
                text(&payload, Capabilities::QUERY_ATTRIBUTES),
                Some(&b"DO 1"[..]),
                "type {code}"
            );
        }
        assert_eq!(
            text(
                &one_attribute(242, b"\x01a"),
                Capabilities::QUERY_ATTRIBUTES
            ),
            None
        );
    }

    #[test]
    fn null_attributes_have_no_value() {
        let mut payload = vec![0x03, 9, 1, 0b1111_1111, 0b1, 1];
        for _ in 0..9 {
            payload.extend_from_slice(b"\x08\0\x01a");
        }
        payload.extend_from_slice(b"DO 1");
        assert_eq!(
            text(&payload, Capabilities::QUERY_ATTRIBUTES),
            Some(&b"DO 1"[..])
        );
    }

    #[test]
    fn a_count_beyond_the_payload_is_refused() {
        let payload = b"\x03\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01DO 1";
        assert_eq!(text(payload, Capabilities::QUERY_ATTRIBUTES), None);
    }
}
