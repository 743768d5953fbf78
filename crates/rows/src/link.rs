//! Links from a row to the others that it was made of: it holds as long as none of them has changed.
//!
//! Each of those has a *stamp*, a number that is given when a row is first made of it and never again. Once the log tells that it has
//! changed, the stamp is forgotten, and with it all rows that bear it count for nothing.

use std::sync::atomic::Ordering;

use crate::shard::CacheShard;
use crate::{CacheKey, CachedRow, MessageKey, RowCache};

/// That a row was made of another one, or of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLink {
    /// The other row's stamp; 0: there is no other row, whatever changes.
    version: u64,
    /// The other row's key.
    key: u64,
}

/// A row is made of so many others at most.
pub const MAX_LINKS: usize = 4;
/// A stamp, and a key.
pub(crate) const LINK_BYTES: usize = VERSION_BYTES + 8;
/// A million a second for eight years.
const VERSION_BYTES: usize = 6;
/// Under which stamps lie: no template is given this number.
const VERSION_KEY: CacheKey = CacheKey(u64::MAX - 1);

impl RowLink {
    /// To no row.
    pub const NONE: RowLink = RowLink { version: 0, key: 0 };

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        let stamp = self.version.to_le_bytes();
        bytes.extend_from_slice(
            stamp
                .first_chunk::<VERSION_BYTES>()
                .unwrap_or(&[0; VERSION_BYTES]),
        );
        bytes.extend_from_slice(&self.key.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<RowLink> {
        let (stamp, key) = bytes.split_first_chunk::<VERSION_BYTES>()?;
        Some(RowLink {
            version: version_from_bytes(stamp),
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

/// Links as they lie in a segment.
#[derive(Clone, Copy, Debug)]
pub struct RowLinks<'a>(pub(crate) &'a [u8]);

impl RowLinks<'_> {
    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = RowLink> + '_ {
        self.0.chunks_exact(LINK_BYTES).filter_map(RowLink::read)
    }

    /// As many as there may be, the last of them to no row.
    #[must_use]
    pub fn padded(&self) -> [RowLink; MAX_LINKS] {
        let mut all = [RowLink::NONE; MAX_LINKS];
        all.iter_mut()
            .zip(self.iter())
            .for_each(|(own, link)| *own = link);
        all
    }
}

impl RowCache {
    /// A link to a row as it is now: whoever makes one knows that it has not changed since it was read.
    pub fn link_to(&self, other: MessageKey) -> RowLink {
        let (hash, mut shard) = self.shard_of(other);
        let stamp = row_version(&mut shard, other, hash).unwrap_or_else(|| {
            let new = self.last_version.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = new.to_le_bytes();
            let kept = CachedRow::Row(bytes.get(..VERSION_BYTES).unwrap_or_default());
            let record = crate::RowRecord {
                row: kept,
                links: &[],
            };
            shard.insert(other, VERSION_KEY, record, hash, &self.hasher);
            new
        });
        RowLink {
            version: stamp,
            key: other.1,
        }
    }

    /// True while the row that a link leads to, of this place, is what it was.
    pub(crate) fn is_link_valid(
        &self,
        place: headwater_timeline::index::TimelineId,
        link: RowLink,
    ) -> bool {
        if link.version == 0 {
            return true;
        }
        let other = (place, link.key);
        let (hash, mut shard) = self.shard_of(other);
        row_version(&mut shard, other, hash) == Some(link.version)
    }
}

/// The stamp of a row, where it has one.
fn row_version(shard: &mut CacheShard, other: MessageKey, hash: u64) -> Option<u64> {
    let (kept, _) = shard.lookup(other, VERSION_KEY, hash)?;
    match kept {
        CachedRow::Row(bytes) => bytes.first_chunk().map(version_from_bytes),
        CachedRow::Passes | CachedRow::FilteredOut => None,
    }
}
