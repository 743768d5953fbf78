//! One entry's load: what happened while it was under way, and from when on its result may be used.
//!
//! The rows are a state of the table at some moment between the beginning and `valid_from`; which moment
//! is not known. All changes since the beginning are applied to them once more, in order: for an id that
//! was changed since, the last change decides, for any other the rows do. At `valid_from` this is exact.

use super::{Position, room};

/// More changes than this during one load make it void.
pub(super) const LOG_CHANGES: usize = 100_000;

/// A load from its beginning until its result is valid.
#[derive(Debug)]
pub(super) struct Load {
    /// Its ticket's number.
    pub(super) ticket: u64,
    /// Ids from here on were whole before it began, and stay so; `None`: there was nothing.
    pub(super) floor: Option<u64>,
    /// The rows are there, to be used from this position on.
    valid_from: Option<Position>,
    /// Changes since it began: an id, and whether it is there.
    log: Vec<(u64, bool)>,
}

/// The load with this ticket is under way.
pub(super) fn awaits(load: Option<&Load>, ticket: u64) -> bool {
    load.is_some_and(|load| load.ticket == ticket && load.is_asked())
}

/// Ends a load whose result has become valid.
pub(super) fn settle(load: &mut Option<Box<Load>>, position: Position) {
    load.take_if(|load| load.is_settled(position));
}

impl Load {
    pub(super) fn begin(ticket: u64, floor: Option<u64>) -> Box<Self> {
        Box::new(Load {
            ticket,
            floor,
            valid_from: None,
            log: Vec::new(),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        room::boxed::<Load>() + room::bytes(&self.log)
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
    pub(super) fn note(&mut self, id: u64, present: bool) -> bool {
        if self.log.len() >= LOG_CHANGES {
            return false;
        }
        self.log.push((id, present));
        true
    }

    /// The rows have come: the ids among them and in the log that are in `wanted`, ascending.
    pub(super) fn arrive(
        &mut self,
        mut rows: Vec<u64>,
        valid_from: Position,
        wanted: impl Fn(u64) -> bool,
    ) -> Vec<u64> {
        self.valid_from = Some(valid_from);
        let mut log = std::mem::take(&mut self.log);
        // The last change of each id comes first, and stays.
        log.reverse();
        log.sort_by_key(|(id, _)| *id);
        log.dedup_by_key(|(id, _)| *id);
        rows.retain(|id| wanted(*id) && log.binary_search_by_key(id, |(id, _)| *id).is_err());
        rows.extend(
            log.iter()
                .filter(|(id, present)| *present && wanted(*id))
                .map(|(id, _)| *id),
        );
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}
