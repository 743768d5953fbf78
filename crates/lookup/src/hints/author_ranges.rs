//! Where authors' newest ids were seen to lie, so that a lookup can ask for a range instead of feeling
//! its way down.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::HintScope;
use headwater_timeline::ProcedureForm;

/// A list is asked for as so many times its usual width before the mark is taken as out of date.
const STALE_WIDTHS: u64 = 4;

/// Marks of the authors seen last.
#[derive(Debug)]
pub struct AuthorRangeHints {
    authors: LruCache<(HintScope, u64), AuthorRangeHint>,
}

/// What was seen of one author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorRangeHint {
    /// Its newest id; 0 when it had none.
    pub head: u64,
    /// Its n-th newest id, 0 when it had fewer.
    pub lower_bound: u64,
    /// How far its ids lie apart, on average.
    gap: u64,
}

impl AuthorRangeHints {
    /// Room for so many authors.
    #[must_use]
    pub fn new(authors: NonZeroUsize) -> Self {
        let mut cache = LruCache::unbounded();
        cache.resize(authors);
        AuthorRangeHints { authors: cache }
    }

    /// What was seen of an author.
    pub fn get(&mut self, scope: HintScope, author: u64) -> Option<AuthorRangeHint> {
        self.authors.get(&(scope, author)).copied()
    }

    /// A bound at or above which the author probably has n ids that are no greater than `head`; 0 for
    /// all it has, `None` when nothing is known of it.
    pub fn lower_bound(&mut self, scope: HintScope, author: u64, head: u64, n: u32) -> Option<u64> {
        let mark = self.get(scope, author)?;
        let width = mark.gap.saturating_mul(u64::from(n));
        let ahead = head.saturating_sub(mark.head);
        if mark.lower_bound == 0 && ahead <= width {
            return Some(0);
        }
        if head >= mark.head && head - mark.lower_bound <= width.saturating_mul(STALE_WIDTHS) {
            return Some(mark.lower_bound);
        }
        // Were its ids spread at random, one list in a thousand would be wider.
        let ids = u64::from(n.saturating_add(3 * n.isqrt()));
        Some(head.saturating_sub(mark.gap.saturating_mul(ids)))
    }

    /// Remembers an author's newest ids (descending, at most n of them) as a lookup found them.
    pub fn remember(
        &mut self,
        scope: HintScope,
        author: u64,
        ids: &[u64],
        n: u32,
        form: ProcedureForm,
    ) {
        let (Some(&head), Some(&last)) = (ids.first(), ids.last()) else {
            return;
        };
        let between = (ids.len() as u64).saturating_sub(1);
        let gap = (head - last).checked_div(between).unwrap_or(head).max(1);
        let whole = ids.len() as u64 >= u64::from(n);
        let low = if whole { last } else { 0 };
        let seen = AuthorRangeHint {
            head,
            lower_bound: low,
            gap,
        };
        match self.authors.get_mut(&(scope, author)) {
            // An older page tells how the author writes, not where its newest ids are.
            Some(mark) if form == ProcedureForm::Bounded && head < mark.head => mark.gap = gap,
            Some(mark) => *mark = seen,
            None => {
                self.authors.push((scope, author), seen);
            }
        }
    }

    /// Remembers that an author had no ids at all.
    pub fn remember_empty(&mut self, scope: HintScope, author: u64) {
        let (head, low) = (0, 0);
        let gap = u64::MAX;
        self.authors.put(
            (scope, author),
            AuthorRangeHint {
                head,
                lower_bound: low,
                gap,
            },
        );
    }

    /// Forgets a mark that was no help.
    pub fn forget(&mut self, scope: HintScope, author: u64) {
        self.authors.pop(&(scope, author));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: HintScope = HintScope(0);

    fn marks() -> AuthorRangeHints {
        AuthorRangeHints::new(NonZeroUsize::MIN.saturating_add(1))
    }

    #[test]
    fn an_author_never_seen_has_no_mark() {
        assert_eq!(marks().lower_bound(SCOPE, 1, 100, 3), None);
    }

    #[test]
    fn the_newest_list_is_asked_for_from_its_last_id_on() {
        let mut marks = marks();
        marks.remember(SCOPE, 1, &[100, 90, 80], 3, ProcedureForm::Newest);
        assert_eq!(marks.lower_bound(SCOPE, 1, 100, 3), Some(80));
        assert_eq!(marks.lower_bound(SCOPE, 1, 110, 3), Some(80));
        // Long after, the author's usual width below its head.
        assert_eq!(marks.lower_bound(SCOPE, 1, 1000, 3), Some(1000 - 6 * 10));
        assert_eq!(marks.lower_bound(SCOPE, 1, 50, 3), Some(0));
        assert_eq!(marks.lower_bound(HintScope(1), 1, 100, 3), None);
    }

    #[test]
    fn an_author_with_few_ids_is_asked_for_all() {
        let mut marks = marks();
        marks.remember(SCOPE, 1, &[100, 90], 3, ProcedureForm::Newest);
        assert_eq!(marks.lower_bound(SCOPE, 1, 100, 3), Some(0));
        assert_eq!(marks.lower_bound(SCOPE, 1, 7, 3), Some(0));
        assert_eq!(marks.lower_bound(SCOPE, 1, 1000, 3), Some(940));
        marks.remember(SCOPE, 2, &[u64::MAX], 3, ProcedureForm::Newest);
        assert_eq!(marks.lower_bound(SCOPE, 2, u64::MAX, 3), Some(0));
    }

    #[test]
    fn an_author_without_ids_is_asked_for_all() {
        let mut marks = marks();
        marks.remember_empty(SCOPE, 1);
        assert_eq!(marks.lower_bound(SCOPE, 1, u64::MAX, 3), Some(0));
    }

    #[test]
    fn an_old_page_leaves_the_newest_list_alone() {
        let mut marks = marks();
        marks.remember(SCOPE, 1, &[100, 90, 80], 3, ProcedureForm::Newest);
        marks.remember(SCOPE, 1, &[50, 40, 30], 3, ProcedureForm::Bounded);
        assert_eq!(marks.lower_bound(SCOPE, 1, 100, 3), Some(80));
    }

    #[test]
    fn the_authors_seen_longest_ago_are_forgotten() {
        let mut marks = marks();
        for author in 1..=3 {
            marks.remember(SCOPE, author, &[100, 90, 80], 3, ProcedureForm::Newest);
        }
        assert_eq!(marks.lower_bound(SCOPE, 1, 100, 3), None);
        assert_eq!(marks.lower_bound(SCOPE, 3, 100, 3), Some(80));
    }
}
