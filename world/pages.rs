//! The pages of a reader at a state: by the procedure, by a lookup, and of a feed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{ModelState, ModelTable, WorldRow, name};

/// The authors of a feed's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthorChoice {
    /// Those whom this reader follows.
    Followed(u64),
    /// These, listed in the app's statement.
    Listed(Vec<u64>),
}

/// What a statement shows of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FeedForm {
    /// A page of messages.
    Page,
    /// How many messages there are.
    Count,
    /// How many messages with higher ids than the bound there are.
    Unread,
    /// Whether there is one with a higher id than the bound.
    Exists,
    /// The newest id.
    Newest,
    /// The newest id, and how many messages there are.
    NewestAndCount,
    /// Each author's newest id.
    NewestOfEach,
    /// How many messages each author has.
    CountOfEach,
    /// Each author's newest message.
    NewestMessages,
    /// The messages with these ids.
    Messages(Vec<u64>),
}

/// A feed's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedPage {
    pub(crate) form: FeedForm,
    pub(crate) authors: AuthorChoice,
    /// Only messages with lower ids.
    pub(crate) bound: Option<u64>,
    /// The OFFSET.
    pub(crate) offset: usize,
    /// Whether each message has its author's name.
    pub(crate) names: AuthorNames,
    /// Excludes authors whom this reader has blocked.
    pub(crate) unblocked: Option<u64>,
}

/// Whether and how a page shows authors' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthorNames {
    Absent,
    /// Without authors who have no name.
    Inner,
    Outer,
}

/// Rows in text form.
pub(crate) type TextRows = Vec<Vec<Option<String>>>;

/// The classic timeline reads so many authors, and so many messages of each.
const PAGE_ROWS: usize = 20;
pub(crate) const FEED: usize = 5;

/// The ids of a reader's page: the newest of each followed author, for the authors who wrote last.
pub(crate) fn page(state: &ModelState, reader: u64, bound: u64) -> Vec<u64> {
    let authors = followed(state, ModelTable::Follower, reader);
    let newest = authors.map(|author| newest(state, author, bound));
    let mut newest: Vec<Vec<u64>> = newest.collect();
    newest.sort_by_key(|ids| Reverse(ids.first().copied()));
    newest.truncate(PAGE_ROWS);
    sorted(newest.concat())
}

/// The authors whom a reader follows, and the newest id of each.
pub(crate) fn heads(state: &ModelState, reader: u64, bound: u64) -> Vec<(u64, u64)> {
    let authors = followed(state, ModelTable::Follower, reader);
    let heads = authors.filter_map(|author| {
        let head = newest(state, author, bound).first().copied();
        Some((author, head?))
    });
    heads.collect()
}

/// The possible results of a lookup whose heads are from the first of these states: for each author, each list from one of them.
pub(crate) fn lookup_pages(
    states: &[Arc<ModelState>],
    reader: u64,
    bound: u64,
) -> Vec<BTreeSet<Vec<u64>>> {
    let heads = heads(&states[0], reader, bound).into_iter();
    let lists = heads.map(|(author, head)| {
        let each = states.iter();
        each.map(|then| newest(then, author, head)).collect()
    });
    lists.collect()
}

