//! A place's index, whatever its pages are ordered by: ids, or ids behind keys.

use crate::index::{
    AuthorAsk, Change, Comparison, Index, Item, Keyed, Missing, Newest, Page, Position, Range,
    Ticket,
};
use crate::source::backlog::Want;

/// One of the two.
#[derive(Debug)]
pub(super) enum Memory {
    /// The id alone orders.
    Ids(Index),
    /// A key does, and the id among those of one key.
    Keyed(Index<Keyed>),
}

/// Messages of an author that are not here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lack {
    pub(super) author: u64,
    /// The newest at or below this one are wanted.
    pub(super) bound: Option<Keyed>,
    /// So many of them.
    pub(super) n: usize,
}

macro_rules! of_each {
    ($memory:expr, $index:ident => $result:expr) => {
        match $memory {
            Memory::Ids($index) => $result,
            Memory::Keyed($index) => $result,
        }
    };
}

impl Memory {
    pub(super) fn new(has_key: bool, memory_bytes: usize) -> Memory {
        match has_key {
            true => Memory::Keyed(Index::new(memory_bytes)),
            false => Memory::Ids(Index::new(memory_bytes)),
        }
    }

    pub(super) fn set_budget(&mut self, memory_bytes: usize) {
        of_each!(self, index => index.set_budget(memory_bytes));
    }

    pub(super) fn position(&self) -> Position {
        of_each!(self, index => index.position())
    }

    pub(super) fn apply(&mut self, changes: &[Change], upto: Position) {
        of_each!(self, index => index.apply(changes, upto));
    }

    pub(super) fn take_contradiction(&mut self) -> Option<Change> {
        of_each!(self, index => index.take_contradiction())
    }

    pub(super) fn clear(&mut self) {
        of_each!(self, index => index.clear());
    }

    pub(super) fn leave(&mut self) {
        of_each!(self, index => index.leave());
    }

    pub(super) fn resume(&mut self, position: Position) {
        of_each!(self, index => index.resume(position));
    }

    pub(super) fn resume_unconfirmed(&mut self, position: Position) {
        of_each!(self, index => index.resume_unconfirmed(position));
    }

    pub(super) fn begin_anew(&mut self) {
        of_each!(self, index => index.begin_anew());
    }

    pub(super) fn has_reader(&self, reader: u64) -> bool {
        of_each!(self, index => index.has_reader(reader))
    }

    pub(super) fn follows(&self, reader: u64) -> Option<Vec<u64>> {
        of_each!(self, index => index.follows(reader))
    }

    pub(super) fn begin_reader(&mut self, reader: u64) -> Option<Ticket> {
        of_each!(self, index => index.begin_reader(reader))
    }

    pub(super) fn loaded_reader(
        &mut self,
        ticket: Ticket,
        authors: Vec<u64>,
        end: Position,
    ) -> Comparison {
        of_each!(self, index => index.loaded_reader(ticket, authors, end))
    }

    pub(super) fn give_up(&mut self, ticket: Ticket) {
        of_each!(self, index => index.give_up(ticket));
    }

    pub(super) fn is_nearly_full(&self) -> bool {
        of_each!(self, index => index.is_nearly_full())
    }

    /// Authors and readers that have made room for others.
    pub(super) fn evicted(&self) -> u64 {
        of_each!(self, index => index.evicted())
    }

    /// Bytes, follows, authors and messages.
    pub(super) fn sizes(&self) -> [usize; 4] {
        of_each!(self, index => [index.bytes(), index.edges(), index.authors(), index.ids()])
    }

    /// A page of the classic kind; there is none where a key orders.
    pub(super) fn page(&self, reader: u64, bound: Option<u64>, n: usize) -> Result<Page, Missing> {
        match self {
            Memory::Ids(index) => index.page(reader, bound, n),
            Memory::Keyed(_) => Err(Missing::default()),
        }
    }

    /// The same of somebody who follows these authors; there is none where a key orders.
    pub(super) fn page_of(
        &self,
        authors: &[u64],
        bound: Option<u64>,
        n: usize,
    ) -> Result<Page, Vec<u64>> {
        match self {
            Memory::Ids(index) => index.page_of(authors, bound, n),
            Memory::Keyed(_) => Err(authors.to_vec()),
        }
    }

