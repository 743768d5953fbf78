//! From windows to a page.

use super::Index;
use super::window::View;
use crate::session::result_table::Head;

/// More missing authors than this are not named at once.
const MISSING_AUTHORS: usize = 1_000;

/// What the procedure would leave: see `timeline::merge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The newest ids of the authors with the greatest heads, descending.
    pub ids: Vec<u64>,
    /// For every followed author who has any id at or below the bound the greatest, ordered by author.
    pub heads: Vec<Head>,
}

/// What has to be loaded, or extended downwards, before a page can be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The reader's follow list; then it is not known yet which authors.
    pub reader: bool,
    /// Authors, not all of them if there are very many.
    pub authors: Vec<u64>,
}

/// Ascending runs, one behind the other, become one descending list of distinct ids.
fn merge(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    ids
}

impl Index {
    /// The page of a reader at the index's position: of the `n` followed authors whose newest ids at or below
    /// the bound are the greatest, the newest `n` such ids each.
    ///
    /// # Errors
    ///
    /// What has to be loaded first.
    pub fn page(&self, reader: u64, bound: Option<u64>, n: usize) -> Result<Page, Missing> {
        let list = self.readers.get(reader);
        let Some(follows) = list.and_then(|list| list.view(self.position)) else {
            return Err(Missing {
                reader: true,
                authors: Vec::new(),
            });
        };
        let mut heads = Vec::with_capacity(follows.len());
        let mut views: Vec<(Head, View)> = Vec::with_capacity(follows.len());
        let mut missing = Vec::new();
        for &author in follows {
            let window = self.authors.get(author);
            if let Some(window) = window {
                window.mark_used();
            }
            match window.and_then(|w| w.view(bound, n, self.position, &self.tombstones)) {
                Some(view) => {
                    if let Some(id) = view.head {
                        let head = Head { author, id };
                        heads.push(head);
                        views.push((head, view));
                    }
                }
                None if missing.len() < MISSING_AUTHORS => missing.push(author),
                None => break,
            }
        }
        if !missing.is_empty() {
            return Err(Missing {
                reader: false,
                authors: missing,
            });
        }
        if n < views.len() && n > 0 {
            views.select_nth_unstable_by(n - 1, |(a, _), (b, _)| b.id.cmp(&a.id));
        }
        views.truncate(n);
        let room = views.iter().map(|(_, view)| view.ids.len().min(n)).sum();
        let mut ids = Vec::with_capacity(room);
        for (head, view) in &views {
            if self.tombstones.is_empty() {
                let start = view.ids.len().saturating_sub(n);
                ids.extend_from_slice(view.ids.get(start..).unwrap_or(&[]));
            } else {
                ids.extend(self.tombstones.shown(view.ids, head.author).take(n));
            }
        }
        Ok(Page {
            ids: merge(ids),
            heads,
        })
    }
}
