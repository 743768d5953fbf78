//! Candidates: the newest messages of somebody's authors, as memory knows them, and whether anything about them has changed since.

use std::collections::BTreeMap;

use super::cached_timeline::CachedTimeline;
use super::load::LoadRequest;
use super::timeline_memory::TimelineMemory;
use super::{Binlog, ReplicationMark};
use crate::index::{KeyedMessage, MessageRange, NewestMessages, WindowItem};

/// Whose messages are wanted, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateRequest {
    /// Whom these follow.
    pub readers: Vec<u64>,
    /// And these, ascending.
    pub authors: Vec<u64>,
    /// Which messages. Where the id alone orders, keys are 0.
    pub range: MessageRange<KeyedMessage>,
    /// The key alone orders the page: no two of them may have the same.
    pub untied: bool,
}

/// Messages that memory names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSnapshot {
    /// Which they are.
    pub messages: CandidateMessages,
    /// All authors whose messages they are, ascending.
    pub authors: Vec<u64>,
    /// What memory knew then, for [`Binlog::unchanged`].
    pub mark: ReplicationMark,
}

/// The newest messages, descending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateMessages {
    /// Their ids.
    pub ids: Vec<u64>,
    /// Whose they are, one by one.
    pub authors: Vec<u64>,
    /// There are no others.
    pub is_complete: bool,
    /// They end in front of messages that share a key, where the key alone orders.
    pub ends_before_tie: bool,
}

impl CandidateMessages {
    /// Of what memory holds, so many at most, and where that is wished for none of those that share a key: each message that is left out
    /// comes behind them all.
    fn from_newest(
        mut found: NewestMessages<KeyedMessage>,
        wish: &CandidateRequest,
    ) -> CandidateMessages {
        let mut pairs = found.items.iter().zip(found.items.iter().skip(1));
        let tie = pairs.position(|(one, next)| wish.untied && one.key == next.key);
        let most = tie.unwrap_or(wish.range.limit);
        let all = found.complete && found.items.len() <= most;
        found.items.truncate(most);
        found.authors.truncate(most);
        CandidateMessages {
            authors: found.authors,
            ids: found.items.into_iter().map(WindowItem::id).collect(),
            is_complete: all,
            ends_before_tie: tie.is_some(),
        }
    }
}

impl CandidateRequest {
    /// So many messages have to be known: where ties count, the one behind the last as well.
    pub(super) fn required_count(&self) -> usize {
        self.range.limit.saturating_add(usize::from(self.untied))
    }

    fn range(&self) -> MessageRange<KeyedMessage> {
        MessageRange {
            limit: self.required_count(),
            ..self.range
        }
    }

    /// All authors, ascending; `None` while a reader's list is not here.
    fn authors(&self, index: &TimelineMemory, lists: &BTreeMap<u64, Vec<u64>>) -> Option<Vec<u64>> {
        let mut authors = self.authors.clone();
        for reader in &self.readers {
            match lists.get(reader) {
                Some(list) => authors.extend_from_slice(list),
                None => authors.append(&mut index.follows(*reader)?),
            }
        }
        // Each list is in order by itself.
        if self.readers.len() + usize::from(!self.authors.is_empty()) > 1 {
            authors.sort_unstable();
            authors.dedup();
        }
        Some(authors)
    }

    /// What there is, and of which authors.
    pub(super) fn newest_messages(
        &self,
        index: &TimelineMemory,
    ) -> Result<(CandidateMessages, Vec<u64>), Vec<u64>> {
        let authors = self.authors(index, &BTreeMap::new());
        let authors = authors.ok_or_else(Vec::new)?;
        let newest = index.newest(&authors, self.range())?;
        Ok((CandidateMessages::from_newest(newest, self), authors))
    }

    /// The authors that are missing, where the readers' lists were loaded just now; `None`: a list is not to be had, or all is there.
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
    /// Candidates as memory knows them now, which may be a little behind what is committed: see [`Self::unchanged`]. What is missing is
    /// loaded. `None`: they are not there in time, or this is not the server that the session talks to.
    pub async fn candidates(
        &self,
        place: &CachedTimeline,
        identity: &[u8],
        wish: &CandidateRequest,
    ) -> Option<CandidateSnapshot> {
        for fetched in [false, true] {
            // Before the look: what changes between the two counts as a change since.
            let mark = self.mark_of(place, identity)?;
            let found = wish.newest_messages(&place.index());
            if let Ok((named, authors)) = found {
                return Some(CandidateSnapshot {
                    messages: named,
                    authors,
                    mark,
                });
            }
            if fetched || !self.load_candidates(place, wish).await {
                return None;
            }
        }
        None
    }

    async fn load_candidates(&self, place: &CachedTimeline, wish: &CandidateRequest) -> bool {
        if wish
            .readers
            .iter()
            .any(|reader| place.follows_too_many(*reader))
        {
            return false;
        }
        let load = |done| LoadRequest::Candidates {
            timeline: place.id(),
            request: wish.clone(),
            done,
        };
        self.request_load(load).await
    }

    /// True if nothing has changed about these readers and authors from the mark to a moment behind this question: what was read of them
    /// in between goes together with the candidates.
    pub async fn unchanged(
        &self,
        place: &CachedTimeline,
        mark: ReplicationMark,
        readers: &[u64],
        authors: &[u64],
    ) -> bool {
        self.prove().await && self.is_unchanged_since(place, mark, readers, authors)
    }

    /// True if nothing that is known by now has changed about these readers and authors since the mark.
    pub fn is_unchanged_since(
        &self,
        place: &CachedTimeline,
        mark: ReplicationMark,
        readers: &[u64],
        authors: &[u64],
    ) -> bool {
        let state = self.state();
        let following = &state.following;
        following.may_serve(place.id())
            && following.leaves_unchanged(mark, place.id(), readers, Some(authors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is named of messages with these keys, whose ids count from 1 on, where memory was asked for so many.
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
    fn candidates_end_in_front_of_the_first_that_share_a_key() {
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
        // The last one shares its key with the one behind it.
        assert_eq!(named(&[9, 8, 7, 7], 3, true), (vec![1, 2], false, true));
        // NULL is a key like others.
        assert_eq!(named(&[9, 0, 0], 9, true), (vec![1], false, true));
        assert_eq!(named(&[5, 5], 1, true), (vec![], false, true));
        assert_eq!(named(&[], 4, true), (vec![], true, false));
    }
}
