//! The tables of a definition: that they are there, with the columns, types, keys and indexes that a timeline needs.

use std::sync::Arc;

use super::answers::{CheckAnswers, CheckRow};
use super::queries::CheckQuery;
use super::{RelayReason, TableStorage};
use crate::definition::{IdType, TimelineDefinition};

/// The index that lookups use, and where the rows are.
///
/// # Errors
/// What is missing or differs first.
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
    // Messages that are here are read by statements that would wait for a data node once an author.
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

    let follows = indexes(&follower.table, answers)?;
    check_unique(
        &follower.table,
        &follows,
        &[&follower.reader, &follower.author],
    )?;
    if !follows
        .iter()
        .any(|index| index.starts_with(&[&follower.reader]))
    {
        return Err(RelayReason::NoIndex {
            table: follower.table.clone(),
            columns: follower.reader.clone(),
        });
    }
    let messages = indexes(&message.table, answers)?;
    match storage {
        TableStorage::Local => check_unique(&message.table, &messages, &[&message.id])?,
        // A table in partitions by author has no key on the id alone; lookups see for themselves whether an id is there twice.
        TableStorage::Spread => {
            check_unique(&message.table, &messages, &[&message.id, &message.author])?
        }
    }
    // InnoDB puts the primary key behind the columns of every other index.
    let by_id = storage == TableStorage::Local
        && messages
            .iter()
            .any(|index| index.name == PRIMARY && index.starts_with(&[&message.id]));
    let ordered = |index: &TableIndexColumns| {
        index.starts_with(&[&message.author, &message.id])
            || (by_id && index.columns.len() == 1 && index.starts_with(&[&message.author]))
    };
    let index = messages.iter().find(|index| ordered(index));
    index
        .map(|index| (index.name.clone(), storage))
        .ok_or_else(|| RelayReason::NoIndex {
            table: message.table.clone(),
            columns: format!("{}, {}", message.author, message.id),
        })
}

/// How many messages an author has on average, by the index statistics; `None` without any.
pub(super) fn messages_per_author(
    definition: &TimelineDefinition,
    index: &str,
    answers: CheckAnswers<'_>,
) -> Option<u64> {
    let rows = answers.rows(CheckQuery::Indexes).ok()?;
    let cardinality = |name: &str| {
        let mut own = rows.iter();
        let first =
            own.find(|row| row.equals(0, &definition.message.table) && row.equals(1, name))?;
        first.text(6)?.parse::<u64>().ok()
    };
    cardinality(PRIMARY)?.checked_div(cardinality(index)?)
}

/// The greatest message id.
pub(super) fn newest_id(answers: CheckAnswers<'_>) -> Option<u64> {
    answers.value(CheckQuery::NewestId).ok()??.parse().ok()
}

/// The estimate in EXPLAIN's one row: its tenth column.
pub(super) fn message_rows(answers: CheckAnswers<'_>) -> Option<u64> {
    let rows = answers.rows(CheckQuery::MessageRows).ok()?;
    rows.first()?.text(9)?.parse().ok()
}

/// The message table's columns that are stored.
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

/// Where a table's rows are, if it is one that lookups may read.
fn table_storage(table: &str, answers: CheckAnswers<'_>) -> Result<TableStorage, RelayReason> {
    let rows = answers.rows(CheckQuery::Tables)?;
    let Some(row) = rows.into_iter().find(|row| row.equals(0, table)) else {
        return Err(RelayReason::NoTable {
            table: table.into(),
        });
    };
    let cell = |at: usize| row.text(at).unwrap_or_default();
    // A versioned table of MariaDB is no BASE TABLE either.
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
    let found = row.text(2).unwrap_or_default();
    if without_width(&found) == expected.sql() {
        return Ok(row);
    }
    Err(RelayReason::ColumnType {
        table: table.into(),
        column: column.into(),
        found,
        expected: expected.sql(),
        key,
    })
}

/// MariaDB says `int(10) unsigned` where MySQL says `int unsigned`.
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

/// The indexes over whole columns that keep an order.
fn indexes(table: &str, answers: CheckAnswers<'_>) -> Result<Vec<TableIndexColumns>, RelayReason> {
    let mut indexes: Vec<TableIndexColumns> = Vec::new();
    for row in answers
        .rows(CheckQuery::Indexes)?
        .into_iter()
        .filter(|row| row.equals(0, table))
    {
        let name = row.text(1).unwrap_or_default();
        let usable = row.bytes(4).is_none() && row.equals_ignoring_case(5, "BTREE");
        // A part of a column, or an expression, is told from every column by this.
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
                .all(|(wanted, found)| found.eq_ignore_ascii_case(wanted))
    }
}

/// A unique key whose columns are all among these makes these unique.
fn check_unique(
    table: &str,
    indexes: &[TableIndexColumns],
    columns: &[&String],
) -> Result<(), RelayReason> {
    let among = |found: &String| {
        columns
            .iter()
            .any(|wanted| found.eq_ignore_ascii_case(wanted))
    };
    if indexes
        .iter()
        .any(|index| index.unique && index.columns.iter().all(among))
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
