//! Whether what a statement shows of a message depends on that message's own row, on rows that it refers to by their keys (its author's)
//! and on literals alone: then the server's answer about it can be kept.
//!
//! The messages themselves have to be known without the server's help as well: whose they are is said by one condition, of which
//! memory knows all (a superset would do for narrowing).

use std::io::Write as _;
use std::ops::Range;

use crate::author_lists::{
    AuthorList, AuthorListSearch, equal_literal, is_column, is_constant, operands_use_only,
    uses_only,
};
use crate::authors::{AuthorSearch, AuthorSelection};
use crate::binding::{FeedColumnTypes, FeedStatement};
use crate::bounds::{self, OrderColumns, PageBound};
use crate::equalities::ColumnEqualities;
use crate::joined_tables::{JoinedRowReference, JoinedTableSearch};
use crate::query::{ColumnReference, ConditionKind, FeedSelect, SelectCondition, SelectItem};
use crate::scope::{NameScope, ScopedTable};
use crate::words::{ListKind, WordKind};

/// What a row depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDependencies {
    /// Words on which no row depends: whose messages are wanted, how many, from where on.
    independent_words: Vec<Range<usize>>,
    /// Conditions that say no more than from where on, where they are read for certain.
    bounds: Vec<(Range<usize>, Vec<PageBound>)>,
    /// Rows of other tables that they are made of.
    pub joined_rows: Vec<JoinedRowReference>,
    /// Authors whom the server is asked for: those whose edges count, where not all do, and those who are blocked.
    pub lists: Vec<AuthorList>,
}

/// What is looked at.
pub(crate) struct DependencyAnalysis<'a> {
    pub(crate) scope: &'a NameScope<'a>,
    pub(crate) search: &'a AuthorSearch<'a>,
    /// Of whom memory names messages.
    pub(crate) authors: &'a AuthorSelection,
    pub(crate) order: OrderColumns,
}

