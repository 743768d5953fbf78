//! What a reader's pages are by a state: those of the procedure, of a lookup, and of a feed.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Row, State, Table, name};

/// Whose messages a feed's page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Authors {
    /// Those of whom this reader follows.
    Followed(u64),
    /// Those of these, whom the app has written into its statement.
    Listed(Vec<u64>),
}

/// A feed's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feed {
    pub(crate) authors: Authors,
    /// Of messages with lower ids.
    pub(crate) bound: Option<u64>,
    /// Behind so many of them.
    pub(crate) offset: usize,
    /// Each message with its author's name.
    pub(crate) names: Names,
    /// None of those whom this reader has blocked.
    pub(crate) unblocked: Option<u64>,
}

/// Whether a page shows what authors are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Absent,
    /// Without those who have none.
    Inner,
    Outer,
}

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

/// What a lookup may have read whose heads are of the first of these states: of each author, each list that is of one of them.
pub(crate) fn looked_up(states: &[Arc<State>], reader: u64, bound: u64) -> Vec<BTreeSet<Vec<u64>>> {
    let heads = heads(&states[0], reader, bound).into_iter();
    let lists = heads.map(|(author, head)| {
        let each = states.iter();
        each.map(|then| newest(then, author, head)).collect()
    });
    lists.collect()
}

/// Whether one list of each author makes up the page behind a lookup.
pub(crate) fn is_mixed(state: &State, lists: &[BTreeSet<Vec<u64>>], told: &Rows) -> bool {
    // What is there and not told lies below the page.
    let ids: Vec<u64> = told
        .iter()
        .filter_map(|row| row[0].as_ref()?.parse().ok())
        .collect();
    let last = ids.last().filter(|_| ids.len() == N).copied().unwrap_or(0);
    let is_told = |id: &u64| {
        *id < last || ids.contains(id) || state.like(Table::Message, (*id, 0, 0)).is_none()
    };
    let mut mixed = BTreeSet::from([BTreeSet::new()]);
    for author in lists {
        let fitting = author.iter().filter(|list| list.iter().all(is_told));
        let fitting: Vec<_> = fitting.collect();
        let with = |mix: &BTreeSet<u64>| {
            let mix = mix.clone();
            fitting
                .iter()
                .map(move |list| mix.iter().chain(*list).copied().collect())
        };
        mixed = mixed.iter().flat_map(with).collect();
    }
    mixed
        .iter()
        .any(|mix| tail(state, &mix.iter().copied().collect::<Vec<_>>()) == *told)
}

/// The rows of the app's page behind a call.
pub(crate) fn tail(state: &State, ids: &[u64]) -> Rows {
    let rows = state.rows(Table::Message).rev();
    let shown = rows.filter(|(id, ..)| ids.contains(id)).take(N);
    shown.map(|row| told(Table::Message, row)).collect()
}

impl Feed {
    /// What it is by this state.
    pub(crate) fn page(&self, state: &State) -> Rows {
        let authors = match &self.authors {
            Authors::Followed(reader) => followed(state, Table::Followers, *reader).collect(),
            Authors::Listed(authors) => authors.clone(),
        };
        let blocked: Vec<u64> = match self.unblocked {
            Some(reader) => followed(state, Table::Blocks, reader).collect(),
            None => Vec::new(),
        };
        let rows = state.rows(Table::Statuses).rev();
        let rows = rows.filter(|(id, author, _)| {
            authors.contains(author)
                && !blocked.contains(author)
                && self.bound.is_none_or(|bound| *id < bound)
        });
        let shown = rows.filter_map(|row @ (_, author, _)| {
            let mut cells = told(Table::Statuses, row);
            let profile = state.like(Table::Profiles, (author, 0, 0));
            match (self.names, profile) {
                (Names::Absent, _) => {}
                (Names::Inner, None) => return None,
                (_, profile) => cells.push(profile.map(name)),
            }
            Some(cells)
        });
        shown.skip(self.offset).take(FEED).collect()
    }

    /// The app's statement, and the numbers for its question marks.
    pub(crate) fn statement(&self) -> (String, Vec<u64>) {
        let (shown, from) = match self.names {
            Names::Absent => ("s.id, s.caption", ""),
            Names::Inner => (
                "s.id, s.caption, p.name",
                " JOIN profiles p ON p.id = s.profile_id",
            ),
            Names::Outer => (
                "s.id, s.caption, p.name",
                " LEFT JOIN profiles p ON p.id = s.profile_id",
            ),
        };
        let mut values = Vec::new();
        let whose = match &self.authors {
            Authors::Followed(reader) => {
                values.push(*reader);
                "SELECT following_id FROM followers WHERE profile_id = ?".to_owned()
            }
            Authors::Listed(authors) => {
                values.extend(authors);
                vec!["?"; authors.len()].join(", ")
            }
        };
        values.extend(self.unblocked);
        let unblocked = match self.unblocked {
            Some(_) => {
                " AND s.profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = ?)"
            }
            None => "",
        };
        values.extend(self.bound);
        let below = if self.bound.is_some() {
            " AND s.id < ?"
        } else {
            ""
        };
        let behind = match self.offset {
            0 => String::new(),
            offset => format!(" OFFSET {offset}"),
        };
        let text = format!(
            "SELECT {shown} FROM statuses s{from} WHERE s.profile_id IN ({whose}){unblocked}{below} ORDER BY s.id DESC LIMIT {FEED}{behind}"
        );
        (text, values)
    }
}

/// The ids and versions of rows, as a person reads them.
pub(crate) fn ids(rows: &Rows) -> String {
    let ids = rows.iter().map(|row| match row.get(1) {
        Some(Some(text)) => text.split(": ").last().unwrap_or_default(),
        _ => row[0].as_deref().unwrap_or("NULL"),
    });
    let short = ids.map(|id| id.strip_suffix(".0").unwrap_or(id));
    let named = short.zip(rows).map(|(id, row)| match row.get(2) {
        Some(Some(name)) => format!("{id} by {name}"),
        Some(None) => format!("{id} by nobody"),
        None => id.to_owned(),
    });
    named.collect::<Vec<_>>().join(", ")
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
