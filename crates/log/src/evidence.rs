//! What the rows of the tables tell of the transactions that changed them.

use std::collections::{HashMap, VecDeque};

use headwater_timeline::index::{TimelineChange, TimelineId};

/// What a table is for: one of a timeline's two, or one whose rows are shown beside messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableRole {
    /// Messages.
    Message,
    /// Follows.
    Follower,
    /// Rows that messages refer to: that they were edited is all that matters of them.
    Referred,
}

/// A row: of a place's table, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableRowKey {
    /// The place's number.
    pub timeline_id: TimelineId,
    /// Which of its tables.
    pub table: TableRole,
    /// The message's id, or the reader.
    pub first: u64,
    /// The author followed; 0 for a message.
    pub second: u64,
}

/// What matters of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageAttributes {
    /// Whose it is.
    pub author: u64,
    /// Its key, where pages are ordered by one; else 0.
    pub key: u64,
}

/// What a row is, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// Not there.
    Absent,
    /// There, and this message; `None`: a follow.
    Present(Option<MessageAttributes>),
    /// Not told.
    Unknown,
}

impl TableRowKey {
    /// A message's.
    #[must_use]
    pub fn message(place: TimelineId, id: u64) -> TableRowKey {
        TableRowKey {
            timeline_id: place,
            table: TableRole::Message,
            first: id,
            second: 0,
        }
    }

    /// A follow's.
    #[must_use]
    pub fn follow(place: TimelineId, reader: u64, author: u64) -> TableRowKey {
        TableRowKey {
            timeline_id: place,
            table: TableRole::Follower,
            first: reader,
            second: author,
        }
    }

    /// True when a change of the whole table takes this row with it.
    pub fn is_lost_with(&self, (place, change): &(TimelineId, TimelineChange)) -> bool {
        let table = match change {
            TimelineChange::MessagesLost => TableRole::Message,
            TimelineChange::FollowsLost => TableRole::Follower,
            _ => return false,
        };
        (self.timeline_id, self.table) == (*place, table)
    }

    /// The row that a change is about; `None` where it is about a whole table.
    pub fn changed_by((place, change): &(TimelineId, TimelineChange)) -> Option<TableRowKey> {
        match *change {
            TimelineChange::Posted { id, .. } | TimelineChange::Removed { id, .. } => {
                Some(TableRowKey::message(*place, id))
            }
            TimelineChange::Followed { reader, author }
            | TimelineChange::Unfollowed { reader, author } => {
                Some(TableRowKey::follow(*place, reader, author))
            }
            TimelineChange::MessagesLost | TimelineChange::FollowsLost => None,
        }
    }
}

impl RowState {
    /// What the row was before the first change of it that is known.
    pub fn before(change: &TimelineChange) -> RowState {
        match *change {
            // A row that moves to another author, or another key, is removed first.
            TimelineChange::Posted { .. } | TimelineChange::Followed { .. } => RowState::Absent,
            TimelineChange::Removed {
                author: Some(author),
                key,
                ..
            } => RowState::Present(Some(MessageAttributes { author, key })),
            // It may have had no author: of such a message the log tells neither that it comes nor that it goes.
            TimelineChange::Removed { author: None, .. } => RowState::Unknown,
            TimelineChange::Unfollowed { .. } => RowState::Present(None),
            TimelineChange::MessagesLost | TimelineChange::FollowsLost => RowState::Unknown,
        }
    }

    /// What it is behind a change.
    #[must_use]
    pub fn after(change: &TimelineChange) -> RowState {
        match *change {
            TimelineChange::Posted { author, key, .. } => {
                RowState::Present(Some(MessageAttributes { author, key }))
            }
            TimelineChange::Followed { .. } => RowState::Present(None),
            TimelineChange::Removed { .. } | TimelineChange::Unfollowed { .. } => RowState::Absent,
            TimelineChange::MessagesLost | TimelineChange::FollowsLost => RowState::Unknown,
        }
    }

