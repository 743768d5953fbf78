//! What a reader's pages are by a state: those of the procedure, of a lookup, and of a feed.

use std::cmp::Reverse;

use crate::model::{State, Table};

/// Rows as they are told.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// The classic timeline looks at so many authors, and at so many messages of each.
const N: usize = 20;
const FEED: usize = 5;

/// The ids of a reader's page: the newest of each author that the reader follows, of those who wrote last.
pub(crate) fn page(state: &State, reader: u64, bound: u64) -> Vec<u64> {
    let authors = followed(state, Table::Follower, reader);
    let newest = authors.map(|author| newest(state, author, bound));
    let mut newest: Vec<Vec<u64>> = newest.collect();
    newest.sort_by_key(|ids| Reverse(ids.first().copied()));
    newest.truncate(N);
    sorted(newest.concat())
}

/// The ids of a lookup whose heads are of one state and whose lists are of a later one.
pub(crate) fn looked_up(at: &State, then: &State, reader: u64) -> Vec<u64> {
    let heads = followed(at, Table::Follower, reader).filter_map(|author| {
        let head = newest(at, author, u64::MAX).first().copied();
        Some((author, head?))
    });
    let lists = heads.map(|(author, head)| newest(then, author, head));
    sorted(lists.collect::<Vec<_>>().concat())
}

/// The rows of the app's page behind a call.
pub(crate) fn tail(state: &State, ids: &[u64]) -> Rows {
    told(state, Table::Message, N, |(id, _)| ids.contains(&id))
}

/// A feed's page.
pub(crate) fn feed(state: &State, reader: u64) -> Rows {
    let authors: Vec<u64> = followed(state, Table::Followers, reader).collect();
    told(state, Table::Statuses, FEED, |(_, author)| {
        authors.contains(&author)
    })
}

/// The ids of rows, as a person reads them.
pub(crate) fn ids(rows: &Rows) -> String {
    let first = rows.iter().map(|row| row[0].as_deref().unwrap_or("NULL"));
    first.collect::<Vec<_>>().join(" ")
}

fn followed(state: &State, table: Table, reader: u64) -> impl Iterator<Item = u64> + '_ {
    let follows = state.entries(table);
    follows
        .filter(move |(who, _)| *who == reader)
        .map(|(_, author)| author)
}

/// An author's newest ids up to a bound.
fn newest(state: &State, author: u64, bound: u64) -> Vec<u64> {
    let messages = state.entries(Table::Message);
    let own = messages.filter(|(id, whose)| *whose == author && *id <= bound);
    let mut ids: Vec<u64> = own.map(|(id, _)| id).collect();
    ids.reverse();
    ids.truncate(N);
    ids
}

/// The newest of these messages: id and text.
fn told(state: &State, table: Table, most: usize, is: impl Fn((u64, u64)) -> bool) -> Rows {
    let mut rows: Vec<(u64, u64)> = state.entries(table).filter(|row| is(*row)).collect();
    rows.reverse();
    rows.truncate(most);
    let cells = rows.into_iter().map(|row| table.cells(row));
    cells
        .map(|cells| vec![Some(cells[0].to_string()), Some(cells[2].to_string())])
        .collect()
}

fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}
