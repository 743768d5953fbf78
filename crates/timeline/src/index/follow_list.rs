//! A reader's follow list.

use std::sync::atomic::{AtomicBool, Ordering};

use super::entry_load::{self, EntryLoad, LoadHint};
use super::shard::TableEntry;
use super::{BinlogPosition, vec_capacity};

/// All authors that a reader follows.
#[derive(Debug)]
pub(super) struct FollowList {
    reader: u64,
    /// Ascending.
    authors: Vec<u64>,
    load: Option<Box<EntryLoad<u64>>>,
    used: AtomicBool,
    /// The current server has not confirmed it, so it serves nothing.
    unconfirmed: bool,
}

impl TableEntry for FollowList {
    fn key(&self) -> u64 {
        self.reader
    }

    fn heap_bytes(&self) -> usize {
        vec_capacity::vec_bytes(&self.authors) + self.load.as_ref().map_or(0, |load| load.bytes())
    }

    fn item_count(&self) -> usize {
        self.authors.len()
    }

    fn is_loading(&self) -> bool {
        self.load.is_some()
    }

    fn take_used(&mut self) -> bool {
        std::mem::take(self.used.get_mut())
    }
}

impl FollowList {
    pub(super) fn begin_load(reader: u64, ticket: u64) -> Self {
        FollowList {
            reader,
            authors: Vec::new(),
            load: Some(EntryLoad::begin(ticket, None)),
            used: AtomicBool::new(true),
            unconfirmed: false,
        }
    }

    /// The list is from another server, or from an earlier run of this one.
    pub(super) fn mark_unconfirmed(&mut self) {
        self.unconfirmed = true;
    }

    /// Begins a load that replaces an unconfirmed list. False: the list is confirmed.
    pub(super) fn begin_confirming_load(&mut self, ticket: u64) -> bool {
        if !std::mem::take(&mut self.unconfirmed) {
            return false;
        }
        let items = std::mem::take(&mut self.authors);
        self.load = Some(EntryLoad::begin_confirming(
            ticket,
            LoadHint { items, low: 0 },
        ));
        true
    }

    pub(super) fn take_hint(&mut self) -> Option<LoadHint<u64>> {
        self.load.as_mut()?.take_hint()
    }

    pub(super) fn matches_hint(&self, hint: &LoadHint<u64>) -> bool {
        hint.matches_items(&self.authors, 0, |_| true)
    }

    pub(super) fn is_awaiting(&self, ticket: u64) -> bool {
        entry_load::is_awaiting(self.load.as_deref(), ticket)
    }

    /// Merges the rows of the load.
    pub(super) fn accept_rows(&mut self, rows: Vec<u64>, valid_from: BinlogPosition) {
        if let Some(load) = self.load.as_mut() {
            self.authors = load.merge_rows(rows, valid_from, |_| true);
            self.authors.shrink_to_fit();
            *self.used.get_mut() = true;
        }
    }

    pub(super) fn complete_load(&mut self, position: BinlogPosition) {
        entry_load::complete(&mut self.load, position);
    }

    /// True if a change surely cannot have happened: the follow would come but exists, or would go but does not.
    pub(super) fn contradicts(&self, author: u64, present: bool) -> bool {
        self.load.is_none()
            && !self.unconfirmed
            && self.authors.binary_search(&author).is_ok() == present
    }

    /// Adds or removes a followed author. False: the pending load has too many changes.
    #[must_use]
    pub(super) fn apply_change(&mut self, author: u64, present: bool) -> bool {
        match self.load.as_mut().filter(|load| load.is_pending()) {
            Some(load) => return load.record_change(author, present),
            None if present => vec_capacity::insert_sorted(&mut self.authors, author),
            None => vec_capacity::remove_sorted(&mut self.authors, author),
        }
        true
    }

    /// The authors, if they are known at a position. Marks the list as used.
    pub(super) fn authors_at(&self, position: BinlogPosition) -> Option<&[u64]> {
        let load = self.load.as_ref();
        if self.unconfirmed || load.is_some_and(|load| !load.is_valid(position)) {
            return None;
        }
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(&self.authors)
    }
}
