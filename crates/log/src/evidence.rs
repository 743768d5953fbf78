//! What the rows of the tables tell of the transactions that changed them.

use std::collections::{HashMap, VecDeque};

use headwater_timeline::index::{Change, PlaceId};

/// What a table is for: one of a timeline's two, or one whose rows are shown beside messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Messages.
    Message,
    /// Follows.
    Follower,
    /// Rows that messages refer to: that they were edited is all that matters of them.
    Referred,
}

/// A row: of a place's table, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The place's number.
    pub place: PlaceId,
    /// Which of its tables.
    pub table: Table,
    /// The message's id, or the reader.
    pub first: u64,
    /// The author followed; 0 for a message.
    pub second: u64,
}

/// What matters of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whose it is.
    pub author: u64,
    /// Its key, where pages are ordered by one; else 0.
    pub key: u64,
}

/// What a row is, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not there.
    Absent,
    /// There, and this message; `None`: a follow.
    Present(Option<Message>),
    /// Not told.
    Unknown,
}

impl Key {
    /// A message's.
    #[must_use]
    pub fn message(place: PlaceId, id: u64) -> Key {
        Key {
            place,
            table: Table::Message,
            first: id,
            second: 0,
        }
    }

    /// A follow's.
    #[must_use]
    pub fn follow(place: PlaceId, reader: u64, author: u64) -> Key {
        Key {
            place,
            table: Table::Follower,
            first: reader,
            second: author,
        }
    }

    /// True when a change of the whole table takes this row with it.
    pub fn is_lost_with(&self, (place, change): &(PlaceId, Change)) -> bool {
        let table = match change {
            Change::MessagesLost => Table::Message,
            Change::FollowsLost => Table::Follower,
            _ => return false,
        };
        (self.place, self.table) == (*place, table)
    }

    /// The row that a change is about; `None` where it is about a whole table.
    pub fn of((place, change): &(PlaceId, Change)) -> Option<Key> {
        match *change {
            Change::Posted { id, .. } | Change::Removed { id, .. } => {
                Some(Key::message(*place, id))
            }
            Change::Followed { reader, author } | Change::Unfollowed { reader, author } => {
                Some(Key::follow(*place, reader, author))
            }
            Change::MessagesLost | Change::FollowsLost => None,
        }
    }
}

impl State {
    /// What the row was before the first change of it that is known.
    pub fn before(change: &Change) -> State {
        match *change {
            // A row that moves to another author, or another key, is removed first.
            Change::Posted { .. } | Change::Followed { .. } => State::Absent,
            Change::Removed {
                author: Some(author),
                key,
                ..
            } => State::Present(Some(Message { author, key })),
            // It may have had no author: of such a message the log tells neither that it comes nor that it goes.
            Change::Removed { author: None, .. } => State::Unknown,
            Change::Unfollowed { .. } => State::Present(None),
            Change::MessagesLost | Change::FollowsLost => State::Unknown,
        }
    }

    /// What it is behind a change.
    #[must_use]
    pub fn after(change: &Change) -> State {
        match *change {
            Change::Posted { author, key, .. } => State::Present(Some(Message { author, key })),
            Change::Followed { .. } => State::Present(None),
            Change::Removed { .. } | Change::Unfollowed { .. } => State::Absent,
            Change::MessagesLost | Change::FollowsLost => State::Unknown,
        }
    }

    fn may_be(self, seen: State) -> bool {
        match (self, seen) {
            (State::Unknown, _) | (_, State::Unknown) => true,
            (State::Absent, State::Absent) => true,
            (State::Present(own), State::Present(seen)) => {
                own.is_none() || seen.is_none() || own == seen
            }
            _ => false,
        }
    }
}

/// Rows that were found, and what they were; others were not there.
pub type Found = HashMap<Key, State>;

/// What a row was, and what it became with each transaction that changed it, by their numbers.
#[derive(Clone, Debug)]
pub struct History {
    start: State,
    changes: VecDeque<(u64, State)>,
}

impl History {
    /// A row that nothing has changed yet.
    #[must_use]
    pub fn from(start: State) -> History {
        History {
            start,
            changes: VecDeque::new(),
        }
    }

    /// With transaction `number` the row became this.
    pub fn note(&mut self, number: u64, state: State) {
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
    pub fn with_unknowns(&self, numbers: impl Iterator<Item = u64>) -> History {
        let mut history = self.clone();
        let mut any = false;
        for number in numbers {
            any = true;
            history.changes.push_back((number, State::Unknown));
        }
        if any {
            // What it was before its own first change is not known either.
            history.start = State::Unknown;
            // Stable: what a transaction did behind its loss stays behind it.
            history
                .changes
                .make_contiguous()
                .sort_by_key(|(number, _)| *number);
        }
        history
    }

    /// True if the row can be as it was seen with any number of readable transactions.
    pub fn fits(&self, seen: State, first: u64, end: u64) -> bool {
        !self.fitting(seen, first, end).is_empty()
    }

    /// Numbers of readable transactions with which the row can be as it was seen: from each first one up
    /// to and without each second one.
    fn fitting(&self, seen: State, first: u64, end: u64) -> Vec<(u64, u64)> {
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
            .filter(|((_, state), _)| state.may_be(seen))
            .map(|((from, _), until)| (from, until))
            .filter(|(from, until)| from < until)
            .collect()
    }
}

/// The least and the greatest number of transactions, counted from the start of the stream, that can have been readable
/// when the rows were seen, from `first` to `end`. `None`: no number fits.
pub fn cuts<'a>(
    first: u64,
    end: u64,
    rows: impl Iterator<Item = (&'a History, State)>,
) -> Option<(u64, u64)> {
    let mut possible = vec![(first, end + 1)];
    for (row, seen) in rows {
        let fitting = row.fitting(seen, first, end);
        possible = common(&possible, &fitting);
    }
    let least = possible.first()?.0;
    let most = possible.last()?.1 - 1;
    Some((least, most))
}

/// What two ascending lists of ranges have in common.
fn common(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
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
