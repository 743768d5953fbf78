//! What observed rows prove about the transactions that changed them.

use std::collections::{HashMap, VecDeque};

use headwater_timeline::index::{TimelineChange, TimelineId};

/// The role of a table: a timeline's messages or follows, or a joined table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableRole {
    /// Messages.
    Message,
    /// Follows.
    Follower,
    /// Rows that are shown beside messages: only the fact that they were edited matters.
    Referred,
}

/// The key of a row in one of a timeline's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableRowKey {
    /// The timeline.
    pub timeline_id: TimelineId,
    /// The table's role.
    pub table: TableRole,
    /// The message's id, or the reader of a follow.
    pub first: u64,
    /// The followed author; 0 for a message.
    pub second: u64,
}

/// The columns of a message that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageAttributes {
    /// The message's author.
    pub author: u64,
    /// The sort key, if pages are ordered by one; else 0.
    pub key: u64,
}

/// The state of a row at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// The row does not exist.
    Absent,
    /// The row exists with these attributes; `None` for a follow.
    Present(Option<MessageAttributes>),
    /// Not known.
    Unknown,
}

impl TableRowKey {
    /// The key of a message's row.
    #[must_use]
    pub fn message(timeline_id: TimelineId, id: u64) -> TableRowKey {
        TableRowKey {
            timeline_id,
            table: TableRole::Message,
            first: id,
            second: 0,
        }
    }

    /// The key of a follow's row.
    #[must_use]
    pub fn follow(timeline_id: TimelineId, reader: u64, author: u64) -> TableRowKey {
        TableRowKey {
            timeline_id,
            table: TableRole::Follower,
            first: reader,
            second: author,
        }
    }

    /// True if a change of the whole table affects this row.
    pub fn is_lost_with(&self, (timeline_id, change): &(TimelineId, TimelineChange)) -> bool {
        let table = match change {
            TimelineChange::MessagesLost => TableRole::Message,
            TimelineChange::FollowsLost => TableRole::Follower,
            _ => return false,
        };
        (self.timeline_id, self.table) == (*timeline_id, table)
    }

    /// The row that a change affects; `None` if it affects a whole table, or rows that are not told apart.
    pub fn changed_by((timeline_id, change): &(TimelineId, TimelineChange)) -> Option<TableRowKey> {
        match *change {
            TimelineChange::Posted { id, .. } | TimelineChange::Removed { id, .. } => {
                Some(TableRowKey::message(*timeline_id, id))
            }
            TimelineChange::Followed { reader, author }
            | TimelineChange::Unfollowed { reader, author } => {
                Some(TableRowKey::follow(*timeline_id, reader, author))
            }
            TimelineChange::FollowsChanged { .. }
            | TimelineChange::MessagesOfAuthorLost { .. }
            | TimelineChange::MessagesLost
            | TimelineChange::FollowsLost => None,
        }
    }
}

impl RowState {
    /// The state of the row before its first known change.
    pub fn before(change: &TimelineChange) -> RowState {
        match *change {
            // A row that moves to another author or sort key is removed first.
            TimelineChange::Posted { .. } | TimelineChange::Followed { .. } => RowState::Absent,
            TimelineChange::Removed {
                author: Some(author),
                key,
                ..
            } => RowState::Present(Some(MessageAttributes { author, key })),
            // It may have had no author. The log reports neither the insert nor the removal of such a message.
            TimelineChange::Removed { author: None, .. } => RowState::Unknown,
            TimelineChange::Unfollowed { .. } => RowState::Present(None),
            TimelineChange::FollowsChanged { .. }
            | TimelineChange::MessagesOfAuthorLost { .. }
            | TimelineChange::MessagesLost
            | TimelineChange::FollowsLost => RowState::Unknown,
        }
    }

