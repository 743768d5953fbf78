//! From windows to a page.

use super::TimelineIndex;
use super::id_sort::sort_descending;
use super::window::WindowView;
use crate::AuthorHead;

/// More missing authors than this are not named at once.
pub(super) const MAX_MISSING_AUTHORS: usize = 1_000;

/// What the procedure would leave: see `timeline::merge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelinePage {
    /// The newest ids of the authors with the greatest heads, descending.
    pub ids: Vec<u64>,
    /// For every followed author who has any id at or below the bound the greatest, ordered by author.
    pub heads: Vec<AuthorHead>,
}

/// What has to be loaded, or extended downwards, before a page can be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingEntries {
    /// The reader's follow list; then it is not known yet which authors.
    pub reader: bool,
    /// Authors, not all of them if there are very many.
    pub authors: Vec<u64>,
}

/// Where the id alone orders.
impl TimelineIndex {
    /// The page of a reader at the index's position: of the `n` followed authors whose newest ids at or below
    /// the bound are the greatest, the newest `n` such ids each.
    ///
    /// # Errors
    ///
    /// What has to be loaded first.
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

    /// The page of somebody who follows these authors.
    ///
    /// # Errors
    ///
    /// The authors that have to be loaded first, not all of them if there are very many.
    pub fn page_of(
        &self,
        follows: &[u64],
        bound: Option<u64>,
        n: usize,
    ) -> Result<TimelinePage, Vec<u64>> {
        let mut heads = Vec::with_capacity(follows.len());
        let mut views: Vec<(AuthorHead, WindowView<'_, u64>)> = Vec::with_capacity(follows.len());
        let mut missing = Vec::new();
        // All look-ups first: the processor waits for the memory of several at once then.
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
        // Of an author who is not on the page only the newest id has to be known.
        let short = views.iter().filter(|(_, view)| !view.is_sufficient);
        missing.extend(short.map(|(head, _)| head.author));
        if !missing.is_empty() {
            return Err(missing);
        }
        let room = views.iter().map(|(_, view)| view.items.len().min(n)).sum();
        let mut ids = Vec::with_capacity(room);
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
