//! The newest messages of some authors, whoever follows them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Index;
use super::page::MISSING_AUTHORS;
use super::window::Known;

/// Which messages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// At or below this id.
    pub upper: Option<u64>,
    /// At or above this one; 0: all.
    pub lower: u64,
    /// So many at most.
    pub most: usize,
}

/// The newest messages of some authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Descending.
    pub ids: Vec<u64>,
    /// There are no others in the range.
    pub all: bool,
}

impl Index {
    /// The newest messages of these authors in a range, at the index's position.
    ///
    /// # Errors
    /// The authors that have to be loaded first, not all of them if there are very many.
    pub fn newest(&self, authors: &[u64], range: Range) -> Result<Newest, Vec<u64>> {
        let mut missing = Vec::new();
        let mut known: Vec<Known<'_>> = Vec::with_capacity(authors.len());
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
        let ids = self.merge(&known, range);
        let all = ids.len() < range.most;
        // What is older than the last of them needs not be known.
        let cut = match ids.last() {
            Some(last) if !all => *last,
            _ => range.lower,
        };
        let short = known.iter().filter(|window| window.low > cut);
        missing.extend(short.map(|window| window.author).take(MISSING_AUTHORS));
        match missing.is_empty() {
            true => Ok(Newest { ids, all }),
            false => Err(missing),
        }
    }

    fn merge(&self, known: &[Known<'_>], range: Range) -> Vec<u64> {
        let last = |(at, window): (usize, &Known<'_>)| {
            let id = window.newest;
            id.map(|id| (id, at, Reverse(window.ids.len())))
        };
        let mut heads: BinaryHeap<_> = known.iter().enumerate().filter_map(last).collect();
        let mut ids = Vec::with_capacity(range.most.min(1_024));
        while ids.len() < range.most
            && let Some(mut head) = heads.peek_mut()
        {
            let (id, at, Reverse(count)) = *head;
            if id < range.lower {
                break;
            }
            let window = known.get(at);
            if window.is_some_and(|window| self.tombstones.shows(id, window.author)) {
                ids.push(id);
            }
            let next = window.and_then(|window| window.ids.get(..count - 1)?.last());
            match next {
                Some(next) => *head = (*next, at, Reverse(count - 1)),
                None => {
                    std::collections::binary_heap::PeekMut::pop(head);
                }
            }
        }
        ids
    }
}
