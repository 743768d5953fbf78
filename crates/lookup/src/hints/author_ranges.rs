//! Where authors' newest ids lay in earlier lookups, so that a lookup can query a range instead of searching downwards.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::HintScope;
use headwater_timeline::ProcedureForm;

/// A hint is used while its range is at most this many times the usual width of a list.
const STALE_WIDTHS: u64 = 4;

/// Hints on the authors looked up most recently.
#[derive(Debug)]
pub struct AuthorRangeHints {
    authors: LruCache<(HintScope, u64), AuthorRangeHint>,
}

/// What the last lookup showed of one author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorRangeHint {
    /// Its newest id; 0 when it had none.
    pub head: u64,
    /// Its n-th newest id; 0 when it had fewer.
    pub lower_bound: u64,
    /// The average distance between its ids.
    gap: u64,
}

impl AuthorRangeHints {
    /// Holds hints on up to `authors` authors.
    #[must_use]
    pub fn new(authors: NonZeroUsize) -> Self {
        let mut cache = LruCache::unbounded();
        cache.resize(authors);
        AuthorRangeHints { authors: cache }
    }

    /// The hint on an author.
    pub fn get(&mut self, scope: HintScope, author: u64) -> Option<AuthorRangeHint> {
        self.authors.get(&(scope, author)).copied()
    }

    /// A bound at or above which the author probably has n ids no greater than `head`. 0: query all of its ids; `None`: there is no hint.
    pub fn lower_bound(&mut self, scope: HintScope, author: u64, head: u64, n: u32) -> Option<u64> {
        let hint = self.get(scope, author)?;
        let width = hint.gap.saturating_mul(u64::from(n));
        let ahead = head.saturating_sub(hint.head);
        if hint.lower_bound == 0 && ahead <= width {
            return Some(0);
        }
        if head >= hint.head && head - hint.lower_bound <= width.saturating_mul(STALE_WIDTHS) {
            return Some(hint.lower_bound);
        }
        // If ids were spread at random, one list in a thousand would be wider.
        let ids = u64::from(n.saturating_add(3 * n.isqrt()));
        Some(head.saturating_sub(hint.gap.saturating_mul(ids)))
    }

    /// Remembers an author's newest ids (descending, at most n) from a lookup.
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
        let current = AuthorRangeHint {
            head,
            lower_bound: low,
            gap,
        };
        match self.authors.get_mut(&(scope, author)) {
            // An older page shows the distance between the author's ids, not where the newest ones are.
            Some(hint) if form == ProcedureForm::Bounded && head < hint.head => hint.gap = gap,
            Some(hint) => *hint = current,
            None => {
                self.authors.push((scope, author), current);
            }
        }
    }

    /// Remembers that an author had no ids.
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

    /// Forgets a hint that misled.
    pub fn forget(&mut self, scope: HintScope, author: u64) {
        self.authors.pop(&(scope, author));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: HintScope = HintScope(0);

    fn new_hints() -> AuthorRangeHints {
        AuthorRangeHints::new(NonZeroUsize::MIN.saturating_add(1))
    }

    #[test]
    fn an_unknown_author_has_no_hint() {
        assert_eq!(new_hints().lower_bound(SCOPE, 1, 100, 3), None);
    }

    #[test]
    fn the_newest_list_is_queried_from_its_last_id_on() {
        let mut hints = new_hints();
        hints.remember(SCOPE, 1, &[100, 90, 80], 3, ProcedureForm::Newest);
        assert_eq!(hints.lower_bound(SCOPE, 1, 100, 3), Some(80));
        assert_eq!(hints.lower_bound(SCOPE, 1, 110, 3), Some(80));
        // Long after, the author's usual width below its head.
        assert_eq!(hints.lower_bound(SCOPE, 1, 1000, 3), Some(1000 - 6 * 10));
        assert_eq!(hints.lower_bound(SCOPE, 1, 50, 3), Some(0));
        assert_eq!(hints.lower_bound(HintScope(1), 1, 100, 3), None);
    }

    #[test]
    fn an_author_with_few_ids_is_queried_for_all() {
        let mut hints = new_hints();
        hints.remember(SCOPE, 1, &[100, 90], 3, ProcedureForm::Newest);
        assert_eq!(hints.lower_bound(SCOPE, 1, 100, 3), Some(0));
        assert_eq!(hints.lower_bound(SCOPE, 1, 7, 3), Some(0));
        assert_eq!(hints.lower_bound(SCOPE, 1, 1000, 3), Some(940));
        hints.remember(SCOPE, 2, &[u64::MAX], 3, ProcedureForm::Newest);
        assert_eq!(hints.lower_bound(SCOPE, 2, u64::MAX, 3), Some(0));
    }

    #[test]
    fn an_author_without_ids_is_queried_for_all() {
        let mut hints = new_hints();
        hints.remember_empty(SCOPE, 1);
        assert_eq!(hints.lower_bound(SCOPE, 1, u64::MAX, 3), Some(0));
    }

    #[test]
    fn an_old_page_leaves_the_newest_list_alone() {
        let mut hints = new_hints();
        hints.remember(SCOPE, 1, &[100, 90, 80], 3, ProcedureForm::Newest);
        hints.remember(SCOPE, 1, &[50, 40, 30], 3, ProcedureForm::Bounded);
        assert_eq!(hints.lower_bound(SCOPE, 1, 100, 3), Some(80));
    }

    #[test]
    fn the_authors_seen_longest_ago_are_forgotten() {
        let mut hints = new_hints();
        for author in 1..=3 {
            hints.remember(SCOPE, author, &[100, 90, 80], 3, ProcedureForm::Newest);
        }
        assert_eq!(hints.lower_bound(SCOPE, 1, 100, 3), None);
        assert_eq!(hints.lower_bound(SCOPE, 3, 100, 3), Some(80));
    }
}
