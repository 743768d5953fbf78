//! Rows that transactions changed, whatever of them it was: what was kept of them is not theirs any more.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use headwater_timeline::index::TimelineId;

/// A message's row: of which place, and its id.
pub type EditedRow = (TimelineId, u64);

/// The rows of messages that one transaction changed in other columns than those that memory is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowEdits {
    rows: HashSet<EditedRow>,
    /// So many rows of these that nobody counts them.
    whole_timelines: HashSet<TimelineId>,
}

/// A transaction that changes more rows is taken to have changed all of the table.
const MAX_EDITED_ROWS: usize = 10_000;
/// Rows whose last change is remembered: of others it is not known that it is long ago.
const MAX_REMEMBERED_EDITS: usize = 100_000;

impl RowEdits {
    /// With one more row.
    pub fn add(&mut self, row: EditedRow) {
        if self.whole_timelines.contains(&row.0) {
            return;
        }
        self.rows.insert(row);
        if self.rows.len() > MAX_EDITED_ROWS {
            self.add_all(row.0);
        }
    }

    /// With all rows of a place's messages.
    pub fn add_all(&mut self, place: TimelineId) {
        self.whole_timelines.insert(place);
        self.rows.retain(|(of, _)| *of != place);
    }

    /// True where nothing was changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.whole_timelines.is_empty()
    }

    /// Nothing was changed.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.whole_timelines.clear();
    }

    /// The rows, but for those of which all were changed.
    pub fn rows(&self) -> impl Iterator<Item = EditedRow> + '_ {
        self.rows.iter().copied()
    }

    /// Places of which all rows may have been changed.
    pub fn whole_timelines(&self) -> impl Iterator<Item = TimelineId> + '_ {
        self.whole_timelines.iter().copied()
    }
}

/// A moment among the changes of rows: so many had been received.
pub type EditTick = u64;

/// When rows were changed last, as far as the log has told, and which of these changes can be read for certain.
#[derive(Debug, Default)]
pub struct RowEditHistory {
    /// How many changes were received.
    received: EditTick,
    /// Changes with lower numbers can be read.
    readable: EditTick,
    /// Those below this number can be read once transaction so-and-so can.
    waiting: VecDeque<(u64, EditTick)>,
    last: HashMap<EditedRow, EditTick>,
    order: VecDeque<(EditTick, EditedRow)>,
    /// Rows that are not remembered were changed below this number.
    forgotten_below: EditTick,
}

impl RowEditHistory {
    /// A transaction was received that changed these rows: it can be read once one with the number `behind` can, for servers commit in
    /// the order of the log.
    pub fn record(&mut self, edits: &RowEdits, behind: u64) {
        if edits.is_empty() {
            return;
        }
        for row in edits.rows() {
            self.last.insert(row, self.received);
            self.order.push_back((self.received, row));
            self.received += 1;
        }
        if edits.whole_timelines().next().is_some() {
            self.received += 1;
            self.forgotten_below = self.received;
            self.last.clear();
            self.order.clear();
        }
        while self.order.len() > MAX_REMEMBERED_EDITS {
            let Some((tick, row)) = self.order.pop_front() else {
                break;
            };
            if let Entry::Occupied(last) = self.last.entry(row)
                && *last.get() == tick
            {
                last.remove();
            }
            self.forgotten_below = tick + 1;
        }
        match self.waiting.back_mut() {
            Some((own, tick)) if *own == behind => *tick = self.received,
            _ => self.waiting.push_back((behind, self.received)),
        }
    }

    /// Transactions with lower numbers can be read.
    pub fn mark_readable_below(&mut self, number: u64) {
        while let Some((behind, tick)) = self.waiting.front()
            && *behind < number
        {
            self.readable = self.readable.max(*tick);
            self.waiting.pop_front();
        }
    }

    /// Changes with lower numbers than this can be read.
    pub fn mark_readable_to(&mut self, tick: EditTick) {
        self.readable = self.readable.max(tick);
        while self.waiting.front().is_some_and(|(_, own)| *own <= tick) {
            self.waiting.pop_front();
        }
    }

    /// Up to here all changes can be read.
    #[must_use]
    pub fn readable(&self) -> EditTick {
        self.readable
    }

