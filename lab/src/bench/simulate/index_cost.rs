//! The memory cost of the real index filled with the sample: for a follow list, a follow, an author's window, an id.

use serde::Serialize;

use super::hit_simulation::{self, PAGE_ROWS};
use super::user_sample::UserSample;
use headwater_timeline::index::{BinlogPosition, TimelineIndex};

/// The size of a filled index, by its own accounting.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct IndexCost {
    /// Follow lists.
    pub readers: u64,
    /// Follows in them.
    pub follows: u64,
    /// Bytes of lists and follows.
    pub reader_bytes: u64,
    /// Authors.
    pub authors: u64,
    /// Message ids of these authors.
    pub ids: u64,
    /// Bytes of authors and ids.
    pub author_bytes: u64,
}

impl IndexCost {
    /// Bytes in total.
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

/// The budget, more than a follow or an id takes. The index's layout depends on it, so it has to match the sample.
const BUDGET_BYTES_EACH: usize = 24;

/// Loads the follow lists of these readers, and the newest ids of the authors they follow.
#[must_use]
pub fn fill(sample: &UserSample, readers: impl Iterator<Item = u64>) -> IndexCost {
    let readers: Vec<u64> = readers.collect();
    let follows: usize = readers
        .iter()
        .map(|reader| sample.follows_of(*reader).len())
        .sum();
    let most = follows + (sample.users() * PAGE_ROWS).min(follows * PAGE_ROWS);
    let mut index: TimelineIndex = TimelineIndex::new(most * BUDGET_BYTES_EACH);
    let mut authors = vec![false; sample.users() + 1];
    for reader in readers {
        let follows = sample.follows_of(reader);
        if let Some(ticket) = index.begin_reader_load(reader) {
            index.accept_reader_rows(ticket, follows.to_vec(), BinlogPosition::default());
        }
        for author in follows {
            let position = usize::try_from(*author).unwrap_or(usize::MAX);
            if let Some(followed) = authors.get_mut(position) {
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
        if let Some(request) = index.begin_author_load(author as u64, None, PAGE_ROWS) {
            hit_simulation::load_author(&mut index, request, sample.messages_of(author as u64));
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
