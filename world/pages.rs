//! What a reader's pages are by a state: those of the procedure, of a lookup, and of a feed.

use std::cmp::Reverse;

use crate::model::{Row, State, Table};

/// Rows as they are told.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// The classic timeline looks at so many authors, and at so many messages of each.
const N: usize = 20;
pub(crate) const FEED: usize = 5;

/// The ids of a reader's page: the newest of each author that the reader follows, of those who wrote last.
pub(crate) fn page(state: &State, reader: u64, bound: u64) -> Vec<u64> {
    let authors = followed(state, Table::Follower, reader);
    let newest = authors.map(|author| newest(state, author, bound));
    let mut newest: Vec<Vec<u64>> = newest.collect();
    newest.sort_by_key(|ids| Reverse(ids.first().copied()));
    newest.truncate(N);
    sorted(newest.concat())
}

/// Whom a reader follows, and the newest id of each.
pub(crate) fn heads(state: &State, reader: u64, bound: u64) -> Vec<(u64, u64)> {
    let authors = followed(state, Table::Follower, reader);
    let heads = authors.filter_map(|author| {
        let head = newest(state, author, bound).first().copied();
        Some((author, head?))
    });
    heads.collect()
}

/// The ids of a lookup whose heads are of one state and whose lists are of a later one.
pub(crate) fn looked_up(at: &State, then: &State, reader: u64, bound: u64) -> Vec<u64> {
    let heads = heads(at, reader, bound).into_iter();
    let lists = heads.map(|(author, head)| newest(then, author, head));
    sorted(lists.collect::<Vec<_>>().concat())
}

/// The rows of the app's page behind a call.
pub(crate) fn tail(state: &State, ids: &[u64]) -> Rows {
    let rows = state.rows(Table::Message).rev();
    let shown = rows.filter(|(id, ..)| ids.contains(id)).take(N);
    shown.map(|row| told(Table::Message, row)).collect()
}

/// A feed's page, of messages with lower ids than the bound, behind so many of them.
pub(crate) fn feed(state: &State, reader: u64, bound: Option<u64>, offset: usize) -> Rows {
    let authors: Vec<u64> = followed(state, Table::Followers, reader).collect();
    let rows = state.rows(Table::Statuses).rev();
    let shown = rows.filter(|(id, author, _)| {
        authors.contains(author) && bound.is_none_or(|bound| *id < bound)
    });
    let shown = shown.skip(offset).take(FEED);
    shown.map(|row| told(Table::Statuses, row)).collect()
}

/// The ids and versions of rows, as a person reads them.
pub(crate) fn ids(rows: &Rows) -> String {
    let ids = rows.iter().map(|row| match row.get(1) {
        Some(Some(text)) => text.split(": ").last().unwrap_or_default(),
        _ => row[0].as_deref().unwrap_or("NULL"),
    });
    let short = ids.map(|id| id.strip_suffix(".0").unwrap_or(id));
    short.collect::<Vec<_>>().join(" ")
}

fn followed(state: &State, table: Table, reader: u64) -> impl Iterator<Item = u64> + '_ {
    let follows = state.rows(table);
    follows
        .filter(move |(who, ..)| *who == reader)
        .map(|(_, author, _)| author)
}

/// An author's newest ids up to a bound.
fn newest(state: &State, author: u64, bound: u64) -> Vec<u64> {
    let messages = state.rows(Table::Message).rev();
    let own = messages.filter(|(id, whose, _)| *whose == author && *id <= bound);
    own.map(|(id, ..)| id).take(N).collect()
}

/// A message's id and text.
fn told(table: Table, row: Row) -> Vec<Option<String>> {
    let cells = table.cells(row);
    vec![Some(cells[0].to_string()), Some(cells[2].to_string())]
}

fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}
