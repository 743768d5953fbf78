//! Subqueries among a message's shown columns: how many likes it has, whether the reader is among those who like it, its author's name.
//!
//! They read rows of one table by a column that equals one of the message's. So such rows are followed as joined ones are, whether the
//! column is unique or not: what changes one of them changes the rows of the messages that hold its value.

use crate::author_lists::{conjuncts_of, uses_only};
use crate::authors::AuthorSearch;
use crate::equalities::equal_keys;
use crate::joined_tables::{JoinedRowReference, ReferenceKeySource};
use crate::query::{ColumnReference, ConditionKind, Operand, ScalarValue, Subquery};
use crate::scope::{NameScope, ScopedColumn};

pub(crate) struct ItemSubqueries<'s, 'a> {
    pub(crate) scope: &'s NameScope<'a>,
    pub(crate) search: &'s AuthorSearch<'a>,
    /// Memory knows each message's author.
    pub(crate) knows_author: bool,
}

impl<'a> ItemSubqueries<'_, 'a> {
    /// Adds what a shown operand reads in other tables. `None`: its value depends on more than rows that equal a column of the message.
    pub(crate) fn add_references(
        &self,
        operand: &'a Operand,
        references: &mut Vec<JoinedRowReference>,
    ) -> Option<()> {
        match operand {
            Operand::Literal(_) => Some(()),
            Operand::Column(column) => self.is_own(column).then_some(()),
            Operand::Coalesce(all) => all
                .iter()
                .try_for_each(|one| self.add_references(one, references)),
            // Of several rows, the plan decides which is the first.
            Operand::Subquery(select)
                if select.value != ScalarValue::FirstRow || select.rows.columns.is_empty() =>
            {
                references.push(self.reference(&select.rows)?);
                Some(())
            }
            Operand::Condition(condition) => match &condition.kind {
                ConditionKind::Exists(rows) => {
                    references.push(self.reference(rows)?);
                    Some(())
                }
                _ => None,
            },
            Operand::Subquery(_)
            | Operand::Now
            | Operand::Count(_)
            | Operand::Function(..)
            | Operand::Case(..) => None,
        }
    }

    fn is_own(&self, column: &ColumnReference) -> bool {
        let of = self.scope.resolve(column);
        of.is_ok_and(|of| of.table == self.search.author.table)
    }

    /// The rows that the subquery reads.
    fn reference(&self, rows: &'a Subquery) -> Option<JoinedRowReference> {
        let [source] = rows.sources.as_slice() else {
            return None;
        };
        if source.outer.is_some() || source.on.is_some() || source.database.is_some() {
            return None;
        }
        let inner = self.scope.within(&rows.sources, self.search.schema).ok()?;
        let scoped = inner.innermost_tables().first()?;
        let message = self.search.author.table;
        let is_read = |column: &ColumnReference| {
            let of = inner.resolve(column);
            of.is_ok_and(|of| [scoped.number, message].contains(&of.table))
        };
        let all = rows.filter.as_ref().map(conjuncts_of).unwrap_or_default();
        if !rows.columns.iter().all(is_read) || !all.iter().all(|one| uses_only(one, &is_read)) {
            return None;
        }
        // The log does not contain what is computed on each read.
        let is_stored = |[key, _]: &[ScopedColumn; 2]| {
            let facts = inner.column_schema(*key);
            facts.is_some_and(|facts| !facts.is_virtual)
        };
        let mut keys = all
            .iter()
            .filter_map(|one| equal_keys(scoped.number, one, &inner));
        let [key, other] = keys.find(is_stored)?;
        let is_author = other == self.search.author && self.knows_author;
        Some(JoinedRowReference {
            table: scoped.source.table.text.clone(),
            id: scoped.table.columns.get(key.column)?.name.clone(),
            key_source: match is_author {
                true => ReferenceKeySource::Author,
                false if other.table == message => {
                    ReferenceKeySource::Column(inner.column_schema(other)?.name.clone())
                }
                false => return None,
            },
            filters: false,
        })
    }
}
