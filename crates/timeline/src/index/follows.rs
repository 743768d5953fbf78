//! A reader's follow list.

use std::sync::atomic::{AtomicBool, Ordering};

use super::load::{self, Hint, Load};
use super::shard::Entry;
use super::{Position, room};

/// All authors that a reader follows.
#[derive(Debug)]
pub(super) struct Follows {
    reader: u64,
    /// Ascending.
    authors: Vec<u64>,
    load: Option<Box<Load<u64>>>,
    used: AtomicBool,
    /// The server that is there now has not confirmed it: it answers nothing.
    unconfirmed: bool,
}

impl Entry for Follows {
    fn key(&self) -> u64 {
        self.reader
    }

    fn heap(&self) -> usize {
        room::bytes(&self.authors) + self.load.as_ref().map_or(0, |load| load.bytes())
    }

    fn items(&self) -> usize {
        self.authors.len()
    }

    fn is_loading(&self) -> bool {
        self.load.is_some()
    }

    fn take_used(&mut self) -> bool {
        std::mem::take(self.used.get_mut())
    }
}

impl Follows {
    /// A list that is about to be loaded.
    pub(super) fn begin(reader: u64, ticket: u64) -> Self {
        Follows {
            reader,
            authors: Vec::new(),
            load: Some(Load::begin(ticket, None)),
            used: AtomicBool::new(true),
            unconfirmed: false,
        }
    }

    /// It is of another server, or of another run of this one.
    pub(super) fn unconfirm(&mut self) {
        self.unconfirmed = true;
    }

    /// Begins a load in place of a list that is not confirmed. False where there is none.
    pub(super) fn confirm(&mut self, ticket: u64) -> bool {
        if !std::mem::take(&mut self.unconfirmed) {
            return false;
        }
        let items = std::mem::take(&mut self.authors);
        self.load = Some(Load::begin_confirming(ticket, Hint { items, low: 0 }));
        true
    }

    /// What the rows of the load under way are compared with.
    pub(super) fn take_hint(&mut self) -> Option<Hint<u64>> {
        self.load.as_mut()?.take_hint()
    }

    /// True where this is what a hint says of it.
    pub(super) fn is_like(&self, hint: &Hint<u64>) -> bool {
        hint.is_like(&self.authors, 0, |_| true)
    }

    /// The load with this ticket is under way.
    pub(super) fn awaits(&self, ticket: u64) -> bool {
        load::awaits(self.load.as_deref(), ticket)
    }

    /// The rows of the load are here.
    pub(super) fn loaded(&mut self, rows: Vec<u64>, valid_from: Position) {
        if let Some(load) = self.load.as_mut() {
            self.authors = load.arrive(rows, valid_from, |_| true);
            self.authors.shrink_to_fit();
            *self.used.get_mut() = true;
        }
    }

    /// Ends a load whose result has become valid.
    pub(super) fn settle(&mut self, position: Position) {
        load::settle(&mut self.load, position);
    }

    /// It is known for certain that a follow cannot come, since it is there, or cannot go.
    pub(super) fn contradicts(&self, author: u64, present: bool) -> bool {
        self.load.is_none()
            && !self.unconfirmed
            && self.authors.binary_search(&author).is_ok() == present
    }

    /// The reader follows an author now, or does not. False if that was one change too many for the load
    /// under way.
    #[must_use]
    pub(super) fn change(&mut self, author: u64, present: bool) -> bool {
        match self.load.as_mut().filter(|load| load.is_asked()) {
            Some(load) => return load.note(author, present),
            None if present => room::insert(&mut self.authors, author),
            None => room::remove(&mut self.authors, author),
        }
        true
    }

    /// The authors, if they are known at a position; marks them as used.
    pub(super) fn view(&self, position: Position) -> Option<&[u64]> {
        let load = self.load.as_ref();
        if self.unconfirmed || load.is_some_and(|load| !load.is_settled(position)) {
            return None;
        }
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(&self.authors)
    }
}
