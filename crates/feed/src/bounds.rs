//! The bounds of a page, where a statement states them in a known form.
//!
//! A bound that is not understood only costs time: it stays in the text, and the server applies it.

use crate::query::{ComparisonOperator, ConditionKind, Literal, Operand, SelectCondition};
use crate::scope::{NameScope, ScopedColumn};

/// The columns that a feed is ordered by: a key and the id, or the id alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderColumns {
    /// The key.
    pub key: ScopedColumn,
    /// The id, where it follows the key.
    pub id: Option<ScopedColumn>,
}

/// One bound of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageBound {
    /// True: at most this value. False: at least.
    pub upper: bool,
    /// The value itself is included.
    pub inclusive: bool,
    /// The key's bound.
    pub key: Literal,
    /// The id's bound, where both are bounded as a pair.
    pub id: Option<Literal>,
    /// A literal that must be the same as `key`, where the pair is written as a disjunction.
    pub equal_key: Option<Literal>,
    /// The bound holds unless this literal is NULL: `? IS NULL OR created_at <= ?`.
    pub unless_null: Option<Literal>,
}

/// The bounds that a condition sets on the order's columns.
#[must_use]
pub fn bounds_of(
    condition: &SelectCondition,
    ordered: OrderColumns,
    scope: &NameScope<'_>,
) -> Vec<PageBound> {
    let is = |operand: &Operand, of: ScopedColumn| match operand {
        Operand::Column(column) => scope.resolve(column) == Ok(of),
        _ => false,
    };
    match &condition.kind {
        ConditionKind::Compare(left, comparison, right) => {
            let one = column_bound(left, *comparison, right, |operand| is(operand, ordered.key));
            one.into_iter().collect()
        }
        ConditionKind::Between(operand, Operand::Literal(from), Operand::Literal(to), true)
            if is(operand, ordered.key) =>
        {
            vec![
                PageBound::key_bound(false, true, *from),
                PageBound::key_bound(true, true, *to),
            ]
        }
        ConditionKind::ComparePairs(
            [key, id],
            comparison,
            [Operand::Literal(a), Operand::Literal(b)],
        ) => {
            let pair = ordered
                .id
                .is_some_and(|id_column| is(key, ordered.key) && is(id, id_column));
            let direction = direction(*comparison).filter(|_| pair);
            let bound = direction.map(|(upper, closed)| PageBound {
                id: Some(*b),
                ..PageBound::key_bound(upper, closed, *a)
            });
            bound.into_iter().collect()
        }
        ConditionKind::Or(parts) => match optional_condition(parts) {
            Some((literal, condition)) => bounds_of(condition, ordered, scope)
                .into_iter()
                .filter(|bound| bound.unless_null.is_none())
                .map(|bound| PageBound {
                    unless_null: Some(literal),
                    ..bound
                })
                .collect(),
            None => disjunction_bound(parts, ordered, &is).into_iter().collect(),
        },
        _ => Vec::new(),
    }
}

/// `literal IS NULL OR condition`, in either order.
fn optional_condition(parts: &[SelectCondition]) -> Option<(Literal, &SelectCondition)> {
    let [first, second] = parts else {
        return None;
    };
    let literal = |condition: &SelectCondition| match &condition.kind {
        ConditionKind::Null(Operand::Literal(literal), true) => Some(*literal),
        _ => None,
    };
    match (literal(first), literal(second)) {
        (Some(literal), None) => Some((literal, second)),
        (None, Some(literal)) => Some((literal, first)),
        _ => None,
    }
}

/// `key < a OR (key = a AND id < b)`.
fn disjunction_bound(
    parts: &[SelectCondition],
    ordered: OrderColumns,
    is: &dyn Fn(&Operand, ScopedColumn) -> bool,
) -> Option<PageBound> {
    let [first, second] = parts else {
        return None;
    };
    let (ConditionKind::Compare(a, outer, b), ConditionKind::And(both)) =
        (&first.kind, &second.kind)
    else {
        return None;
    };
    let outer = column_bound(a, *outer, b, |operand| is(operand, ordered.key))?;
    let [equal, inner] = both.as_slice() else {
        return None;
    };
    let ConditionKind::Compare(key, ComparisonOperator::Equal, Operand::Literal(same)) =
        &equal.kind
    else {
        return None;
    };
    let ConditionKind::Compare(c, comparison, d) = &inner.kind else {
        return None;
    };
    let inner = column_bound(c, *comparison, d, |operand| {
        ordered.id.is_some_and(|id| is(operand, id))
    })?;
    (is(key, ordered.key) && outer.upper == inner.upper && !outer.inclusive).then_some(PageBound {
        id: Some(inner.key),
        equal_key: Some(*same),
        inclusive: inner.inclusive,
        ..outer
    })
}

/// Compares the column with a literal, on either side.
fn column_bound(
    left: &Operand,
    comparison: ComparisonOperator,
    right: &Operand,
    is: impl Fn(&Operand) -> bool,
) -> Option<PageBound> {
    let (upper, closed) = direction(comparison)?;
    match (left, right) {
        (column, Operand::Literal(literal)) if is(column) => {
            Some(PageBound::key_bound(upper, closed, *literal))
        }
        (Operand::Literal(literal), column) if is(column) => {
            Some(PageBound::key_bound(!upper, closed, *literal))
        }
        _ => None,
    }
}

fn direction(comparison: ComparisonOperator) -> Option<(bool, bool)> {
    match comparison {
        ComparisonOperator::Less => Some((true, false)),
        ComparisonOperator::AtMost => Some((true, true)),
        ComparisonOperator::Greater => Some((false, false)),
        ComparisonOperator::AtLeast => Some((false, true)),
        ComparisonOperator::Equal
        | ComparisonOperator::Unequal
        | ComparisonOperator::NullSafeEqual => None,
    }
}

impl PageBound {
    fn key_bound(upper: bool, closed: bool, key: Literal) -> PageBound {
        PageBound {
            upper,
            inclusive: closed,
            key,
            id: None,
            equal_key: None,
            unless_null: None,
        }
    }
}
