//! The newest messages of some authors, whoever follows them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::page::MISSING_AUTHORS;
use super::window::Known;
use super::{Index, Item};

/// Which messages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<I: Item = u64> {
    /// At or below this one.
    pub upper: Option<I>,
    /// At or above this one; the least: all.
    pub lower: I,
    /// So many at most.
    pub most: usize,
}

/// The newest messages of some authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest<I: Item = u64> {
    /// Descending.
    pub items: Vec<I>,
    /// Whose they are, one by one.
    pub authors: Vec<u64>,
    /// There are no others in the range.
    pub all: bool,
}

impl<I: Item> Index<I> {
    /// The newest messages of these authors in a range, at the index's position.
    ///
    /// # Errors
    /// The authors that have to be loaded first, not all of them if there are very many.
    pub fn newest(&self, authors: &[u64], range: Range<I>) -> Result<Newest<I>, Vec<u64>> {
        let mut missing = Vec::new();
        let mut known: Vec<Known<'_, I>> = Vec::with_capacity(authors.len());
        // All look-ups first: the processor waits for the memory of several at once then.
        let windows: Vec<_> = authors
            .iter()
            .map(|author| self.authors.get(*author))
            .collect();
        for (author, window) in authors.iter().zip(windows) {
            if let Some(window) = window {
                window.mark_used();
            }
            match window.and_then(|window| window.known(range.upper, self.position)) {
                Some(window) => known.push(window),
                None if missing.len() < MISSING_AUTHORS => missing.push(*author),
                None => break,
            }
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        let (items, authors) = self.merge(&known, range);
        let all = items.len() < range.most;
        // What is older than the last of them needs not be known.
        let cut = match items.last() {
            Some(last) if !all => *last,
            _ => range.lower,
        };
        let short = known.iter().filter(|window| window.low > cut);
        missing.extend(short.map(|window| window.author).take(MISSING_AUTHORS));
        match missing.is_empty() {
            true => Ok(Newest {
                items,
                authors,
                all,
            }),
            false => Err(missing),
        }
    }

    fn merge(&self, known: &[Known<'_, I>], range: Range<I>) -> (Vec<I>, Vec<u64>) {
        let last = |(at, window): (usize, &Known<'_, I>)| {
            let item = window.newest;
            item.map(|item| (item, at, Reverse(window.items.len())))
        };
        let mut heads: BinaryHeap<_> = known.iter().enumerate().filter_map(last).collect();
        let room = range.most.min(1_024);
        let (mut items, mut authors) = (Vec::with_capacity(room), Vec::with_capacity(room));
        while items.len() < range.most
            && let Some(mut head) = heads.peek_mut()
        {
            let (item, at, Reverse(count)) = *head;
            if item < range.lower {
                break;
            }
            let window = known.get(at);
            if let Some(window) = window
                && self.tombstones.shows(item, window.author)
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
