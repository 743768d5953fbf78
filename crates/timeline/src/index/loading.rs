//! Loads from their beginning to their end.

use std::cmp::Reverse;

use super::follows::Follows;
use super::window::Window;
use super::{Index, Item, Position};

/// Whose load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    Reader(u64),
    Author(u64),
}

/// A load that was begun. It ends with `loaded_reader`, `loaded_author` or `give_up`; until then its entry stays
/// in memory and is not begun again.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    number: u64,
    whose: Whose,
}

/// What rows said of what was here from another server, or from another run of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing was here, or both are not of one moment.
    None,
    /// They are what was here.
    Equal,
    /// They are not: what was here is gone.
    Different,
}

impl Comparison {
    fn of(is_like: Option<bool>) -> Comparison {
        match is_like {
            None => Comparison::None,
            Some(true) => Comparison::Equal,
            Some(false) => Comparison::Different,
        }
    }
}

/// What to ask the server for an author.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthorAsk<I: Item = u64> {
    /// To be given back with the answer.
    pub ticket: Ticket,
    /// Whose messages.
    pub author: u64,
    /// Only those less than this are wanted; `None`: the newest.
    pub below: Option<I>,
    /// So many from there on are here already.
    pub above: usize,
}

impl<I: Item> Index<I> {
    /// Begins to load a reader's follow list. `None`: it is here or under way.
    pub fn begin_reader(&mut self, reader: u64) -> Option<Ticket> {
        let ticket = self.ticket(Whose::Reader(reader));
        let begun = match self
            .readers
            .edit(reader, |list| list.confirm(ticket.number))
        {
            Some(begun) => begun,
            None => self.readers.insert(Follows::begin(reader, ticket.number)),
        };
        begun.then_some(ticket)
    }

    /// Begins to load what a page of `n` at or below the bound lacks of an author. `None`: nothing, or a load
    /// is under way.
    pub fn begin_author(
        &mut self,
        author: u64,
        bound: Option<I>,
        n: usize,
    ) -> Option<AuthorAsk<I>> {
        let ticket = self.ticket(Whose::Author(author));
        let tombstones = &self.tombstones;
        let extension = self.authors.edit(author, |window| {
            window.extend(ticket.number, bound, n, tombstones)
        });
        let (below, above) = match extension {
            Some(None) => return None,
            Some(Some((below, above))) => (below, above),
            None => {
                if !self.authors.insert(Window::begin(author, ticket.number)) {
                    return None;
                }
                (None, 0)
            }
        };
        self.asked.insert(ticket.number, author);
        Some(AuthorAsk {
            ticket,
            author,
            below,
            above,
        })
    }

    fn ticket(&mut self, whose: Whose) -> Ticket {
        self.tickets += 1;
        Ticket {
            number: self.tickets,
            whose,
        }
    }

    /// The rows of a reader's load: all authors, as they were between the index's position when the load
    /// began and `valid_from`.
    pub fn loaded_reader(
        &mut self,
        ticket: Ticket,
        authors: Vec<u64>,
        valid_from: Position,
    ) -> Comparison {
        let Whose::Reader(reader) = ticket.whose else {
            return Comparison::None;
        };
        if !self
            .readers
            .get(reader)
            .is_some_and(|list| list.awaits(ticket.number))
        {
            return Comparison::None;
        }
        let is_of_now = self.position >= valid_from;
        let compared = self.readers.edit(reader, |list| {
            let hint = list.take_hint().filter(|_| is_of_now);
            list.loaded(authors, valid_from);
            hint.map(|hint| list.is_like(&hint))
        });
        self.settling.push(Reverse((valid_from, ticket.whose)));
        self.settle();
        self.shrink();
        Comparison::of(compared.flatten())
    }

    /// The rows of an author's load: its newest messages, or the newest below what was asked, as they were between the
    /// index's position when the load began and `valid_from`. All from `down_to` on are among them; where that is
    /// `None`, from the last one on.
    pub fn loaded_author(
        &mut self,
        ticket: Ticket,
        items: Vec<I>,
        down_to: Option<I>,
        valid_from: Position,
    ) -> Comparison {
        let Whose::Author(author) = ticket.whose else {
            return Comparison::None;
        };
        if !self
            .authors
            .get(author)
            .is_some_and(|window| window.awaits(ticket.number))
        {
            return Comparison::None;
        }
        let tombstones = &self.tombstones;
        let is_of_now = self.position >= valid_from;
        let loaded = self.authors.edit(author, |window| {
            let hint = window.take_hint().filter(|_| is_of_now);
            let loaded = window.loaded(items, down_to, valid_from, tombstones);
            let compared = hint.map(|hint| loaded && window.is_like(&hint, tombstones));
            (loaded, compared)
        });
        let (loaded, compared) = loaded.unwrap_or((false, None));
        if loaded {
            self.asked.remove(&ticket.number);
            self.settling.push(Reverse((valid_from, ticket.whose)));
            self.settle();
        } else {
            self.give_up_author(author);
        }
        self.shrink();
        Comparison::of(compared)
    }

    /// A load failed.
    pub fn give_up(&mut self, ticket: Ticket) {
        match ticket.whose {
            Whose::Reader(reader) => {
                if self
                    .readers
                    .get(reader)
                    .is_some_and(|list| list.awaits(ticket.number))
                {
                    self.readers.remove(reader);
                }
            }
            Whose::Author(author) => {
                if self
                    .authors
                    .get(author)
                    .is_some_and(|window| window.awaits(ticket.number))
                {
                    self.give_up_author(author);
                }
            }
        }
    }
}
