//! The load of one entry: the changes that occur during it, and the position from which its result may be used.
//!
//! The rows are a state of the table at an unknown moment between the start and `valid_from`. All changes since the start are applied
//! to them again, in order: the last change decides for a changed item, the rows for any other. At `valid_from` this is exact.

use super::{BinlogPosition, vec_capacity};

/// The items that an entry had for another server, or for an earlier run of this one. They serve nothing; loaded rows are compared with
/// them.
#[derive(Debug)]
pub(super) struct LoadHint<T> {
    /// Ascending.
    pub(super) items: Vec<T>,
    /// Complete from here on.
    pub(super) low: T,
}

impl<T: Copy + Ord> LoadHint<T> {
    /// True if both have the same items where both are complete; `items` are complete from `low` on.
    pub(super) fn matches_items(
        &self,
        items: &[T],
        low: T,
        is_visible: impl Fn(T) -> bool,
    ) -> bool {
        let low = self.low.max(low);
        let in_both = |item: &&T| **item >= low && is_visible(**item);
        self.items
            .iter()
            .filter(in_both)
            .eq(items.iter().filter(in_both))
    }
}

/// More changes than this void a load.
pub(super) const MAX_LOGGED_CHANGES: usize = 100_000;

/// A load from its start until its result is valid.
#[derive(Debug)]
pub(super) struct EntryLoad<T> {
    pub(super) ticket: u64,
    /// Items from here on were complete before the load, and stay so; `None`: there were none.
    pub(super) floor: Option<T>,
    /// `Some`: the rows are present, and may be used from this position on.
    valid_from: Option<BinlogPosition>,
    /// Changes since the load began: an item, and whether it exists.
    changes: Vec<(T, bool)>,
    /// What the rows are compared with.
    hint: Option<LoadHint<T>>,
}

/// True if the load with this ticket is pending.
pub(super) fn is_awaiting<T: Copy + Ord>(load: Option<&EntryLoad<T>>, ticket: u64) -> bool {
    load.is_some_and(|load| load.ticket == ticket && load.is_pending())
}

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

    /// Begins a load that replaces unconfirmed items.
    pub(super) fn begin_confirming(ticket: u64, hint: LoadHint<T>) -> Box<Self> {
        let mut load = EntryLoad::begin(ticket, None);
        load.hint = Some(hint);
        load
    }

    /// The items to compare the rows with, updated by the changes since the load began.
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

    /// Removes hidden items from the hint.
    pub(super) fn purge(&mut self, is_visible: impl Fn(T) -> bool) {
        if let Some(hint) = &mut self.hint {
            hint.items.retain(|item| is_visible(*item));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let hint = self.hint.as_ref();
        let hint = hint.map_or(0, |hint| vec_capacity::vec_bytes(&hint.items));
        vec_capacity::boxed_bytes::<EntryLoad<T>>() + vec_capacity::vec_bytes(&self.changes) + hint
    }

    /// True until the rows arrive.
    pub(super) fn is_pending(&self) -> bool {
        self.valid_from.is_none()
    }

    /// True if the rows are present and may be used.
    pub(super) fn is_valid(&self, position: BinlogPosition) -> bool {
        self.valid_from
            .is_some_and(|valid_from| position >= valid_from)
    }

    /// Logs a change until the rows arrive. False: there are too many.
    #[must_use]
    pub(super) fn record_change(&mut self, item: T, present: bool) -> bool {
        if self.changes.len() >= MAX_LOGGED_CHANGES {
            return false;
        }
        self.changes.push((item, present));
        true
    }

    /// Merges the arrived rows with the logged changes: the items in `wanted`, ascending.
    pub(super) fn merge_rows(
        &mut self,
        mut rows: Vec<T>,
        valid_from: BinlogPosition,
        wanted: impl Fn(T) -> bool,
    ) -> Vec<T> {
        self.valid_from = Some(valid_from);
        let mut log = std::mem::take(&mut self.changes);
        // The last change of each item comes first, and `dedup` retains it.
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
