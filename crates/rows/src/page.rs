//! A reply's rows: which there are, and their packets.

use headwater_timeline::index::PlaceId;
use headwater_wire::frame::encode;

use crate::{Kept, Rows, Variant};

/// Whose rows: of which messages, under which variant, made of rows of these other places.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    /// The messages' place.
    pub place: PlaceId,
    /// The variant.
    pub variant: Variant,
    /// Where each link of a row leads to.
    pub referred: &'a [PlaceId],
}

/// The rows of one page, each a packet.
#[derive(Debug)]
pub struct Page {
    /// The packets, numbered on from those in front.
    pub packets: Vec<u8>,
    /// How many there are.
    pub rows: u64,
    /// How many messages pass, those that OFFSET passes over among them: what is behind the page does not count.
    pub passed: u64,
}

impl Rows {
    /// True where [`Self::page`] of the same would be one.
    #[must_use]
    pub fn has_page(&self, of: Of<'_>, messages: &[u64], all: bool, part: (u64, u64)) -> bool {
        self.walk(of, messages, all, part, |_| ()).is_some()
    }

    /// The first `limit` rows behind `offset` of those messages that pass, in this order, behind what stands in `packets` already; the
    /// first of them has the number `sequence`. `all`: there are no other messages.
    ///
    /// `None`: of one that matters nothing is kept, or more of them are needed.
    #[must_use]
    pub fn page(
        &self,
        of: Of<'_>,
        messages: &[u64],
        all: bool,
        part: (u64, u64),
        (mut packets, mut sequence): (Vec<u8>, u8),
    ) -> Option<Page> {
        let push = |row: &[u8]| sequence = encode(sequence, row, &mut packets);
        let (rows, passed) = self.walk(of, messages, all, part, push)?;
        Some(Page {
            packets,
            rows,
            passed,
        })
    }

    /// Shows each row of a page, and tells how many there are, and how many messages pass up to the last one.
    fn walk(
        &self,
        of: Of<'_>,
        messages: &[u64],
        all: bool,
        (offset, limit): (u64, u64),
        mut show: impl FnMut(&[u8]),
    ) -> Option<(u64, u64)> {
        let (mut passed, mut rows) = (0_u64, 0_u64);
        for id in messages {
            if rows == limit {
                break;
            }
            let look = self.look((of.place, *id), of.variant, |kept, links| {
                passed += u64::from(kept != Kept::FilteredOut);
                let is_row = match kept {
                    Kept::FilteredOut => false,
                    _ if passed <= offset => false,
                    Kept::Passes => return None,
                    Kept::Row(row) => {
                        show(row);
                        true
                    }
                };
                Some((is_row, links.all()))
            });
            let (is_row, links) = look??;
            let mut links = of.referred.iter().zip(links);
            if !links.all(|(place, link)| self.holds(*place, link)) {
                return None;
            }
            rows += u64::from(is_row);
        }
        (rows == limit || all).then_some((rows, passed))
    }
}
