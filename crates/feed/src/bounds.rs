//! From where on downwards a statement asks, as far as it says so in a form that is known.
//!
//! A bound that is not understood costs time only: it stays in the text, and the server heeds it.

use crate::query::{Comparison, Condition, Literal, Operand, Says};
use crate::scope::{Of, Scope};

/// The columns that a feed is ordered by: a key and the id, or the id alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// The key.
    pub key: Of,
    /// The id, where it comes behind the key.
    pub id: Option<Of>,
}

/// One bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// True: at most so great. False: at least.
    pub upper: bool,
    /// The value itself is within.
    pub closed: bool,
    /// For the key.
    pub key: Literal,
    /// For the id, where both are bounded as a pair.
    pub id: Option<Literal>,
    /// A literal that has to be the same as `key`, where the pair is written out.
    pub same: Option<Literal>,
}

/// What a condition says of the order, if it says something.
#[must_use]
pub fn of(condition: &Condition, ordered: Ordered, scope: &Scope<'_>) -> Vec<Bound> {
    let is = |operand: &Operand, of: Of| match operand {
        Operand::Column(column) => scope.resolve(column) == Ok(of),
        _ => false,
    };
    match &condition.is {
        Says::Compare(left, comparison, right) => {
            let one = side(left, *comparison, right, |operand| is(operand, ordered.key));
            one.into_iter().collect()
        }
        Says::Between(operand, Operand::Literal(from), Operand::Literal(to), true)
            if is(operand, ordered.key) =>
        {
            vec![
                Bound::simple(false, true, *from),
                Bound::simple(true, true, *to),
            ]
        }
        Says::Pairs([key, id], comparison, [Operand::Literal(a), Operand::Literal(b)]) => {
            let pair = ordered
                .id
                .is_some_and(|own| is(key, ordered.key) && is(id, own));
            let direction = direction(*comparison).filter(|_| pair);
            let bound = direction.map(|(upper, closed)| Bound {
                id: Some(*b),
                ..Bound::simple(upper, closed, *a)
            });
            bound.into_iter().collect()
        }
        Says::Or(parts) => written_out(parts, ordered, &is).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// `key < a OR (key = a AND id < b)`.
fn written_out(
    parts: &[Condition],
    ordered: Ordered,
    is: &dyn Fn(&Operand, Of) -> bool,
) -> Option<Bound> {
    let [first, second] = parts else {
        return None;
    };
    let (Says::Compare(a, outer, b), Says::And(both)) = (&first.is, &second.is) else {
        return None;
    };
    let outer = side(a, *outer, b, |operand| is(operand, ordered.key))?;
    let [equal, inner] = both.as_slice() else {
        return None;
    };
    let Says::Compare(key, Comparison::Equal, Operand::Literal(same)) = &equal.is else {
        return None;
    };
    let Says::Compare(c, comparison, d) = &inner.is else {
        return None;
    };
    let inner = side(c, *comparison, d, |operand| {
        ordered.id.is_some_and(|id| is(operand, id))
    })?;
    (is(key, ordered.key) && outer.upper == inner.upper && !outer.closed).then_some(Bound {
        id: Some(inner.key),
        same: Some(*same),
        closed: inner.closed,
        ..outer
    })
}

/// A column on one side, a literal on the other.
fn side(
    left: &Operand,
    comparison: Comparison,
    right: &Operand,
    is: impl Fn(&Operand) -> bool,
) -> Option<Bound> {
    let (upper, closed) = direction(comparison)?;
    match (left, right) {
        (column, Operand::Literal(literal)) if is(column) => {
            Some(Bound::simple(upper, closed, *literal))
        }
        (Operand::Literal(literal), column) if is(column) => {
            Some(Bound::simple(!upper, closed, *literal))
        }
        _ => None,
    }
}

fn direction(comparison: Comparison) -> Option<(bool, bool)> {
    match comparison {
        Comparison::Less => Some((true, false)),
        Comparison::AtMost => Some((true, true)),
        Comparison::Greater => Some((false, false)),
        Comparison::AtLeast => Some((false, true)),
        Comparison::Equal | Comparison::Unequal => None,
    }
}

impl Bound {
    fn simple(upper: bool, closed: bool, key: Literal) -> Bound {
        Bound {
            upper,
            closed,
            key,
            id: None,
            same: None,
        }
    }
}
