//! The newest messages of some authors, whoever follows them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::page::MAX_MISSING_AUTHORS;
use super::window::KnownItems;
use super::{TimelineIndex, WindowItem};

/// Which messages are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRange<I: WindowItem = u64> {
    /// At or below this one.
    pub upper: Option<I>,
    /// At or above this one; the least item: no lower end.
    pub lower: I,
    /// At most this many.
    pub limit: usize,
}

/// The newest messages of some authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestMessages<I: WindowItem = u64> {
    /// Descending.
    pub items: Vec<I>,
    /// Their authors, in the same order.
    pub authors: Vec<u64>,
    /// No others are in the range.
    pub complete: bool,
}

impl<I: WindowItem> TimelineIndex<I> {
    /// The newest messages of these authors in a range, at the index's position.
    ///
    /// # Errors
    /// The authors to load first; not all of them if there are very many.
    pub fn newest_messages(
        &self,
        authors: &[u64],
        range: MessageRange<I>,
    ) -> Result<NewestMessages<I>, Vec<u64>> {
        let mut missing = Vec::new();
        let mut known: Vec<KnownItems<'_, I>> = Vec::with_capacity(authors.len());
        // All lookups come first, so that the processor waits for several memory reads at once.
        let windows: Vec<_> = authors
            .iter()
            .map(|author| self.authors.get(*author))
            .collect();
        for (author, window) in authors.iter().zip(windows) {
            if let Some(window) = window {
                window.mark_used();
            }
            match window.and_then(|window| window.known_items(range.upper, self.position)) {
                Some(window) => known.push(window),
                None if missing.len() < MAX_MISSING_AUTHORS => missing.push(*author),
                None => break,
            }
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        let (items, authors) = self.merge(&known, range);
        let is_complete = items.len() < range.limit;
        // Messages older than the last one do not matter.
        let lowest_needed = match items.last() {
            Some(last) if !is_complete => *last,
            _ => range.lower,
        };
        let incomplete = known.iter().filter(|window| window.low > lowest_needed);
        missing.extend(
            incomplete
                .map(|window| window.author)
                .take(MAX_MISSING_AUTHORS),
        );
        match missing.is_empty() {
            true => Ok(NewestMessages {
                items,
                authors,
                complete: is_complete,
            }),
            false => Err(missing),
        }
    }

    fn merge(&self, known: &[KnownItems<'_, I>], range: MessageRange<I>) -> (Vec<I>, Vec<u64>) {
        let last = |(at, window): (usize, &KnownItems<'_, I>)| {
            let item = window.newest;
            item.map(|item| (item, at, Reverse(window.items.len())))
        };
        let mut heads: BinaryHeap<_> = known.iter().enumerate().filter_map(last).collect();
        let capacity = range.limit.min(1_024);
        let (mut items, mut authors) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        while items.len() < range.limit
            && let Some(mut head) = heads.peek_mut()
        {
            let (item, at, Reverse(count)) = *head;
            if item < range.lower {
                break;
            }
            let window = known.get(at);
            if let Some(window) = window
                && self.tombstones.is_visible(item, window.author)
            {
                items.push(item);
                authors.push(window.author);
            }
            let next = window.and_then(|window| window.items.get(..count - 1)?.last());
            match next {
                Some(next) => *head = (*next, at, Reverse(count - 1)),
                None => {
                    std::collections::binary_heap::PeekMut::pop(head);
                }
            }
        }
        (items, authors)
    }
}
