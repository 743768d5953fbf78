//! Rows of the control connections as numbers. What is no number is told as such: nothing here panics.

use std::collections::HashMap;

use mysql_async::Row;

use super::events::file_number;
use super::evidence::{Key, Table};
use crate::index::Position;

/// The first cells of a row; `None` when one of them is not a number from 0 on.
pub(super) fn numbers<const N: usize>(row: &Row) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = row.get_opt::<u64, usize>(at)?.ok()?;
    }
    Some(numbers)
}

/// All rows as numbers.
pub(super) fn all<const N: usize>(rows: &[Row]) -> Option<Vec<[u64; N]>> {
    rows.iter().map(numbers).collect()
}

/// The cells of a row as texts.
pub(super) fn texts<const N: usize>(row: &Row) -> Option<[String; N]> {
    let mut texts = [const { String::new() }; N];
    for (at, text) in texts.iter_mut().enumerate() {
        *text = row.get_opt::<String, usize>(at)?.ok()?;
    }
    Some(texts)
}

/// The rows that an evidence query found, with their authors.
pub(super) fn found(rows: &[Row]) -> Option<HashMap<Key, u64>> {
    let rows = all::<5>(rows)?;
    let rows = rows
        .into_iter()
        .map(|[place, table, first, second, author]| {
            let key = Key {
                place: usize::try_from(place).ok()?,
                table: if table == 0 {
                    Table::Message
                } else {
                    Table::Follower
                },
                first,
                second,
            };
            Some((key, author))
        });
    rows.collect()
}

/// The position in a row of SHOW BINARY LOG STATUS; one beyond everything where there is none.
pub(super) fn position(row: Option<&Row>) -> Position {
    let never = Position {
        file: u64::MAX,
        offset: u64::MAX,
    };
    let file = row.and_then(|row| row.get_opt::<String, usize>(0)?.ok());
    let number = file
        .as_deref()
        .and_then(file_number)
        .map(|(_, number)| number);
    let offset = row.and_then(|row| row.get_opt::<u64, usize>(1)?.ok());
    match (number, offset) {
        (Some(file), Some(offset)) => Position { file, offset },
        _ => never,
    }
}