    /// The state of the row after a change.
    #[must_use]
    pub fn after(change: &TimelineChange) -> RowState {
        match *change {
            TimelineChange::Posted { author, key, .. } => {
                RowState::Present(Some(MessageAttributes { author, key }))
            }
            TimelineChange::Followed { .. } => RowState::Present(None),
            TimelineChange::Removed { .. } | TimelineChange::Unfollowed { .. } => RowState::Absent,
            TimelineChange::FollowsChanged { .. }
            | TimelineChange::MessagesOfAuthorLost { .. }
            | TimelineChange::MessagesLost
            | TimelineChange::FollowsLost => RowState::Unknown,
        }
    }

    fn is_compatible_with(self, observed: RowState) -> bool {
        match (self, observed) {
            (RowState::Unknown, _) | (_, RowState::Unknown) => true,
            (RowState::Absent, RowState::Absent) => true,
            (RowState::Present(expected), RowState::Present(attributes)) => {
                expected.is_none() || attributes.is_none() || expected == attributes
            }
            _ => false,
        }
    }
}

/// Rows that a probe returned, with their states. Rows that are not in it do not exist.
pub type ObservedRows = HashMap<TableRowKey, RowState>;

/// A row's initial state, and its state after each transaction that changed it, by transaction number.
#[derive(Clone, Debug)]
pub struct RowHistory {
    start: RowState,
    changes: VecDeque<(u64, RowState)>,
}

impl RowHistory {
    /// A row without changes so far.
    #[must_use]
    pub fn starting_as(start: RowState) -> RowHistory {
        RowHistory {
            start,
            changes: VecDeque::new(),
        }
    }

    /// Records the row's state after transaction `number`.
    pub fn record(&mut self, number: u64, state: RowState) {
        match self.changes.back_mut() {
            // Only the last change within a transaction counts.
            Some(last) if last.0 == number => last.1 = state,
            _ => self.changes.push_back((number, state)),
        }
    }

    /// Drops changes with lower numbers. False if none remain.
    pub fn forget_before(&mut self, number: u64) -> bool {
        while let Some((_, state)) = self
            .changes
            .front()
            .filter(|(change_number, _)| *change_number < number)
        {
            self.start = *state;
            self.changes.pop_front();
        }
        !self.changes.is_empty()
    }

    /// A copy in which the row's state is unknown after these transactions.
    pub fn with_unknowns(&self, numbers: impl Iterator<Item = u64>) -> RowHistory {
        let mut history = self.clone();
        let mut any = false;
        for number in numbers {
            any = true;
            history.changes.push_back((number, RowState::Unknown));
        }
        if any {
            // The state before the row's first change is then unknown too.
            history.start = RowState::Unknown;
            // Stable: what a transaction did after the loss stays after it.
            history
                .changes
                .make_contiguous()
                .sort_by_key(|(number, _)| *number);
        }
        history
    }

    /// True if the row can have this state with some number of readable transactions from `first` to `end`.
    pub fn is_consistent_with(&self, observed: RowState, first: u64, end: u64) -> bool {
        !self.matching_ranges(observed, first, end).is_empty()
    }

    /// The numbers of readable transactions for which the row can have this state, as half-open ranges.
    fn matching_ranges(&self, observed: RowState, first: u64, end: u64) -> Vec<(u64, u64)> {
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
            .filter(|((_, state), _)| state.is_compatible_with(observed))
            .map(|((from, _), until)| (from, until))
            .filter(|(from, until)| from < until)
            .collect()
    }
}

/// The smallest and largest number of transactions, counted from the start of the stream, that can have been readable when the rows
/// were observed, from `first` to `end`. `None`: no number matches.
pub fn watermark_bounds<'a>(
    first: u64,
    end: u64,
    rows: impl Iterator<Item = (&'a RowHistory, RowState)>,
) -> Option<(u64, u64)> {
    let mut possible = vec![(first, end + 1)];
    for (row, observed) in rows {
        let fitting = row.matching_ranges(observed, first, end);
        possible = intersection(&possible, &fitting);
    }
    let least = possible.first()?.0;
    let most = possible.last()?.1 - 1;
    Some((least, most))
}

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
