//! The last known follow lists of readers.

use std::sync::Arc;

use lru::LruCache;

use super::HintScope;

/// The overhead of a list, counted in authors.
const LIST_OVERHEAD: usize = 16;

/// The lists used most recently, limited by their total length.
#[derive(Debug)]
pub struct FollowListHints {
    lists: LruCache<(HintScope, u64), Arc<[u64]>>,
    used: usize,
    capacity: usize,
}

impl FollowListHints {
    /// Holds lists of `room` authors in total.
    #[must_use]
    pub fn new(room: usize) -> Self {
        FollowListHints {
            lists: LruCache::unbounded(),
            used: 0,
            capacity: room,
        }
    }

    /// The authors that the reader last followed.
    pub fn get(&mut self, scope: HintScope, reader: u64) -> Option<Arc<[u64]>> {
        self.lists.get(&(scope, reader)).cloned()
    }

    /// Replaces the reader's list, and evicts the oldest lists as far as needed.
    pub fn remember(&mut self, scope: HintScope, reader: u64, authors: Arc<[u64]>) {
        self.forget(scope, reader);
        let cost = cost(&authors);
        if cost > self.capacity {
            return;
        }
        while self.used > self.capacity - cost {
            let Some((_, oldest)) = self.lists.pop_lru() else {
                break;
            };
            self.used -= self::cost(&oldest);
        }
        self.used += cost;
        self.lists.put((scope, reader), authors);
    }

    /// Forgets a list that has changed.
    pub fn forget(&mut self, scope: HintScope, reader: u64) {
        if let Some(list) = self.lists.pop(&(scope, reader)) {
            self.used -= cost(&list);
        }
    }
}

fn cost(authors: &[u64]) -> usize {
    authors.len() + LIST_OVERHEAD
}

#[cfg(test)]
mod tests {
    use headwater_timeline::DefinitionId;

    use super::*;

    #[test]
    fn the_lists_seen_longest_ago_make_room() {
        let scope = HintScope::new(DefinitionId(0), b"tl");
        let mut follows = FollowListHints::new(100);
        for reader in 1..=3 {
            follows.remember(scope, reader, Arc::from(vec![reader; 30]));
        }
        assert_eq!(follows.get(scope, 1), None);
        assert_eq!(follows.get(scope, 3), Some(Arc::from(vec![3; 30])));
        assert_eq!(follows.used, 2 * 46);
        follows.remember(scope, 4, Arc::from(vec![4; 85]));
        assert_eq!(follows.get(scope, 4), None);
        follows.remember(scope, 3, Arc::from(vec![5; 84]));
        assert_eq!((follows.used, follows.lists.len()), (100, 1));
        follows.forget(scope, 3);
        assert_eq!((follows.used, follows.lists.len()), (0, 0));
    }

    #[test]
    fn a_database_has_lists_of_its_own() {
        let mut follows = FollowListHints::new(100);
        follows.remember(HintScope::new(DefinitionId(0), b"a"), 1, Arc::from([7]));
        assert_eq!(follows.get(HintScope::new(DefinitionId(0), b"b"), 1), None);
        assert_eq!(follows.get(HintScope::new(DefinitionId(1), b"a"), 1), None);
    }
}
