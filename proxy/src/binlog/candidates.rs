//! Candidates: the newest messages of some authors, as memory has them, and whether anything about them has changed since.

use std::collections::BTreeMap;

use super::cached_timeline::CachedTimeline;
use super::load::LoadRequest;
use super::timeline_memory::TimelineMemory;
use super::{Binlog, ReplicationMark};
use headwater_timeline::index::{KeyedMessage, MessageRange, NewestMessages, WindowItem};

/// Which messages are requested, and of which authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateRequest {
    /// Authors followed by these readers.
    pub readers: Vec<u64>,
    /// These authors, ascending.
    pub authors: Vec<u64>,
    /// Which messages. If the id alone orders, keys are 0.
    pub range: MessageRange<KeyedMessage>,
    /// The key alone orders the page: no two messages may share one.
    pub untied: bool,
}

/// Candidates from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSnapshot {
    /// The messages.
    pub messages: CandidateMessages,
    /// All authors whose messages were considered, ascending.
    pub authors: Vec<u64>,
    /// The state of memory at that time, for [`Binlog::unchanged`].
    pub mark: ReplicationMark,
}

/// The newest messages, descending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateMessages {
    /// Message ids.
    pub ids: Vec<u64>,
    /// The author of each message.
    pub authors: Vec<u64>,
    /// There are no further messages.
    pub is_complete: bool,
    /// The list ends before messages that share a key, since the key alone orders.
    pub ends_before_tie: bool,
}

impl CandidateMessages {
    /// Takes up to the limit. If ties are unwanted, it ends before the first messages that share a key: each omitted message sorts after
    /// all of these.
    fn from_newest(
        mut newest: NewestMessages<KeyedMessage>,
        request: &CandidateRequest,
    ) -> CandidateMessages {
        let mut pairs = newest.items.iter().zip(newest.items.iter().skip(1));
        let tie = pairs.position(|(one, next)| request.untied && one.key == next.key);
        let most = tie.unwrap_or(request.range.limit);
        let all = newest.complete && newest.items.len() <= most;
        newest.items.truncate(most);
        newest.authors.truncate(most);
        CandidateMessages {
            authors: newest.authors,
            ids: newest.items.into_iter().map(WindowItem::id).collect(),
            is_complete: all,
            ends_before_tie: tie.is_some(),
        }
    }
}

impl CandidateRequest {
    /// How many messages must be known: where ties count, one more, to compare with the last.
    pub(super) fn required_count(&self) -> usize {
        self.range.limit.saturating_add(usize::from(self.untied))
    }

    fn range(&self) -> MessageRange<KeyedMessage> {
        MessageRange {
            limit: self.required_count(),
            ..self.range
        }
    }

    /// All authors, ascending; `None` if a reader's list is not resident.
    fn authors(&self, index: &TimelineMemory, lists: &BTreeMap<u64, Vec<u64>>) -> Option<Vec<u64>> {
        let mut authors = self.authors.clone();
        for reader in &self.readers {
            match lists.get(reader) {
                Some(list) => authors.extend_from_slice(list),
                None => authors.append(&mut index.follows(*reader)?),
            }
        }
        // Each list is sorted.
        if self.readers.len() + usize::from(!self.authors.is_empty()) > 1 {
            authors.sort_unstable();
            authors.dedup();
        }
        Some(authors)
    }

    /// The newest messages and all authors considered; the error holds the missing authors.
    pub(super) fn newest_messages(
        &self,
        index: &TimelineMemory,
    ) -> Result<(CandidateMessages, Vec<u64>), Vec<u64>> {
        let authors = self.authors(index, &BTreeMap::new());
        let authors = authors.ok_or_else(Vec::new)?;
        let newest = index.newest(&authors, self.range())?;
        Ok((CandidateMessages::from_newest(newest, self), authors))
    }

    /// The missing authors, given lists that were just loaded; `None`: a list is unavailable, or nothing is missing.
    pub(super) fn missing(
        &self,
        index: &TimelineMemory,
        lists: &BTreeMap<u64, Vec<u64>>,
    ) -> Option<Vec<u64>> {
        let authors = self.authors(index, lists)?;
        index.newest(&authors, self.range()).err()
    }
}

