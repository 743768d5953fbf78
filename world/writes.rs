//! What an app writes: drawn, as a statement, and read again by the model server.

use crate::model::{Edit, Row, State, Table, key, name, text};
use crate::random::Random;
use crate::sql::Value;

/// Readers, and authors, are so many.
pub(crate) const READERS: u64 = 6;
pub(crate) const AUTHORS: u64 = 8;

/// An edit that makes sense in this state: mostly, a message is written.
pub(crate) fn drawn(state: &State, random: &mut Random) -> Edit {
    let (messages, follows) = match random.below(2) {
        0 => (Table::Message, Table::Follower),
        _ => (Table::Statuses, Table::Followers),
    };
    let all: Vec<Row> = state.rows(messages).collect();
    let row = |table, before, after| Edit {
        table,
        before,
        after,
    };
    match random.below(12) {
        6 if !all.is_empty() => row(messages, Some(*random.pick(&all)), None),
        7 if !all.is_empty() => {
            let newest = all.len().saturating_sub(12);
            let before @ (id, author, version) = *random.pick(&all[newest..]);
            let author = match random.below(3) {
                0 => 1 + random.below(AUTHORS),
                _ => author,
            };
            row(messages, Some(before), Some((id, author, version + 1)))
        }
        5 => beside(state, random),
        8.. => {
            let follow = (1 + random.below(READERS), 1 + random.below(AUTHORS), 0);
            let other = (follow.0, 1 + random.below(AUTHORS), 0);
            match state.like(follows, follow) {
                None => row(follows, None, Some(follow)),
                is if random.one_in(4) && state.like(follows, other).is_none() => {
                    row(follows, is, Some(other))
                }
                is => row(follows, is, None),
            }
        }
        _ => {
            let id = state.newest(messages) + 1 + random.below(2);
            row(messages, None, Some((id, 1 + random.below(AUTHORS), 0)))
        }
    }
}

/// An edit of what is shown beside messages, or decides which are shown.
fn beside(state: &State, random: &mut Random) -> Edit {
    let author = 1 + random.below(AUTHORS);
    let version = random.below(1000);
    let (table, row) = match random.below(2) {
        0 => (Table::Blocks, (1 + random.below(READERS), author, 0)),
        _ => (Table::Profiles, (author, 0, version)),
    };
    let before = state.like(table, row);
    let goes = before.is_some() && (table == Table::Blocks || random.one_in(4));
    Edit {
        table,
        before,
        after: (!goes).then_some(row),
    }
}

/// The statement that makes an edit.
pub(crate) fn statement(edit: Edit) -> String {
    let table = edit.table;
    let (whose, columns) = (table.name(), table.columns());
    let condition = |row: Row| match table {
        Table::Message | Table::Statuses | Table::Profiles => format!("id = {}", row.0),
        Table::Follower => format!("user_id = {} AND follower_id = {}", row.0, row.1),
        Table::Followers => format!("profile_id = {} AND following_id = {}", row.0, row.1),
        Table::Blocks => format!("profile_id = {} AND blocked_id = {}", row.0, row.1),
    };
    match (edit.before, edit.after) {
        (None, Some(row)) => {
            let cells = table.cells(row).into_iter().map(|cell| match cell {
                Value::Text(text) => format!("'{text}'"),
                other => other.to_string(),
            });
            let cells = cells.collect::<Vec<_>>().join(", ");
            format!(
                "INSERT INTO {whose} ({}) VALUES ({cells})",
                columns.join(", ")
            )
        }
        (Some(row), Some(after)) => {
            let set = match table {
                Table::Message | Table::Statuses => format!(
                    "{} = {}, {} = '{}'",
                    columns[1],
                    after.1,
                    columns[2],
                    text(after)
                ),
                Table::Follower => format!("follower_id = {}", after.1),
                Table::Followers => format!("following_id = {}, id = {}", after.1, key(after)),
                Table::Blocks => format!("blocked_id = {}", after.1),
                Table::Profiles => format!("name = '{}'", name(after)),
            };
            format!("UPDATE {whose} SET {set} WHERE {}", condition(row))
        }
        (Some(row), None) => format!("DELETE FROM {whose} WHERE {}", condition(row)),
        (None, None) => String::new(),
    }
}

/// A statement that `statement` made. Before images have no version: it is that of the row that is there.
pub(crate) fn read(statement: &str) -> Option<Edit> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let name = match words[..] {
        ["INSERT", "INTO", name, ..] | ["DELETE", "FROM", name, ..] | ["UPDATE", name, ..] => name,
        _ => return None,
    };
    let table = Table::named(name)?;
    let numbers = statement.split(|it: char| !it.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|it| it.parse().ok()).collect();
    let (before, after) = match (words[0], table, &numbers[..]) {
        ("INSERT", Table::Message | Table::Statuses, &[id, author, .., version]) => {
            (None, Some((id, author, version)))
        }
        ("INSERT", Table::Profiles, &[author, .., version]) => (None, Some((author, 0, version))),
        ("INSERT", _, &[.., reader, author]) => (None, Some((reader, author, 0))),
        ("DELETE", Table::Message | Table::Statuses | Table::Profiles, &[id]) => {
            (Some((id, 0, 0)), None)
        }
        ("DELETE", _, &[reader, author]) => (Some((reader, author, 0)), None),
        ("UPDATE", Table::Message | Table::Statuses, &[author, _, _, version, id]) => {
            (Some((id, 0, 0)), Some((id, author, version)))
        }
        ("UPDATE", Table::Profiles, &[_, version, author]) => {
            (Some((author, 0, 0)), Some((author, 0, version)))
        }
        ("UPDATE", _, &[to, .., reader, author]) => {
            (Some((reader, author, 0)), Some((reader, to, 0)))
        }
        _ => return None,
    };
    Some(Edit {
        table,
        before,
        after,
    })
}
