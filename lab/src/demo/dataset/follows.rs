//! The rows of the follow table.

use super::Dataset;
use super::random::SeededRandom;

/// One row of the follow table. In the classic schema `reader` is the column `user_id` and
/// `author` is `follower_id`, whatever the name suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowRow {
    /// The reader's id.
    pub reader: u32,
    /// The followed author's id.
    pub author: u32,
}

/// Iterates over [`FollowRow`]s, reader by reader.
#[derive(Debug)]
pub struct FollowRowIter<'a> {
    dataset: &'a Dataset,
    random: SeededRandom,
    reader: u32,
    /// Pairs of the readers before the current one.
    emitted: u64,
    /// Authors of the current reader, the smallest id last.
    authors: Vec<u32>,
    /// By author id less one: the last reader who follows the author.
    last_reader: Vec<u32>,
}

impl<'a> FollowRowIter<'a> {
    pub(super) fn new(dataset: &'a Dataset, random: SeededRandom) -> FollowRowIter<'a> {
        FollowRowIter {
            dataset,
            random,
            reader: 0,
            emitted: 0,
            authors: Vec::new(),
            last_reader: (0..dataset.size.users).map(|_| 0).collect(),
        }
    }

    fn next_reader(&mut self) {
        let size = self.dataset.size;
        let due = self
            .dataset
            .following
            .share_up_to(self.reader, size.follows());
        let count = due
            .saturating_sub(self.emitted)
            .min(u64::from(size.users - 1));
        self.emitted += count;
        self.reader += 1;

        // A user does not follow itself: it counts as taken from the start.
        self.mark_taken(self.reader - 1);
        self.authors.clear();
        let mut draws_left = 8 * count + 64;
        while (self.authors.len() as u64) < count && draws_left > 0 {
            draws_left -= 1;
            match self.dataset.followed.draw(&mut self.random) {
                Some(author) => self.follow(author),
                None => break,
            }
        }
        // Nearly all authors are taken: continue with the remaining ones in order.
        let start = u32::try_from(self.random.below(u64::from(size.users))).unwrap_or_default();
        for author in (start..size.users).chain(0..start) {
            if self.authors.len() as u64 >= count {
                break;
            }
            self.follow(author);
        }
        self.authors.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn follow(&mut self, author: u32) {
        if self.mark_taken(author) {
            self.authors.push(author + 1);
        }
    }

    /// Marks the author as taken by the current reader; true if it was free.
    fn mark_taken(&mut self, author: u32) -> bool {
        let reader = self.reader;
        let slot = usize::try_from(author)
            .ok()
            .and_then(|author| self.last_reader.get_mut(author));
        slot.is_some_and(|slot| std::mem::replace(slot, reader) != reader)
    }
}

impl Iterator for FollowRowIter<'_> {
    type Item = FollowRow;

    fn next(&mut self) -> Option<FollowRow> {
        loop {
            if let Some(author) = self.authors.pop() {
                let reader = self.reader;
                return Some(FollowRow { reader, author });
            }
            if self.reader >= self.dataset.size.users {
                return None;
            }
            self.next_reader();
        }
    }
}
