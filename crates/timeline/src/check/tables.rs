//! Checks that a definition's tables exist, with the columns, types, keys and indexes that a timeline needs.

use std::sync::Arc;

use super::answers::{CheckAnswers, CheckRow};
use super::queries::CheckQuery;
use super::{RelayReason, TableStorage};
use crate::definition::{IdType, TimelineDefinition};

/// Returns the index that lookups use, and where the rows are stored.
///
/// # Errors
/// The first thing that is missing or differs.
pub(super) fn check_tables(
    definition: &TimelineDefinition,
    answers: CheckAnswers<'_>,
) -> Result<(String, TableStorage), RelayReason> {
    let TimelineDefinition {
        follower,
        message,
        id_type,
        user_type,
        ..
    } = definition;
    let storage = table_storage(&message.table, answers)?;
    // Statements that read local messages would wait for a data node once per author.
    if table_storage(&follower.table, answers)? == TableStorage::Spread
        && storage == TableStorage::Local
    {
        return Err(RelayReason::NotBaseTable {
            table: follower.table.clone(),
            kind: "table of SPIDER".into(),
        });
    }
    check_column(
        &follower.table,
        &follower.reader,
        ("user_type", *user_type),
        answers,
    )?;
    check_column(
        &follower.table,
        &follower.author,
        ("user_type", *user_type),
        answers,
    )?;
    check_column(
        &message.table,
        &message.author,
        ("user_type", *user_type),
        answers,
    )?;
    let id = check_column(&message.table, &message.id, ("id_type", *id_type), answers)?;
    if !id.equals(3, "NO") {
        return Err(RelayReason::Nullable {
            table: message.table.clone(),
            column: message.id.clone(),
        });
    }

    let follower_indexes = indexes(&follower.table, answers)?;
    check_unique(
        &follower.table,
        &follower_indexes,
        &[&follower.reader, &follower.author],
    )?;
    if !follower_indexes
        .iter()
        .any(|index| index.starts_with(&[&follower.reader]))
    {
        return Err(RelayReason::NoIndex {
            table: follower.table.clone(),
            columns: follower.reader.clone(),
        });
    }
    let message_indexes = indexes(&message.table, answers)?;
    match storage {
        TableStorage::Local => check_unique(&message.table, &message_indexes, &[&message.id])?,
        // A table partitioned by author has no key on the id alone; lookups check for themselves whether an id occurs twice.
        TableStorage::Spread => check_unique(
            &message.table,
            &message_indexes,
            &[&message.id, &message.author],
        )?,
    }
    // InnoDB appends the primary key to the columns of every other index.
    let by_id = storage == TableStorage::Local
        && message_indexes
            .iter()
            .any(|index| index.name == PRIMARY && index.starts_with(&[&message.id]));
    let is_ordered = |index: &TableIndexColumns| {
        index.starts_with(&[&message.author, &message.id])
            || (by_id && index.columns.len() == 1 && index.starts_with(&[&message.author]))
    };
    let index = message_indexes.iter().find(|index| is_ordered(index));
    index
        .map(|index| (index.name.clone(), storage))
        .ok_or_else(|| RelayReason::NoIndex {
            table: message.table.clone(),
            columns: format!("{}, {}", message.author, message.id),
        })
}

/// Messages per author, on average, by the index statistics; `None` without statistics.
pub(super) fn messages_per_author(
    definition: &TimelineDefinition,
    index: &str,
    answers: CheckAnswers<'_>,
) -> Option<u64> {
    let rows = answers.rows(CheckQuery::Indexes).ok()?;
    let cardinality = |name: &str| {
        let mut index_rows = rows.iter();
        let first = index_rows
            .find(|row| row.equals(0, &definition.message.table) && row.equals(1, name))?;
        first.text(6)?.parse::<u64>().ok()
    };
    cardinality(PRIMARY)?.checked_div(cardinality(index)?)
}

pub(super) fn newest_id(answers: CheckAnswers<'_>) -> Option<u64> {
    answers.value(CheckQuery::NewestId).ok()??.parse().ok()
}

/// The estimate in EXPLAIN's only row: its tenth column.
pub(super) fn message_rows(answers: CheckAnswers<'_>) -> Option<u64> {
    let rows = answers.rows(CheckQuery::MessageRows).ok()?;
    rows.first()?.text(9)?.parse().ok()
}

