//! Which columns a statement names where somebody may be meant: in lower case, of whichever table.

use std::collections::BTreeSet;

use crate::query::{Column, Comparison, Condition, Operand, Query, Rows, Says, Source};

/// Names of columns, by where they stand.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Before IN: a list of literals, or a SELECT.
    pub(super) listed: BTreeSet<String>,
    /// Equal to another column, before IN and a SELECT, or what that SELECT gives.
    pub(super) compared: BTreeSet<String>,
    /// Equal to a literal.
    pub(super) equal: BTreeSet<String>,
    /// Tables of an EXISTS.
    pub(super) exists: BTreeSet<String>,
}

impl Names {
    pub(super) fn of(query: &Query) -> Names {
        let mut names = Names::default();
        names.sources(&query.sources);
        if let Some((_, filter)) = &query.filter {
            names.condition(filter);
        }
        names
    }

    fn sources(&mut self, sources: &[Source]) {
        for on in sources.iter().filter_map(|source| source.on.as_ref()) {
            self.condition(on);
        }
    }

    fn condition(&mut self, condition: &Condition) {
        match &condition.is {
            Says::And(all) | Says::Or(all) => all.iter().for_each(|one| self.condition(one)),
            Says::Compare(Operand::Column(a), Comparison::Equal, Operand::Column(b)) => {
                self.compared.extend([lower(a), lower(b)]);
            }
            Says::Compare(Operand::Column(column), Comparison::Equal, Operand::Literal(_))
            | Says::Compare(Operand::Literal(_), Comparison::Equal, Operand::Column(column)) => {
                self.equal.insert(lower(column));
            }
            Says::In(Operand::Column(column), _, true) => {
                self.listed.insert(lower(column));
            }
            Says::InRows(Operand::Column(column), rows, true) => {
                self.listed.insert(lower(column));
                self.compared.insert(lower(column));
                self.compared.extend(rows.columns.first().map(lower));
                self.rows(rows);
            }
            Says::Exists(rows) => {
                let tables = rows.sources.iter().map(|source| source.table.text.clone());
                self.exists.extend(tables);
                self.rows(rows);
            }
            // What is not so, and what bounds nobody, names nobody.
            Says::Not(_)
            | Says::Compare(..)
            | Says::Pairs(..)
            | Says::Null(..)
            | Says::Between(..)
            | Says::Like(..)
            | Says::In(..)
            | Says::InRows(..)
            | Says::Truth(_) => {}
        }
    }

    fn rows(&mut self, rows: &Rows) {
        self.sources(&rows.sources);
        if let Some(filter) = &rows.filter {
            self.condition(filter);
        }
    }
}

fn lower(column: &Column) -> String {
    column.name.text.to_ascii_lowercase()
}
