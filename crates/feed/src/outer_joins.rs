//! Outer joins that are inner ones: WHERE, or the ON of an inner join, is true of no row of NULLs.

use std::collections::BTreeSet;

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
        let scope = NameScope::default().within(&self.sources, schema).ok()?;
        let filter = self.filter.as_ref().map(|(_, filter)| filter);
        let rejected = scope.rejected_outer_joins(&conditions_of_every_row(&self.sources, filter));
        if rejected.is_empty() {
            return None;
        }
        let mut inner = self.clone();
        for source in &mut inner.sources {
            source.outer = source.outer.filter(|join| !rejected.contains(join));
        }
        Some(inner)
    }
}

impl<'a> NameScope<'a> {
    /// The LEFT JOINs of the innermost SELECT that have found a row wherever these conditions hold: one of them rejects the row of NULLs,
    /// or the ON of another such join does.
    #[must_use]
    pub fn rejected_outer_joins<'q>(&self, conditions: &[&'q SelectCondition]) -> BTreeSet<usize>
    where
        'a: 'q,
    {
        let outer_join_of = |column: &ColumnReference| {
            let of = self.resolve(column).ok()?;
            let mut tables = self.innermost_tables().iter();
            let scoped = tables.find(|scoped| scoped.number == of.table)?;
            scoped.source.outer
        };
        let mut rejected = BTreeSet::new();
        let mut holds: Vec<&'q SelectCondition> = conditions.to_vec();
        while let Some(condition) = holds.pop() {
            for join in condition.null_rejecting_columns().filter_map(outer_join_of) {
                if rejected.insert(join) {
                    holds.extend(self.outer_join_conditions(join));
                }
            }
        }
        rejected
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
            if !matches!(
                comparison,
                ComparisonOperator::Unequal | ComparisonOperator::NullSafeEqual
            ) =>
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
        // `NULL IS NOT TRUE` is true.
        ConditionKind::IsTruth(operand, _, true) => vec![Operand(operand)],
        kind => strict_operands(kind),
    }
}

/// Operands of which the condition is NULL where they are NULL.
fn strict_operands(kind: &ConditionKind) -> Vec<RejectingOperand<'_>> {
    use RejectingOperand::{Column, Operand};
    match kind {
        ConditionKind::Compare(left, comparison, right)
            if *comparison != ComparisonOperator::NullSafeEqual =>
        {
            vec![Operand(left), Operand(right)]
        }
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
        | ConditionKind::Compare(..)
        | ConditionKind::IsTruth(..)
        | ConditionKind::Exists(_) => Vec::new(),
    }
}