    /// How many changes were received; `None` where all of them can be read.
    #[must_use]
    pub fn unread_tick(&self) -> Option<EditTick> {
        (self.readable < self.received).then_some(self.received)
    }

    /// How many changes were received.
    #[must_use]
    pub fn received(&self) -> EditTick {
        self.received
    }

    /// True if a row has not changed since all changes could be read up to there: what was read of it since then is what it is.
    #[must_use]
    pub fn is_unchanged_since(&self, row: EditedRow, readable: EditTick) -> bool {
        match self.last.get(&row) {
            Some(last) => *last < readable,
            None => self.forgotten_below <= readable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: TimelineId = TimelineId(0);
    const AWAY: TimelineId = TimelineId(1);

    fn edits(rows: &[EditedRow]) -> RowEdits {
        let mut edits = RowEdits::default();
        rows.iter().for_each(|row| edits.add(*row));
        edits
    }

    #[test]
    fn a_row_is_as_before_once_its_change_can_be_read() {
        let mut edited = RowEditHistory::default();
        edited.record(&edits(&[(HOME, 7)]), 3);
        assert_eq!((edited.readable(), edited.unread_tick()), (0, Some(1)));
        // What is read now may be the row as it was, or as it is.
        assert!(!edited.is_unchanged_since((HOME, 7), edited.readable()));
        assert!(edited.is_unchanged_since((HOME, 8), edited.readable()));
        assert!(edited.is_unchanged_since((AWAY, 7), edited.readable()));
        edited.mark_readable_below(3);
        assert_eq!(edited.unread_tick(), Some(1));
        edited.mark_readable_below(4);
        let read = edited.readable();
        assert!(edited.unread_tick().is_none() && edited.is_unchanged_since((HOME, 7), read));
        // And changed again, behind what was read.
        edited.record(&edits(&[(HOME, 7)]), 4);
        assert!(!edited.is_unchanged_since((HOME, 7), read));
        edited.mark_readable_to(2);
        assert!(!edited.is_unchanged_since((HOME, 7), read));
        assert!(edited.is_unchanged_since((HOME, 7), edited.readable()));
    }

    #[test]
    fn what_is_told_at_once_may_be_readable_one_by_one() {
        let mut edited = RowEditHistory::default();
        edited.record(&edits(&[(HOME, 1)]), 1);
        edited.record(&edits(&[(HOME, 2)]), 2);
        edited.record(&edits(&[(HOME, 3)]), 2);
        edited.mark_readable_below(2);
        assert_eq!((edited.readable(), edited.unread_tick()), (1, Some(3)));
        edited.mark_readable_below(3);
        assert_eq!(edited.readable(), 3);
    }

    #[test]
    fn many_rows_are_all_rows() {
        let mut all = RowEdits::default();
        for id in 0..=MAX_EDITED_ROWS as u64 {
            all.add((HOME, id));
        }
        all.add((AWAY, 1));
        all.add((HOME, 9));
        assert_eq!(all.whole_timelines().collect::<Vec<_>>(), [HOME]);
        assert_eq!(all.rows().collect::<Vec<_>>(), [(AWAY, 1)]);
        let mut edited = RowEditHistory::default();
        edited.record(&all, 0);
        assert!(!edited.is_unchanged_since((HOME, 5), edited.readable()));
        assert!(!edited.is_unchanged_since((AWAY, 5), edited.readable()));
        edited.mark_readable_below(1);
        assert!(edited.is_unchanged_since((HOME, 5), edited.readable()));
    }

    #[test]
    fn what_is_forgotten_is_not_taken_for_nothing() {
        let mut edited = RowEditHistory::default();
        let before = edited.readable();
        for id in 0..=MAX_REMEMBERED_EDITS as u64 {
            edited.record(&edits(&[(HOME, id)]), id);
        }
        assert_eq!(edited.order.len(), MAX_REMEMBERED_EDITS);
        assert!(!edited.is_unchanged_since((HOME, 0), before));
        edited.mark_readable_below(1);
        assert!(edited.is_unchanged_since((HOME, 0), edited.readable()));
        assert!(!edited.is_unchanged_since((HOME, 1), edited.readable()));
    }
}
