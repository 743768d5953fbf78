//! One page from the memories of several logs, of one moment of all of them.

use std::cmp::Reverse;
use std::sync::Arc;

use futures_util::future::join_all;

use super::Wanted;
use super::map::Map;
use crate::binlog::{Binlog, Mark, Part, Place};
use crate::index::Page;
use crate::timeline::Head;

/// Where everything of a timeline is, as it was while these streams were followed.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) map: Map,
    /// Who follows whom: the Spider node's.
    pub(super) lists: Shard,
    /// The messages, in the order of the map's parts.
    pub(super) shards: Vec<Shard>,
}

/// A place in the memory of one log, and the stream by which it was looked at: whatever became of the tables ends that.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub(super) binlog: Arc<Binlog>,
    pub(super) place: Arc<Place>,
    pub(super) stream: u64,
}

impl Shard {
    /// This moment; `None`: nothing may be answered from it.
    pub(super) fn mark(&self, identity: Option<&[u8]>) -> Option<Mark> {
        let mark = self.binlog.mark_at(&self.place, identity)?;
        (mark.generation() == self.stream).then_some(mark)
    }
}

/// How a try ended.
pub(super) enum Tried {
    Page(Page),
    /// Something changed meanwhile, or was loaded.
    Again,
    /// It is not to be had.
    No,
}

impl Followed {
    /// True while the same streams are followed.
    pub(super) fn is_current(&self) -> bool {
        let mut all = [&self.lists].into_iter().chain(&self.shards);
        all.all(|shard| shard.mark(None).is_some())
    }

    /// Tries once.
    pub(super) async fn page(&self, identity: &[u8], (reader, bound, n): Wanted) -> Tried {
        let Some(since) = self.lists.mark(Some(identity)) else {
            return Tried::No;
        };
        let marks: Option<Vec<Mark>> = self.shards.iter().map(|shard| shard.mark(None)).collect();
        let Some(marks) = marks else {
            return Tried::No;
        };
        // All begin behind all marks.
        let proofs = [&self.lists].into_iter().chain(&self.shards);
        let proofs = join_all(proofs.map(|shard| shard.binlog.is_fresh_now())).await;
        if !proofs.into_iter().all(|proved| proved) {
            return Tried::No;
        }
        let Some(mut follows) = self.lists.binlog.list(&self.lists.place, reader) else {
            return Tried::of(self.lists.binlog.load_list(&self.lists.place, reader).await);
        };
        follows.sort_unstable();
        let dealt = self.map.deal(&follows);
        let read = match self.read(&dealt, bound, n) {
            Ok(read) => read,
            Err(missing) => return Tried::of(self.load(missing).await),
        };
        let lists = self
            .lists
            .binlog
            .has_spared(&self.lists.place, since, &[reader], &[]);
        let mut shards = self.shards.iter().zip(&marks).zip(&dealt);
        let spared = lists
            && shards.all(|((shard, mark), authors)| {
                shard.binlog.has_spared(&shard.place, *mark, &[], authors)
            });
        match (spared, read) {
            (false, _) => Tried::Again,
            (true, Some(page)) => Tried::Page(page),
            (true, None) => Tried::No,
        }
    }

    /// A page as memory knows it; `None`: an id is there twice, which no key of the Spider node forbids.
    ///
    /// # Errors
    /// What is missing of each part.
    fn read(
        &self,
        dealt: &[Vec<u64>],
        bound: Option<u64>,
        n: usize,
    ) -> Result<Option<Page>, Vec<Part>> {
        let of = |authors: &[u64], n| Part {
            authors: authors.to_vec(),
            bound,
            n,
        };
        let each = |n| {
            dealt
                .iter()
                .map(|authors| of(authors, n))
                .collect::<Vec<_>>()
        };
        // Whoever is not known yet is loaded with a whole list.
        let pages = self.parts(&each(0)).ok_or_else(|| each(n))?;
        let mut heads: Vec<Head> = pages.into_iter().flat_map(|page| page.heads).collect();
        heads.sort_unstable_by_key(|head| Reverse(head.id));
        let top = heads
            .get(..heads.len().min(n.saturating_add(1)))
            .unwrap_or_default();
        if top
            .windows(2)
            .any(|pair| matches!(pair, [one, other] if one.id == other.id))
        {
            return Ok(None);
        }
        let mut shown: Vec<u64> = top.iter().take(n).map(|head| head.author).collect();
        shown.sort_unstable();
        let shown = self.map.deal(&shown);
        let shown: Vec<Part> = shown.iter().map(|authors| of(authors, n)).collect();
        let pages = self.parts(&shown).ok_or(shown)?;
        let mut ids: Vec<u64> = pages.into_iter().flat_map(|page| page.ids).collect();
        ids.sort_unstable_by_key(|id| Reverse(*id));
        if ids.windows(2).any(|pair| pair.first() == pair.last()) {
            return Ok(None);
        }
        heads.sort_unstable_by_key(|head| head.author);
        Ok(Some(Page { ids, heads }))
    }

    /// Each part's own page, nothing where nobody is asked for; `None`: something is missing.
    fn parts(&self, asked: &[Part]) -> Option<Vec<Page>> {
        let asked = self.shards.iter().zip(asked);
        asked
            .filter(|(_, part)| !part.authors.is_empty())
            .map(|(shard, part)| shard.binlog.part(&shard.place, part).ok())
            .collect()
    }

    async fn load(&self, missing: Vec<Part>) -> bool {
        let missing = self.shards.iter().zip(missing);
        let loads = missing
            .filter(|(_, part)| !part.authors.is_empty())
            .map(|(shard, part)| shard.binlog.load_part(&shard.place, part));
        join_all(loads).await.into_iter().all(|there| there)
    }
}

impl Tried {
    fn of(loaded: bool) -> Tried {
        match loaded {
            true => Tried::Again,
            false => Tried::No,
        }
    }
}
