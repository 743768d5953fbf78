//! Which rows transactions changed, in any column: cached copies of these rows are stale.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use headwater_timeline::index::{RowKey, TableId};

/// The rows that one transaction changed, other than in the columns that memory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowEdits {
    rows: HashSet<RowKey>,
    /// Tables with too many changed rows to list.
    whole_tables: HashSet<TableId>,
}

/// If a transaction changes more rows, all rows of the table count as changed.
const MAX_EDITED_ROWS: usize = 10_000;
/// How many rows' last changes are remembered. Of other rows it is not known that their last change is long ago.
const MAX_REMEMBERED_EDITS: usize = 100_000;

impl RowEdits {
    /// Adds one row.
    pub fn add(&mut self, row: RowKey) {
        if self.whole_tables.contains(&row.table) {
            return;
        }
        self.rows.insert(row);
        if self.rows.len() > MAX_EDITED_ROWS {
            self.add_all(row.table);
        }
    }

    /// Adds all rows of a table.
    pub fn add_all(&mut self, table: TableId) {
        self.whole_tables.insert(table);
        self.rows.retain(|row| row.table != table);
    }

    /// True if nothing was changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.whole_tables.is_empty()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.whole_tables.clear();
    }

    /// The changed rows, except those of [`Self::whole_tables`].
    pub fn rows(&self) -> impl Iterator<Item = RowKey> + '_ {
        self.rows.iter().copied()
    }

    /// Tables of which all rows may have been changed.
    pub fn whole_tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.whole_tables.iter().copied()
    }
}

/// A moment in the sequence of row changes: the number of changes received so far.
pub type EditTick = u64;

/// When each row was last changed, as far as the log has been received, and which of these changes are certainly readable.
#[derive(Debug, Default)]
pub struct RowEditHistory {
    received: EditTick,
    /// Changes with lower numbers are readable.
    readable: EditTick,
    /// Pairs of a transaction number and a tick: changes below the tick are readable once that transaction is.
    waiting: VecDeque<(u64, EditTick)>,
    last: HashMap<RowKey, EditTick>,
    order: VecDeque<(EditTick, RowKey)>,
    /// Rows that are not remembered last changed below this tick.
    forgotten_below: EditTick,
    /// All rows of these tables may last have changed just below this tick.
    whole_tables: HashMap<TableId, EditTick>,
}

impl RowEditHistory {
    /// Records a transaction's changed rows. They are readable once a transaction with that number is, since servers commit in log order.
    pub fn record(&mut self, edits: &RowEdits, number: u64) {
        if edits.is_empty() {
            return;
        }
        for row in edits.rows() {
            self.last.insert(row, self.received);
            self.order.push_back((self.received, row));
            self.received += 1;
        }
        for table in edits.whole_tables() {
            self.received += 1;
            self.whole_tables.insert(table, self.received);
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
            Some((last_number, tick)) if *last_number == number => *tick = self.received,
            _ => self.waiting.push_back((number, self.received)),
        }
    }

    /// Marks the changes of transactions with lower numbers as readable.
    pub fn mark_readable_below(&mut self, number: u64) {
        while let Some((waiting_number, tick)) = self.waiting.front()
            && *waiting_number < number
        {
            self.readable = self.readable.max(*tick);
            self.waiting.pop_front();
        }
    }

    /// Marks changes below this tick as readable.
    pub fn mark_readable_to(&mut self, tick: EditTick) {
        self.readable = self.readable.max(tick);
        while self
            .waiting
            .front()
            .is_some_and(|(_, waiting_tick)| *waiting_tick <= tick)
        {
            self.waiting.pop_front();
        }
    }

    /// All changes below this tick are readable.
    #[must_use]
    pub fn readable(&self) -> EditTick {
        self.readable
    }

    /// The number of received changes; `None` if all of them are readable.
    #[must_use]
    pub fn unread_tick(&self) -> Option<EditTick> {
        (self.readable < self.received).then_some(self.received)
    }

    /// The number of received changes.
    #[must_use]
    pub fn received(&self) -> EditTick {
        self.received
    }

