//! One entry's load: what happened while it was under way, and from when on its result may be used.
//!
//! The rows are a state of the table at some moment between the beginning and `valid_from`; which moment
//! is not known. All changes since the beginning are applied to them once more, in order: for an item that
//! was changed since, the last change decides, for any other the rows do. At `valid_from` this is exact.

use super::{Position, room};

/// More changes than this during one load make it void.
pub(super) const LOG_CHANGES: usize = 100_000;

/// A load from its beginning until its result is valid.
#[derive(Debug)]
pub(super) struct Load<T> {
    /// Its ticket's number.
    pub(super) ticket: u64,
    /// Items from here on were whole before it began, and stay so; `None`: there was nothing.
    pub(super) floor: Option<T>,
    /// The rows are there, to be used from this position on.
    valid_from: Option<Position>,
    /// Changes since it began: an item, and whether it is there.
    log: Vec<(T, bool)>,
}

/// The load with this ticket is under way.
pub(super) fn awaits<T: Copy + Ord>(load: Option<&Load<T>>, ticket: u64) -> bool {
    load.is_some_and(|load| load.ticket == ticket && load.is_asked())
}

/// Ends a load whose result has become valid.
pub(super) fn settle<T: Copy + Ord>(load: &mut Option<Box<Load<T>>>, position: Position) {
    load.take_if(|load| load.is_settled(position));
}

impl<T: Copy + Ord> Load<T> {
    pub(super) fn begin(ticket: u64, floor: Option<T>) -> Box<Self> {
        Box::new(Load {
            ticket,
            floor,
            valid_from: None,
            log: Vec::new(),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        room::boxed::<Load<T>>() + room::bytes(&self.log)
    }

    /// The rows are still to come.
    pub(super) fn is_asked(&self) -> bool {
        self.valid_from.is_none()
    }

    /// The rows are there and may be used.
    pub(super) fn is_settled(&self, position: Position) -> bool {
        self.valid_from
            .is_some_and(|valid_from| position >= valid_from)
    }

    /// Keeps a change for later. False when there are too many.
    #[must_use]
    pub(super) fn note(&mut self, item: T, present: bool) -> bool {
        if self.log.len() >= LOG_CHANGES {
            return false;
        }
        self.log.push((item, present));
        true
    }

    /// The rows have come: the items among them and in the log that are in `wanted`, ascending.
    pub(super) fn arrive(
        &mut self,
        mut rows: Vec<T>,
        valid_from: Position,
        wanted: impl Fn(T) -> bool,
    ) -> Vec<T> {
        self.valid_from = Some(valid_from);
        let mut log = std::mem::take(&mut self.log);
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
