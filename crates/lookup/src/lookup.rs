//! A served call in terms of SQL, and what the steps of its lookup share.

use headwater_sql::quoted;
use headwater_statement::TimelineCall;
use headwater_timeline::AuthorHead;
use headwater_timeline::check::DefinitionFacts;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};
use headwater_timeline::index::TimelinePage;
use headwater_wire::resultset::CollectLimits;

/// Bytes for the authors' lists in JSON, and for table descriptions.
const ROW_LIST_BYTES: usize = 32 * 1024 * 1024;
/// Maximum bytes of a row of two numbers.
const ROW_BYTES: usize = 64;

/// Maximum authors that one statement queries one by one.
pub(super) const MAX_AUTHORS: usize = 500;
/// Maximum authors of a reader where messages are on data nodes: one statement names them all.
pub(super) const MAX_SPREAD_AUTHORS: usize = 5_000;

/// A served call with all that its SQL needs.
#[derive(Debug)]
pub struct CallLookup<'a> {
    /// The tables' names, and n.
    pub definition: &'a TimelineDefinition,
    /// The results of the definition's check on this server.
    pub facts: &'a DefinitionFacts,
    /// The session's database, which holds the tables.
    pub database: &'a [u8],
    /// Reader and bound.
    pub call: &'a TimelineCall,
    /// Maximum heads that are read (`limits.pending_ids`).
    pub max_heads: usize,
}

/// The result of a served call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupResult {
    /// The procedure's whole result set, descending; nothing for [`ProcedureForm::Heads`].
    pub ids: Vec<u64>,
    /// Every head, for the heads table of a bounded call.
    pub heads: Vec<AuthorHead>,
}

impl LookupResult {
    /// The result of a call of this form, from a page in memory.
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
    /// Limits on the answer to one of the lookup's statements.
    #[must_use]
    pub fn collect_limits(&self) -> CollectLimits {
        // For each author, a follow row and a few ids around its head.
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

    /// The number of authors, and of messages of each, that the procedures consider.
    #[must_use]
    pub fn n(&self) -> usize {
        self.definition.n as usize
    }

    /// The maximum number of authors that a lookup names.
    pub(super) fn max_authors(&self) -> usize {
        match self.facts.is_spread() {
            true => MAX_SPREAD_AUTHORS,
            false => MAX_AUTHORS,
        }
    }

    /// A quoted table name, with its database.
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
        let result = LookupResult::from_page(page.clone(), ProcedureForm::Heads);
        assert_eq!((result.ids, result.heads), (Vec::new(), page.heads.clone()));
        let result = LookupResult::from_page(page.clone(), ProcedureForm::Bounded);
        assert_eq!((result.ids, result.heads), (page.ids, page.heads));
    }
}
