//! One page from the memories of several logs, all of one moment.

use std::cmp::Reverse;
use std::sync::Arc;

use futures_util::future::join_all;

use super::SpreadPageRequest;
use super::partition_map::PartitionMap;
use crate::binlog::{Binlog, CachedTimeline, PartialPageRequest, ReplicationMark};
use headwater_timeline::AuthorHead;
use headwater_timeline::index::TimelinePage;

/// A timeline's locations, valid while these streams are followed.
#[derive(Debug)]
pub(super) struct FollowedTimeline {
    pub(super) map: PartitionMap,
    /// The follow lists: the Spider node's.
    pub(super) lists: TimelineShard,
    /// The messages, in the order of the map's parts.
    pub(super) shards: Vec<TimelineShard>,
}

/// A timeline in the memory of one log, and the stream in which it was surveyed: a change of its tables ends that.
#[derive(Clone, Debug)]
pub(super) struct TimelineShard {
    pub(super) binlog: Arc<Binlog>,
    pub(super) timeline: Arc<CachedTimeline>,
    pub(super) stream: u64,
}

impl TimelineShard {
    /// A mark of this moment; `None`: it cannot serve.
    pub(super) fn mark(&self, identity: Option<&[u8]>) -> Option<ReplicationMark> {
        let mark = self.binlog.mark_at(&self.timeline, identity)?;
        (mark.generation() == self.stream).then_some(mark)
    }
}

/// The outcome of an attempt.
pub(super) enum PageAttempt {
    Page(TimelinePage),
    /// Something changed meanwhile, or was loaded.
    Retry,
    /// It cannot be served.
    Unavailable,
}

impl FollowedTimeline {
    pub(super) fn is_current(&self) -> bool {
        let mut all = [&self.lists].into_iter().chain(&self.shards);
        all.all(|shard| shard.mark(None).is_some())
    }

    pub(super) async fn try_page(
        &self,
        identity: &[u8],
        (reader, bound, n): SpreadPageRequest,
    ) -> PageAttempt {
        let Some(since) = self.lists.mark(Some(identity)) else {
            return PageAttempt::Unavailable;
        };
        let marks: Option<Vec<ReplicationMark>> =
            self.shards.iter().map(|shard| shard.mark(None)).collect();
        let Some(marks) = marks else {
            return PageAttempt::Unavailable;
        };
        // All proofs begin after all marks.
        let proofs = [&self.lists].into_iter().chain(&self.shards);
        let proofs = join_all(proofs.map(|shard| shard.binlog.prove_freshness_now())).await;
        if !proofs.into_iter().all(|proved| proved) {
            return PageAttempt::Unavailable;
        }
        let Some(mut follows) = self.lists.binlog.follow_list(&self.lists.timeline, reader) else {
            return PageAttempt::after_load(
                self.lists
                    .binlog
                    .load_list(&self.lists.timeline, reader)
                    .await,
            );
        };
        follows.sort_unstable();
        let by_part = self.map.distribute(&follows);
        let read = match self.read_page(&by_part, bound, n) {
            Ok(read) => read,
            Err(missing) => return PageAttempt::after_load(self.load(missing).await),
        };
        let lists =
            self.lists
                .binlog
                .is_unchanged_since(&self.lists.timeline, since, &[reader], &[]);
        let mut shards = self.shards.iter().zip(&marks).zip(&by_part);
        let spared = lists
            && shards.all(|((shard, mark), authors)| {
                shard
                    .binlog
                    .is_unchanged_since(&shard.timeline, *mark, &[], authors)
            });
        match (spared, read) {
            (false, _) => PageAttempt::Retry,
            (true, Some(page)) => PageAttempt::Page(page),
            (true, None) => PageAttempt::Unavailable,
        }
    }

    /// A page as memory has it now; `None`: an id is there twice, which no key of the Spider node prevents.
    ///
    /// # Errors
    /// What each part lacks.
    fn read_page(
        &self,
        by_part: &[Vec<u64>],
        bound: Option<u64>,
        n: usize,
    ) -> Result<Option<TimelinePage>, Vec<PartialPageRequest>> {
        let of = |authors: &[u64], n| PartialPageRequest {
            authors: authors.to_vec(),
            bound,
            n,
        };
        let each = |n| {
            by_part
                .iter()
                .map(|authors| of(authors, n))
                .collect::<Vec<_>>()
        };
        // An author not known yet is loaded with a whole list.
        let pages = self.partial_pages(&each(0)).ok_or_else(|| each(n))?;
        let mut heads: Vec<AuthorHead> = pages.into_iter().flat_map(|page| page.heads).collect();
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
        let shown = self.map.distribute(&shown);
        let shown: Vec<PartialPageRequest> = shown.iter().map(|authors| of(authors, n)).collect();
        let pages = self.partial_pages(&shown).ok_or(shown)?;
        let mut ids: Vec<u64> = pages.into_iter().flat_map(|page| page.ids).collect();
        ids.sort_unstable_by_key(|id| Reverse(*id));
        if ids.windows(2).any(|pair| pair.first() == pair.last()) {
            return Ok(None);
        }
        heads.sort_unstable_by_key(|head| head.author);
        Ok(Some(TimelinePage { ids, heads }))
    }

    /// Each part's own page, except for parts without authors; `None`: something is missing.
    fn partial_pages(&self, requests: &[PartialPageRequest]) -> Option<Vec<TimelinePage>> {
        let requests = self.shards.iter().zip(requests);
        requests
            .filter(|(_, part)| !part.authors.is_empty())
            .map(|(shard, part)| shard.binlog.partial_page(&shard.timeline, part).ok())
            .collect()
    }

    async fn load(&self, missing: Vec<PartialPageRequest>) -> bool {
        let missing = self.shards.iter().zip(missing);
        let loads = missing
            .filter(|(_, part)| !part.authors.is_empty())
            .map(|(shard, part)| shard.binlog.load_partial_page(&shard.timeline, part));
        join_all(loads).await.into_iter().all(|there| there)
    }
}

impl PageAttempt {
    fn after_load(loaded: bool) -> PageAttempt {
        match loaded {
            true => PageAttempt::Retry,
            false => PageAttempt::Unavailable,
        }
    }
}
