//! Transactions for tests: what they do to the tables, and what the log tells of it.

use std::collections::BTreeMap;

use headwater_timeline::index::{Change, PlaceId};

use crate::evidence::Key;

/// Where all of it happens.
pub(crate) const PLACE: PlaceId = PlaceId(0);

/// What a transaction does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A message comes or goes.
    Toggle(u64, Option<u64>),
    /// A message, if it is there, gets another author, or the same one, or loses it.
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

/// What is in the tables: of a message its author, if it has one.
pub(crate) type Rows = BTreeMap<Key, Option<u64>>;

/// Does it, and tells of it as the log does, where the row image is the least it can be (`binlog_row_image`) or all.
pub(crate) fn act(act: &Act, minimal: bool, rows: &mut Rows, changes: &mut Vec<(PlaceId, Change)>) {
    let mut tell = |change| changes.push((PLACE, change));
    let removed = |before: Option<u64>, id| match before {
        _ if minimal => Some(Change::Removed {
            author: None,
            key: 0,
            id,
        }),
        Some(author) => Some(Change::Removed {
            author: Some(author),
            key: 0,
            id,
        }),
        None => None,
    };
    let posted = |now: Option<u64>, id| now.map(|author| Change::Posted { author, key: 0, id });
    match *act {
        Act::Toggle(id, author) => match rows.remove(&Key::message(PLACE, id)) {
            Some(before) => removed(before, id).into_iter().for_each(tell),
            None => {
                rows.insert(Key::message(PLACE, id), author);
                posted(author, id).into_iter().for_each(tell);
            }
        },
        Act::Move(id, author) => {
            if let Some(row) = rows.get_mut(&Key::message(PLACE, id)) {
                if minimal || *row != author {
                    let told = removed(*row, id).into_iter().chain(posted(author, id));
                    told.for_each(tell);
                }
                *row = author;
            }
        }
        Act::Edge(reader) => {
            let (key, author) = (Key::follow(PLACE, reader, 1), 1);
            if rows.remove(&key).is_some() {
                tell(Change::Unfollowed { reader, author });
            } else {
                rows.insert(key, Some(author));
                tell(Change::Followed { reader, author });
            }
        }
        Act::Nothing(id) => match rows.get(&Key::message(PLACE, id)) {
            Some(author) => {
                let told = removed(*author, id).into_iter().chain(posted(*author, id));
                told.for_each(tell);
            }
            None => {
                let told = posted(Some(1), id).into_iter().chain(removed(Some(1), id));
                told.for_each(tell);
            }
        },
    }
}
