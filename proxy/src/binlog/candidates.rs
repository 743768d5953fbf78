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
    /// All messages of a key are candidates, or none.
    pub whole_keys: bool,
}

/// Candidates from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSnapshot {
    /// The messages.
    pub messages: CandidateMessages,
    /// All authors whose messages were considered, ascending.
    pub authors: Vec<u64>,
    /// The state of memory at that time, for [`Binlog::is_unchanged_since`].
    pub mark: ReplicationMark,
}

/// The newest messages, descending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateMessages {
    /// Message ids.
    pub ids: Vec<u64>,
    /// The key of each; 0 where the id alone orders.
    pub keys: Vec<u64>,
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
        let mut keys: Vec<u64> = newest.items.iter().map(|item| item.key).collect();
        let (most, ends_before_tie) = request.end(&keys);
        let all = newest.complete && newest.items.len() <= most;
        newest.items.truncate(most);
        newest.authors.truncate(most);
        keys.truncate(most);
        CandidateMessages {
            authors: newest.authors,
            keys,
            ids: newest.items.into_iter().map(WindowItem::id).collect(),
            is_complete: all,
            ends_before_tie,
        }
    }
}

impl CandidateMessages {
    /// The newest messages of several lists together, each once. Each list has as many as the request requires, if it has so many.
    pub fn merge(lists: &[CandidateMessages], request: &CandidateRequest) -> CandidateMessages {
        let mut all: Vec<(u64, u64, u64)> = Vec::new();
        for messages in lists {
            let items = messages.keys.iter().zip(&messages.ids);
            let each = items.zip(&messages.authors);
            all.extend(each.map(|((key, id), author)| (*key, *id, *author)));
        }
        all.sort_unstable_by_key(|(key, id, _)| std::cmp::Reverse((*key, *id)));
        all.dedup_by_key(|(key, id, _)| (*key, *id));
        let mut keys: Vec<u64> = all.iter().map(|(key, ..)| *key).collect();
        let (most, ends_before_tie) = request.end(&keys);
        let is_complete = all.len() <= most && lists.iter().all(|list| list.is_complete);
        all.truncate(most);
        keys.truncate(most);
        CandidateMessages {
            ids: all.iter().map(|(_, id, _)| *id).collect(),
            keys,
            authors: all.iter().map(|(.., author)| *author).collect(),
            is_complete,
            ends_before_tie,
        }
    }
}

impl CandidateRequest {
    /// How many messages must be known: where ties count, one more, to compare with the last.
    pub fn required_count(&self) -> usize {
        let compares_next = self.untied || self.whole_keys;
        self.range.limit.saturating_add(usize::from(compares_next))
    }

    /// How many of the messages with these keys are candidates; true if they end before messages that share a key, where none may.
    fn end(&self, keys: &[u64]) -> (usize, bool) {
        let limit = self.range.limit;
        if self.untied {
            // Behind the limit, lists that were merged are not whole.
            let mut pairs = keys.iter().zip(keys.iter().skip(1)).take(limit);
            let tie = pairs.position(|(one, next)| one == next);
            return (tie.unwrap_or(limit), tie.is_some());
        }
        let (Some(cut), true) = (keys.get(limit), self.whole_keys) else {
            return (limit, false);
        };
        let whole = keys.iter().take(limit).rposition(|key| key != cut);
        (whole.map_or(0, |last| last + 1), false)
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
    /// Candidates as memory has them now, which may lag behind commits: see [`Self::is_unchanged_since`]. Loads what is missing. `None` if it does
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

    /// The newest messages as memory has them now, and all authors considered; `None`: something is missing.
    pub fn newest_messages(
        &self,
        timeline: &CachedTimeline,
        request: &CandidateRequest,
    ) -> Option<(CandidateMessages, Vec<u64>)> {
        request.newest_messages(&timeline.index()).ok()
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

    /// True if no change received by now concerns these readers and authors since the mark. After a proof ([`Self::prove`]), what was read of
    /// them between the two is consistent with the candidates.
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
        candidates(keys, most, (untied, false))
    }

    fn candidates(
        keys: &[u64],
        most: usize,
        (untied, whole_keys): (bool, bool),
    ) -> (Vec<u64>, bool, bool) {
        let wish = CandidateRequest {
            readers: Vec::new(),
            authors: Vec::new(),
            range: MessageRange {
                upper: None,
                lower: KeyedMessage::LEAST,
                limit: most,
            },
            untied,
            whole_keys,
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
            keys,
            authors,
            is_complete: all,
            ends_before_tie: tied,
        } = CandidateMessages::from_newest(found, &wish);
        assert_eq!((authors.len(), keys.len()), (ids.len(), ids.len()));
        (ids, all, tied)
    }

    /// A list of messages `(key, id)` of one author.
    fn list(items: &[(u64, u64)], is_complete: bool) -> CandidateMessages {
        CandidateMessages {
            ids: items.iter().map(|(_, id)| *id).collect(),
            keys: items.iter().map(|(key, _)| *key).collect(),
            authors: vec![7; items.len()],
            is_complete,
            ends_before_tie: false,
        }
    }

    fn request(limit: usize, untied: bool) -> CandidateRequest {
        CandidateRequest {
            readers: Vec::new(),
            authors: Vec::new(),
            range: MessageRange {
                upper: None,
                lower: KeyedMessage::LEAST,
                limit,
            },
            untied,
            whole_keys: false,
        }
    }

    #[test]
    fn where_other_columns_order_a_keys_messages_it_is_whole() {
        let whole = |keys: &[u64], most| candidates(keys, most, (false, true));
        assert_eq!(whole(&[9, 8, 8, 7], 2), (vec![1], false, false));
        assert_eq!(whole(&[9, 8, 8, 7], 3), (vec![1, 2, 3], false, false));
        assert_eq!(whole(&[9, 8, 8, 7], 4), (vec![1, 2, 3, 4], true, false));
        assert_eq!(whole(&[9, 9, 9, 9], 3), (vec![], false, false));
        assert_eq!(whole(&[9, 9, 9], 3), (vec![1, 2, 3], true, false));
    }

    #[test]
    fn lists_are_merged_with_each_message_once() {
        let (one, other) = ([(9, 1), (7, 5), (7, 3)], [(8, 2), (7, 5), (6, 9)]);
        let merged = |limit, complete, untied| {
            let lists = [list(&one, complete), list(&other, true)];
            let all = CandidateMessages::merge(&lists, &request(limit, untied));
            assert_eq!(
                (all.keys.len(), all.authors.len()),
                (all.ids.len(), all.ids.len())
            );
            (all.ids, all.is_complete, all.ends_before_tie)
        };
        assert_eq!(merged(9, true, false), (vec![1, 2, 5, 3, 9], true, false));
        assert_eq!(merged(5, true, false), (vec![1, 2, 5, 3, 9], true, false));
        assert_eq!(merged(4, true, false), (vec![1, 2, 5, 3], false, false));
        assert_eq!(merged(9, false, false), (vec![1, 2, 5, 3, 9], false, false));
        // Two messages share the third key.
        assert_eq!(merged(9, true, true), (vec![1, 2], false, true));
        // Behind the limit, lists are not whole.
        assert_eq!(merged(2, true, true), (vec![1, 2], false, false));
        let none =
            CandidateMessages::merge(&[list(&[], true), list(&[], true)], &request(3, false));
        assert!(none.ids.is_empty() && none.is_complete);
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
