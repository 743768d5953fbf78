//! The part of a condition that depends on a row's numbers alone: it excludes most rows without evaluating the whole condition.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

use crate::sql::{self, CellValue, RowScope};

/// A part of a condition.
pub(crate) enum RowCondition {
    /// Not known: any row may match.
    Open,
    All(Vec<RowCondition>),
    Any(Vec<RowCondition>),
    /// The cell at this index is one of these numbers.
    Among(usize, Vec<i128>),
    /// The cell is at most this number.
    Upto(usize, i128),
    /// The cell is at least this number.
    From(usize, i128),
}

impl RowCondition {
    /// Reads a condition on rows of a table. A column of the outer SELECT is replaced by its number.
    pub(crate) fn from_expression(
        condition: &Expr,
        name: &str,
        columns: &[String],
        outer: Option<&RowScope<'_>>,
    ) -> RowCondition {
        let read = |part: &Expr| RowCondition::from_expression(part, name, columns, outer);
        let index = |expr: &Expr| {
            let (table, column) = named(expr)?;
            let is_here = table.is_none_or(|table| table == name);
            let index = columns.iter().position(|it| it == column);
            index.filter(|_| is_here)
        };
        let number = |expr: &Expr| match literal(expr) {
            None if index(expr).is_none() => {
                let (table, column) = named(expr)?;
                match outer?.find(table, column).ok()? {
                    CellValue::Number(number) => Some(number),
                    _ => None,
                }
            }
            number => number,
        };
        let sieve = match condition {
            Expr::Nested(inner) => Some(read(inner)),
            Expr::InList {
                expr,
                list,
                negated: false,
            } => index(expr).and_then(|place| {
                let numbers: Option<Vec<i128>> = list.iter().map(number).collect();
                Some(RowCondition::Among(place, numbers?))
            }),
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And => Some(RowCondition::All(vec![read(left), read(right)])),
                BinaryOperator::Or => Some(RowCondition::Any(vec![read(left), read(right)])),
                _ => index(left)
                    .zip(number(right))
                    .and_then(|(index, number)| match op {
                        BinaryOperator::Eq => Some(RowCondition::Among(index, vec![number])),
                        BinaryOperator::Lt | BinaryOperator::LtEq => {
                            Some(RowCondition::Upto(index, number))
                        }
                        BinaryOperator::Gt | BinaryOperator::GtEq => {
                            Some(RowCondition::From(index, number))
                        }
                        _ => None,
                    }),
            },
            _ => None,
        };
        sieve.unwrap_or(RowCondition::Open)
    }

    /// False if this row cannot match the condition.
    pub(crate) fn matches(&self, row: &[CellValue]) -> bool {
        let number = |index: &usize| match row[*index] {
            CellValue::Number(number) => Some(number),
            _ => None,
        };
        match self {
            RowCondition::Open => true,
            RowCondition::All(parts) => parts.iter().all(|part| part.matches(row)),
            RowCondition::Any(parts) => parts.iter().any(|part| part.matches(row)),
            RowCondition::Among(place, numbers) => {
                number(place).is_none_or(|it| numbers.contains(&it))
            }
            RowCondition::Upto(place, most) => number(place).is_none_or(|it| it <= *most),
            RowCondition::From(place, least) => number(place).is_none_or(|it| it >= *least),
        }
    }
}

/// A column's table, if it is named, and its name.
fn named(expr: &Expr) -> Option<(Option<&str>, &str)> {
    match expr {
        Expr::Identifier(name) => Some((None, &name.value)),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [.., table, name] => Some((Some(&table.value), &name.value)),
            _ => None,
        },
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Value(value) => sql::number(&value.value).ok(),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => literal(expr).map(|number| -number),
        _ => None,
    }
}
