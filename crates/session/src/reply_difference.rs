//! Compares a reply made of cached rows with the server's own reply to the same statement, byte by byte.

use std::fmt;

use headwater_feed::result_metadata::{KEY_FLAGS, PlanStatusFlags, flags_at};
use headwater_wire::capability::Capabilities;
use headwater_wire::reply::layout::{ReplyLayout, ResultSetParts, write_status_flags};
use headwater_wire::status;

/// How two replies differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyDifference {
    /// The row counts of the two replies.
    Rows(usize, usize),
    /// The first different row, from 1.
    Row(usize),
    /// The envelope around the rows.
    Envelope,
}

impl fmt::Display for ReplyDifference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplyDifference::Rows(own, theirs) => {
                write!(out, "it has {own} rows, and the server's {theirs}")
            }
            ReplyDifference::Row(number) => write!(out, "row {number} is another one"),
            ReplyDifference::Envelope => write!(out, "its columns are described otherwise"),
        }
    }
}

/// Status flags that depend on the plan, or on the time that the statement took.
const VOLATILE_STATUS: u16 = PlanStatusFlags::FLAGS | status::QUERY_WAS_SLOW;

/// How a page differs from the server's reply, apart from what depends on the plan; `None`: not at all. Both succeeded.
#[must_use]
pub fn difference(
    page: &[u8],
    reply: &[u8],
    capabilities: Capabilities,
) -> Option<ReplyDifference> {
    if plan_independent(page, capabilities) == plan_independent(reply, capabilities) {
        return None;
    }
    let (Some(page_parts), Some(theirs)) = (
        ResultSetParts::read(page, capabilities),
        ResultSetParts::read(reply, capabilities),
    ) else {
        return Some(ReplyDifference::Envelope);
    };
    if page_parts.rows.len() != theirs.rows.len() {
        return Some(ReplyDifference::Rows(
            page_parts.rows.len(),
            theirs.rows.len(),
        ));
    }
    let mut rows = page_parts.rows.into_iter().zip(theirs.rows);
    let different_row = rows.position(|(own, theirs)| page.get(own) != reply.get(theirs));
    Some(different_row.map_or(ReplyDifference::Envelope, |at| ReplyDifference::Row(at + 1)))
}

/// A reply without the parts that depend on the plan. `None`: it is no result set.
fn plan_independent(reply: &[u8], capabilities: Capabilities) -> Option<Vec<u8>> {
    let layout = ReplyLayout::read(reply, capabilities)?;
    let mut reply = reply.to_vec();
    for definition in layout.definitions.iter().flatten() {
        let flags = flags_at(reply.get(definition.clone())?)?;
        write_status_flags(&mut reply, definition.start + flags, KEY_FLAGS, 0);
    }
    for at in layout
        .columns_end_status
        .into_iter()
        .chain([layout.end_status])
    {
        write_status_flags(&mut reply, at, VOLATILE_STATUS, 0);
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_wire::packet;

    fn reply(flags: u16, rows: &[&str], status: u8) -> Vec<u8> {
        let mut definition =
            b"\x03def\x03app\x01m\x07message\x02id\x02id\x0c?\0\x14\0\0\0\x08".to_vec();
        definition.extend_from_slice(&flags.to_le_bytes());
        definition.extend_from_slice(&[0, 0, 0]);
        let mut packets = vec![vec![1], definition];
        let length = |row: &str| u8::try_from(row.len()).unwrap_or(u8::MAX);
        packets.extend(
            rows.iter()
                .map(|row| [&[length(row)], row.as_bytes()].concat()),
        );
        packets.push(vec![0xfe, 0, 0, status, 0, 0, 0]);
        let (mut bytes, mut sequence) = (Vec::new(), 1);
        for packet in packets {
            sequence = packet::encode(sequence, &packet, &mut bytes);
        }
        bytes
    }

    #[test]
    fn replies_are_the_same_but_for_what_follows_the_plan() {
        let capabilities = Capabilities::DEPRECATE_EOF;
        let own = reply(0x4203, &["9", "8"], 2);
        let of = |other: &[u8]| difference(&own, other, capabilities);
        assert_eq!(of(&own), None);
        assert_eq!(of(&reply(0x4001, &["9", "8"], 0x22)), None);
        assert_eq!(
            of(&reply(0x4203, &["9", "7"], 2)),
            Some(ReplyDifference::Row(2))
        );
        assert_eq!(
            of(&reply(0x4203, &["9"], 2)),
            Some(ReplyDifference::Rows(2, 1))
        );
        assert_eq!(
            of(&reply(0x4223, &["9", "8"], 2)),
            Some(ReplyDifference::Envelope)
        );
        assert_eq!(
            of(&reply(0x4203, &["9", "8"], 3)),
            Some(ReplyDifference::Envelope)
        );
        assert_eq!(of(b"no reply"), Some(ReplyDifference::Envelope));
    }
}