impl<'a> DependencyAnalysis<'a> {
    /// `None`: rows depend on more.
    pub(crate) fn row_dependencies(
        &self,
        query: &'a FeedSelect,
        holds: &[&'a SelectCondition],
    ) -> Option<RowDependencies> {
        if !query.derived_items.is_empty() {
            return None;
        }
        let message = self.search.author.table;
        let is_edge = |number| self.search.follow_columns(number, self.scope).is_some();
        let others = self.scope.innermost_tables().iter();
        let (edges, mut others): (Vec<_>, Vec<_>) = others
            .filter(|seen| seen.number != message)
            .partition(|seen| !seen.source.outer && is_edge(seen.number));
        let AuthorConditions {
            conditions: says,
            independent_words: mut apart,
            remainder: mut rest,
            mut lists,
        } = match edges.as_slice() {
            [] => self.author_conditions(holds)?,
            [edge] => self.joined_author_conditions(holds, edge)?,
            _ => return None,
        };
        // Rows are told apart by what other conditions say, so the messages are those of everyone whom these name, and of nobody else.
        if self.authors_from(&says).as_ref() != Some(self.authors) {
            return None;
        }
        self.extract_blocked(&mut others, &mut rest, &mut apart, &mut lists);
        let authors = edges.first().and_then(|edge| {
            let (_, author) = self.search.follow_columns(edge.number, self.scope)?;
            Some(author)
        });
        let tables = JoinedTableSearch {
            scope: self.scope,
            author: self.search.author,
            equal_author: authors,
        };
        let found = tables.references(&others, holds)?;
        rest.retain(|one| {
            !found
                .key_conditions
                .iter()
                .any(|key| std::ptr::eq(*key, *one))
        });
        let own = |column: &ColumnReference| {
            let of = self.scope.resolve(column);
            of.is_ok_and(|of| of.table == message || found.numbers.contains(&of.table))
        };
        let shows_own = |item: &SelectItem| match item {
            SelectItem::Operand(operand, _) => operands_use_only([operand], &own),
            SelectItem::All | SelectItem::AllOf(_) => {
                let mut shown = self.scope.shown_tables(item);
                shown.all(|seen| seen.number == message || found.numbers.contains(&seen.number))
            }
        };
        let mut conditions = rest.iter().chain(&found.extra_on_conditions);
        if !query.items.iter().all(shows_own) || !conditions.all(|one| uses_only(one, &own)) {
            return None;
        }
        let refers = tables.mark_filtering(found, &rest);
        apart.push(query.limit..query.limit + 1);
        apart.extend(query.offset.map(|at| at..at + 1));
        let bounds = rest.iter().filter_map(|condition| {
            let bounds = bounds::bounds_of(condition, self.order, self.scope);
            let upper = !bounds.is_empty() && bounds.iter().all(|bound| bound.upper);
            upper.then(|| (condition.words.clone(), bounds))
        });
        Some(RowDependencies {
            bounds: bounds.collect(),
            independent_words: apart,
            joined_rows: refers,
            lists,
        })
    }

    /// Takes out what says no more than whose messages do not pass, whoever else's do.
    fn extract_blocked(
        &self,
        others: &mut Vec<&ScopedTable<'a>>,
        rest: &mut Vec<&'a SelectCondition>,
        apart: &mut Vec<Range<usize>>,
        lists: &mut Vec<AuthorList>,
    ) {
        rest.retain(|condition| {
            let list = self.list_search().blocked_authors(condition).or_else(|| {
                let not_found = |seen: &&ScopedTable<'a>| {
                    self.list_search().blocked_by_outer_join(seen, condition)
                };
                let (at, list) = (0..)
                    .zip(&*others)
                    .find_map(|(at, seen)| Some((at, not_found(seen)?)))?;
                let seen: &ScopedTable<'a> = others.remove(at);
                apart.extend(seen.source.on.as_ref().map(|on| on.words.clone()));
                Some(list)
            });
            apart.extend(list.is_some().then(|| condition.words.clone()));
            let is_other = list.is_none();
            lists.extend(list);
            is_other
        });
    }

    fn list_search(&self) -> AuthorListSearch<'_, 'a> {
        AuthorListSearch {
            scope: self.scope,
            search: self.search,
        }
    }