impl Binlog {
    /// Candidates as memory has them now, which may lag behind commits: see [`Self::unchanged`]. Loads what is missing. `None` if it does
    /// not arrive in time, or memory follows another server than the session's.
    pub async fn candidates(
        &self,
        timeline: &CachedTimeline,
        identity: &[u8],
        request: &CandidateRequest,
    ) -> Option<CandidateSnapshot> {
        for fetched in [false, true] {
            // Before the read: a change between the two counts as a change since the mark.
            let mark = self.mark_of(timeline, identity)?;
            let newest = request.newest_messages(&timeline.index());
            if let Ok((messages, authors)) = newest {
                return Some(CandidateSnapshot {
                    messages,
                    authors,
                    mark,
                });
            }
            if fetched || !self.load_candidates(timeline, request).await {
                return None;
            }
        }
        None
    }

    async fn load_candidates(&self, timeline: &CachedTimeline, request: &CandidateRequest) -> bool {
        if request
            .readers
            .iter()
            .any(|reader| timeline.follows_too_many(*reader))
        {
            return false;
        }
        let load = |done| LoadRequest::Candidates {
            timeline: timeline.id(),
            request: request.clone(),
            done,
        };
        self.request_load(load).await
    }

    /// True if nothing about these readers and authors has changed from the mark to a moment after this call: what was read of them in
    /// between is consistent with the candidates.
    pub async fn unchanged(
        &self,
        timeline: &CachedTimeline,
        mark: ReplicationMark,
        readers: &[u64],
        authors: &[u64],
    ) -> bool {
        self.prove().await && self.is_unchanged_since(timeline, mark, readers, authors)
    }

    /// True if no change received by now concerns these readers and authors since the mark.
    pub fn is_unchanged_since(
        &self,
        timeline: &CachedTimeline,
        mark: ReplicationMark,
        readers: &[u64],
        authors: &[u64],
    ) -> bool {
        let state = self.state();
        let replication = &state.replication;
        replication.is_proven_for(timeline.id())
            && replication.leaves_unchanged(mark, timeline.id(), readers, Some(authors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The candidates among messages with these keys, whose ids count from 1 on, with this limit.
    fn named(keys: &[u64], most: usize, untied: bool) -> (Vec<u64>, bool, bool) {
        let wish = CandidateRequest {
            readers: Vec::new(),
            authors: Vec::new(),
            range: MessageRange {
                upper: None,
                lower: KeyedMessage::LEAST,
                limit: most,
            },
            untied,
        };
        let all = (1..)
            .zip(keys)
            .map(|(id, key)| KeyedMessage::from_key_and_id(*key, id));
        let items: Vec<KeyedMessage> = all.take(wish.required_count()).collect();
        let found = NewestMessages {
            complete: items.len() < wish.required_count(),
            authors: vec![7; items.len()],
            items,
        };
        let CandidateMessages {
            ids,
            authors,
            is_complete: all,
            ends_before_tie: tied,
        } = CandidateMessages::from_newest(found, &wish);
        assert_eq!(authors.len(), ids.len());
        (ids, all, tied)
    }

    #[test]
    fn candidates_end_before_the_first_that_share_a_key() {
        assert_eq!(
            named(&[9, 8, 8, 7], 3, false),
            (vec![1, 2, 3], false, false)
        );
        assert_eq!(
            named(&[9, 8, 8, 7], 9, false),
            (vec![1, 2, 3, 4], true, false)
        );
        assert_eq!(named(&[9, 8, 7, 6], 3, true), (vec![1, 2, 3], false, false));
        assert_eq!(named(&[9, 8, 7], 3, true), (vec![1, 2, 3], true, false));
        assert_eq!(named(&[9, 8, 8, 7], 3, true), (vec![1], false, true));
        // The last one shares its key with the next one.
        assert_eq!(named(&[9, 8, 7, 7], 3, true), (vec![1, 2], false, true));
        // NULL is a key like others.
        assert_eq!(named(&[9, 0, 0], 9, true), (vec![1], false, true));
        assert_eq!(named(&[5, 5], 1, true), (vec![], false, true));
        assert_eq!(named(&[], 4, true), (vec![], true, false));
    }
}
