//! Author lists from the server: which of a reader's edges count, and whom the reader has blocked. A list stays cached with the rows until
//! the log contains a change of that reader's rows in the list's table.

use headwater_rows::{CacheKey, CachedRow, RowCache};
use headwater_timeline::index::RowKey;

/// The key of a cached author list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorListKey {
    /// The reader's rows in the list's table.
    pub whose: RowKey,
    /// Which list of that reader.
    pub cache_key: CacheKey,
    /// What the list is for.
    pub rule: AuthorListRule,
}

/// What an author list is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorListRule {
    /// Only messages of the list's authors, and of these (ascending), pass.
    Pass(Vec<u64>),
    /// Messages of its authors do not pass.
    Blocked,
}

/// The authors on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAuthors {
    /// In ascending order.
    authors: Vec<u64>,
    rule: AuthorListRule,
}

/// Longer lists of one reader are not cached.
pub const MAX_LISTED_AUTHORS: usize = 8_000;

impl AuthorListKey {
    /// The cached list. `None`: nothing is cached. `Some(None)`: the list cannot be cached.
    #[must_use]
    pub fn lookup(&self, rows: &RowCache) -> Option<Option<ListedAuthors>> {
        rows.lookup(self.whose, self.cache_key, |row, _| {
            let CachedRow::Row(bytes) = row else {
                return None;
            };
            let numbers = bytes
                .chunks_exact(8)
                .filter_map(|bytes| bytes.first_chunk());
            Some(ListedAuthors {
                authors: numbers.map(|bytes| u64::from_le_bytes(*bytes)).collect(),
                rule: self.rule.clone(),
            })
        })
    }

    /// Caches the server's list; `None`: it cannot be cached.
    pub fn cache(&self, rows: &RowCache, authors: Option<&[u64]>) {
        if let Some(authors) = authors {
            // Sorts here once, not for each page.
            let authors = self.rule.list_of(authors).authors.into_iter();
            let bytes: Vec<u8> = authors.flat_map(u64::to_le_bytes).collect();
            rows.insert(self.whose, self.cache_key, CachedRow::Row(&bytes), &[]);
        }
        // Too many authors: the next lookup learns that the list cannot be cached.
        if self.lookup(rows).is_none() {
            rows.insert(self.whose, self.cache_key, CachedRow::FilteredOut, &[]);
        }
    }
}

impl AuthorListRule {
    pub(crate) fn list_of(&self, authors: &[u64]) -> ListedAuthors {
        let mut authors = authors.to_vec();
        authors.sort_unstable();
        ListedAuthors {
            authors,
            rule: self.clone(),
        }
    }
}

impl ListedAuthors {
    /// How often the author is listed.
    #[must_use]
    pub fn copies(&self, author: u64) -> u64 {
        let first = self.authors.partition_point(|other| *other < author);
        let rest = self.authors.iter().skip(first);
        rest.take_while(|other| **other == author).map(|_| 1).sum()
    }

    /// True where messages of this author pass.
    #[must_use]
    pub fn passes(&self, author: u64) -> bool {
        let is_told = || self.authors.binary_search(&author).is_ok();
        match &self.rule {
            AuthorListRule::Pass(also) => also.binary_search(&author).is_ok() || is_told(),
            AuthorListRule::Blocked => !is_told(),
        }
    }
}

/// The messages that pass all lists; `authors` holds the author of each.
#[must_use]
pub fn passing_messages(lists: &[ListedAuthors], messages: &[u64], authors: &[u64]) -> Vec<u64> {
    let each = messages.iter().zip(authors);
    each.filter(|(_, author)| lists.iter().all(|list| list.passes(**author)))
        .map(|(message, _)| *message)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use headwater_timeline::index::TableId;

    #[test]
    fn a_list_stays_cached_until_the_readers_edges_change() {
        let rows = RowCache::new(1 << 20);
        let of = |reader| AuthorListKey {
            whose: RowKey {
                table: TableId::Joined(6),
                id: reader,
            },
            cache_key: CacheKey(5),
            rule: AuthorListRule::Pass(vec![2]),
        };
        assert_eq!(of(7).lookup(&rows), None);
        of(7).cache(&rows, Some(&[9, 1]));
        let authors = of(7).lookup(&rows).unwrap().unwrap();
        assert_eq!(
            [1, 2, 3, 9].map(|author| authors.passes(author)),
            [true, true, false, true]
        );
        let twice = AuthorListRule::Pass(Vec::new()).list_of(&[9, 1, 9]);
        assert_eq!([1, 5, 9].map(|author| twice.copies(author)), [1, 0, 2]);
        let blocked = AuthorListRule::Blocked.list_of(&[9, 4]);
        assert_eq!(
            [1, 4, 9].map(|author| blocked.passes(author)),
            [true, false, false]
        );
        let ids = [40, 30, 20];
        let own = [authors];
        assert_eq!(passing_messages(&own, &ids, &[9, 3, 2]), [40, 20]);
        let both = [own[0].clone(), blocked];
        assert_eq!(passing_messages(&both, &ids, &[9, 3, 2]), [20]);
        assert_eq!(passing_messages(&[], &ids, &[9, 3, 2]), ids);
        assert_eq!(of(8).lookup(&rows), None);
        of(8).cache(&rows, None);
        assert_eq!(of(8).lookup(&rows), Some(None));
        // Longer than the limit.
        of(9).cache(&rows, Some(&[1; MAX_LISTED_AUTHORS]));
        assert_eq!(of(9).lookup(&rows), Some(None));
        rows.invalidate(RowKey {
            table: TableId::Joined(6),
            id: 7,
        });
        assert_eq!(of(7).lookup(&rows), None);
    }
}
