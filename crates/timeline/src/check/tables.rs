//! The tables of a definition: that they are there, with the columns, types, keys and indexes that a timeline needs.

use std::sync::Arc;

use super::answers::{Answers, Row};
use super::queries::Question;
use super::{Reason, Storage};
use crate::definition::{Definition, IntType};

/// The index that lookups use, and where the rows are.
///
/// # Errors
/// What is missing or differs first.
pub(super) fn check(
    definition: &Definition,
    answers: Answers<'_>,
) -> Result<(String, Storage), Reason> {
    let Definition {
        follower,
        message,
        id_type,
        user_type,
        ..
    } = definition;
    let storage = base_table(&message.table, answers)?;
    // Messages that are here are read by statements that would wait for a data node once an author.
    if base_table(&follower.table, answers)? == Storage::Spread && storage == Storage::Here {
        return Err(Reason::NotBaseTable {
            table: follower.table.clone(),
            kind: "table of SPIDER".into(),
        });
    }
    column(
        &follower.table,
        &follower.reader,
        ("user_type", *user_type),
        answers,
    )?;
    column(
        &follower.table,
        &follower.author,
        ("user_type", *user_type),
        answers,
    )?;
    column(
        &message.table,
        &message.author,
        ("user_type", *user_type),
        answers,
    )?;
    let id = column(&message.table, &message.id, ("id_type", *id_type), answers)?;
    if !id.is(3, "NO") {
        return Err(Reason::Nullable {
            table: message.table.clone(),
            column: message.id.clone(),
        });
    }

    let follows = indexes(&follower.table, answers)?;
    unique(
        &follower.table,
        &follows,
        &[&follower.reader, &follower.author],
    )?;
    if !follows
        .iter()
        .any(|index| index.starts_with(&[&follower.reader]))
    {
        return Err(Reason::NoIndex {
            table: follower.table.clone(),
            columns: follower.reader.clone(),
        });
    }
    let messages = indexes(&message.table, answers)?;
    match storage {
        Storage::Here => unique(&message.table, &messages, &[&message.id])?,
        // A table in partitions by author has no key on the id alone; lookups see for themselves whether an id is there twice.
        Storage::Spread => unique(&message.table, &messages, &[&message.id, &message.author])?,
    }
    // InnoDB puts the primary key behind the columns of every other index.
    let by_id = storage == Storage::Here
        && messages
            .iter()
            .any(|index| index.name == PRIMARY && index.starts_with(&[&message.id]));
    let ordered = |index: &Index| {
        index.starts_with(&[&message.author, &message.id])
            || (by_id && index.columns.len() == 1 && index.starts_with(&[&message.author]))
    };
    let index = messages.iter().find(|index| ordered(index));
    index
        .map(|index| (index.name.clone(), storage))
        .ok_or_else(|| Reason::NoIndex {
            table: message.table.clone(),
            columns: format!("{}, {}", message.author, message.id),
        })
}

/// How many messages an author has on average, by the index statistics; `None` without any.
pub(super) fn messages_per_author(
    definition: &Definition,
    index: &str,
    answers: Answers<'_>,
) -> Option<u64> {
    let rows = answers.rows(Question::Indexes).ok()?;
    let cardinality = |name: &str| {
        let mut own = rows.iter();
        let first = own.find(|row| row.is(0, &definition.message.table) && row.is(1, name))?;
        first.text(6)?.parse::<u64>().ok()
    };
    cardinality(PRIMARY)?.checked_div(cardinality(index)?)
}

/// The greatest message id.
pub(super) fn newest_id(answers: Answers<'_>) -> Option<u64> {
    answers.value(Question::NewestId).ok()??.parse().ok()
}

/// The estimate in EXPLAIN's one row: its tenth column.
pub(super) fn message_rows(answers: Answers<'_>) -> Option<u64> {
    let rows = answers.rows(Question::MessageRows).ok()?;
    rows.first()?.text(9)?.parse().ok()
}

/// The message table's columns that are stored.
pub(super) fn stored_columns(definition: &Definition, answers: Answers<'_>) -> Arc<[String]> {
    let rows = answers.rows(Question::Columns).unwrap_or_default();
    let is_stored = |row: &Row<'_>| {
        let extra = row.text(4);
        extra.is_some_and(|extra| !extra.to_ascii_uppercase().contains("VIRTUAL"))
    };
    rows.into_iter()
        .filter(|row| row.is(0, &definition.message.table) && is_stored(row))
        .filter_map(|row| row.text(1))
        .collect()
}

/// Where a table's rows are, if it is one that lookups may read.
fn base_table(table: &str, answers: Answers<'_>) -> Result<Storage, Reason> {
    let rows = answers.rows(Question::Tables)?;
    let Some(row) = rows.into_iter().find(|row| row.is(0, table)) else {
        return Err(Reason::NoTable {
            table: table.into(),
        });
    };
    let cell = |at: usize| row.text(at).unwrap_or_default();
    // A versioned table of MariaDB is no BASE TABLE either.
    if !row.named(1, "BASE TABLE") {
        return Err(Reason::NotBaseTable {
            table: table.into(),
            kind: cell(1),
        });
    }
    if row.named(2, "InnoDB") {
        return Ok(Storage::Here);
    }
    if row.named(2, "SPIDER") {
        return Ok(Storage::Spread);
    }
    Err(Reason::NotBaseTable {
        table: table.into(),
        kind: format!("table of {}", cell(2)),
    })
}

fn column<'a>(
    table: &str,
    column: &str,
    (key, expected): (&'static str, IntType),
    answers: Answers<'a>,
) -> Result<Row<'a>, Reason> {
    let rows = answers.rows(Question::Columns)?;
    let Some(row) = rows
        .into_iter()
        .find(|row| row.is(0, table) && row.named(1, column))
    else {
        return Err(Reason::NoColumn {
            table: table.into(),
            column: column.into(),
        });
    };
    let found = row.text(2).unwrap_or_default();
    if without_width(&found) == expected.sql() {
        return Ok(row);
    }
    Err(Reason::ColumnType {
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

struct Index {
    name: String,
    unique: bool,
    columns: Vec<String>,
}

const PRIMARY: &str = "PRIMARY";

/// The indexes over whole columns that keep an order.
fn indexes(table: &str, answers: Answers<'_>) -> Result<Vec<Index>, Reason> {
    let mut indexes: Vec<Index> = Vec::new();
    for row in answers
        .rows(Question::Indexes)?
        .into_iter()
        .filter(|row| row.is(0, table))
    {
        let name = row.text(1).unwrap_or_default();
        let usable = row.bytes(4).is_none() && row.named(5, "BTREE");
        // A part of a column, or an expression, is told from every column by this.
        let column = row.text(3).filter(|_| usable).unwrap_or_default();
        match indexes.iter_mut().find(|index| index.name == name) {
            Some(index) => index.columns.push(column),
            None => indexes.push(Index {
                name,
                unique: row.is(2, "0"),
                columns: vec![column],
            }),
        }
    }
    Ok(indexes)
}

impl Index {
    fn starts_with(&self, columns: &[&String]) -> bool {
        columns.len() <= self.columns.len()
            && columns
                .iter()
                .zip(&self.columns)
                .all(|(wanted, found)| found.eq_ignore_ascii_case(wanted))
    }
}

/// A unique key whose columns are all among these makes these unique.
fn unique(table: &str, indexes: &[Index], columns: &[&String]) -> Result<(), Reason> {
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
    Err(Reason::NotUnique {
        table: table.into(),
        columns,
    })
}
