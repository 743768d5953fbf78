//! Transactions for tests: what they do to the tables, and what the log tells of it.

use std::collections::BTreeMap;

use headwater_timeline::index::{TimelineChange, TimelineId};

use crate::evidence::{MessageAttributes, ObservedRows, RowState, TableRole, TableRowKey};

/// Where all of it happens.
pub(crate) const TIMELINE: TimelineId = TimelineId(0);

/// What a transaction does. What a message is stands for its author and its key: see [`message`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptedChange {
    /// A message comes or goes.
    Toggle(u64, Option<u64>),
    /// A message, if it is there, gets another author or key, or the same ones, or loses its author.
    Move(u64, Option<u64>),
    /// A follow comes or goes.
    ToggleFollow(u64),
    /// A message comes and goes at once, or goes and comes again.
    Nothing(u64),
}

impl ScriptedChange {
    /// The row that it changes.
    pub(crate) fn row(&self) -> TableRowKey {
        match *self {
            ScriptedChange::Toggle(id, _)
            | ScriptedChange::Move(id, _)
            | ScriptedChange::Nothing(id) => TableRowKey::message(TIMELINE, id),
            ScriptedChange::ToggleFollow(reader) => TableRowKey::follow(TIMELINE, reader, 1),
        }
    }
}

/// Two of one author, with different keys, and so on.
pub(crate) fn message(number: u64) -> MessageAttributes {
    MessageAttributes {
        author: number / 2,
        key: 1 + number % 2,
    }
}

/// What is in the tables: of a message what matters of it, if it has an author.
pub(crate) type ScriptedRows = BTreeMap<TableRowKey, Option<MessageAttributes>>;

/// What is found of a row that is there; of one without an author nothing is.
pub(crate) fn observed_state(rows: &ScriptedRows, key: &TableRowKey) -> Option<RowState> {
    let message = (*rows.get(key)?)?;
    Some(match key.table {
        TableRole::Message => RowState::Present(Some(message)),
        TableRole::Follower | TableRole::Referred => RowState::Present(None),
    })
}

/// What is found of these rows.
pub(crate) fn observe<'a>(
    rows: &ScriptedRows,
    keys: impl Iterator<Item = &'a TableRowKey>,
) -> ObservedRows {
    keys.filter_map(|key| Some((*key, observed_state(rows, key)?)))
        .collect()
}

/// Does it, and tells of it as the log does, where the row image is the least it can be (`binlog_row_image`) or all.
pub(crate) fn execute(
    act: &ScriptedChange,
    minimal: bool,
    rows: &mut ScriptedRows,
    changes: &mut Vec<(TimelineId, TimelineChange)>,
) {
    let mut tell = |change| changes.push((TIMELINE, change));
    let removed = |before: Option<MessageAttributes>, id| match before {
        _ if minimal => Some(TimelineChange::Removed {
            author: None,
            key: 0,
            id,
        }),
        Some(MessageAttributes { author, key }) => Some(TimelineChange::Removed {
            author: Some(author),
            key,
            id,
        }),
        None => None,
    };
    let posted = |now: Option<MessageAttributes>, id| {
        now.map(|MessageAttributes { author, key }| TimelineChange::Posted { author, key, id })
    };
    match *act {
        ScriptedChange::Toggle(id, number) => {
            match rows.remove(&TableRowKey::message(TIMELINE, id)) {
                Some(before) => removed(before, id).into_iter().for_each(tell),
                None => {
                    let now = number.map(message);
                    rows.insert(TableRowKey::message(TIMELINE, id), now);
                    posted(now, id).into_iter().for_each(tell);
                }
            }
        }
        ScriptedChange::Move(id, number) => {
            let now = number.map(message);
            if let Some(row) = rows.get_mut(&TableRowKey::message(TIMELINE, id)) {
                if minimal || *row != now {
                    let told = removed(*row, id).into_iter().chain(posted(now, id));
                    told.for_each(tell);
                }
                *row = now;
            }
        }
        ScriptedChange::ToggleFollow(reader) => {
            let (key, author) = (TableRowKey::follow(TIMELINE, reader, 1), 1);
            if rows.remove(&key).is_some() {
                tell(TimelineChange::Unfollowed { reader, author });
            } else {
                rows.insert(key, Some(MessageAttributes { author, key: 0 }));
                tell(TimelineChange::Followed { reader, author });
            }
        }
        ScriptedChange::Nothing(id) => match rows.get(&TableRowKey::message(TIMELINE, id)) {
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
