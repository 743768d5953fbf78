//! Loads from start to end.

use std::cmp::Reverse;

use super::follow_list::FollowList;
use super::window::AuthorWindow;
use super::{BinlogPosition, TimelineIndex, WindowItem};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoadTarget {
    Reader(u64),
    Author(u64),
}

/// A load that has begun. It ends with `accept_reader_rows`, `accept_author_rows` or `abandon_load`; until then its entry stays in
/// memory, and no other load of it begins.
#[derive(Debug, PartialEq, Eq)]
pub struct LoadTicket {
    number: u64,
    target: LoadTarget,
}

/// How loaded rows compare with an entry from another server, or from an earlier run of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadComparison {
    /// There was no such entry, or the two are of different moments.
    None,
    /// They are equal.
    Equal,
    /// They differ: the old entry is gone.
    Different,
}

impl LoadComparison {
    fn of(is_like: Option<bool>) -> LoadComparison {
        match is_like {
            None => LoadComparison::None,
            Some(true) => LoadComparison::Equal,
            Some(false) => LoadComparison::Different,
        }
    }
}

/// What to request from the server for an author.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthorLoadRequest<I: WindowItem = u64> {
    /// To be returned with the rows.
    pub ticket: LoadTicket,
    /// The author.
    pub author: u64,
    /// Only items below this are requested; `None`: the newest.
    pub below: Option<I>,
    /// How many items from there on are already in memory.
    pub above: usize,
}

impl<I: WindowItem> TimelineIndex<I> {
    /// Begins to load a reader's follow list. `None`: it is in memory or pending.
    pub fn begin_reader_load(&mut self, reader: u64) -> Option<LoadTicket> {
        let ticket = self.issue_ticket(LoadTarget::Reader(reader));
        let has_begun = match self
            .readers
            .edit(reader, |list| list.begin_confirming_load(ticket.number))
        {
            Some(begun) => begun,
            None => self
                .readers
                .insert(FollowList::begin_load(reader, ticket.number)),
        };
        has_begun.then_some(ticket)
    }

    /// Begins to load what a page of `n` at or below the bound lacks of an author. `None`: nothing is missing, or a load is pending.
    pub fn begin_author_load(
        &mut self,
        author: u64,
        bound: Option<I>,
        n: usize,
    ) -> Option<AuthorLoadRequest<I>> {
        let ticket = self.issue_ticket(LoadTarget::Author(author));
        let tombstones = &self.tombstones;
        let extension = self.authors.edit(author, |window| {
            window.begin_extending_load(ticket.number, bound, n, tombstones)
        });
        let (below, above) = match extension {
            Some(None) => return None,
            Some(Some((below, above))) => (below, above),
            None => {
                if !self
                    .authors
                    .insert(AuthorWindow::begin_load(author, ticket.number))
                {
                    return None;
                }
                (None, 0)
            }
        };
        self.pending_authors.insert(ticket.number, author);
        Some(AuthorLoadRequest {
            ticket,
            author,
            below,
            above,
        })
    }

    fn issue_ticket(&mut self, load_target: LoadTarget) -> LoadTicket {
        self.tickets += 1;
        LoadTicket {
            number: self.tickets,
            target: load_target,
        }
    }

    /// Accepts a reader's followed authors, read between the index's position at the load's start and `valid_from`.
    pub fn accept_reader_rows(
        &mut self,
        ticket: LoadTicket,
        authors: Vec<u64>,
        valid_from: BinlogPosition,
    ) -> LoadComparison {
        let LoadTarget::Reader(reader) = ticket.target else {
            return LoadComparison::None;
        };
        if !self
            .readers
            .get(reader)
            .is_some_and(|list| list.is_awaiting(ticket.number))
        {
            return LoadComparison::None;
        }
        let is_current = self.position >= valid_from;
        let compared = self.readers.edit(reader, |list| {
            let hint = list.take_hint().filter(|_| is_current);
            list.accept_rows(authors, valid_from);
            hint.map(|hint| list.matches_hint(&hint))
        });
        self.pending_loads
            .push(Reverse((valid_from, ticket.target)));
        self.complete_loads();
        self.evict_to_budget();
        LoadComparison::of(compared.flatten())
    }

    /// Accepts an author's newest messages, or the newest below the requested item, read between the index's position at the load's start
    /// and `valid_from`. They are complete from `down_to` on; if that is `None`, from the last one on.
    pub fn accept_author_rows(
        &mut self,
        ticket: LoadTicket,
        items: Vec<I>,
        down_to: Option<I>,
        valid_from: BinlogPosition,
    ) -> LoadComparison {
        let LoadTarget::Author(author) = ticket.target else {
            return LoadComparison::None;
        };
        if !self
            .authors
            .get(author)
            .is_some_and(|window| window.is_awaiting(ticket.number))
        {
            return LoadComparison::None;
        }
        let tombstones = &self.tombstones;
        let is_current = self.position >= valid_from;
        let loaded = self.authors.edit(author, |window| {
            let hint = window.take_hint().filter(|_| is_current);
            let loaded = window.accept_rows(items, down_to, valid_from, tombstones);
            let compared = hint.map(|hint| loaded && window.matches_hint(&hint, tombstones));
            (loaded, compared)
        });
        let (loaded, compared) = loaded.unwrap_or((false, None));
        if loaded {
            self.pending_authors.remove(&ticket.number);
            self.pending_loads
                .push(Reverse((valid_from, ticket.target)));
            self.complete_loads();
        } else {
            self.abandon_author_load(author);
        }
        self.evict_to_budget();
        LoadComparison::of(compared)
    }

    /// Drops a failed load.
    pub fn abandon_load(&mut self, ticket: LoadTicket) {
        match ticket.target {
            LoadTarget::Reader(reader) => {
                if self
                    .readers
                    .get(reader)
                    .is_some_and(|list| list.is_awaiting(ticket.number))
                {
                    self.readers.remove(reader);
                }
            }
            LoadTarget::Author(author) => {
                if self
                    .authors
                    .get(author)
                    .is_some_and(|window| window.is_awaiting(ticket.number))
                {
                    self.abandon_author_load(author);
                }
            }
        }
    }
}
