//! Transactions for tests: what they do to the tables, and what the log tells of it.

use std::collections::BTreeMap;

use headwater_timeline::index::{Change, PlaceId};

use crate::evidence::{Found, Key, Message, State, Table};

/// Where all of it happens.
pub(crate) const PLACE: PlaceId = PlaceId(0);

/// What a transaction does. What a message is stands for its author and its key: see [`message`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A message comes or goes.
    Toggle(u64, Option<u64>),
    /// A message, if it is there, gets another author or key, or the same ones, or loses its author.
    Move(u64, Option<u64>),
    /// A follow comes or goes.
    Edge(u64),
    /// A message comes and goes at once, or goes and comes again.
    Nothing(u64),
}

impl Act {
    /// The row that it changes.
    pub(crate) fn row(&self) -> Key {
        match *self {
            Act::Toggle(id, _) | Act::Move(id, _) | Act::Nothing(id) => Key::message(PLACE, id),
            Act::Edge(reader) => Key::follow(PLACE, reader, 1),
        }
    }
}

/// Two of one author, with different keys, and so on.
pub(crate) fn message(number: u64) -> Message {
    Message {
        author: number / 2,
        key: 1 + number % 2,
    }
}

/// What is in the tables: of a message what matters of it, if it has an author.
pub(crate) type Rows = BTreeMap<Key, Option<Message>>;

/// What is found of a row that is there; of one without an author nothing is.
pub(crate) fn found(rows: &Rows, key: &Key) -> Option<State> {
    let message = (*rows.get(key)?)?;
    Some(match key.table {
        Table::Message => State::Present(Some(message)),
        Table::Follower | Table::Referred => State::Present(None),
    })
}

/// What is found of these rows.
pub(crate) fn all_found<'a>(rows: &Rows, keys: impl Iterator<Item = &'a Key>) -> Found {
    keys.filter_map(|key| Some((*key, found(rows, key)?)))
        .collect()
}

/// Does it, and tells of it as the log does, where the row image is the least it can be (`binlog_row_image`) or all.
pub(crate) fn act(act: &Act, minimal: bool, rows: &mut Rows, changes: &mut Vec<(PlaceId, Change)>) {
    let mut tell = |change| changes.push((PLACE, change));
    let removed = |before: Option<Message>, id| match before {
        _ if minimal => Some(Change::Removed {
            author: None,
            key: 0,
            id,
        }),
        Some(Message { author, key }) => Some(Change::Removed {
            author: Some(author),
            key,
            id,
        }),
        None => None,
    };
    let posted = |now: Option<Message>, id| {
        now.map(|Message { author, key }| Change::Posted { author, key, id })
    };
    match *act {
        Act::Toggle(id, number) => match rows.remove(&Key::message(PLACE, id)) {
            Some(before) => removed(before, id).into_iter().for_each(tell),
            None => {
                let now = number.map(message);
                rows.insert(Key::message(PLACE, id), now);
                posted(now, id).into_iter().for_each(tell);
            }
        },
        Act::Move(id, number) => {
            let now = number.map(message);
            if let Some(row) = rows.get_mut(&Key::message(PLACE, id)) {
                if minimal || *row != now {
                    let told = removed(*row, id).into_iter().chain(posted(now, id));
                    told.for_each(tell);
                }
                *row = now;
            }
        }
        Act::Edge(reader) => {
            let (key, author) = (Key::follow(PLACE, reader, 1), 1);
            if rows.remove(&key).is_some() {
                tell(Change::Unfollowed { reader, author });
            } else {
                rows.insert(key, Some(Message { author, key: 0 }));
                tell(Change::Followed { reader, author });
            }
        }
        Act::Nothing(id) => match rows.get(&Key::message(PLACE, id)) {
            Some(row) => {
                let told = removed(*row, id).into_iter().chain(posted(*row, id));
                told.for_each(tell);
            }
            None => {
                let now = Some(message(1));
                let told = posted(now, id).into_iter().chain(removed(now, id));
                told.for_each(tell);
            }
        },
    }
}
