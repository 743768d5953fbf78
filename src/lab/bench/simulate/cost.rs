//! What the real index costs when it is filled with the sample: for a follow list, a follow, an author's window, an id.

use serde::Serialize;

use super::hits::{self, N};
use super::world::World;
use crate::index::{Index, Position};

/// An index that was filled, as it counts itself.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Filled {
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

impl Filled {
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
const ROOM_BYTES: usize = 24;

/// Loads the follow lists of these readers, and the newest ids of whom they follow.
#[must_use]
pub fn fill(world: &World, readers: impl Iterator<Item = u64>) -> Filled {
    let readers: Vec<u64> = readers.collect();
    let follows: usize = readers
        .iter()
        .map(|reader| world.follows_of(*reader).len())
        .sum();
    let most = follows + (world.users() * N).min(follows * N);
    let mut index: Index = Index::new(most * ROOM_BYTES);
    let mut authors = vec![false; world.users() + 1];
    for reader in readers {
        let follows = world.follows_of(reader);
        if let Some(ticket) = index.begin_reader(reader) {
            index.loaded_reader(ticket, follows.to_vec(), Position::default());
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
        if let Some(ask) = index.begin_author(author as u64, None, N) {
            hits::load(&mut index, ask, world.messages_of(author as u64));
        }
    }
    Filled {
        readers: index.readers() as u64,
        follows: index.edges() as u64,
        reader_bytes: reader_bytes as u64,
        authors: index.authors() as u64,
        ids: index.ids() as u64,
        author_bytes: index.bytes().saturating_sub(reader_bytes) as u64,
    }
}
