//! One owned call in terms of SQL, and what the steps of its lookup share.

use headwater_sql::quoted;
use headwater_statement::Call;
use headwater_timeline::Head;
use headwater_timeline::check::Facts;
use headwater_timeline::definition::{Definition, Form};
use headwater_timeline::index::Page;
use headwater_wire::resultset::Limits;

/// Room for the authors' lists that come in JSON, and for descriptions of tables.
const ROW_LIST_BYTES: usize = 32 * 1024 * 1024;
/// What a row of two numbers takes at most.
const ROW_BYTES: usize = 64;

/// Most authors of whom a single statement asks for each by itself.
pub(super) const MOST_AUTHORS: usize = 500;
/// Most authors of a reader where messages are on data nodes: all of them are named in one statement.
pub(super) const MOST_SPREAD_AUTHORS: usize = 5_000;

/// One owned call, in terms of SQL.
#[derive(Debug)]
pub struct Lookup<'a> {
    /// Names and n.
    pub definition: &'a Definition,
    /// What the check found on this server.
    pub facts: &'a Facts,
    /// The session's database, which holds the tables.
    pub database: &'a [u8],
    /// Reader and bound.
    pub call: &'a Call,
    /// Most heads that are taken in (`limits.pending_ids`).
    pub most: usize,
}

/// What an owned call found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The procedure's whole result set, descending; nothing for [`Form::Heads`].
    pub ids: Vec<u64>,
    /// Every head, for the heads table of a bounded call.
    pub heads: Vec<Head>,
}

impl Found {
    /// What a call of this form leaves behind, by a page from memory.
    #[must_use]
    pub fn from_page(page: Page, form: Form) -> Found {
        Found {
            ids: if form.fills_result() {
                page.ids
            } else {
                Vec::new()
            },
            heads: page.heads,
        }
    }
}

impl Lookup<'_> {
    /// How much an answer to one of the lookup's statements may hold.
    #[must_use]
    pub fn collect_limits(&self) -> Limits {
        // Of each author a follow, and a few ids on the way to its head.
        let authors = self.most_authors().saturating_mul(10);
        let lists = self.most_list_rows().saturating_add(authors);
        let max_rows = self.most.max(lists).saturating_add(2);
        Limits {
            max_rows,
            max_bytes: max_rows
                .saturating_mul(ROW_BYTES)
                .saturating_add(ROW_LIST_BYTES),
        }
    }

    /// How many authors and messages of each the procedures look at.
    #[must_use]
    pub fn n(&self) -> usize {
        self.definition.n as usize
    }

    /// How many authors a reader may follow for lookups that name them.
    pub(super) fn most_authors(&self) -> usize {
        match self.facts.are_spread() {
            true => MOST_SPREAD_AUTHORS,
            false => MOST_AUTHORS,
        }
    }

    /// A table's name with its database, quoted.
    pub(super) fn name(&self, table: &str) -> String {
        format!(
            "{}.{}",
            quoted(&String::from_utf8_lossy(self.database)),
            quoted(table)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_leaves_no_page() {
        let page = Page {
            ids: vec![3, 1],
            heads: vec![Head { author: 7, id: 3 }],
        };
        let found = Found::from_page(page.clone(), Form::Heads);
        assert_eq!((found.ids, found.heads), (Vec::new(), page.heads.clone()));
        let found = Found::from_page(page.clone(), Form::Bounded);
        assert_eq!((found.ids, found.heads), (page.ids, page.heads));
    }
}
