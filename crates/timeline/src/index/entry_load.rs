//! One entry's load: what happened while it was under way, and from when on its result may be used.
//!
//! The rows are a state of the table at some moment between the beginning and `valid_from`; which moment
//! is not known. All changes since the beginning are applied to them once more, in order: for an item that
//! was changed since, the last change decides, for any other the rows do. At `valid_from` this is exact.

use super::{BinlogPosition, vec_capacity};

/// What was known of an entry beside another server, or another run of this one: nothing is answered by it. It is compared with the rows
/// that are loaded in its place.
#[derive(Debug)]
pub(super) struct LoadHint<T> {
    /// Ascending.
    pub(super) items: Vec<T>,
    /// The least: it is whole from there on.
    pub(super) low: T,
}

impl<T: Copy + Ord> LoadHint<T> {
    /// True where these are the same, as far as both are whole; they are from `low` on.
    pub(super) fn matches_items(&self, items: &[T], low: T, shows: impl Fn(T) -> bool) -> bool {
        let low = self.low.max(low);
        let both = |item: &&T| **item >= low && shows(**item);
        self.items.iter().filter(both).eq(items.iter().filter(both))
    }
}

/// More changes than this during one load make it void.
pub(super) const MAX_LOGGED_CHANGES: usize = 100_000;

/// A load from its beginning until its result is valid.
#[derive(Debug)]
pub(super) struct EntryLoad<T> {
    /// Its ticket's number.
    pub(super) ticket: u64,
    /// Items from here on were whole before it began, and stay so; `None`: there was nothing.
    pub(super) floor: Option<T>,
    /// The rows are there, to be used from this position on.
    valid_from: Option<BinlogPosition>,
    /// Changes since it began: an item, and whether it is there.
    changes: Vec<(T, bool)>,
    /// What the rows are compared with.
    hint: Option<LoadHint<T>>,
}

/// The load with this ticket is under way.
pub(super) fn is_awaiting<T: Copy + Ord>(load: Option<&EntryLoad<T>>, ticket: u64) -> bool {
    load.is_some_and(|load| load.ticket == ticket && load.is_pending())
}

/// Ends a load whose result has become valid.
pub(super) fn complete<T: Copy + Ord>(
    load: &mut Option<Box<EntryLoad<T>>>,
    position: BinlogPosition,
) {
    load.take_if(|load| load.is_valid(position));
}

impl<T: Copy + Ord> EntryLoad<T> {
    pub(super) fn begin(ticket: u64, floor: Option<T>) -> Box<Self> {
        Box::new(EntryLoad {
            ticket,
            floor,
            valid_from: None,
            changes: Vec::new(),
            hint: None,
        })
    }

    /// Begins a load in place of what is not confirmed.
    pub(super) fn begin_confirming(ticket: u64, hint: LoadHint<T>) -> Box<Self> {
        let mut load = EntryLoad::begin(ticket, None);
        load.hint = Some(hint);
        load
    }

    /// What the rows are to be compared with, as the changes since the load began left it.
    pub(super) fn take_hint(&mut self) -> Option<LoadHint<T>> {
        let mut hint = self.hint.take()?;
        for (item, present) in &self.changes {
            match present {
                true => vec_capacity::insert_sorted(&mut hint.items, *item),
                false => vec_capacity::remove_sorted(&mut hint.items, *item),
            }
        }
        Some(hint)
    }

    /// Takes out of the hint what is not there any more.
    pub(super) fn purge(&mut self, shows: impl Fn(T) -> bool) {
        if let Some(hint) = &mut self.hint {
            hint.items.retain(|item| shows(*item));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let hint = self.hint.as_ref();
        let hint = hint.map_or(0, |hint| vec_capacity::vec_bytes(&hint.items));
        vec_capacity::boxed_bytes::<EntryLoad<T>>() + vec_capacity::vec_bytes(&self.changes) + hint
    }

    /// The rows are still to come.
    pub(super) fn is_pending(&self) -> bool {
        self.valid_from.is_none()
    }

    /// The rows are there and may be used.
    pub(super) fn is_valid(&self, position: BinlogPosition) -> bool {
        self.valid_from
            .is_some_and(|valid_from| position >= valid_from)
    }

    /// Keeps a change for later. False when there are too many.
    #[must_use]
    pub(super) fn record_change(&mut self, item: T, present: bool) -> bool {
        if self.changes.len() >= MAX_LOGGED_CHANGES {
            return false;
        }
        self.changes.push((item, present));
        true
    }

    /// The rows have come: the items among them and in the log that are in `wanted`, ascending.
    pub(super) fn merge_rows(
        &mut self,
        mut rows: Vec<T>,
        valid_from: BinlogPosition,
        wanted: impl Fn(T) -> bool,
    ) -> Vec<T> {
        self.valid_from = Some(valid_from);
        let mut log = std::mem::take(&mut self.changes);
        // The last change of each item comes first, and stays.
        log.reverse();
        log.sort_by_key(|(item, _)| *item);
        log.dedup_by_key(|(item, _)| *item);
        rows.retain(|item| {
            wanted(*item) && log.binary_search_by_key(item, |(item, _)| *item).is_err()
        });
        rows.extend(
            log.iter()
                .filter(|(item, present)| *present && wanted(*item))
                .map(|(item, _)| *item),
        );
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}
