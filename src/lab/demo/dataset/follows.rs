//! Who follows whom.

use super::Dataset;
use super::random::Random;

/// One row of the follow table. In the classic schema `reader` is the column `user_id` and
/// `author` is `follower_id`, whatever the name suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follow {
    /// Who reads.
    pub reader: u32,
    /// Who is followed.
    pub author: u32,
}

/// Iterates over [`Follow`]s, reader by reader.
#[derive(Debug)]
pub struct Follows<'a> {
    dataset: &'a Dataset,
    random: Random,
    reader: u32,
    /// Pairs of the readers so far.
    given: u64,
    /// Authors of the current reader, the smallest id last.
    authors: Vec<u32>,
    /// By author less one: the last reader that took it.
    taken_by: Vec<u32>,
}

impl<'a> Follows<'a> {
    pub(super) fn new(dataset: &'a Dataset, random: Random) -> Follows<'a> {
        Follows {
            dataset,
            random,
            reader: 0,
            given: 0,
            authors: Vec::new(),
            taken_by: (0..dataset.size.users).map(|_| 0).collect(),
        }
    }

    fn next_reader(&mut self) {
        let size = self.dataset.size;
        let due = self
            .dataset
            .following
            .share_up_to(self.reader, size.follows());
        let count = due
            .saturating_sub(self.given)
            .min(u64::from(size.users - 1));
        self.given += count;
        self.reader += 1;

        // One cannot follow oneself: the reader is taken from the start.
        self.take(self.reader - 1);
        self.authors.clear();
        let mut draws_left = 8 * count + 64;
        while (self.authors.len() as u64) < count && draws_left > 0 {
            draws_left -= 1;
            match self.dataset.followed.draw(&mut self.random) {
                Some(author) => self.follow(author),
                None => break,
            }
        }
        // Nearly everyone is followed already: take whoever is left, in turn.
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
        if self.take(author) {
            self.authors.push(author + 1);
        }
    }

    /// Whether the current reader had not taken it yet.
    fn take(&mut self, author: u32) -> bool {
        let reader = self.reader;
        let slot = usize::try_from(author)
            .ok()
            .and_then(|author| self.taken_by.get_mut(author));
        slot.is_some_and(|slot| std::mem::replace(slot, reader) != reader)
    }
}

impl Iterator for Follows<'_> {
    type Item = Follow;

    fn next(&mut self) -> Option<Follow> {
        loop {
            if let Some(author) = self.authors.pop() {
                let reader = self.reader;
                return Some(Follow { reader, author });
            }
            if self.reader >= self.dataset.size.users {
                return None;
            }
            self.next_reader();
        }
    }
}
