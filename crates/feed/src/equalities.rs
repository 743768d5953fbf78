//! Columns that are equal in every row of a SELECT, and the literals or lists that they equal.

use std::collections::BTreeMap;

use crate::query::{
    ComparisonOperator, ConditionKind, Literal, LiteralList, Operand, SelectCondition,
    TableReference,
};
use crate::schema::ComparisonClass;
use crate::scope::{NameScope, ScopedColumn};

/// Classes of columns that are equal wherever all conditions hold.
#[derive(Clone, Debug, Default)]
pub struct ColumnEqualities {
    /// From a column to one that represents it.
    parents: BTreeMap<ScopedColumn, ScopedColumn>,
    /// The literal that a class equals.
    literals: BTreeMap<ScopedColumn, Literal>,
    /// The list that holds a class's value.
    lists: BTreeMap<ScopedColumn, LiteralList>,
}

/// The conditions that hold in every row: WHERE and each ON of an inner join, split at AND.
pub fn conditions_of_every_row<'q>(
    sources: &'q [TableReference],
    filter: Option<&'q SelectCondition>,
) -> Vec<&'q SelectCondition> {
    let inner = sources.iter().filter(|source| source.outer.is_none());
    let mut all = Vec::new();
    for condition in inner.filter_map(|source| source.on.as_ref()).chain(filter) {
        conjuncts(condition, &mut all);
    }
    all
}

/// Splits a condition at AND.
pub fn conjuncts<'q>(condition: &'q SelectCondition, all: &mut Vec<&'q SelectCondition>) {
    match &condition.kind {
        ConditionKind::And(parts) => parts.iter().for_each(|part| conjuncts(part, all)),
        _ => all.push(condition),
    }
}

impl ColumnEqualities {
    /// Adds the equalities of these conditions. Names were resolved before, so one that cannot be is skipped.
    pub fn add_conditions(&mut self, conditions: &[&SelectCondition], scope: &NameScope<'_>) {
        for condition in conditions {
            let (left, right) = match &condition.kind {
                ConditionKind::Compare(left, ComparisonOperator::Equal, right) => (left, right),
                ConditionKind::In(Operand::Column(column), list, true) => {
                    if let Ok(of) = scope.resolve(column) {
                        let of = self.representative(of);
                        self.lists.entry(of).or_insert_with(|| list.clone());
                    }
                    continue;
                }
                _ => continue,
            };
            match (left, right) {
                (Operand::Column(left), Operand::Column(right)) => {
                    if let (Ok(left), Ok(right)) = (scope.resolve(left), scope.resolve(right))
                        && scope.class(left) == ComparisonClass::Integer
                        && scope.class(right) == ComparisonClass::Integer
                    {
                        self.join(left, right);
                    }
                }
                (Operand::Column(column), Operand::Literal(literal))
                | (Operand::Literal(literal), Operand::Column(column)) => {
                    if let Ok(of) = scope.resolve(column) {
                        self.set_literal(of, *literal);
                    }
                }
                _ => {}
            }
        }
    }

    /// Records that two columns are equal.
    pub fn join(&mut self, left: ScopedColumn, right: ScopedColumn) {
        let (left, right) = (self.representative(left), self.representative(right));
        if left == right {
            return;
        }
        self.parents.insert(right, left);
        if let Some(literal) = self.literals.remove(&right) {
            self.literals.entry(left).or_insert(literal);
        }
        if let Some(list) = self.lists.remove(&right) {
            self.lists.entry(left).or_insert(list);
        }
    }

    /// Records that a column equals a literal.
    pub fn set_literal(&mut self, of: ScopedColumn, literal: Literal) {
        let of = self.representative(of);
        self.literals.entry(of).or_insert(literal);
    }

    fn representative(&self, mut of: ScopedColumn) -> ScopedColumn {
        while let Some(next) = self.parents.get(&of) {
            of = *next;
        }
        of
    }

    /// True if two columns are equal in every row.
    #[must_use]
    pub fn are_equal(&self, left: ScopedColumn, right: ScopedColumn) -> bool {
        self.representative(left) == self.representative(right)
    }

    /// The literal that a column equals in every row.
    #[must_use]
    pub fn literal(&self, of: ScopedColumn) -> Option<Literal> {
        self.literals.get(&self.representative(of)).copied()
    }

    /// The list that holds a column's value in every row.
    #[must_use]
    pub fn list(&self, of: ScopedColumn) -> Option<&LiteralList> {
        self.lists.get(&self.representative(of))
    }

    /// The columns that are known to equal this one.
    pub fn equal_columns(&self, of: ScopedColumn) -> impl Iterator<Item = ScopedColumn> + '_ {
        let class = self.representative(of);
        let all = self.parents.iter().flat_map(|(a, b)| [*a, *b]);
        all.filter(move |other| self.representative(*other) == class)
    }
}

/// The column that the condition says to equal this one.
pub(crate) fn column_equal_to(
    of: ScopedColumn,
    condition: &SelectCondition,
    scope: &NameScope<'_>,
) -> Option<ScopedColumn> {
    let [left, right] = equal_columns(condition, scope)?;
    match (left == of, right == of) {
        (true, false) => Some(right),
        (false, true) => Some(left),
        _ => None,
    }
}

/// A column of the table with this number, and one of another table, if the condition says that these whole numbers are equal.
pub(crate) fn equal_keys(
    table: usize,
    condition: &SelectCondition,
    scope: &NameScope<'_>,
) -> Option<[ScopedColumn; 2]> {
    let [left, right] = equal_columns(condition, scope)?;
    let both = match (left.table == table, right.table == table) {
        (true, false) => [left, right],
        (false, true) => [right, left],
        _ => return None,
    };
    let is_whole = |of: ScopedColumn| scope.class(of) == ComparisonClass::Integer;
    both.into_iter().all(is_whole).then_some(both)
}

/// The columns of `a = b`.
fn equal_columns(condition: &SelectCondition, scope: &NameScope<'_>) -> Option<[ScopedColumn; 2]> {
    match &condition.kind {
        ConditionKind::Compare(
            Operand::Column(left),
            ComparisonOperator::Equal,
            Operand::Column(right),
        ) => Some([scope.resolve(left).ok()?, scope.resolve(right).ok()?]),
        _ => None,
    }
}
