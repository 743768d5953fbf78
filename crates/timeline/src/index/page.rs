//! Builds a page from windows.

use super::TimelineIndex;
use super::id_sort::sort_descending;
use super::window::WindowView;
use crate::AuthorHead;

/// At most this many missing authors are reported at once.
pub(super) const MAX_MISSING_AUTHORS: usize = 1_000;

/// The result of the procedure: see [`crate::merge`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelinePage {
    /// The newest ids of the authors with the greatest heads, descending.
    pub ids: Vec<u64>,
    /// The greatest id at or below the bound of each followed author that has one, ordered by author.
    pub heads: Vec<AuthorHead>,
}

/// What to load, or to extend downwards, before a page can be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingEntries {
    /// The reader's follow list; then its authors are not known yet.
    pub reader: bool,
    /// Authors; not all of them if there are very many.
    pub authors: Vec<u64>,
}

/// Pages that are ordered by the id alone.
impl TimelineIndex {
    /// The page of a reader at the index's position: the `n` followed authors whose newest ids at or below the bound are the greatest,
    /// and the newest `n` such ids of each.
    ///
    /// # Errors
    /// What to load first.
    pub fn page(
        &self,
        reader: u64,
        bound: Option<u64>,
        n: usize,
    ) -> Result<TimelinePage, MissingEntries> {
        let list = self.readers.get(reader);
        let Some(follows) = list.and_then(|list| list.authors_at(self.position)) else {
            return Err(MissingEntries {
                reader: true,
                authors: Vec::new(),
            });
        };
        self.page_of(follows, bound, n)
            .map_err(|authors| MissingEntries {
                reader: false,
                authors,
            })
    }

    /// The page of a reader who follows these authors.
    ///
    /// # Errors
    /// The authors to load first; not all of them if there are very many.
    pub fn page_of(
        &self,
        follows: &[u64],
        bound: Option<u64>,
        n: usize,
    ) -> Result<TimelinePage, Vec<u64>> {
        let mut heads = Vec::with_capacity(follows.len());
        let mut views: Vec<(AuthorHead, WindowView<'_, u64>)> = Vec::with_capacity(follows.len());
        let mut missing = Vec::new();
        // All lookups come first, so that the processor waits for several memory reads at once.
        let windows: Vec<_> = follows
            .iter()
            .map(|author| self.authors.get(*author))
            .collect();
        for (&author, window) in follows.iter().zip(windows) {
            if let Some(window) = window {
                window.mark_used();
            }
            match window.and_then(|w| w.view_at(bound, n, self.position, &self.tombstones)) {
                Some(view) => {
                    if let Some(id) = view.head {
                        let head = AuthorHead { author, id };
                        heads.push(head);
                        views.push((head, view));
                    }
                }
                None if missing.len() < MAX_MISSING_AUTHORS => missing.push(author),
                None => break,
            }
        }
        if n < views.len() && n > 0 {
            views.select_nth_unstable_by(n - 1, |(a, _), (b, _)| b.id.cmp(&a.id));
        }
        views.truncate(n);
        // Of an author who is not on the page, only the newest id must be known.
        let insufficient = views.iter().filter(|(_, view)| !view.is_sufficient);
        missing.extend(insufficient.map(|(head, _)| head.author));
        if !missing.is_empty() {
            return Err(missing);
        }
        let capacity = views.iter().map(|(_, view)| view.items.len().min(n)).sum();
        let mut ids = Vec::with_capacity(capacity);
        for (head, view) in &views {
            if self.tombstones.is_empty() {
                let start = view.items.len().saturating_sub(n);
                ids.extend_from_slice(view.items.get(start..).unwrap_or(&[]));
            } else {
                ids.extend(
                    self.tombstones
                        .visible_items(view.items, head.author)
                        .take(n),
                );
            }
        }
        Ok(TimelinePage {
            ids: sort_descending(ids),
            heads,
        })
    }
}
