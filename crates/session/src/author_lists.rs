//! Lists of authors that were asked of the server: which of a reader's edges count, and whom the reader has blocked. An answer is kept among
//! the rows until the log tells a change of that reader's rows of the list's table.

use headwater_rows::{CacheKey, CachedRow, MessageKey, RowCache};

/// Under what an answer is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorListKey {
    /// The reader's rows.
    pub whose: MessageKey,
    /// Which of them.
    pub cache_key: CacheKey,
    /// What the list is for.
    pub rule: AuthorListRule,
}

/// What a list is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorListRule {
    /// Messages of its authors pass, and of these, who ascend, and of nobody else.
    Pass(Vec<u64>),
    /// Messages of its authors do not.
    Blocked,
}

/// Authors of whom a list speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAuthors {
    /// As the server named them, ascending.
    authors: Vec<u64>,
    rule: AuthorListRule,
}

/// More authors are not kept of a reader.
pub const MAX_LISTED_AUTHORS: usize = 8_000;

impl AuthorListKey {
    /// What is kept. `None`: nothing. `Some(None)`: that it cannot be.
    #[must_use]
    pub fn lookup(&self, rows: &RowCache) -> Option<Option<ListedAuthors>> {
        rows.lookup(self.whose, self.cache_key, |kept, _| {
            let CachedRow::Row(bytes) = kept else {
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

    /// Keeps what the server answered; `None`: that it cannot be kept.
    pub fn cache(&self, rows: &RowCache, authors: Option<&[u64]>) {
        if let Some(authors) = authors {
            // Sorted once, and not for each page.
            let authors = self.rule.list_of(authors).authors.into_iter();
            let bytes: Vec<u8> = authors.flat_map(u64::to_le_bytes).collect();
            rows.insert(self.whose, self.cache_key, CachedRow::Row(&bytes), &[]);
        }
        // Too many: whoever asks next is told so.
        if self.lookup(rows).is_none() {
            rows.insert(self.whose, self.cache_key, CachedRow::FilteredOut, &[]);
        }
    }
}

impl AuthorListRule {
    /// The authors, where the server named these.
    pub(crate) fn list_of(&self, told: &[u64]) -> ListedAuthors {
        let mut told = told.to_vec();
        told.sort_unstable();
        ListedAuthors {
            authors: told,
            rule: self.clone(),
        }
    }
}

impl ListedAuthors {
    /// True where messages of this one pass.
    #[must_use]
    pub fn passes(&self, author: u64) -> bool {
        let is_told = || self.authors.binary_search(&author).is_ok();
        match &self.rule {
            AuthorListRule::Pass(also) => also.binary_search(&author).is_ok() || is_told(),
            AuthorListRule::Blocked => !is_told(),
        }
    }
}

/// Of these messages those that pass all lists; `authors`: whose the messages are, one by one.
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
    use headwater_timeline::index::TimelineId;

    #[test]
    fn a_list_is_told_until_the_readers_edges_change() {
        let rows = RowCache::new(1 << 20);
        let of = |reader| AuthorListKey {
            whose: (TimelineId(70), reader),
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
        // Longer than is kept.
        of(9).cache(&rows, Some(&[1; MAX_LISTED_AUTHORS]));
        assert_eq!(of(9).lookup(&rows), Some(None));
        rows.invalidate((TimelineId(70), 7));
        assert_eq!(of(7).lookup(&rows), None);
    }
}