pub(super) fn stored_columns(
    definition: &TimelineDefinition,
    answers: CheckAnswers<'_>,
) -> Arc<[String]> {
    let rows = answers.rows(CheckQuery::Columns).unwrap_or_default();
    let is_stored = |row: &CheckRow<'_>| {
        let extra = row.text(4);
        extra.is_some_and(|extra| !extra.to_ascii_uppercase().contains("VIRTUAL"))
    };
    rows.into_iter()
        .filter(|row| row.equals(0, &definition.message.table) && is_stored(row))
        .filter_map(|row| row.text(1))
        .collect()
}

/// Where a table's rows are stored, if lookups may read it.
fn table_storage(table: &str, answers: CheckAnswers<'_>) -> Result<TableStorage, RelayReason> {
    let rows = answers.rows(CheckQuery::Tables)?;
    let Some(row) = rows.into_iter().find(|row| row.equals(0, table)) else {
        return Err(RelayReason::NoTable {
            table: table.into(),
        });
    };
    let cell = |at: usize| row.text(at).unwrap_or_default();
    // A system-versioned table of MariaDB is no BASE TABLE either.
    if !row.equals_ignoring_case(1, "BASE TABLE") {
        return Err(RelayReason::NotBaseTable {
            table: table.into(),
            kind: cell(1),
        });
    }
    if row.equals_ignoring_case(2, "InnoDB") {
        return Ok(TableStorage::Local);
    }
    if row.equals_ignoring_case(2, "SPIDER") {
        return Ok(TableStorage::Spread);
    }
    Err(RelayReason::NotBaseTable {
        table: table.into(),
        kind: format!("table of {}", cell(2)),
    })
}

fn check_column<'a>(
    table: &str,
    column: &str,
    (key, expected): (&'static str, IdType),
    answers: CheckAnswers<'a>,
) -> Result<CheckRow<'a>, RelayReason> {
    let rows = answers.rows(CheckQuery::Columns)?;
    let Some(row) = rows
        .into_iter()
        .find(|row| row.equals(0, table) && row.equals_ignoring_case(1, column))
    else {
        return Err(RelayReason::NoColumn {
            table: table.into(),
            column: column.into(),
        });
    };
    let column_type = row.text(2).unwrap_or_default();
    if without_width(&column_type) == expected.sql() {
        return Ok(row);
    }
    Err(RelayReason::ColumnType {
        table: table.into(),
        column: column.into(),
        found: column_type,
        expected: expected.sql(),
        key,
    })
}

/// MariaDB shows `int(10) unsigned` where MySQL shows `int unsigned`.
fn without_width(column_type: &str) -> String {
    match (column_type.split_once('('), column_type.split_once(')')) {
        (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
        _ => column_type.into(),
    }
}

struct TableIndexColumns {
    name: String,
    unique: bool,
    columns: Vec<String>,
}

const PRIMARY: &str = "PRIMARY";

/// The indexes; a column that is not whole or not ordered has an empty name.
fn indexes(table: &str, answers: CheckAnswers<'_>) -> Result<Vec<TableIndexColumns>, RelayReason> {
    let mut indexes: Vec<TableIndexColumns> = Vec::new();
    for row in answers
        .rows(CheckQuery::Indexes)?
        .into_iter()
        .filter(|row| row.equals(0, table))
    {
        let name = row.text(1).unwrap_or_default();
        let usable = row.bytes(4).is_none() && row.equals_ignoring_case(5, "BTREE");
        // The empty name of a column prefix or an expression equals no column's name.
        let column = row.text(3).filter(|_| usable).unwrap_or_default();
        match indexes.iter_mut().find(|index| index.name == name) {
            Some(index) => index.columns.push(column),
            None => indexes.push(TableIndexColumns {
                name,
                unique: row.equals(2, "0"),
                columns: vec![column],
            }),
        }
    }
    Ok(indexes)
}

impl TableIndexColumns {
    fn starts_with(&self, columns: &[&String]) -> bool {
        columns.len() <= self.columns.len()
            && columns
                .iter()
                .zip(&self.columns)
                .all(|(expected, column)| column.eq_ignore_ascii_case(expected))
    }
}

/// A unique key whose columns are all among these makes these unique.
fn check_unique(
    table: &str,
    indexes: &[TableIndexColumns],
    columns: &[&String],
) -> Result<(), RelayReason> {
    let is_listed = |key_column: &String| {
        columns
            .iter()
            .any(|expected| key_column.eq_ignore_ascii_case(expected))
    };
    if indexes
        .iter()
        .any(|index| index.unique && index.columns.iter().all(is_listed))
    {
        return Ok(());
    }
    let columns = columns
        .iter()
        .map(|column| column.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    Err(RelayReason::NotUnique {
        table: table.into(),
        columns,
    })
}
