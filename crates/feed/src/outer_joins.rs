//! Outer joins that are inner ones: WHERE, or the ON of an inner join, is true of no row of NULLs.

use crate::equalities::conditions_of_every_row;
use crate::query::{
    ColumnReference, ComparisonOperator, ConditionKind, FeedSelect, Operand, SelectCondition,
};
use crate::schema::Schema;
use crate::scope::NameScope;

impl FeedSelect {
    /// The same SELECT with inner joins in place of outer ones whose rows of NULLs no condition lets pass. `None`: there are none.
    #[must_use]
    pub fn with_inner_joins(&self, schema: &dyn Schema) -> Option<FeedSelect> {
        let mut inner: Option<FeedSelect> = None;
        loop {
            let query = inner.as_ref().unwrap_or(self);
            let rejected = query.rejected_outer_joins(schema);
            if rejected.is_empty() {
                return inner;
            }
            let mut changed = query.clone();
            for source in &mut changed.sources {
                source.outer = source.outer.filter(|join| !rejected.contains(join));
            }
            inner = Some(changed);
        }
    }

    fn rejected_outer_joins(&self, schema: &dyn Schema) -> Vec<usize> {
        let Ok(scope) = NameScope::default().within(&self.sources, schema) else {
            return Vec::new();
        };
        let filter = self.filter.as_ref().map(|(_, filter)| filter);
        let holds = conditions_of_every_row(&self.sources, filter);
        let columns = holds
            .iter()
            .flat_map(|condition| condition.null_rejecting_columns());
        let tables = columns.filter_map(|column| scope.table(scope.resolve(column).ok()?.table));
        tables.filter_map(|scoped| scoped.source.outer).collect()
    }
}

impl SelectCondition {
    /// Columns of which the condition is not true where they are NULL.
    pub fn null_rejecting_columns(&self) -> impl Iterator<Item = &ColumnReference> {
        rejecting_operands(&self.kind)
            .into_iter()
            .filter_map(|operand| match operand {
                RejectingOperand::Operand(Operand::Column(column))
                | RejectingOperand::Column(column) => Some(column),
                RejectingOperand::Operand(_) => None,
            })
    }
}

enum RejectingOperand<'q> {
    Operand(&'q Operand),
    Column(&'q ColumnReference),
}

/// Operands of which the condition is NULL or false where they are NULL.
fn rejecting_operands(kind: &ConditionKind) -> Vec<RejectingOperand<'_>> {
    use RejectingOperand::{Column, Operand};
    match kind {
        // `NULL NOT IN (no rows)` is true.
        ConditionKind::InSubquery(operand, _, true) | ConditionKind::Null(operand, false) => {
            vec![Operand(operand)]
        }
        // `(NULL, 1) <> (1, 2)` is true; and the first columns may decide before the second ones.
        ConditionKind::ComparePairs([first, _], comparison, [other, _])
            if *comparison != ComparisonOperator::Unequal =>
        {
            vec![Operand(first), Operand(other)]
        }
        ConditionKind::And(parts) => {
            let parts = parts.iter();
            parts
                .flat_map(|part| rejecting_operands(&part.kind))
                .collect()
        }
        // NOT NULL is NULL.
        ConditionKind::Not(inner) => match &inner.kind {
            ConditionKind::Null(operand, true) => vec![Operand(operand)],
            kind => strict_operands(kind),
        },
        ConditionKind::Truth(column) => vec![Column(column)],
        kind => strict_operands(kind),
    }
}

/// Operands of which the condition is NULL where they are NULL.
fn strict_operands(kind: &ConditionKind) -> Vec<RejectingOperand<'_>> {
    use RejectingOperand::{Column, Operand};
    match kind {
        ConditionKind::Compare(left, _, right) => vec![Operand(left), Operand(right)],
        // `5 NOT BETWEEN NULL AND 3` is true.
        ConditionKind::Between(operand, ..)
        | ConditionKind::Like(operand, ..)
        | ConditionKind::In(operand, ..) => vec![Operand(operand)],
        ConditionKind::Truth(column) => vec![Column(column)],
        ConditionKind::And(_)
        | ConditionKind::Or(_)
        | ConditionKind::Not(_)
        | ConditionKind::ComparePairs(..)
        | ConditionKind::Null(..)
        | ConditionKind::InSubquery(..)
        | ConditionKind::Exists(_) => Vec::new(),
    }
}
