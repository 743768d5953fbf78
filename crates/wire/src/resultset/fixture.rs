//! Result sets as a server sends them, for the tests of their readers.

use super::{CollectLimits, QueryReply, ReplyCollector, ResultSet};
use crate::capability::Capabilities;
use crate::cursor;
use crate::packet;

/// A result set of texts, read from the bytes that a server would send.
///
/// # Panics
/// When there are more columns than a byte can count, or rows of several lengths.
#[doc(hidden)]
#[must_use]
pub fn result_set_of(rows: &[Vec<Option<String>>]) -> ResultSet {
    result_set_with_status(rows, 2)
}

/// Like [`result_set_of`], with these status flags at the end.
///
/// # Panics
/// As [`result_set_of`] does.
#[doc(hidden)]
#[must_use]
#[allow(clippy::expect_used, clippy::panic)]
pub fn result_set_with_status(rows: &[Vec<Option<String>>], status: u8) -> ResultSet {
    let columns = rows.first().map_or(1, Vec::len);
    let count = u8::try_from(columns).expect("so many columns are counted in a byte");
    let mut packets: Vec<Vec<u8>> = vec![vec![count]];
    packets.extend((0..columns).map(|_| b"\x03def".to_vec()));
    for row in rows {
        let mut packet = Vec::new();
        for cell in row {
            match cell {
                Some(text) => cursor::put_lenenc_bytes(text.as_bytes(), &mut packet),
                None => packet.push(0xfb),
            }
        }
        packets.push(packet);
    }
    packets.push(vec![0xfe, 0, 0, status, 0, 0, 0]);
    let (mut bytes, mut seq) = (Vec::new(), 1);
    for packet in packets {
        seq = packet::encode(seq, &packet, &mut bytes);
    }
    let limits = CollectLimits {
        max_rows: rows.len(),
        max_bytes: bytes.len(),
    };
    let mut collector = ReplyCollector::new(Capabilities::DEPRECATE_EOF, limits);
    collector.feed(&bytes).expect("they are rows");
    match collector.finish().expect("they have an end") {
        QueryReply::Rows(rows) => rows,
        other => panic!("{other:?}"),
    }
}
