//! The newest messages of some authors, whoever follows them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::page::MAX_MISSING_AUTHORS;
use super::window::KnownItems;
use super::{TimelineIndex, WindowItem};

/// Which messages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRange<I: WindowItem = u64> {
    /// At or below this one.
    pub upper: Option<I>,
    /// At or above this one; the least: all.
    pub lower: I,
    /// So many at most.
    pub limit: usize,
}

/// The newest messages of some authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestMessages<I: WindowItem = u64> {
    /// Descending.
    pub items: Vec<I>,
    /// Whose they are, one by one.
    pub authors: Vec<u64>,
    /// There are no others in the range.
    pub complete: bool,
}

impl<I: WindowItem> TimelineIndex<I> {
    /// The newest messages of these authors in a range, at the index's position.
    ///
    /// # Errors
    /// The authors that have to be loaded first, not all of them if there are very many.
    pub fn newest_messages(
        &self,
        authors: &[u64],
        range: MessageRange<I>,
    ) -> Result<NewestMessages<I>, Vec<u64>> {
        let mut missing = Vec::new();
        let mut known: Vec<KnownItems<'_, I>> = Vec::with_capacity(authors.len());
        // All look-ups first: the processor waits for the memory of several at once then.
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
        let all = items.len() < range.limit;
        // What is older than the last of them needs not be known.
        let cut = match items.last() {
            Some(last) if !all => *last,
            _ => range.lower,
        };
        let short = known.iter().filter(|window| window.low > cut);
        missing.extend(short.map(|window| window.author).take(MAX_MISSING_AUTHORS));
        match missing.is_empty() {
            true => Ok(NewestMessages {
                items,
                authors,
                complete: all,
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
        let room = range.limit.min(1_024);
        let (mut items, mut authors) = (Vec::with_capacity(room), Vec::with_capacity(room));
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