/// True if one list of each author makes up the page after a lookup.
pub(crate) fn is_mixed(
    state: &ModelState,
    lists: &[BTreeSet<Vec<u64>>],
    received: &TextRows,
) -> bool {
    // Messages that exist and are missing in the page lie below it.
    let ids: Vec<u64> = received
        .iter()
        .filter_map(|row| row[0].as_ref()?.parse().ok())
        .collect();
    let last = ids
        .last()
        .filter(|_| ids.len() == PAGE_ROWS)
        .copied()
        .unwrap_or(0);
    let is_told = |id: &u64| {
        *id < last || ids.contains(id) || state.like(ModelTable::Message, (*id, 0, 0)).is_none()
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
        .any(|mix| follow_up_rows(state, &mix.iter().copied().collect::<Vec<_>>()) == *received)
}

/// The rows of the app's follow-up SELECT.
pub(crate) fn follow_up_rows(state: &ModelState, ids: &[u64]) -> TextRows {
    let rows = state.rows(ModelTable::Message).rev();
    let shown = rows.filter(|(id, ..)| ids.contains(id)).take(PAGE_ROWS);
    shown
        .map(|row| message_cells(ModelTable::Message, row))
        .collect()
}

impl FeedPage {
    /// The page at this state.
    pub(crate) fn page(&self, state: &ModelState) -> TextRows {
        let cell = |number: u64| Some(number.to_string());
        let rows: Vec<WorldRow> = self.matching(state);
        let newest = || rows.first().map(|(id, ..)| id.to_string());
        match &self.form {
            FeedForm::Page => {
                let shown = rows.into_iter().skip(self.offset).take(FEED);
                shown.map(|row| self.message(state, row)).collect()
            }
            FeedForm::Count | FeedForm::Unread => vec![vec![cell(rows.len() as u64)]],
            FeedForm::Exists => vec![vec![cell(u64::from(!rows.is_empty()))]],
            FeedForm::Newest => vec![vec![newest()]],
            FeedForm::NewestAndCount => vec![vec![newest(), cell(rows.len() as u64)]],
            FeedForm::NewestOfEach => {
                let each = newest_of_each(rows);
                each.map(|(id, author, _)| vec![cell(author), cell(id)])
                    .collect()
            }
            FeedForm::CountOfEach => {
                let mut each: BTreeMap<u64, u64> = BTreeMap::new();
                for (_, author, _) in rows {
                    *each.entry(author).or_default() += 1;
                }
                let mut each: Vec<(u64, u64)> = each.into_iter().collect();
                each.sort_by_key(|(author, count)| (Reverse(*count), *author));
                let row = |(author, count): (u64, u64)| vec![cell(author), cell(count)];
                each.into_iter().map(row).collect()
            }
            FeedForm::NewestMessages => {
                let each = newest_of_each(rows).take(FEED);
                each.map(|row| self.message(state, row)).collect()
            }
            FeedForm::Messages(_) => {
                let each = rows.into_iter();
                each.map(|row| self.message(state, row)).collect()
            }
        }
    }

    /// The messages that pass, the newest first.
    fn matching(&self, state: &ModelState) -> Vec<WorldRow> {
        let rows = state.rows(ModelTable::Statuses).rev();
        if let FeedForm::Messages(ids) = &self.form {
            return rows.filter(|(id, ..)| ids.contains(id)).collect();
        }
        let authors = match &self.authors {
            AuthorChoice::Followed(reader) => {
                followed(state, ModelTable::Followers, *reader).collect()
            }
            AuthorChoice::Listed(authors) => authors.clone(),
        };
        let blocked: Vec<u64> = match self.unblocked {
            Some(reader) => followed(state, ModelTable::Blocks, reader).collect(),
            None => Vec::new(),
        };
        let is_within = |id: u64| match self.bound {
            Some(bound) if self.is_above() => id > bound,
            Some(bound) => id < bound,
            None => true,
        };
        let passes = |(id, author, _): &WorldRow| {
            authors.contains(author)
                && !blocked.contains(author)
                && is_within(*id)
                && (self.names != AuthorNames::Inner
                    || state.like(ModelTable::Profiles, (*author, 0, 0)).is_some())
        };
        rows.filter(passes).collect()
    }

    fn is_above(&self) -> bool {
        matches!(self.form, FeedForm::Unread | FeedForm::Exists)
    }

    fn message(&self, state: &ModelState, row: WorldRow) -> Vec<Option<String>> {
        let mut cells = message_cells(ModelTable::Statuses, row);
        if self.names != AuthorNames::Absent {
            let profile = state.like(ModelTable::Profiles, (row.1, 0, 0));
            cells.push(profile.map(name));
        }
        cells
    }

    /// The app's statement, and the values of its parameters.
    pub(crate) fn statement(&self) -> (String, Vec<u64>) {
        if let FeedForm::Messages(ids) = &self.form {
            let listed = vec!["?"; ids.len()].join(", ");
            let text = format!(
                "SELECT s.id, s.caption FROM statuses s WHERE s.id IN ({listed}) ORDER BY s.id DESC"
            );
            return (text, ids.clone());
        }
        let (shown, joined) = match self.names {
            AuthorNames::Absent => ("s.id, s.caption", ""),
            AuthorNames::Inner => (
                "s.id, s.caption, p.name",
                " JOIN profiles p ON p.id = s.profile_id",
            ),
            AuthorNames::Outer => (
                "s.id, s.caption, p.name",
                " LEFT JOIN profiles p ON p.id = s.profile_id",
            ),
        };
        let mut values = Vec::new();
        let whose = match &self.authors {
            AuthorChoice::Followed(reader) => {
                values.push(*reader);
                "SELECT following_id FROM followers WHERE profile_id = ?".to_owned()
            }
            AuthorChoice::Listed(authors) => {
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
        let bound = match self.bound {
            Some(_) if self.is_above() => " AND s.id > ?",
            Some(_) => " AND s.id < ?",
            None => "",
        };
        let behind = match self.offset {
            0 => String::new(),
            offset => format!(" OFFSET {offset}"),
        };
        let from =
            format!("FROM statuses s{joined} WHERE s.profile_id IN ({whose}){unblocked}{bound}");
        let text = match &self.form {
            FeedForm::Page | FeedForm::Messages(_) => {
                format!("SELECT {shown} {from} ORDER BY s.id DESC LIMIT {FEED}{behind}")
            }
            FeedForm::Count | FeedForm::Unread => format!("SELECT COUNT(*) {from}"),
            FeedForm::Exists => format!("SELECT EXISTS (SELECT 1 {from}) AS newer"),
            FeedForm::Newest => format!("SELECT MAX(s.id) {from}"),
            FeedForm::NewestAndCount => format!("SELECT MAX(s.id), COUNT(*) {from}"),
            FeedForm::NewestOfEach => format!(
                "SELECT s.profile_id, MAX(s.id) AS last {from} GROUP BY s.profile_id ORDER BY last DESC"
            ),
            FeedForm::CountOfEach => format!(
                "SELECT s.profile_id, COUNT(*) AS n {from} GROUP BY s.profile_id ORDER BY n DESC, s.profile_id"
            ),
            FeedForm::NewestMessages => format!(
                "SELECT r.id, r.caption FROM statuses r WHERE r.id IN (SELECT MAX(s.id) {from} GROUP BY s.profile_id) \
                 ORDER BY r.id DESC LIMIT {FEED}"
            ),
        };
        (text, values)
    }
}

/// The first of each author's messages.
fn newest_of_each(rows: Vec<WorldRow>) -> impl Iterator<Item = WorldRow> {
    let mut authors = BTreeSet::new();
    rows.into_iter()
        .filter(move |(_, author, _)| authors.insert(*author))
}

/// The ids and versions of rows, for people.
pub(crate) fn ids(rows: &TextRows) -> String {
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

fn followed(state: &ModelState, table: ModelTable, reader: u64) -> impl Iterator<Item = u64> + '_ {
    let follows = state.rows(table);
    follows
        .filter(move |(who, ..)| *who == reader)
        .map(|(_, author, _)| author)
}

/// An author's newest ids up to a bound.
fn newest(state: &ModelState, author: u64, bound: u64) -> Vec<u64> {
    let messages = state.rows(ModelTable::Message).rev();
    let ids_of_author = messages.filter(|(id, whose, _)| *whose == author && *id <= bound);
    ids_of_author.map(|(id, ..)| id).take(PAGE_ROWS).collect()
}

/// A message's id and text.
fn message_cells(table: ModelTable, row: WorldRow) -> Vec<Option<String>> {
    let cells = table.cells(row);
    vec![Some(cells[0].to_string()), Some(cells[2].to_string())]
}

fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}