    /// True if the row has not changed since all changes below `readable` were readable: a copy read since then is current.
    #[must_use]
    pub fn is_unchanged_since(&self, row: RowKey, readable: EditTick) -> bool {
        let of_table = self.whole_tables.get(&row.table);
        let is_own = match self.last.get(&row) {
            Some(last) => *last < readable,
            None => self.forgotten_below <= readable,
        };
        is_own && of_table.is_none_or(|below| *below <= readable)
    }
}

#[cfg(test)]
mod tests {
    use headwater_timeline::index::TimelineId;

    use super::*;

    const HOME: TableId = TableId::Messages(TimelineId(0));
    const AWAY: TableId = TableId::Joined(0);

    fn home(id: u64) -> RowKey {
        RowKey { table: HOME, id }
    }

    fn away(id: u64) -> RowKey {
        RowKey { table: AWAY, id }
    }

    fn edits(rows: &[RowKey]) -> RowEdits {
        let mut edits = RowEdits::default();
        rows.iter().for_each(|row| edits.add(*row));
        edits
    }

    #[test]
    fn a_row_is_as_before_once_its_change_can_be_read() {
        let mut edited = RowEditHistory::default();
        edited.record(&edits(&[home(7)]), 3);
        assert_eq!((edited.readable(), edited.unread_tick()), (0, Some(1)));
        // A read may now return the row before or after the change.
        assert!(!edited.is_unchanged_since(home(7), edited.readable()));
        assert!(edited.is_unchanged_since(home(8), edited.readable()));
        assert!(edited.is_unchanged_since(away(7), edited.readable()));
        edited.mark_readable_below(3);
        assert_eq!(edited.unread_tick(), Some(1));
        edited.mark_readable_below(4);
        let read = edited.readable();
        assert!(edited.unread_tick().is_none() && edited.is_unchanged_since(home(7), read));
        // Changed again, after the read.
        edited.record(&edits(&[home(7)]), 4);
        assert!(!edited.is_unchanged_since(home(7), read));
        edited.mark_readable_to(2);
        assert!(!edited.is_unchanged_since(home(7), read));
        assert!(edited.is_unchanged_since(home(7), edited.readable()));
    }

    #[test]
    fn changes_received_together_may_become_readable_one_by_one() {
        let mut edited = RowEditHistory::default();
        edited.record(&edits(&[home(1)]), 1);
        edited.record(&edits(&[home(2)]), 2);
        edited.record(&edits(&[home(3)]), 2);
        edited.mark_readable_below(2);
        assert_eq!((edited.readable(), edited.unread_tick()), (1, Some(3)));
        edited.mark_readable_below(3);
        assert_eq!(edited.readable(), 3);
    }

    #[test]
    fn many_rows_are_all_rows() {
        let mut all = RowEdits::default();
        for id in 0..=MAX_EDITED_ROWS as u64 {
            all.add(home(id));
        }
        all.add(away(1));
        all.add(home(9));
        assert_eq!(all.whole_tables().collect::<Vec<_>>(), [HOME]);
        assert_eq!(all.rows().collect::<Vec<_>>(), [away(1)]);
        let mut edited = RowEditHistory::default();
        edited.record(&all, 0);
        assert!(!edited.is_unchanged_since(home(5), edited.readable()));
        // Rows of other tables are as they were.
        assert!(!edited.is_unchanged_since(away(1), edited.readable()));
        assert!(edited.is_unchanged_since(away(5), edited.readable()));
        edited.mark_readable_below(1);
        let read = edited.readable();
        assert!(edited.is_unchanged_since(home(5), read));
        edited.record(&edits(&[home(5)]), 1);
        assert!(!edited.is_unchanged_since(home(5), read));
        assert!(edited.is_unchanged_since(home(6), read));
    }

    #[test]
    fn what_is_forgotten_is_not_taken_for_nothing() {
        let mut edited = RowEditHistory::default();
        let before = edited.readable();
        for id in 0..=MAX_REMEMBERED_EDITS as u64 {
            edited.record(&edits(&[home(id)]), id);
        }
        assert_eq!(edited.order.len(), MAX_REMEMBERED_EDITS);
        assert!(!edited.is_unchanged_since(home(0), before));
        edited.mark_readable_below(1);
        assert!(edited.is_unchanged_since(home(0), edited.readable()));
        assert!(!edited.is_unchanged_since(home(1), edited.readable()));
    }
}
