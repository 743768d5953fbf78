//! What the real index costs when it is filled with the sample: for a follow list, a follow, an author's window, an id.

use serde::Serialize;

use super::hit_simulation::{self, PAGE_ROWS};
use super::user_sample::UserSample;
use crate::index::{BinlogPosition, TimelineIndex};

/// An index that was filled, as it counts itself.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct IndexCost {
    /// Follow lists.
    pub readers: u64,
    /// Follows in them.
    pub follows: u64,
    /// Bytes of both.
    pub reader_bytes: u64,
    /// Authors.
    pub authors: u64,
    /// Message ids of theirs.
    pub ids: u64,
    /// Bytes of both.
    pub author_bytes: u64,
}

impl IndexCost {
    /// Bytes of everything.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reader_bytes + self.author_bytes
    }

    /// Bytes for each follow and each id.
    #[must_use]
    pub fn bytes_each(&self) -> f64 {
        self.bytes() as f64 / (self.follows + self.ids).max(1) as f64
    }
}

/// More than a follow or an id takes: the budget. An index is laid out by it, so it has to be of the sample's size.
const BUDGET_BYTES_EACH: usize = 24;

/// Loads the follow lists of these readers, and the newest ids of whom they follow.
#[must_use]
pub fn fill(world: &UserSample, readers: impl Iterator<Item = u64>) -> IndexCost {
    let readers: Vec<u64> = readers.collect();
    let follows: usize = readers
        .iter()
        .map(|reader| world.follows_of(*reader).len())
        .sum();
    let most = follows + (world.users() * PAGE_ROWS).min(follows * PAGE_ROWS);
    let mut index: TimelineIndex = TimelineIndex::new(most * BUDGET_BYTES_EACH);
    let mut authors = vec![false; world.users() + 1];
    for reader in readers {
        let follows = world.follows_of(reader);
        if let Some(ticket) = index.begin_reader_load(reader) {
            index.accept_reader_rows(ticket, follows.to_vec(), BinlogPosition::default());
        }
        for author in follows {
            let place = usize::try_from(*author).unwrap_or(usize::MAX);
            if let Some(followed) = authors.get_mut(place) {
                *followed = true;
            }
        }
    }
    let reader_bytes = index.bytes();
    for (author, _) in authors
        .iter()
        .enumerate()
        .filter(|(_, followed)| **followed)
    {
        if let Some(ask) = index.begin_author_load(author as u64, None, PAGE_ROWS) {
            hit_simulation::load_author(&mut index, ask, world.messages_of(author as u64));
        }
    }
    IndexCost {
        readers: index.reader_count() as u64,
        follows: index.follow_count() as u64,
        reader_bytes: reader_bytes as u64,
        authors: index.author_count() as u64,
        ids: index.message_count() as u64,
        author_bytes: index.bytes().saturating_sub(reader_bytes) as u64,
    }
}