    /// Whose messages follow from these conditions alone.
    fn authors_from(&self, says: &[&'a SelectCondition]) -> Option<AuthorSelection> {
        let mut equal = ColumnEqualities::default();
        equal.add_conditions(says, self.scope);
        self.search.of_rows(says, self.scope, &equal)
    }

    /// Where it is said whose messages are wanted, and the other conditions.
    fn author_conditions(&self, holds: &[&'a SelectCondition]) -> Option<AuthorConditions<'a>> {
        let is_exact = |one: &&SelectCondition| self.is_author_condition(one, &mut Vec::new());
        let (said, rest): (Vec<&SelectCondition>, Vec<&SelectCondition>) =
            holds.iter().copied().partition(is_exact);
        let [said] = said.as_slice() else {
            return None;
        };
        let mut followed = Vec::new();
        self.is_author_condition(said, &mut followed);
        let is_alone = followed.len() == 1;
        followed.retain(|it| !it.conditions.is_empty());
        // Others count beside those of a list if they are named themselves.
        if !followed.is_empty() && !is_alone {
            return None;
        }
        Some(AuthorConditions {
            conditions: vec![said],
            independent_words: vec![said.words.clone()],
            remainder: rest,
            lists: followed,
        })
    }

    /// The same, where messages are joined with edges: one by one, and by nothing but the author.
    fn joined_author_conditions(
        &self,
        holds: &[&'a SelectCondition],
        edge: &ScopedTable<'a>,
    ) -> Option<AuthorConditions<'a>> {
        let (reader, author) = self.search.follow_columns(edge.number, self.scope)?;
        let of_edge = |column: &ColumnReference| {
            let of = self.scope.resolve(column);
            of.is_ok_and(|of| of.table == edge.number)
        };
        let (mut joins, mut own, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for condition in holds {
            if self.is_author_condition(condition, &mut Vec::new()) {
                return None;
            }
            if self
                .list_search()
                .author_equal_column(condition, self.scope)
                == Some(author)
            {
                joins.push(*condition);
            } else if uses_only(condition, &of_edge) && !is_constant(condition) {
                own.push(*condition);
            } else {
                rest.push(*condition);
            }
        }
        let list = self
            .list_search()
            .reader_edges(edge, (reader, author), &own, self.scope)?;
        let [join] = joins.as_slice() else {
            return None;
        };
        let is_value = |one: &&&SelectCondition| equal_literal(one, self.scope, reader).is_some();
        let says = [join].into_iter().chain(own.iter().filter(is_value));
        Some(AuthorConditions {
            conditions: says.copied().collect(),
            independent_words: own.iter().map(|one| one.words.clone()).collect(),
            remainder: rest,
            lists: Some(list)
                .filter(|it| !it.conditions.is_empty())
                .into_iter()
                .collect(),
        })
    }

    /// True for a condition that says whose messages are wanted, and no more; notes each reader's edges that it speaks of.
    fn is_author_condition(
        &self,
        condition: &'a SelectCondition,
        followed: &mut Vec<AuthorList>,
    ) -> bool {
        match &condition.kind {
            ConditionKind::Or(all) => all
                .iter()
                .all(|one| self.is_author_condition(one, followed)),
            ConditionKind::In(operand, _, true) => {
                is_column(operand, self.search.author, self.scope)
            }
            ConditionKind::InSubquery(operand, rows, true) => {
                let followed = self
                    .list_search()
                    .followed_authors(rows, false)
                    .map(|own| followed.push(own));
                is_column(operand, self.search.author, self.scope) && followed.is_some()
            }
            ConditionKind::Exists(rows) => {
                let followed = self
                    .list_search()
                    .followed_authors(rows, true)
                    .map(|own| followed.push(own));
                followed.is_some()
            }
            _ => equal_literal(condition, self.scope, self.search.author).is_some(),
        }
    }
}

/// What says whose messages are wanted.
struct AuthorConditions<'a> {
    conditions: Vec<&'a SelectCondition>,
    /// No row depends on it.
    independent_words: Vec<Range<usize>>,
    /// The other conditions.
    remainder: Vec<&'a SelectCondition>,
    lists: Vec<AuthorList>,
}

impl RowDependencies {
    /// The literals that rows depend on, each as it stands and with its place, and parameters with the types that they were given: statements of one
    /// template with equal ones show a message alike.
    ///
    /// What is left out says no more than whose messages, from where on, or how many, and each of these was read by its value: authors and
    /// readers ([`StatementShape::bind`](crate::shape::StatementShape::bind) reads every literal of these conditions, or the statement is relayed), conditions of
    /// lists (they stand in the lists' own questions), bounds that are read for certain, LIMIT and OFFSET.
    #[must_use]
    pub fn cache_key_literals(
        &self,
        statement: FeedStatement<'_>,
        types: FeedColumnTypes,
    ) -> Option<Vec<u8>> {
        let read = |(_, bounds): &&(_, Vec<PageBound>)| {
            let mut bounds = bounds.iter();
            bounds.all(|bound| statement.bound_position(bound, types).is_some())
        };
        let bounds = self.bounds.iter().filter(read).map(|(words, _)| words);
        let apart: Vec<&Range<usize>> = self.independent_words.iter().chain(bounds).collect();
        let mut literals = Vec::new();
        for (at, word) in statement.words.words.iter().enumerate() {
            if word.is_verbatim || apart.iter().any(|range| range.contains(&at)) {
                continue;
            }
            // Which of two bounds is left out is told by nothing else.
            write!(literals, "{at}=").ok()?;
            match word.kind {
                WordKind::Parameter | WordKind::List(ListKind::Parameters) => {
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
