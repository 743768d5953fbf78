//! Checks narrowed texts with an independent parser: the client's own SELECT and one more condition, or that condition in place of one list
//! of authors, through a temporary table or not, and nothing else.

use sqlparser::ast::{BinaryOperator, Expr, Query, Select, SetExpr, Statement, TableFactor};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::narrowed_text::NarrowingForm;

/// Deeper than any narrowed text.
const DEEPEST: usize = 400;

/// Parses a text. `None`: it is beyond that parser.
pub(super) fn read(text: &[u8]) -> Option<Query> {
    let text = std::str::from_utf8(text).ok()?;
    let mut parser = Parser::new(&MySqlDialect {})
        .with_recursion_limit(DEEPEST)
        .try_with_sql(text)
        .ok()?;
    match parser.parse_statements().ok()?.as_slice() {
        [Statement::Query(query)] => Some((**query).clone()),
        _ => None,
    }
}

/// Parses a condition, however its names are quoted.
fn condition(text: &str) -> Option<Expr> {
    let parser = Parser::new(&MySqlDialect {}).try_with_sql(text);
    parser.ok()?.parse_expr().ok()
}

/// Panics unless a narrowed text is right. `condition`: the added condition, as written.
pub(super) fn assert_narrowed(
    original: &Query,
    narrowed: &[u8],
    form: NarrowingForm,
    condition: &str,
) {
    let lossy = String::from_utf8_lossy(narrowed);
    let Some(condition) = self::condition(condition) else {
        unreachable!("what was added is no condition to another parser: {lossy}");
    };
    let Some(mut narrowed) = read(narrowed) else {
        unreachable!("a narrowed text is none to another parser: {lossy}");
    };
    let mut original = original.clone();
    let (Some(before), Some(after)) = (select(&mut original), select(&mut narrowed)) else {
        unreachable!("it is no SELECT: {lossy}");
    };
    // What that parser takes for hints are comments to both servers. Texts with `/*+` are never narrowed.
    before.optimizer_hints.clear();
    after.optimizer_hints.clear();
    let buffered = |select: &mut Select| {
        let modifiers = select.select_modifiers.take();
        modifiers.is_some_and(|modifiers| modifiers.sql_buffer_result)
    };
    assert!(!buffered(before), "{lossy}");
    assert_eq!(buffered(after), form.buffered, "{lossy}");
    let (before, after) = (conditions(before).take(), conditions(after).take());
    let Some(after) = after else {
        unreachable!("it has no condition: {lossy}");
    };
    match (form.replaces_list, before) {
        (true, Some(before)) => assert_list_replaced(&before, &after, &condition, &lossy),
        (true, None) => unreachable!("a list is replaced where there was none: {lossy}"),
        (false, before) => assert_condition_added(before, after, &condition, &lossy),
    }
    // Everything else is unchanged.
    assert_eq!(original, narrowed, "{lossy}");
}

fn select(query: &mut Query) -> Option<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

/// Where the condition goes: into the SELECT in FROM, if FROM has nothing else.
fn conditions(select: &mut Select) -> &mut Option<Expr> {
    let is_derived = |select: &Select| {
        matches!(select.from.as_slice(), [only] if only.joins.is_empty()
            && matches!(only.relation, TableFactor::Derived { .. }))
    };
    if !is_derived(select) {
        return &mut select.selection;
    }
    match select.from.first_mut().map(|only| &mut only.relation) {
        Some(TableFactor::Derived { subquery, .. }) => match subquery.body.as_mut() {
            SetExpr::Select(inner) => &mut inner.selection,
            other => unreachable!("a SELECT in FROM is none: {other}"),
        },
        _ => unreachable!("it was there before"),
    }
}

/// `(original condition) AND condition`, or the condition alone.
fn assert_condition_added(before: Option<Expr>, after: Expr, condition: &Expr, lossy: &str) {
    let (rest, last) = match after {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } if before.is_some() => (Some(*left), *right),
        alone => (None, alone),
    };
    assert_eq!(last, *condition, "{lossy}");
    let before = before.map(|before| Expr::Nested(Box::new(before)));
    assert_eq!(rest, before, "{lossy}");
}

/// The condition replaces one of the outermost conjuncts, which was a list of literals.
fn assert_list_replaced(before: &Expr, after: &Expr, condition: &Expr, lossy: &str) {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    conjuncts(before, &mut removed);
    conjuncts(after, &mut added);
    assert_eq!(removed.len(), added.len(), "{lossy}");
    let differing: Vec<_> = removed.iter().zip(&added).filter(|(a, b)| a != b).collect();
    match differing.as_slice() {
        [(list, other)] => {
            let is_list = matches!(bare(list), Expr::InList { expr, list, negated: false }
                if is_author(expr) && list.iter().all(is_literal));
            assert!(is_list, "{list} is no list of authors: {lossy}");
            assert_eq!(**other, condition, "{lossy}");
        }
        // The list equalled its replacement. On another column it could not.
        [] => assert!(added.contains(&condition), "{lossy}"),
        _ => unreachable!("more than one condition has changed: {lossy}"),
    }
}

/// Splits a condition at AND, through parentheses.
fn conjuncts<'a>(all: &'a Expr, parts: &mut Vec<&'a Expr>) {
    match all {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            conjuncts(left, parts);
            conjuncts(right, parts);
        }
        Expr::Nested(inner) if is_and(inner) => conjuncts(inner, parts),
        one => parts.push(one),
    }
}

fn is_and(condition: &Expr) -> bool {
    match condition {
        Expr::Nested(inner) => is_and(inner),
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::And,
        _ => false,
    }
}

fn bare(condition: &Expr) -> &Expr {
    match condition {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

fn is_author(column: &Expr) -> bool {
    let name = match column {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    };
    name.is_some_and(|name| name.value.eq_ignore_ascii_case("user_id"))
}

fn is_literal(value: &Expr) -> bool {
    match value {
        Expr::Value(_) => true,
        Expr::UnaryOp { expr, .. } => is_literal(expr),
        _ => false,
    }
}
