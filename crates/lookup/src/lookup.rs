//! One owned call in terms of SQL, and what the steps of its lookup share.

use headwater_sql::quoted;
use headwater_statement::TimelineCall;
use headwater_timeline::AuthorHead;
use headwater_timeline::check::DefinitionFacts;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};
use headwater_timeline::index::TimelinePage;
use headwater_wire::resultset::CollectLimits;

/// Room for the authors' lists that come in JSON, and for descriptions of tables.
const ROW_LIST_BYTES: usize = 32 * 1024 * 1024;
/// What a row of two numbers takes at most.
const ROW_BYTES: usize = 64;

/// Most authors of whom a single statement asks for each by itself.
pub(super) const MAX_AUTHORS: usize = 500;
/// Most authors of a reader where messages are on data nodes: all of them are named in one statement.
pub(super) const MAX_SPREAD_AUTHORS: usize = 5_000;

/// One owned call, in terms of SQL.
#[derive(Debug)]
pub struct CallLookup<'a> {
    /// Names and n.
    pub definition: &'a TimelineDefinition,
    /// What the check found on this server.
    pub facts: &'a DefinitionFacts,
    /// The session's database, which holds the tables.
    pub database: &'a [u8],
    /// Reader and bound.
    pub call: &'a TimelineCall,
    /// Most heads that are taken in (`limits.pending_ids`).
    pub max_heads: usize,
}

/// What an owned call found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupResult {
    /// The procedure's whole result set, descending; nothing for [`ProcedureForm::Heads`].
    pub ids: Vec<u64>,
    /// Every head, for the heads table of a bounded call.
    pub heads: Vec<AuthorHead>,
}

impl LookupResult {
    /// What a call of this form leaves behind, by a page from memory.
    #[must_use]
    pub fn from_page(page: TimelinePage, form: ProcedureForm) -> LookupResult {
        LookupResult {
            ids: if form.fills_result() {
                page.ids
            } else {
                Vec::new()
            },
            heads: page.heads,
        }
    }
}

impl CallLookup<'_> {
    /// How much an answer to one of the lookup's statements may hold.
    #[must_use]
    pub fn collect_limits(&self) -> CollectLimits {
        // Of each author a follow, and a few ids on the way to its head.
        let authors = self.max_authors().saturating_mul(10);
        let lists = self.max_list_rows().saturating_add(authors);
        let max_rows = self.max_heads.max(lists).saturating_add(2);
        CollectLimits {
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
    pub(super) fn max_authors(&self) -> usize {
        match self.facts.is_spread() {
            true => MAX_SPREAD_AUTHORS,
            false => MAX_AUTHORS,
        }
    }

    /// A table's name with its database, quoted.
    pub(super) fn table_name(&self, table: &str) -> String {
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
        let page = TimelinePage {
            ids: vec![3, 1],
            heads: vec![AuthorHead { author: 7, id: 3 }],
        };
        let found = LookupResult::from_page(page.clone(), ProcedureForm::Heads);
        assert_eq!((found.ids, found.heads), (Vec::new(), page.heads.clone()));
        let found = LookupResult::from_page(page.clone(), ProcedureForm::Bounded);
        assert_eq!((found.ids, found.heads), (page.ids, page.heads));
    }
}
