//! Whether what a statement shows of a message depends on that message's own row, on rows that it refers to by their keys (its author's)
//! and on literals alone: then the server's answer about it can be kept.
//!
//! The messages themselves have to be known without the server's help as well: whose they are is said by one condition, of which
//! memory knows all (a superset would do for narrowing).

use std::ops::Range;

use crate::authors::Search;
use crate::bind::{Statement, Types};
use crate::bounds::{self, Bound, Ordered};
use crate::equal::conjuncts;
use crate::query::{Column, Comparison, Condition, Item, Operand, Query, Rows, Says};
use crate::refers::{Refer, Tables};
use crate::scope::{Of, Scope};
use crate::words::{Is, Members, Word};

/// What a row depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Words on which no row depends: whose messages are wanted, how many, from where on.
    apart: Vec<Range<usize>>,
    /// Conditions that say no more than from where on, where they are read for certain.
    bounds: Vec<(Range<usize>, Vec<Bound>)>,
    /// Rows of other tables that they are made of.
    pub refers: Vec<Refer>,
}

/// What is looked at.
pub(crate) struct Look<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) search: &'a Search<'a>,
    pub(crate) order: Ordered,
}

impl<'a> Look<'a> {
    /// `None`: rows depend on more.
    pub(crate) fn keep(&self, query: &'a Query, holds: &[&'a Condition]) -> Option<Keep> {
        if !query.inner.is_empty() {
            return None;
        }
        let message = self.search.author.table;
        let is_edge = |number| self.search.edge(number, self.scope).is_some();
        let others = self.scope.own().iter();
        let (edges, others): (Vec<_>, Vec<_>) = others
            .filter(|seen| seen.number != message)
            .partition(|seen| !seen.source.outer && is_edge(seen.number));
        let (said, mut rest) = match edges.as_slice() {
            [] => self.said(holds)?,
            [edge] => self.joined(holds, edge.number)?,
            _ => return None,
        };
        let authors = edges.first().and_then(|edge| {
            let (_, author) = self.search.edge(edge.number, self.scope)?;
            Some(author)
        });
        let tables = Tables {
            scope: self.scope,
            author: self.search.author,
            also_author: authors,
        };
        let found = tables.refers(&others, holds)?;
        rest.retain(|one| !found.keys.iter().any(|key| std::ptr::eq(*key, *one)));
        let own = |column: &Column| {
            let of = self.scope.resolve(column);
            of.is_ok_and(|of| of.table == message || found.numbers.contains(&of.table))
        };
        let shows_own = |item: &Item| match item {
            Item::Operand(operand, _) => owns([operand], &own),
            Item::All | Item::AllOf(_) => {
                let mut shown = self.scope.shown(item);
                shown.all(|seen| seen.number == message || found.numbers.contains(&seen.number))
            }
        };
        let mut conditions = rest.iter().chain(&found.beside);
        if !query.items.iter().all(shows_own) || !conditions.all(|one| is_own(one, &own)) {
            return None;
        }
        let refers = tables.decided(found, &rest);
        let mut apart = vec![said, query.limit..query.limit + 1];
        apart.extend(query.offset.map(|at| at..at + 1));
        let bounds = rest.iter().filter_map(|condition| {
            let bounds = bounds::of(condition, self.order, self.scope);
            let upper = !bounds.is_empty() && bounds.iter().all(|bound| bound.upper);
            upper.then(|| (condition.words.clone(), bounds))
        });
        Some(Keep {
            bounds: bounds.collect(),
            apart,
            refers,
        })
    }

    /// Where it is said whose messages are wanted, and the other conditions.
    fn said(&self, holds: &[&'a Condition]) -> Option<(Range<usize>, Vec<&'a Condition>)> {
        let (said, rest): (Vec<&Condition>, Vec<&Condition>) =
            holds.iter().copied().partition(|one| self.is_exact(one));
        match said.as_slice() {
            [said] => Some((said.words.clone(), rest)),
            _ => None,
        }
    }

    /// The same, where messages are joined with edges: one by one, and by nothing but the author.
    fn joined(
        &self,
        holds: &[&'a Condition],
        edge: usize,
    ) -> Option<(Range<usize>, Vec<&'a Condition>)> {
        let (reader, author) = self.search.edge(edge, self.scope)?;
        let (mut joins, mut readers, mut rest) = (0, Vec::new(), Vec::new());
        for condition in holds {
            if self.is_exact(condition) {
                return None;
            }
            if self.equates(condition, author, self.scope) {
                joins += 1;
            } else if is_value(condition, reader, self.scope) {
                readers.push(condition.words.clone());
            } else {
                rest.push(*condition);
            }
        }
        match (joins, readers.as_slice()) {
            (1, [reader]) => Some((reader.clone(), rest)),
            _ => None,
        }
    }

    /// True for a condition that says whose messages are wanted, and no more.
    fn is_exact(&self, condition: &'a Condition) -> bool {
        match &condition.is {
            Says::Or(all) => all.iter().all(|one| self.is_exact(one)),
            Says::In(operand, _, true) => is(operand, self.search.author, self.scope),
            Says::InRows(operand, rows, true) => {
                is(operand, self.search.author, self.scope) && self.are_followed(rows, false)
            }
            Says::Exists(rows) => self.are_followed(rows, true),
            _ => is_value(condition, self.search.author, self.scope),
        }
    }

    /// True for the rows of whom a reader follows; `equated`: those of the message's author alone, of whatever columns.
    fn are_followed(&self, rows: &'a Rows, equated: bool) -> bool {
        let [source] = rows.sources.as_slice() else {
            return false;
        };
        if source.outer || source.on.is_some() {
            return false;
        }
        let Ok(inner) = self.scope.within(&rows.sources, self.search.schema) else {
            return false;
        };
        let table = inner.own().first().map(|seen| seen.number);
        let Some((reader, author)) = table.and_then(|table| self.search.edge(table, &inner)) else {
            return false;
        };
        let mut all = Vec::new();
        if let Some(filter) = &rows.filter {
            conjuncts(filter, &mut all);
        }
        let values = all.iter().filter(|one| is_value(one, reader, &inner));
        let joins = all.iter().filter(|one| self.equates(one, author, &inner));
        let shows = |column: &Column| inner.resolve(column) == Ok(author);
        match equated {
            true => values.count() == 1 && joins.count() == 1 && all.len() == 2,
            false => {
                values.count() == 1 && all.len() == 1 && rows.columns.first().is_some_and(shows)
            }
        }
    }

    /// True for `edge.author = message.author`.
    fn equates(&self, condition: &Condition, edge: Of, scope: &Scope<'_>) -> bool {
        let Says::Compare(left, Comparison::Equal, right) = &condition.is else {
            return false;
        };
        let are = |a, b| is(a, edge, scope) && is(b, self.search.author, scope);
        are(left, right) || are(right, left)
    }
}

/// True for a condition about such columns and literals alone.
fn is_own(condition: &Condition, own: &impl Fn(&Column) -> bool) -> bool {
    match &condition.is {
        Says::And(all) | Says::Or(all) => all.iter().all(|one| is_own(one, own)),
        Says::Not(one) => is_own(one, own),
        Says::Compare(left, _, right) => owns([left, right], own),
        Says::Pairs(left, _, right) => owns(left.iter().chain(right), own),
        Says::Between(operand, from, to, _) => owns([operand, from, to], own),
        Says::Null(operand, _) | Says::Like(operand, ..) | Says::In(operand, ..) => {
            owns([operand], own)
        }
        Says::Truth(column) => own(column),
        Says::InRows(..) | Says::Exists(_) => false,
    }
}

fn owns<'o>(
    operands: impl IntoIterator<Item = &'o Operand>,
    own: &impl Fn(&Column) -> bool,
) -> bool {
    operands.into_iter().all(|operand| match operand {
        Operand::Column(column) => own(column),
        Operand::Literal(_) => true,
        Operand::Coalesce(all) => owns(all, own),
        Operand::Now => false,
    })
}

