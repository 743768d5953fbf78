//! The apps' writes: random edits, written as statements, and parsed by the model server.

use crate::model::{ModelState, ModelTable, RowEdit, WorldRow, key, name, text};
use crate::random::Random;
use crate::sql::CellValue;

/// The number of readers, and of authors.
pub(crate) const READERS: u64 = 6;
pub(crate) const AUTHORS: u64 = 8;

/// A random edit that is possible in this state: mostly an inserted message.
pub(crate) fn drawn(state: &ModelState, random: &mut Random) -> RowEdit {
    let (messages, follows) = match random.below(2) {
        0 => (ModelTable::Message, ModelTable::Follower),
        _ => (ModelTable::Statuses, ModelTable::Followers),
    };
    let all: Vec<WorldRow> = state.rows(messages).collect();
    let row = |table, before, after| RowEdit {
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

/// An edit of a table that is shown with messages, or filters them.
fn beside(state: &ModelState, random: &mut Random) -> RowEdit {
    let author = 1 + random.below(AUTHORS);
    let version = random.below(1000);
    let (table, row) = match random.below(2) {
        0 => (ModelTable::Blocks, (1 + random.below(READERS), author, 0)),
        _ => (ModelTable::Profiles, (author, 0, version)),
    };
    let before = state.like(table, row);
    let goes = before.is_some() && (table == ModelTable::Blocks || random.one_in(4));
    RowEdit {
        table,
        before,
        after: (!goes).then_some(row),
    }
}

/// The statement that makes an edit.
pub(crate) fn statement(edit: RowEdit) -> String {
    let table = edit.table;
    let (whose, columns) = (table.name(), table.columns());
    let condition = |row: WorldRow| match table {
        ModelTable::Message | ModelTable::Statuses | ModelTable::Profiles => {
            format!("id = {}", row.0)
        }
        ModelTable::Follower => format!("user_id = {} AND follower_id = {}", row.0, row.1),
        ModelTable::Followers => format!("profile_id = {} AND following_id = {}", row.0, row.1),
        ModelTable::Blocks => format!("profile_id = {} AND blocked_id = {}", row.0, row.1),
    };
    match (edit.before, edit.after) {
        (None, Some(row)) => {
            let cells = table.cells(row).into_iter().map(|cell| match cell {
                CellValue::Text(text) => format!("'{text}'"),
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
                ModelTable::Message | ModelTable::Statuses => format!(
                    "{} = {}, {} = '{}'",
                    columns[1],
                    after.1,
                    columns[2],
                    text(after)
                ),
                ModelTable::Follower => format!("follower_id = {}", after.1),
                ModelTable::Followers => format!("following_id = {}, id = {}", after.1, key(after)),
                ModelTable::Blocks => format!("blocked_id = {}", after.1),
                ModelTable::Profiles => format!("name = '{}'", name(after)),
            };
            format!("UPDATE {whose} SET {set} WHERE {}", condition(row))
        }
        (Some(row), None) => format!("DELETE FROM {whose} WHERE {}", condition(row)),
        (None, None) => String::new(),
    }
}

/// Parses a statement of [`statement`]. Before images have no version: it is that of the current row.
pub(crate) fn read(statement: &str) -> Option<RowEdit> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let name = match words[..] {
        ["INSERT", "INTO", name, ..] | ["DELETE", "FROM", name, ..] | ["UPDATE", name, ..] => name,
        _ => return None,
    };
    let table = ModelTable::named(name)?;
    let numbers = statement.split(|it: char| !it.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|it| it.parse().ok()).collect();
    let (before, after) = match (words[0], table, &numbers[..]) {
        ("INSERT", ModelTable::Message | ModelTable::Statuses, &[id, author, .., version]) => {
            (None, Some((id, author, version)))
        }
        ("INSERT", ModelTable::Profiles, &[author, .., version]) => {
            (None, Some((author, 0, version)))
        }
        ("INSERT", _, &[.., reader, author]) => (None, Some((reader, author, 0))),
        ("DELETE", ModelTable::Message | ModelTable::Statuses | ModelTable::Profiles, &[id]) => {
            (Some((id, 0, 0)), None)
        }
        ("DELETE", _, &[reader, author]) => (Some((reader, author, 0)), None),
        ("UPDATE", ModelTable::Message | ModelTable::Statuses, &[author, _, _, version, id]) => {
            (Some((id, 0, 0)), Some((id, author, version)))
        }
        ("UPDATE", ModelTable::Profiles, &[_, version, author]) => {
            (Some((author, 0, 0)), Some((author, 0, version)))
        }
        ("UPDATE", _, &[to, .., reader, author]) => {
            (Some((reader, author, 0)), Some((reader, to, 0)))
        }
        _ => return None,
    };
    Some(RowEdit {
        table,
        before,
        after,
    })
}
