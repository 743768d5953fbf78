//! The columns that a statement names where they may identify people: in lower case, of any table.

use std::collections::BTreeSet;

use crate::query::{
    ColumnReference, ComparisonOperator, ConditionKind, FeedSelect, Operand, SelectCondition,
    Subquery, TableReference,
};

/// Column names, by where they stand.
#[derive(Debug, Default)]
pub(super) struct ColumnMentions {
    /// Before IN: a list of literals, or a SELECT.
    pub(super) listed: BTreeSet<String>,
    /// Equal to another column, before IN and a SELECT, or returned by that SELECT.
    pub(super) equal_to_column: BTreeSet<String>,
    /// Equal to a literal.
    pub(super) equal_to_literal: BTreeSet<String>,
    /// Tables of an EXISTS.
    pub(super) exists_tables: BTreeSet<String>,
}

impl ColumnMentions {
    pub(super) fn of(query: &FeedSelect) -> ColumnMentions {
        let mut names = ColumnMentions::default();
        names.select(query);
        names
    }

    fn select(&mut self, query: &FeedSelect) {
        self.sources(&query.sources);
        if let Some((_, filter)) = &query.filter {
            self.condition(filter);
        }
        query.union.iter().for_each(|branch| self.select(branch));
    }

    fn sources(&mut self, sources: &[TableReference]) {
        for on in sources.iter().filter_map(|source| source.on.as_ref()) {
            self.condition(on);
        }
    }

    fn condition(&mut self, condition: &SelectCondition) {
        match &condition.kind {
            ConditionKind::And(all) | ConditionKind::Or(all) => {
                all.iter().for_each(|one| self.condition(one))
            }
            ConditionKind::Compare(
                Operand::Column(a),
                ComparisonOperator::Equal,
                Operand::Column(b),
            ) => {
                self.equal_to_column.extend([lower(a), lower(b)]);
            }
            ConditionKind::Compare(
                Operand::Column(column),
                ComparisonOperator::Equal,
                Operand::Literal(_),
            )
            | ConditionKind::Compare(
                Operand::Literal(_),
                ComparisonOperator::Equal,
                Operand::Column(column),
            ) => {
                self.equal_to_literal.insert(lower(column));
            }
            ConditionKind::In(Operand::Column(column), _, true) => {
                self.listed.insert(lower(column));
            }
            ConditionKind::InSubquery(Operand::Column(column), rows, true) => {
                self.listed.insert(lower(column));
                self.equal_to_column.insert(lower(column));
                self.equal_to_column.extend(rows.columns.first().map(lower));
                self.rows(rows);
            }
            // `7 IN (SELECT reader FROM follow WHERE followed = author)`
            ConditionKind::InSubquery(Operand::Literal(_), rows, true) => {
                self.equal_to_literal
                    .extend(rows.columns.first().map(lower));
                self.rows(rows);
            }
            ConditionKind::Null(Operand::Subquery(select), false) => self.rows(&select.rows),
            ConditionKind::Exists(rows) => {
                let tables = rows.sources.iter().map(|source| source.table.text.clone());
                self.exists_tables.extend(tables);
                self.rows(rows);
            }
            // Negated conditions and bounds identify no one.
            ConditionKind::Not(_)
            | ConditionKind::Compare(..)
            | ConditionKind::ComparePairs(..)
            | ConditionKind::Null(..)
            | ConditionKind::Between(..)
            | ConditionKind::Like(..)
            | ConditionKind::In(..)
            | ConditionKind::InSubquery(..)
            | ConditionKind::IsTruth(..)
            | ConditionKind::Truth(_) => {}
        }
    }

    fn rows(&mut self, rows: &Subquery) {
        self.sources(&rows.sources);
        if let Some(filter) = &rows.filter {
            self.condition(filter);
        }
    }
}

fn lower(column: &ColumnReference) -> String {
    column.name.text.to_ascii_lowercase()
}
