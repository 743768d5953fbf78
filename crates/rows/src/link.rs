//! Links from a row to the other rows that it depends on: it is valid as long as none of them has changed.
//!
//! Each of those has a *version*, a number that is assigned when a row first depends on it and never reused. When the log shows a change
//! of it, its version is forgotten, and all rows with that version become invalid.

use std::sync::atomic::Ordering;

use crate::shard::CacheShard;
use crate::{CacheKey, CachedRow, RowCache};
use headwater_timeline::index::{RowKey, TableId};

/// A dependency on another row, or on none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLink {
    /// The other row's version; 0: there is no other row, whatever changes.
    version: u64,
    key: u64,
}

/// The largest number of links of a row.
pub const MAX_LINKS: usize = 4;
pub(crate) const LINK_BYTES: usize = VERSION_BYTES + 8;
/// Enough for a million a second for eight years.
const VERSION_BYTES: usize = 6;
/// The cache key of versions: no template gets this number.
const VERSION_KEY: CacheKey = CacheKey(u64::MAX - 1);

impl RowLink {
    /// A link to no row.
    pub const NONE: RowLink = RowLink { version: 0, key: 0 };

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        let version = self.version.to_le_bytes();
        bytes.extend_from_slice(
            version
                .first_chunk::<VERSION_BYTES>()
                .unwrap_or(&[0; VERSION_BYTES]),
        );
        bytes.extend_from_slice(&self.key.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<RowLink> {
        let (version, key) = bytes.split_first_chunk::<VERSION_BYTES>()?;
        Some(RowLink {
            version: version_from_bytes(version),
            key: u64::from_le_bytes(*key.first_chunk()?),
        })
    }
}

fn version_from_bytes(bytes: &[u8; VERSION_BYTES]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Links as stored in a segment.
#[derive(Clone, Copy, Debug)]
pub struct RowLinks<'a>(pub(crate) &'a [u8]);

impl RowLinks<'_> {
    /// Iterates over the links.
    pub fn iter(&self) -> impl Iterator<Item = RowLink> + '_ {
        self.0.chunks_exact(LINK_BYTES).filter_map(RowLink::read)
    }

    /// The links, filled up with [`RowLink::NONE`].
    #[must_use]
    pub fn padded(&self) -> [RowLink; MAX_LINKS] {
        let mut all = [RowLink::NONE; MAX_LINKS];
        all.iter_mut()
            .zip(self.iter())
            .for_each(|(slot, link)| *slot = link);
        all
    }
}

impl RowCache {
    /// A link to a row in its current version. The caller guarantees that it has not changed since it was read.
    pub fn link_to(&self, other: RowKey) -> RowLink {
        let (hash, mut shard) = self.shard_of(other);
        let version = row_version(&mut shard, other, hash).unwrap_or_else(|| {
            let new = self.last_version.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = new.to_le_bytes();
            let row = CachedRow::Row(bytes.get(..VERSION_BYTES).unwrap_or_default());
            let record = crate::RowRecord { row, links: &[] };
            shard.insert(other, VERSION_KEY, record, hash, &self.hasher);
            new
        });
        RowLink {
            version,
            key: other.id,
        }
    }

    /// Passes what is cached for a message to `read`; `None` if nothing is, if `read` finds nothing, or if a linked row has changed, in the order
    /// of these tables.
    pub fn lookup_current<T>(
        &self,
        message: RowKey,
        cache_key: CacheKey,
        tables: &[TableId],
        read: impl FnOnce(CachedRow<'_>) -> Option<T>,
    ) -> Option<T> {
        let found = self.lookup(message, cache_key, |row, links| {
            Some((read(row)?, links.padded()))
        });
        let (found, links) = found??;
        let mut links = tables.iter().zip(links);
        links
            .all(|(table, link)| self.is_link_valid(*table, link))
            .then_some(found)
    }

    /// True while the linked row, of this table, is unchanged.
    fn is_link_valid(&self, table: TableId, link: RowLink) -> bool {
        if link.version == 0 {
            return true;
        }
        let other = RowKey {
            table,
            id: link.key,
        };
        let (hash, mut shard) = self.shard_of(other);
        row_version(&mut shard, other, hash) == Some(link.version)
    }
}

fn row_version(shard: &mut CacheShard, other: RowKey, hash: u64) -> Option<u64> {
    let (row, _) = shard.lookup(other, VERSION_KEY, hash)?;
    match row {
        CachedRow::Row(bytes) => bytes.first_chunk().map(version_from_bytes),
        CachedRow::Passes | CachedRow::FilteredOut => None,
    }
}
