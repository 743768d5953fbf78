//! Whether what a statement shows of a message depends on that message's own row, on rows that it refers to by their keys (its author's)
//! and on literals alone: then the server's answer about it can be kept.
//!
//! The messages themselves have to be known without the server's help as well: whose they are is said by one condition, of which
//! memory knows all (a superset would do for narrowing).

use std::io::Write as _;
use std::ops::Range;

use crate::authors::{Authors, Search};
use crate::bind::{Statement, Types};
use crate::bounds::{self, Bound, Ordered};
use crate::equal::Equal;
use crate::lists::{AuthorList, Lists, is, is_of_literals, is_own, owns, value};
use crate::query::{Column, Condition, Item, Query, Says};
use crate::refers::{Refer, Tables};
use crate::scope::{Scope, Seen};
use crate::words::{Is, Members};

/// What a row depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Words on which no row depends: whose messages are wanted, how many, from where on.
    apart: Vec<Range<usize>>,
    /// Conditions that say no more than from where on, where they are read for certain.
    bounds: Vec<(Range<usize>, Vec<Bound>)>,
    /// Rows of other tables that they are made of.
    pub refers: Vec<Refer>,
    /// Authors whom the server is asked for: those whose edges count, where not all do, and those who are blocked.
    pub lists: Vec<AuthorList>,
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
        let (edges, mut others): (Vec<_>, Vec<_>) = others
            .filter(|seen| seen.number != message)
            .partition(|seen| !seen.source.outer && is_edge(seen.number));
        let Said {
            says,
            mut apart,
            mut rest,
            mut lists,
        } = match edges.as_slice() {
            [] => self.said(holds)?,
            [edge] => self.joined(holds, edge)?,
            _ => return None,
        };
        // Rows are told apart by what other conditions say, so the messages are those of everyone whom these name, and of nobody else.
        if self.named(&says).as_ref() != Some(self.authors) {
            return None;
        }
        self.blocked(&mut others, &mut rest, &mut apart, &mut lists);
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
            lists,
        })
    }

    /// Takes out what says no more than whose messages do not pass, whoever else's do.
    fn blocked(
        &self,
        others: &mut Vec<&Seen<'a>>,
        rest: &mut Vec<&'a Condition>,
        apart: &mut Vec<Range<usize>>,
        lists: &mut Vec<AuthorList>,
    ) {
        rest.retain(|condition| {
            let list = self.lists().blocked(condition).or_else(|| {
                let not_found = |seen: &&Seen<'a>| self.lists().not_found(seen, condition);
                let (at, list) = (0..)
                    .zip(&*others)
                    .find_map(|(at, seen)| Some((at, not_found(seen)?)))?;
                let seen: &Seen<'a> = others.remove(at);
                apart.extend(seen.source.on.as_ref().map(|on| on.words.clone()));
                Some(list)
            });
            apart.extend(list.is_some().then(|| condition.words.clone()));
            let is_other = list.is_none();
            lists.extend(list);
            is_other
        });
    }

    fn lists(&self) -> Lists<'_, 'a> {
        Lists {
            scope: self.scope,
            search: self.search,
        }
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
        let is_alone = followed.len() == 1;
        followed.retain(|it| !it.conditions.is_empty());
        // Others count beside those of a list if they are named themselves.
        if !followed.is_empty() && !is_alone {
            return None;
        }
        Some(Said {
            says: vec![said],
            apart: vec![said.words.clone()],
            rest,
            lists: followed,
        })
    }

    /// The same, where messages are joined with edges: one by one, and by nothing but the author.
    fn joined(&self, holds: &[&'a Condition], edge: &Seen<'a>) -> Option<Said<'a>> {
        let (reader, author) = self.search.edge(edge.number, self.scope)?;
        let of_edge = |column: &Column| {
            let of = self.scope.resolve(column);
            of.is_ok_and(|of| of.table == edge.number)
        };
        let (mut joins, mut own, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for condition in holds {
            if self.is_exact(condition, &mut Vec::new()) {
                return None;
            }
            if self.lists().equated(condition, self.scope) == Some(author) {
                joins.push(*condition);
            } else if is_own(condition, &of_edge) && !is_of_literals(condition) {
                own.push(*condition);
            } else {
                rest.push(*condition);
            }
        }
        let list = self
            .lists()
            .of_edges(edge, (reader, author), &own, self.scope)?;
        let [join] = joins.as_slice() else {
            return None;
        };
        let is_value = |one: &&&Condition| value(one, self.scope, reader).is_some();
        let says = [join].into_iter().chain(own.iter().filter(is_value));
        Some(Said {
            says: says.copied().collect(),
            apart: own.iter().map(|one| one.words.clone()).collect(),
            rest,
            lists: Some(list)
                .filter(|it| !it.conditions.is_empty())
                .into_iter()
                .collect(),
        })
    }

    /// True for a condition that says whose messages are wanted, and no more; notes each reader's edges that it speaks of.
    fn is_exact(&self, condition: &'a Condition, followed: &mut Vec<AuthorList>) -> bool {
        match &condition.is {
            Says::Or(all) => all.iter().all(|one| self.is_exact(one, followed)),
            Says::In(operand, _, true) => is(operand, self.search.author, self.scope),
            Says::InRows(operand, rows, true) => {
                let followed = self
                    .lists()
                    .followed(rows, false)
                    .map(|own| followed.push(own));
                is(operand, self.search.author, self.scope) && followed.is_some()
            }
            Says::Exists(rows) => {
                let followed = self
                    .lists()
                    .followed(rows, true)
                    .map(|own| followed.push(own));
                followed.is_some()
            }
            _ => value(condition, self.scope, self.search.author).is_some(),
        }
    }
}

/// What says whose messages are wanted.
struct Said<'a> {
    says: Vec<&'a Condition>,
    /// No row depends on it.
    apart: Vec<Range<usize>>,
    /// The other conditions.
    rest: Vec<&'a Condition>,
    lists: Vec<AuthorList>,
}

impl Keep {
    /// The literals that rows depend on, each as it stands and with its place, and parameters with the types that they were given: statements of one
    /// template with equal ones show a message alike.
    ///
    /// What is left out says no more than whose messages, from where on, or how many, and each of these was read by its value: authors and
    /// readers ([`Shape::bind`](crate::shape::Shape::bind) reads every literal of these conditions, or the statement is relayed), conditions of
    /// lists (they stand in the lists' own questions), bounds that are read for certain, LIMIT and OFFSET.
    #[must_use]
    pub fn literals(&self, statement: Statement<'_>, types: Types) -> Option<Vec<u8>> {
        let read = |(_, bounds): &&(_, Vec<Bound>)| {
            let mut bounds = bounds.iter();
            bounds.all(|bound| statement.end(bound, types).is_some())
        };
        let bounds = self.bounds.iter().filter(read).map(|(words, _)| words);
        let apart: Vec<&Range<usize>> = self.apart.iter().chain(bounds).collect();
        let mut literals = Vec::new();
        for (at, word) in statement.words.words.iter().enumerate() {
            if word.stays || apart.iter().any(|range| range.contains(&at)) {
                continue;
            }
            // Which of two bounds is left out is told by nothing else.
            write!(literals, "{at}=").ok()?;
            match word.is {
                Is::Parameter | Is::List(Members::Parameters) => {
                    let (values, types) = (statement.parameters(at)?, statement.types(at)?);
                    write!(literals, "{values:?}{types:?}").ok()?;
                }
                _ => literals.extend_from_slice(statement.words.text(at, statement.text)),
            }
            literals.push(0);
        }
        Some(literals)
    }
}