    /// The newest messages of these authors, or the authors that are missing. Where the id alone orders, keys are 0.
    pub(super) fn newest(
        &self,
        authors: &[u64],
        range: Range<Keyed>,
    ) -> Result<Newest<Keyed>, Vec<u64>> {
        match self {
            Memory::Keyed(index) => index.newest(authors, range),
            Memory::Ids(index) => {
                let found = index.newest(authors, of_ids(range))?;
                let items = found.items.into_iter().map(|id| Keyed::of(0, id));
                Ok(Newest {
                    items: items.collect(),
                    authors: found.authors,
                    all: found.all,
                })
            }
        }
    }

    /// Authors of whom a reader's page lacks something; `follows`: the reader's list, where that was loaded just now.
    pub(super) fn lacking(&self, want: Want, follows: Option<&[u64]>) -> Vec<u64> {
        let missing = match (self, follows) {
            (Memory::Ids(index), Some(list)) => index.page_of(list, want.bound, want.n).err(),
            (Memory::Ids(index), None) => {
                let page = index.page(want.reader, want.bound, want.n);
                page.err().map(|missing| missing.authors)
            }
            (Memory::Keyed(index), Some(list)) => index.newest(list, newest(want.n)).err(),
            (Memory::Keyed(index), None) => {
                let list = index.follows(want.reader);
                list.and_then(|list| index.newest(&list, newest(want.n)).err())
            }
        };
        missing.unwrap_or_default()
    }

    /// True when a page is here.
    pub(super) fn has(&self, want: Want) -> bool {
        match self {
            Memory::Ids(index) => index.page(want.reader, want.bound, want.n).is_ok(),
            Memory::Keyed(index) => {
                let list = index.follows(want.reader);
                list.is_some_and(|list| index.newest(&list, newest(want.n)).is_ok())
            }
        }
    }

    /// Begins to load ids. The bound of each stands beside what is to be asked.
    pub(super) fn begin_ids(&mut self, lacks: &[Lack]) -> Vec<(AuthorAsk, Option<u64>)> {
        let Memory::Ids(index) = self else {
            return Vec::new();
        };
        let asks = lacks.iter().filter_map(|lack| {
            let bound = lack.bound.map(Item::id);
            Some((index.begin_author(lack.author, bound, lack.n)?, bound))
        });
        asks.collect()
    }

    /// Begins to load messages by their keys.
    pub(super) fn begin_keyed(&mut self, lacks: &[Lack]) -> Vec<AuthorAsk<Keyed>> {
        let Memory::Keyed(index) = self else {
            return Vec::new();
        };
        let asks = lacks
            .iter()
            .filter_map(|lack| index.begin_author(lack.author, lack.bound, lack.n));
        asks.collect()
    }

    /// Ids have come: see [`Index::loaded_author`].
    pub(super) fn loaded_ids(
        &mut self,
        ticket: Ticket,
        ids: Vec<u64>,
        down_to: Option<u64>,
        end: Position,
    ) -> Comparison {
        match self {
            Memory::Ids(index) => index.loaded_author(ticket, ids, down_to, end),
            Memory::Keyed(_) => Comparison::None,
        }
    }

    /// The same of messages with their keys.
    pub(super) fn loaded_keyed(
        &mut self,
        ticket: Ticket,
        items: Vec<Keyed>,
        down_to: Option<Keyed>,
        end: Position,
    ) -> Comparison {
        match self {
            Memory::Keyed(index) => index.loaded_author(ticket, items, down_to, end),
            Memory::Ids(_) => Comparison::None,
        }
    }
}

fn of_ids(range: Range<Keyed>) -> Range {
    Range {
        upper: range.upper.map(Item::id),
        lower: range.lower.id(),
        most: range.most,
    }
}

fn newest(most: usize) -> Range<Keyed> {
    Range {
        upper: None,
        lower: Keyed::LEAST,
        most,
    }
}
