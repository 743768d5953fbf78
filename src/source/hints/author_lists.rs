//! A list of authors for each reader, as it was seen last.

use std::sync::Arc;

use lru::LruCache;

use super::Scope;

/// What a list takes besides its authors, in authors.
const LIST_OVERHEAD: usize = 16;

/// The lists seen last, within a bound on their lengths together.
#[derive(Debug)]
pub struct AuthorLists {
    lists: LruCache<(Scope, u64), Arc<[u64]>>,
    used: usize,
    room: usize,
}

impl AuthorLists {
    /// Room for lists of so many authors together.
    #[must_use]
    pub fn new(room: usize) -> Self {
        AuthorLists {
            lists: LruCache::unbounded(),
            used: 0,
            room,
        }
    }

    /// A reader's list.
    pub fn get(&mut self, scope: Scope, reader: u64) -> Option<Arc<[u64]>> {
        self.lists.get(&(scope, reader)).cloned()
    }

    /// Remembers a list in place of what was there, and forgets others as far as it needs their room.
    pub fn remember(&mut self, scope: Scope, reader: u64, authors: &Arc<[u64]>) {
        if self.lists.get(&(scope, reader)) == Some(authors) {
            return;
        }
        self.forget(scope, reader);
        let cost = cost(authors);
        if cost > self.room {
            return;
        }
        while self.used > self.room - cost {
            let Some((_, oldest)) = self.lists.pop_lru() else {
                break;
            };
            self.used -= self::cost(&oldest);
        }
        self.used += cost;
        self.lists.put((scope, reader), Arc::clone(authors));
    }

    /// Forgets a list that turned out to be another one.
    pub fn forget(&mut self, scope: Scope, reader: u64) {
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
    use super::*;

    #[test]
    fn the_lists_seen_longest_ago_make_room() {
        let scope = Scope::new(0, b"tl");
        let mut lists = AuthorLists::new(100);
        for reader in 1..=3 {
            lists.remember(scope, reader, &Arc::from(vec![reader; 30]));
        }
        assert_eq!(lists.get(scope, 1), None);
        assert_eq!(lists.get(scope, 3), Some(Arc::from(vec![3; 30])));
        assert_eq!(lists.used, 2 * 46);
        lists.remember(scope, 4, &Arc::from(vec![4; 85]));
        assert_eq!(lists.get(scope, 4), None);
        lists.remember(scope, 3, &Arc::from(vec![5; 84]));
        assert_eq!((lists.used, lists.lists.len()), (100, 1));
        lists.forget(scope, 3);
        assert_eq!((lists.used, lists.lists.len()), (0, 0));
    }

    #[test]
    fn a_database_has_lists_of_its_own() {
        let mut lists = AuthorLists::new(100);
        lists.remember(Scope::new(0, b"a"), 1, &Arc::from([7]));
        assert_eq!(lists.get(Scope::new(0, b"b"), 1), None);
        assert_eq!(lists.get(Scope::new(1, b"a"), 1), None);
    }
}
