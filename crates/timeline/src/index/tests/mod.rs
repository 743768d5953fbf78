//! The index beside a model of the server, and one by one what the model cannot see.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod cases;
mod keyed_messages;
mod memory;
mod model;
mod property;

use super::*;
use crate::AuthorHead;

/// The n-th position in the log.
fn at(number: usize) -> BinlogPosition {
    let number = number as u64;
    BinlogPosition {
        file: number / 5,
        offset: number % 5,
    }
}

/// An index with windows of these authors and ids, and reader 1 who follows them all.
fn filled(windows: &[(u64, &[u64])]) -> TimelineIndex {
    let mut index = TimelineIndex::new(1 << 24);
    load_reader(
        &mut index,
        1,
        windows.iter().map(|(author, _)| *author).collect(),
    );
    for (author, ids) in windows {
        load_author(&mut index, *author, ids.to_vec(), true);
    }
    index
}

fn load_reader(index: &mut TimelineIndex, reader: u64, authors: Vec<u64>) {
    let ticket = index.begin_reader_load(reader).unwrap();
    index.accept_reader_rows(ticket, authors, index.position());
}

/// Loads the newest ids of an author.
fn load_author(index: &mut TimelineIndex, author: u64, mut ids: Vec<u64>, complete: bool) {
    let ask = index.begin_author_load(author, None, 20).unwrap();
    assert_eq!(ask.below, None);
    ids.sort_unstable_by(|a, b| b.cmp(a));
    index.accept_author_rows(ask.ticket, ids, complete.then_some(0), index.position());
}

fn head(author: u64, id: u64) -> AuthorHead {
    AuthorHead { author, id }
}

impl<I: WindowItem> TimelineIndex<I> {
    /// The bytes counted anew, entry by entry.
    fn counted(&self) -> usize {
        self.authors.counted() + self.readers.counted() + self.maintenance_bytes()
    }
}

#[test]
fn bytes_between_positions_are_counted_as_far_as_they_are_known() {
    let at = |file, offset| BinlogPosition { file, offset };
    assert_eq!(at(2, 900).bytes_after(at(2, 400)), 500);
    assert_eq!(at(2, 400).bytes_after(at(2, 900)), 0);
    assert_eq!(at(3, 400).bytes_after(at(2, 900)), 400);
}
