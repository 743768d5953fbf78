//! A reply's rows: which there are, and their packets.

use headwater_timeline::index::TimelineId;
use headwater_wire::packet::encode;

use crate::{CacheKey, CachedRow, RowCache};

/// Whose rows: of which messages, under which variant, made of rows of these other places.
#[derive(Clone, Copy, Debug)]
pub struct PageSource<'a> {
    /// The messages' place.
    pub timeline_id: TimelineId,
    /// The variant.
    pub cache_key: CacheKey,
    /// Where each link of a row leads to.
    pub joined_tables: &'a [TimelineId],
}

/// The rows of one page, each a packet.
#[derive(Debug)]
pub struct PagePackets {
    /// The packets, numbered on from those in front.
    pub packets: Vec<u8>,
    /// How many there are.
    pub rows: u64,
    /// How many messages pass, those that OFFSET passes over among them: what is behind the page does not count.
    pub passed_messages: u64,
}

impl RowCache {
    /// True where [`Self::page`] of the same would be one.
    #[must_use]
    pub fn has_page(
        &self,
        of: PageSource<'_>,
        messages: &[u64],
        all: bool,
        part: (u64, u64),
    ) -> bool {
        self.scan(of, messages, all, part, |_| ()).is_some()
    }

    /// The first `limit` rows behind `offset` of those messages that pass, in this order, behind what stands in `packets` already; the
    /// first of them has the number `sequence`. `padded`: there are no other messages.
    ///
    /// `None`: of one that matters nothing is kept, or more of them are needed.
    #[must_use]
    pub fn page(
        &self,
        of: PageSource<'_>,
        messages: &[u64],
        all: bool,
        part: (u64, u64),
        (mut packets, mut sequence): (Vec<u8>, u8),
    ) -> Option<PagePackets> {
        let push = |row: &[u8]| sequence = encode(sequence, row, &mut packets);
        let (rows, passed) = self.scan(of, messages, all, part, push)?;
        Some(PagePackets {
            packets,
            rows,
            passed_messages: passed,
        })
    }

    /// Shows each row of a page, and tells how many there are, and how many messages pass up to the last one.
    fn scan(
        &self,
        of: PageSource<'_>,
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
            let look = self.lookup((of.timeline_id, *id), of.cache_key, |kept, links| {
                passed += u64::from(kept != CachedRow::FilteredOut);
                let is_row = match kept {
                    CachedRow::FilteredOut => false,
                    _ if passed <= offset => false,
                    CachedRow::Passes => return None,
                    CachedRow::Row(row) => {
                        show(row);
                        true
                    }
                };
                Some((is_row, links.padded()))
            });
            let (is_row, links) = look??;
            let mut links = of.joined_tables.iter().zip(links);
            if !links.all(|(place, link)| self.is_link_valid(*place, link)) {
                return None;
            }
            rows += u64::from(is_row);
        }
        (rows == limit || all).then_some((rows, passed))
    }
}
