//! Rows that a message refers to: rows of tables that are joined by a key, which a column of the message holds.

use crate::equalities::equal_keys;
use crate::query::{SelectCondition, visit_columns};
use crate::scope::{NameScope, ScopedColumn, ScopedTable};

/// A row that a message's result row is also made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedRowReference {
    /// Its table.
    pub table: String,
    /// The table's key column.
    pub id: String,
    /// What holds the key's value.
    pub key_source: ReferenceKeySource,
    /// True if it decides whether a message passes.
    pub filters: bool,
}

/// What holds the key of a joined row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceKeySource {
    /// The message's author, whom memory knows.
    Author,
    /// This column of the message, where the reply shows it.
    Column(String),
}

pub(crate) struct JoinedTableSearch<'s, 'a> {
    pub(crate) scope: &'s NameScope<'a>,
    /// The message's author, and a column that equals it in every row.
    pub(crate) author: ScopedColumn,
    pub(crate) equal_author: Option<ScopedColumn>,
    /// Memory knows each message's author.
    pub(crate) knows_author: bool,
}

/// The joined tables of a statement.
pub(crate) struct JoinedTableMatches<'q> {
    references: Vec<JoinedRowReference>,
    /// Their numbers in the statement.
    pub(crate) numbers: Vec<usize>,
    /// The conditions that select their rows, where these hold in every row.
    pub(crate) key_conditions: Vec<&'q SelectCondition>,
    /// Other ON conditions of tables of a LEFT JOIN.
    pub(crate) extra_on_conditions: Vec<&'q SelectCondition>,
}

impl<'a> JoinedTableSearch<'_, 'a> {
    /// References to these tables. `None`: one is not joined by its key.
    pub(crate) fn references<'q>(
        &self,
        tables: &[&ScopedTable<'a>],
        holds: &[&'q SelectCondition],
    ) -> Option<JoinedTableMatches<'q>>
    where
        'a: 'q,
    {
        let mut joined = JoinedTableMatches {
            references: Vec::new(),
            numbers: tables.iter().map(|scoped| scoped.number).collect(),
            key_conditions: Vec::new(),
            extra_on_conditions: Vec::new(),
        };
        for scoped in tables {
            let outer_join = scoped.source.outer;
            let shares_join = |other: &&ScopedTable<'a>| {
                other.number != scoped.number && other.source.outer == outer_join
            };
            if outer_join.is_some() && tables.iter().copied().any(|other| shares_join(&other)) {
                return None;
            }
            let on = outer_join.map(|outer_join| self.scope.outer_join_conditions(outer_join));
            let all = on.as_deref().unwrap_or(holds);
            let mut keys = all
                .iter()
                .filter_map(|one| Some((*one, self.key_reference(one, scoped)?)));
            let (key_condition, (id, by)) = keys.next()?;
            if let Some(on) = &on {
                let others = on.iter().filter(|one| !std::ptr::eq(**one, key_condition));
                joined.extra_on_conditions.extend(others);
            } else {
                joined.key_conditions.push(key_condition);
            }
            joined.references.push(JoinedRowReference {
                table: scoped.source.table.text.clone(),
                id: scoped.table.columns.get(id)?.name.clone(),
                key_source: by,
                filters: outer_join.is_none(),
            });
        }
        Some(joined)
    }

    /// The key column and what holds its value, if the condition is such an equality.
    fn key_reference(
        &self,
        condition: &SelectCondition,
        scoped: &ScopedTable<'_>,
    ) -> Option<(usize, ReferenceKeySource)> {
        let [key_column, other] = equal_keys(scoped.number, condition, self.scope)?;
        let unique = scoped
            .table
            .unique_keys
            .iter()
            .any(|key| *key == [key_column.column]);
        let is_author = other == self.author || self.equal_author == Some(other);
        let by = if self.knows_author && is_author {
            ReferenceKeySource::Author
        } else if other.table == self.author.table {
            ReferenceKeySource::Column(self.scope.column_schema(other)?.name.clone())
        } else {
            return None;
        };
        unique.then_some((key_column.column, by))
    }

    /// The references; marks those on which messages pass or fail by the remaining conditions.
    pub(crate) fn mark_filtering(
        &self,
        joined: JoinedTableMatches<'_>,
        rest: &[&SelectCondition],
    ) -> Vec<JoinedRowReference> {
        let mut decide = Vec::new();
        for condition in rest.iter().chain(&joined.extra_on_conditions) {
            visit_columns(condition, &mut |column| {
                decide.extend(self.scope.resolve(column).ok().map(|of| of.table));
            });
        }
        let numbers = joined.numbers.iter();
        let each = joined.references.into_iter().zip(numbers);
        let references = each.map(|(refer, number)| JoinedRowReference {
            filters: refer.filters || decide.contains(number),
            ..refer
        });
        references.collect()
    }
}
