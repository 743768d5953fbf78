//! A reply's rows: which there are, and their packets.

use headwater_timeline::index::PlaceId;
use headwater_wire::frame::{HEADER_BYTES, MAX_BODY};

use crate::{Kept, Rows, Variant};

/// The rows of one page, each a packet.
#[derive(Debug)]
pub struct Page {
    /// The packets, numbered on from those in front.
    pub packets: Vec<u8>,
    /// How many there are.
    pub rows: u64,
}

impl Rows {
    /// True where [`Self::page`] of the same would be one.
    #[must_use]
    pub fn has_page(
        &self,
        (place, variant): (PlaceId, Variant),
        messages: &[u64],
        all: bool,
        (offset, limit): (u64, u64),
    ) -> bool {
        let wanted = offset.saturating_add(limit);
        let mut passed = 0;
        for id in messages {
            if passed == wanted {
                break;
            }
            let is_there = self.look((place, *id), variant, |kept| {
                passed += u64::from(kept != Kept::FilteredOut);
                passed <= offset || kept != Kept::Passes
            });
            if is_there != Some(true) {
                return false;
            }
        }
        passed == wanted || all
    }

    /// The first `limit` rows behind `offset` of those messages that pass, in this order, behind what stands in `packets` already; the
    /// first of them has the number `sequence`. `all`: there are no other messages.
    ///
    /// `None`: of one that matters nothing is kept, or more of them are needed.
    #[must_use]
    pub fn page(
        &self,
        (place, variant): (PlaceId, Variant),
        messages: &[u64],
        all: bool,
        (offset, limit): (u64, u64),
        (mut packets, mut sequence): (Vec<u8>, u8),
    ) -> Option<Page> {
        let (mut passed, mut rows) = (0_u64, 0_u64);
        for id in messages {
            if rows == limit {
                break;
            }
            let is_row = self.look((place, *id), variant, |kept| {
                passed += u64::from(kept != Kept::FilteredOut);
                match kept {
                    Kept::FilteredOut => Some(false),
                    _ if passed <= offset => Some(false),
                    Kept::Passes => None,
                    Kept::Row(row) => {
                        push(&mut packets, sequence, row)?;
                        sequence = sequence.wrapping_add(1);
                        Some(true)
                    }
                }
            });
            rows += u64::from(is_row??);
        }
        (rows == limit || all).then_some(Page { packets, rows })
    }
}

/// A packet that holds this.
fn push(packets: &mut Vec<u8>, sequence: u8, body: &[u8]) -> Option<()> {
    if body.len() >= MAX_BODY {
        return None;
    }
    let len = u32::try_from(body.len()).ok()?.to_le_bytes();
    let [a, b, c, _] = len;
    packets.reserve(HEADER_BYTES + body.len());
    packets.extend_from_slice(&[a, b, c, sequence]);
    packets.extend_from_slice(body);
    Some(())
}