    fn is_compatible_with(self, seen: RowState) -> bool {
        match (self, seen) {
            (RowState::Unknown, _) | (_, RowState::Unknown) => true,
            (RowState::Absent, RowState::Absent) => true,
            (RowState::Present(own), RowState::Present(seen)) => {
                own.is_none() || seen.is_none() || own == seen
            }
            _ => false,
        }
    }
}

/// Rows that were found, and what they were; others were not there.
pub type ObservedRows = HashMap<TableRowKey, RowState>;

/// What a row was, and what it became with each transaction that changed it, by their numbers.
#[derive(Clone, Debug)]
pub struct RowHistory {
    start: RowState,
    changes: VecDeque<(u64, RowState)>,
}

impl RowHistory {
    /// A row that nothing has changed yet.
    #[must_use]
    pub fn starting_as(start: RowState) -> RowHistory {
        RowHistory {
            start,
            changes: VecDeque::new(),
        }
    }

    /// With transaction `number` the row became this.
    pub fn record(&mut self, number: u64, state: RowState) {
        match self.changes.back_mut() {
            // Within a transaction only its last word counts.
            Some(last) if last.0 == number => last.1 = state,
            _ => self.changes.push_back((number, state)),
        }
    }

    /// Forgets changes with lower numbers than this. False when none are left.
    pub fn forget_before(&mut self, number: u64) -> bool {
        while let Some((_, state)) = self.changes.front().filter(|(own, _)| *own < number) {
            self.start = *state;
            self.changes.pop_front();
        }
        !self.changes.is_empty()
    }

    /// The same, where with some transactions it may have become anything.
    pub fn with_unknowns(&self, numbers: impl Iterator<Item = u64>) -> RowHistory {
        let mut history = self.clone();
        let mut any = false;
        for number in numbers {
            any = true;
            history.changes.push_back((number, RowState::Unknown));
        }
        if any {
            // What it was before its own first change is not known either.
            history.start = RowState::Unknown;
            // Stable: what a transaction did behind its loss stays behind it.
            history
                .changes
                .make_contiguous()
                .sort_by_key(|(number, _)| *number);
        }
        history
    }

    /// True if the row can be as it was seen with any number of readable transactions.
    pub fn is_consistent_with(&self, seen: RowState, first: u64, end: u64) -> bool {
        !self.matching_ranges(seen, first, end).is_empty()
    }

    /// Numbers of readable transactions with which the row can be as it was seen: from each first one up
    /// to and without each second one.
    fn matching_ranges(&self, seen: RowState, first: u64, end: u64) -> Vec<(u64, u64)> {
        let starts = std::iter::once((first, self.start)).chain(
            self.changes
                .iter()
                .map(|(number, state)| (number + 1, *state)),
        );
        let ends = self
            .changes
            .iter()
            .map(|(number, _)| number + 1)
            .chain(std::iter::once(end + 1));
        starts
            .zip(ends)
            .filter(|((_, state), _)| state.is_compatible_with(seen))
            .map(|((from, _), until)| (from, until))
            .filter(|(from, until)| from < until)
            .collect()
    }
}

/// The least and the greatest number of transactions, counted from the start of the stream, that can have been readable
/// when the rows were seen, from `first` to `end`. `None`: no number fits.
pub fn watermark_bounds<'a>(
    first: u64,
    end: u64,
    rows: impl Iterator<Item = (&'a RowHistory, RowState)>,
) -> Option<(u64, u64)> {
    let mut possible = vec![(first, end + 1)];
    for (row, seen) in rows {
        let fitting = row.matching_ranges(seen, first, end);
        possible = intersection(&possible, &fitting);
    }
    let least = possible.first()?.0;
    let most = possible.last()?.1 - 1;
    Some((least, most))
}

/// What two ascending lists of ranges have in common.
fn intersection(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut ones, mut others) = (one.iter().peekable(), other.iter().peekable());
    let mut both = Vec::new();
    while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
        let from = one.0.max(other.0);
        let until = one.1.min(other.1);
        if from < until {
            both.push((from, until));
        }
        if one.1 < other.1 {
            ones.next();
        } else {
            others.next();
        }
    }
    both
}
