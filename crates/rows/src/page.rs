//! The rows of a reply, as packets.

use headwater_timeline::index::{RowKey, TableId, TimelineId};
use headwater_wire::packet::encode;

use crate::{CacheKey, CachedRow, RowCache};

/// Where a page's rows come from.
#[derive(Clone, Copy, Debug)]
pub struct PageSource<'a> {
    /// The messages' timeline.
    pub timeline_id: TimelineId,
    /// The cache key.
    pub cache_key: CacheKey,
    /// The table that each link of a row leads to.
    pub joined_tables: &'a [TableId],
}

/// The rows of one page, a packet each.
#[derive(Debug)]
pub struct PagePackets {
    /// The packets, with sequence ids that continue those before.
    pub packets: Vec<u8>,
    /// The number of rows.
    pub rows: u64,
    /// How many messages pass up to the end of the page, including those that OFFSET skips.
    pub passed_messages: u64,
}

impl RowCache {
    /// True if [`Self::page`] with the same arguments returns a page.
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

    /// Appends the first `limit` rows after `offset` of those messages that pass, in this order, to `packets`; the first of them gets the
    /// sequence id `sequence`. `all`: there are no other messages.
    ///
    /// `None`: nothing is cached for a message that matters, or more messages are needed.
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

    /// Passes each row of a page to `show`; returns how many rows there are, and how many messages pass up to the last one.
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
            let is_row = self.lookup_current(
                RowKey::message(of.timeline_id, *id),
                of.cache_key,
                of.joined_tables,
                |cached| {
                    passed += u64::from(cached != CachedRow::FilteredOut);
                    match cached {
                        CachedRow::FilteredOut => Some(false),
                        _ if passed <= offset => Some(false),
                        CachedRow::Passes => None,
                        CachedRow::Row(row) => {
                            show(row);
                            Some(true)
                        }
                    }
                },
            )?;
            rows += u64::from(is_row);
        }
        (rows == limit || all).then_some((rows, passed))
    }
}
