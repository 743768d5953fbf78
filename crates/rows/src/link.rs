//! Links from a row to the others that it was made of: it holds as long as none of them has changed.
//!
//! Each of those has a *stamp*, a number that is given when a row is first made of it and never again. Once the log tells that it has
//! changed, the stamp is forgotten, and with it all rows that bear it count for nothing.

use std::sync::atomic::Ordering;

use crate::shard::Shard;
use crate::{Kept, Message, Rows, Variant};

/// That a row was made of another one, or of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The other row's stamp; 0: there is no other row, whatever changes.
    stamp: u64,
    /// The other row's key.
    key: u64,
}

/// A row is made of so many others at most.
pub const MOST_LINKS: usize = 4;
/// A stamp, and a key.
pub(crate) const LINK_BYTES: usize = STAMP_BYTES + 8;
/// A million a second for eight years.
const STAMP_BYTES: usize = 6;
/// Under which stamps lie: no template is given this number.
const STAMP: Variant = Variant(u64::MAX - 1);

impl Link {
    /// To no row.
    pub const NONE: Link = Link { stamp: 0, key: 0 };

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        let stamp = self.stamp.to_le_bytes();
        bytes.extend_from_slice(
            stamp
                .first_chunk::<STAMP_BYTES>()
                .unwrap_or(&[0; STAMP_BYTES]),
        );
        bytes.extend_from_slice(&self.key.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Link> {
        let (stamp, key) = bytes.split_first_chunk::<STAMP_BYTES>()?;
        Some(Link {
            stamp: stamp_of(stamp),
            key: u64::from_le_bytes(*key.first_chunk()?),
        })
    }
}

fn stamp_of(bytes: &[u8; STAMP_BYTES]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Links as they lie in a segment.
#[derive(Clone, Copy, Debug)]
pub struct Links<'a>(pub(crate) &'a [u8]);

impl Links<'_> {
    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = Link> + '_ {
        self.0.chunks_exact(LINK_BYTES).filter_map(Link::read)
    }

    /// As many as there may be, the last of them to no row.
    #[must_use]
    pub fn all(&self) -> [Link; MOST_LINKS] {
        let mut all = [Link::NONE; MOST_LINKS];
        all.iter_mut()
            .zip(self.iter())
            .for_each(|(own, link)| *own = link);
        all
    }
}

impl Rows {
    /// A link to a row as it is now: whoever makes one knows that it has not changed since it was read.
    pub fn link(&self, other: Message) -> Link {
        let (hash, mut shard) = self.of(other);
        let stamp = stamp(&mut shard, other, hash).unwrap_or_else(|| {
            let new = self.stamps.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = new.to_le_bytes();
            let kept = Kept::Row(bytes.get(..STAMP_BYTES).unwrap_or_default());
            let record = crate::Record { kept, links: &[] };
            shard.keep(other, STAMP, record, hash, &self.hasher);
            new
        });
        Link {
            stamp,
            key: other.1,
        }
    }

    /// True while the row that a link leads to, of this place, is what it was.
    pub(crate) fn holds(&self, place: headwater_timeline::index::PlaceId, link: Link) -> bool {
        if link.stamp == 0 {
            return true;
        }
        let other = (place, link.key);
        let (hash, mut shard) = self.of(other);
        stamp(&mut shard, other, hash) == Some(link.stamp)
    }
}

/// The stamp of a row, where it has one.
fn stamp(shard: &mut Shard, other: Message, hash: u64) -> Option<u64> {
    let (kept, _) = shard.look(other, STAMP, hash)?;
    match kept {
        Kept::Row(bytes) => bytes.first_chunk().map(stamp_of),
        Kept::Passes | Kept::FilteredOut => None,
    }
}
