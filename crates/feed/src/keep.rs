//! Whether what a statement shows of a message depends on that message's own row, on rows that it refers to by their keys (its author's)
//! and on literals alone: then the server's answer about it can be kept.
//!
//! The messages themselves have to be known without the server's help as well: whose they are is said by one condition, of which
//! memory knows all (a superset would do for narrowing).

use std::ops::Range;

use crate::authors::{Authors, Search};
use crate::bind::{Statement, Types};
use crate::bounds::{self, Bound, Ordered};
use crate::chosen::Chosen;
use crate::equal::{Equal, conjuncts};
use crate::query::{Column, Comparison, Condition, Item, Operand, Query, Rows, Says};
use crate::refers::{Refer, Tables};
use crate::scope::{Of, Scope, Seen};
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
    /// Which of a reader's edges count, where not all do: then the authors are asked for.
    pub chosen: Option<Chosen>,
}

/// What is looked at.
pub(crate) struct Look<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) search: &'a Search<'a>,
    /// Of whom memory names messages.
    pub(crate) authors: &'a Authors,
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
        let Said {
            says,
            mut apart,
            mut rest,
            chosen,
        } = match edges.as_slice() {
            [] => self.said(holds)?,
            [edge] => self.joined(holds, edge)?,
            _ => return None,
        };
        // Rows are told apart by what other conditions say, so the messages are those of everyone whom these name, and of nobody else.
        if self.named(&says).as_ref() != Some(self.authors) {
            return None;
        }
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
        apart.push(query.limit..query.limit + 1);
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
            chosen,
        })
    }

    /// Whose messages follow from these conditions alone.
    fn named(&self, says: &[&'a Condition]) -> Option<Authors> {
        let mut equal = Equal::default();
        equal.learn(says, self.scope);
        self.search.of_rows(says, self.scope, &equal)
    }

    /// Where it is said whose messages are wanted, and the other conditions.
    fn said(&self, holds: &[&'a Condition]) -> Option<Said<'a>> {
        let is_exact = |one: &&Condition| self.is_exact(one, &mut Vec::new());
        let (said, rest): (Vec<&Condition>, Vec<&Condition>) =
            holds.iter().copied().partition(is_exact);
        let [said] = said.as_slice() else {
            return None;
        };
        let mut followed = Vec::new();
        self.is_exact(said, &mut followed);
        let some: Vec<_> = followed
            .iter()
            .filter(|it| !it.conditions.is_empty())
            .collect();
        let chosen = match (some.as_slice(), followed.len()) {
            ([], _) => None,
            // Beside others, whose edges count all.
            ([chosen], 1) => Some((*chosen).clone()),
            _ => return None,
        };
        Some(Said {
            says: vec![said],
            apart: vec![said.words.clone()],
            rest,
            chosen,
        })
    }

    /// The same, where messages are joined with edges: one by one, and by nothing but the author.
    fn joined(&self, holds: &[&'a Condition], edge: &Seen<'a>) -> Option<Said<'a>> {
        let (reader, author) = self.search.edge(edge.number, self.scope)?;
        let of_edge = |column: &Column| {
            let of = self.scope.resolve(column);
            of.is_ok_and(|of| of.table == edge.number)
        };
        let (mut joins, mut readers) = (Vec::new(), Vec::new());
        let (mut conditions, mut rest) = (Vec::new(), Vec::new());
        for condition in holds {
            if self.is_exact(condition, &mut Vec::new()) {
                return None;
            }
            if self.equates(condition, author, self.scope) {
                joins.push(*condition);
            } else if is_value(condition, reader, self.scope) {
                readers.push(*condition);
            } else if is_own(condition, &of_edge) && !is_of_literals(condition) {
                conditions.push(condition.words.clone());
            } else {
                rest.push(*condition);
            }
        }
        let ([join], [reader]) = (joins.as_slice(), readers.as_slice()) else {
            return None;
        };
        let chosen = match conditions.is_empty() {
            true => None,
            false => Some(Chosen::new(edge.source, conditions)?),
        };
        let chosen_words = chosen.iter().flat_map(|it| it.conditions.iter().cloned());
        Some(Said {
            says: vec![join, reader],
            apart: [reader.words.clone()]
                .into_iter()
                .chain(chosen_words)
                .collect(),
            rest,
            chosen,
        })
    }

    /// True for a condition that says whose messages are wanted, and no more; notes each reader's edges that it speaks of.
    fn is_exact(&self, condition: &'a Condition, followed: &mut Vec<Chosen>) -> bool {
        match &condition.is {
            Says::Or(all) => all.iter().all(|one| self.is_exact(one, followed)),
            Says::In(operand, _, true) => is(operand, self.search.author, self.scope),
            Says::InRows(operand, rows, true) => {
                let followed = self.followed(rows, false).map(|own| followed.push(own));
                is(operand, self.search.author, self.scope) && followed.is_some()
            }
            Says::Exists(rows) => {
                let followed = self.followed(rows, true).map(|own| followed.push(own));
                followed.is_some()
            }
            _ => is_value(condition, self.search.author, self.scope),
        }
    }

    /// Rows of whom a reader follows, and what is said of the edges beside the reader; `equated`: those of the message's author alone, of
    /// whatever columns.
    fn followed(&self, rows: &'a Rows, equated: bool) -> Option<Chosen> {
        let [source] = rows.sources.as_slice() else {
            return None;
        };
        if source.outer || source.on.is_some() {
            return None;
        }
        let inner = self.scope.within(&rows.sources, self.search.schema).ok()?;
        let table = inner.own().first()?.number;
        let (reader, author) = self.search.edge(table, &inner)?;
        let mut all = Vec::new();
        if let Some(filter) = &rows.filter {
            conjuncts(filter, &mut all);
        }
        let of_edge = |column: &Column| inner.resolve(column).is_ok_and(|of| of.table == table);
        let (mut values, mut joins, mut conditions) = (0, 0, Vec::new());
        for one in all {
            if is_value(one, reader, &inner) {
                values += 1;
            } else if self.equates(one, author, &inner) {
                joins += 1;
            } else if is_own(one, &of_edge) && !is_of_literals(one) {
                conditions.push(one.words.clone());
            } else {
                return None;
            }
        }
        let shows = |column: &Column| inner.resolve(column) == Ok(author);
        let fits = match equated {
            true => joins == 1,
            false => joins == 0 && rows.columns.first().is_some_and(shows),
        };
        match (fits && values == 1, conditions.is_empty()) {
            (false, _) => None,
            (true, true) => Some(Chosen::all(source)),
            (true, false) => Chosen::new(source, conditions),
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

/// What says whose messages are wanted.
struct Said<'a> {
    says: Vec<&'a Condition>,
    /// No row depends on it.
    apart: Vec<Range<usize>>,
    /// The other conditions.
    rest: Vec<&'a Condition>,
    chosen: Option<Chosen>,
}

/// True for a condition without a column: it is about no table.
fn is_of_literals(condition: &Condition) -> bool {
    is_own(condition, &|_| false)
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