fn is(operand: &Operand, of: Of, scope: &Scope<'_>) -> bool {
    matches!(operand, Operand::Column(column) if scope.resolve(column) == Ok(of))
}

/// True for `column = 7`.
fn is_value(condition: &Condition, of: Of, scope: &Scope<'_>) -> bool {
    match &condition.is {
        Says::Compare(column @ Operand::Column(_), Comparison::Equal, Operand::Literal(_))
        | Says::Compare(Operand::Literal(_), Comparison::Equal, column @ Operand::Column(_)) => {
            is(column, of, scope)
        }
        _ => false,
    }
}

impl Keep {
    /// The literals that rows depend on, each as it stands: statements of one template with equal ones show a message alike.
    #[must_use]
    pub fn literals(&self, statement: Statement<'_>, types: Types) -> Option<Vec<u8>> {
        let read = |(_, bounds): &&(_, Vec<Bound>)| {
            let mut bounds = bounds.iter();
            bounds.all(|bound| statement.end(bound, types).is_some())
        };
        let bounds = self.bounds.iter().filter(read).map(|(words, _)| words);
        let apart: Vec<&Range<usize>> = self.apart.iter().chain(bounds).collect();
        let mut literals = Vec::new();
        for (at, Word { is, .. }) in statement.words.words.iter().enumerate() {
            if apart.iter().any(|range| range.contains(&at)) {
                continue;
            }
            match is {
                Is::Number | Is::Text | Is::List(Members::Numbers | Members::Texts) => {
                    literals.extend_from_slice(statement.words.text(at, statement.text));
                }
                Is::Parameter | Is::List(Members::Parameters) => {
                    let values = statement.parameters(at)?;
                    literals.extend_from_slice(format!("{values:?}").as_bytes());
                }
                Is::Name | Is::Quoted | Is::Punct(_) => continue,
            }
            literals.push(0);
        }
        Some(literals)
    }
}
