//! Scripted transactions for tests: what they do to the tables, and what the log then contains.

use std::collections::BTreeMap;

use headwater_timeline::index::{TimelineChange, TimelineId};

use crate::evidence::{MessageAttributes, ObservedRows, RowState, TableRole, TableRowKey};

/// The only timeline of the scripts.
pub(crate) const TIMELINE: TimelineId = TimelineId(0);

/// A step of a transaction. A message is given as a number for its author and key: see [`message`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptedChange {
    /// A message is inserted or removed.
    Toggle(u64, Option<u64>),
    /// A message, if it exists, gets another author or key, or the same ones, or loses its author.
    Move(u64, Option<u64>),
    ToggleFollow(u64),
    /// A message is inserted and removed in one transaction, or removed and inserted again.
    Nothing(u64),
}

impl ScriptedChange {
    pub(crate) fn row(&self) -> TableRowKey {
        match *self {
            ScriptedChange::Toggle(id, _)
            | ScriptedChange::Move(id, _)
            | ScriptedChange::Nothing(id) => TableRowKey::message(TIMELINE, id),
            ScriptedChange::ToggleFollow(reader) => TableRowKey::follow(TIMELINE, reader, 1),
        }
    }
}

/// Consecutive numbers give the same author with different keys.
pub(crate) fn message(number: u64) -> MessageAttributes {
    MessageAttributes {
        author: number / 2,
        key: 1 + number % 2,
    }
}

/// The rows of the tables; for a message its attributes, if it has an author.
pub(crate) type ScriptedRows = BTreeMap<TableRowKey, Option<MessageAttributes>>;

/// The state that a probe finds for a row; `None` for one without an author.
pub(crate) fn observed_state(rows: &ScriptedRows, key: &TableRowKey) -> Option<RowState> {
    let message = (*rows.get(key)?)?;
    Some(match key.table {
        TableRole::Message => RowState::Present(Some(message)),
        TableRole::Follower | TableRole::Referred => RowState::Present(None),
    })
}

/// The states that a probe finds for these rows.
pub(crate) fn observe<'a>(
    rows: &ScriptedRows,
    keys: impl Iterator<Item = &'a TableRowKey>,
) -> ObservedRows {
    keys.filter_map(|key| Some((*key, observed_state(rows, key)?)))
        .collect()
}

/// Executes a step and adds the changes that the log contains, with a minimal or full row image (`binlog_row_image`).
pub(crate) fn execute(
    act: &ScriptedChange,
    minimal: bool,
    rows: &mut ScriptedRows,
    changes: &mut Vec<(TimelineId, TimelineChange)>,
) {
    let mut log = |change| changes.push((TIMELINE, change));
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
                Some(before) => removed(before, id).into_iter().for_each(log),
                None => {
                    let now = number.map(message);
                    rows.insert(TableRowKey::message(TIMELINE, id), now);
                    posted(now, id).into_iter().for_each(log);
                }
            }
        }
        ScriptedChange::Move(id, number) => {
            let now = number.map(message);
            if let Some(row) = rows.get_mut(&TableRowKey::message(TIMELINE, id)) {
                if minimal || *row != now {
                    let logged = removed(*row, id).into_iter().chain(posted(now, id));
                    logged.for_each(log);
                }
                *row = now;
            }
        }
        ScriptedChange::ToggleFollow(reader) => {
            let (key, author) = (TableRowKey::follow(TIMELINE, reader, 1), 1);
            if rows.remove(&key).is_some() {
                log(TimelineChange::Unfollowed { reader, author });
            } else {
                rows.insert(key, Some(MessageAttributes { author, key: 0 }));
                log(TimelineChange::Followed { reader, author });
            }
        }
        ScriptedChange::Nothing(id) => match rows.get(&TableRowKey::message(TIMELINE, id)) {
            Some(row) => {
                let logged = removed(*row, id).into_iter().chain(posted(*row, id));
                logged.for_each(log);
            }
            None => {
                let now = Some(message(1));
                let logged = posted(now, id).into_iter().chain(removed(now, id));
                logged.for_each(log);
            }
        },
    }
}
