//! Compares a reply that was made of kept rows with the server's own to the same statement, byte by byte.

use std::fmt;

use headwater_feed::variants::{Ends, KEY_FLAGS, flags_at};
use headwater_wire::capability::Capabilities;
use headwater_wire::reply::layout::{Layout, Parts, put};
use headwater_wire::status;

/// How two replies differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// One has so many rows, and the other so many.
    Rows(usize, usize),
    /// A row, counted from 1 on.
    Row(usize),
    /// What stands in front of the rows, or behind them.
    Around,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Rows(own, theirs) => {
                write!(out, "it has {own} rows, and the server's {theirs}")
            }
            Difference::Row(number) => write!(out, "row {number} is another one"),
            Difference::Around => write!(out, "its columns are described otherwise"),
        }
    }
}

/// Status flags that follow the plan, or how long it took.
const PASSING: u16 = Ends::FLAGS | status::QUERY_WAS_SLOW;

/// How a page differs from the server's reply; `None`: in nothing but what follows the server's plan. Both ended well.
#[must_use]
pub fn difference(page: &[u8], reply: &[u8], capabilities: Capabilities) -> Option<Difference> {
    if lasting(page, capabilities) == lasting(reply, capabilities) {
        return None;
    }
    let (Some(own), Some(theirs)) = (
        Parts::read(page, capabilities),
        Parts::read(reply, capabilities),
    ) else {
        return Some(Difference::Around);
    };
    if own.rows.len() != theirs.rows.len() {
        return Some(Difference::Rows(own.rows.len(), theirs.rows.len()));
    }
    let mut rows = own.rows.into_iter().zip(theirs.rows);
    let other = rows.position(|(own, theirs)| page.get(own) != reply.get(theirs));
    Some(other.map_or(Difference::Around, |at| Difference::Row(at + 1)))
}

/// A reply without what follows the plan. `None`: it is no result set.
fn lasting(reply: &[u8], capabilities: Capabilities) -> Option<Vec<u8>> {
    let layout = Layout::read(reply, capabilities)?;
    let mut reply = reply.to_vec();
    for definition in layout.definitions.iter().flatten() {
        let flags = flags_at(reply.get(definition.clone())?)?;
        put(&mut reply, definition.start + flags, KEY_FLAGS, 0);
    }
    for at in layout.columns_end.into_iter().chain([layout.last]) {
        put(&mut reply, at, PASSING, 0);
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_wire::frame;

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
            sequence = frame::encode(sequence, &packet, &mut bytes);
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
        assert_eq!(of(&reply(0x4203, &["9", "7"], 2)), Some(Difference::Row(2)));
        assert_eq!(of(&reply(0x4203, &["9"], 2)), Some(Difference::Rows(2, 1)));
        assert_eq!(of(&reply(0x4223, &["9", "8"], 2)), Some(Difference::Around));
        assert_eq!(of(&reply(0x4203, &["9", "8"], 3)), Some(Difference::Around));
        assert_eq!(of(b"no reply"), Some(Difference::Around));
    }
}
