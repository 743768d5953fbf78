//! Whether a statement's rows can be cached: what it shows of a message depends only on the message's own row, on rows that it refers to by
//! their keys (its author's), and on literals.
//!
//! The messages have to be known without the server as well: one condition selects the authors, and memory knows all of them (narrowing
//! would need only a superset).

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
use crate::id_list::id_list_of;
use crate::item_subqueries::ItemSubqueries;
use crate::joined_tables::{JoinedRowReference, JoinedTableSearch};
use crate::query::{
    ColumnReference, ConditionKind, FeedSelect, MessageSelection, SelectCondition, SelectItem,
};
use crate::scope::{NameScope, ScopedColumn, ScopedTable};
use crate::words::{ListKind, WordKind};

/// What a row depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDependencies {
    /// Words on which no row depends: the authors, the number of rows, the page's bounds.
    pub(crate) independent_words: Vec<Range<usize>>,
    /// Conditions that only bound the page, where they are read for certain; of a count, all that bound its messages.
    pub(crate) bounds: Vec<(Range<usize>, Vec<PageBound>)>,
    /// Every message of the authors passes within the bounds, unless a list excludes its author.
    pub is_unfiltered: bool,
    /// Rows of joined tables that a row is made of.
    pub joined_rows: Vec<JoinedRowReference>,
    /// Authors that an internal query reads: those whose edges count, where not all do, and those who are blocked.
    pub lists: Vec<AuthorList>,
}

pub(crate) struct DependencyAnalysis<'a> {
    pub(crate) scope: &'a NameScope<'a>,
    pub(crate) search: &'a AuthorSearch<'a>,
    /// The authors whose messages memory knows.
    pub(crate) authors: &'a AuthorSelection,
    pub(crate) order: OrderColumns,
    /// The message's id.
    pub(crate) id: ScopedColumn,
}

impl<'a> DependencyAnalysis<'a> {
    /// What rows depend on. `None`: on too much to be cached.
    pub(crate) fn row_dependencies(
        &self,
        query: &'a FeedSelect,
        holds: &[&'a SelectCondition],
    ) -> Option<RowDependencies> {
        if !query.derived_items.is_empty() {
            return None;
        }
        let message = self.search.author.table;
        let by_ids = query.selection != MessageSelection::Authors;
        let is_edge = |number| !by_ids && self.search.follow_columns(number, self.scope).is_some();
        let others = self.scope.innermost_tables().iter();
        let (edges, mut others): (Vec<_>, Vec<_>) = others
            .filter(|scoped| scoped.number != message)
            .partition(|scoped| scoped.source.outer.is_none() && is_edge(scoped.number));
        let AuthorConditions {
            conditions: selecting,
            independent_words: mut independent,
            remainder: mut rest,
            mut lists,
            references,
        } = match edges.as_slice() {
            [] if by_ids => self.id_conditions(&query.selection, holds)?,
            [] => match self.author_conditions(holds) {
                // Authors in other conditions are among the literals that a number depends on.
                None if query.count.is_some() => AuthorConditions {
                    conditions: Vec::new(),
                    independent_words: Vec::new(),
                    remainder: holds.to_vec(),
                    lists: Vec::new(),
                    references: Vec::new(),
                },
                selecting => selecting?,
            },
            [edge] => {
                let copies = query.count.is_some_and(|count| count.copies);
                self.joined_author_conditions(holds, edge, copies)?
            }
            _ => return None,
        };
        // Cached rows are distinguished by the other conditions. So the messages must be exactly those of the authors that these select.
        let is_exact = self.authors_from(&selecting).as_ref() == Some(self.authors);
        if !is_exact && !selecting.is_empty() {
            return None;
        }
        // Of messages that are named by their ids, no author is known.
        if !by_ids {
            self.extract_blocked(&mut others, &mut rest, &mut independent, &mut lists);
        }
        let authors = edges.first().and_then(|edge| {
            let (_, author) = self.search.follow_columns(edge.number, self.scope)?;
            Some(author)
        });
        let tables = JoinedTableSearch {
            scope: self.scope,
            author: self.search.author,
            equal_author: authors,
            knows_author: !by_ids,
        };
        let joined = tables.references(&others, holds)?;
        rest.retain(|one| {
            !joined
                .key_conditions
                .iter()
                .any(|key| std::ptr::eq(*key, *one))
        });
        let is_row_column = |column: &ColumnReference| {
            let of = self.scope.resolve(column);
            of.is_ok_and(|of| of.table == message || joined.numbers.contains(&of.table))
        };
        let subqueries = ItemSubqueries {
            scope: self.scope,
            search: self.search,
            knows_author: !by_ids,
        };
        let mut read = Vec::new();
        let mut shows_own = |item: &'a SelectItem| match item {
            SelectItem::Operand(operand, _) => {
                operands_use_only([operand], &is_row_column)
                    || subqueries.add_references(operand, &mut read).is_some()
            }
            SelectItem::All | SelectItem::AllOf(_) => {
                let mut shown = self.scope.shown_tables(item);
                shown.all(|scoped| {
                    scoped.number == message || joined.numbers.contains(&scoped.number)
                })
            }
        };
        let mut conditions = rest.iter().chain(&joined.extra_on_conditions);
        if !query.items.iter().all(&mut shows_own)
            || !conditions.all(|one| uses_only(one, &is_row_column))
        {
            return None;
        }
        let mut joined_rows = tables.mark_filtering(joined, &rest);
        for reference in references.into_iter().chain(read) {
            if !joined_rows.contains(&reference) {
                joined_rows.push(reference);
            }
        }
        let row_counts = [query.limit, query.offset].into_iter().flatten();
        independent.extend(row_counts.map(|at| at..at + 1));
        let bounds = rest.iter().filter_map(|condition| {
            let bounds = bounds::bounds_of(condition, self.order, self.scope);
            let fits = !by_ids && (query.count.is_some() || bounds.iter().all(|bound| bound.upper));
            (fits && !bounds.is_empty()).then(|| (condition.words.clone(), bounds))
        });
        let bounds: Vec<_> = bounds.collect();
        Some(RowDependencies {
            is_unfiltered: rest.len() == bounds.len() && joined_rows.is_empty(),
            bounds,
            independent_words: independent,
            joined_rows,
            lists,
        })
    }

    /// What selects messages by other things than their authors, on which no row depends, and the other conditions.
    fn id_conditions(
        &self,
        selection: &MessageSelection,
        holds: &[&'a SelectCondition],
    ) -> Option<AuthorConditions<'a>> {
        let list = match selection {
            MessageSelection::Newest(words) => {
                return Some(AuthorConditions {
                    conditions: Vec::new(),
                    independent_words: vec![words.clone()],
                    remainder: holds.to_vec(),
                    lists: Vec::new(),
                    references: Vec::new(),
                });
            }
            _ => holds
                .iter()
                .find(|one| id_list_of(one, self.id, self.scope).is_some())?,
        };
        let others = holds.iter().filter(|one| !std::ptr::eq(**one, *list));
        Some(AuthorConditions {
            conditions: Vec::new(),
            independent_words: vec![list.words.clone()],
            remainder: others.copied().collect(),
            lists: Vec::new(),
            references: Vec::new(),
        })
    }

    /// Moves out the conditions that only exclude authors, independent of the others.
    fn extract_blocked(
        &self,
        others: &mut Vec<&ScopedTable<'a>>,
        rest: &mut Vec<&'a SelectCondition>,
        apart: &mut Vec<Range<usize>>,
        lists: &mut Vec<AuthorList>,
    ) {
        rest.retain(|condition| {
            let list = self.list_search().blocked_authors(condition).or_else(|| {
                let not_found = |scoped: &&ScopedTable<'a>| {
                    self.list_search().blocked_by_outer_join(scoped, condition)
                };
                let (at, list) = (0..)
                    .zip(&*others)
                    .find_map(|(at, scoped)| Some((at, not_found(scoped)?)))?;
                let scoped: &ScopedTable<'a> = others.remove(at);
                apart.extend(scoped.source.on.as_ref().map(|on| on.words.clone()));
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

    /// The authors that follow from these conditions alone.
    fn authors_from(&self, conditions: &[&'a SelectCondition]) -> Option<AuthorSelection> {
        let mut equal = ColumnEqualities::default();
        equal.add_conditions(conditions, self.scope);
        self.search.of_rows(conditions, self.scope, &equal)
    }

    /// The condition that selects the authors, and the other conditions.
    fn author_conditions(&self, holds: &[&'a SelectCondition]) -> Option<AuthorConditions<'a>> {
        let is_exact = |one: &&SelectCondition| {
            self.is_author_condition(one, &mut Vec::new()) || self.through(one).is_some()
        };
        let (selecting, rest): (Vec<&SelectCondition>, Vec<&SelectCondition>) =
            holds.iter().copied().partition(is_exact);
        let [condition] = selecting.as_slice() else {
            return None;
        };
        if let Some((list, reference)) = self.through(condition) {
            return Some(AuthorConditions {
                conditions: vec![condition],
                independent_words: vec![condition.words.clone()],
                remainder: rest,
                lists: Some(list)
                    .filter(|it| !it.conditions.is_empty())
                    .into_iter()
                    .collect(),
                references: vec![reference],
            });
        }
        let mut followed = Vec::new();
        self.is_author_condition(condition, &mut followed);
        let is_alone = followed.len() == 1;
        followed.retain(|it| !it.conditions.is_empty());
        // Besides a list's authors, others count if they are named themselves.
        if !followed.is_empty() && !is_alone {
            return None;
        }
        Some(AuthorConditions {
            conditions: vec![condition],
            independent_words: vec![condition.words.clone()],
            remainder: rest,
            lists: followed,
            references: Vec::new(),
        })
    }

    /// The edges of a condition that names authors through rows of another table.
    fn through(&self, condition: &'a SelectCondition) -> Option<(AuthorList, JoinedRowReference)> {
        match &condition.kind {
            ConditionKind::InSubquery(operand, rows, true)
                if is_column(operand, self.search.author, self.scope) =>
            {
                self.list_search().authors_through(rows)
            }
            _ => None,
        }
    }

    /// The same, where messages are joined with edges: one edge each, by the author alone. `copies`: or several, which are listed.
    fn joined_author_conditions(
        &self,
        holds: &[&'a SelectCondition],
        edge: &ScopedTable<'a>,
        copies: bool,
    ) -> Option<AuthorConditions<'a>> {
        let (reader, author) = self.search.follow_columns(edge.number, self.scope)?;
        let of_edge = |column: &ColumnReference| {
            let of = self.scope.resolve(column);
            of.is_ok_and(|of| of.table == edge.number)
        };
        let (mut joins, mut edge_conditions, mut rest) = (Vec::new(), Vec::new(), Vec::new());
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
                edge_conditions.push(*condition);
            } else {
                rest.push(*condition);
            }
        }
        let list = self.list_search().reader_edges(
            edge,
            (reader, author),
            &edge_conditions,
            self.scope,
        )?;
        let [join] = joins.as_slice() else {
            return None;
        };
        let is_value = |one: &&&SelectCondition| equal_literal(one, self.scope, reader).is_some();
        let selecting = [join]
            .into_iter()
            .chain(edge_conditions.iter().filter(is_value));
        Some(AuthorConditions {
            conditions: selecting.copied().collect(),
            independent_words: edge_conditions
                .iter()
                .map(|one| one.words.clone())
                .collect(),
            remainder: rest,
            lists: Some(list.with_copies(copies))
                .filter(|it| copies || !it.conditions.is_empty())
                .into_iter()
                .collect(),
            references: Vec::new(),
        })
    }

    /// True for a condition that only selects authors. Adds the edges of each reader that it names.
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
                    .map(|list| followed.push(list));
                is_column(operand, self.search.author, self.scope) && followed.is_some()
            }
            ConditionKind::Exists(rows) => {
                let followed = self
                    .list_search()
                    .followed_authors(rows, true)
                    .map(|list| followed.push(list));
                followed.is_some()
            }
            _ => equal_literal(condition, self.scope, self.search.author).is_some(),
        }
    }
}

/// The conditions that select the authors.
struct AuthorConditions<'a> {
    conditions: Vec<&'a SelectCondition>,
    /// Words on which no row depends.
    independent_words: Vec<Range<usize>>,
    remainder: Vec<&'a SelectCondition>,
    lists: Vec<AuthorList>,
    /// Rows without which an author does not count.
    references: Vec<JoinedRowReference>,
}

impl RowDependencies {
    /// The literals that rows depend on, each as written and with its position, and parameters with their types: statements of one template
    /// with equal ones show a message alike.
    ///
    /// Left out are authors, page bounds and row counts, and each of these was read by its value: authors and readers
    /// ([`StatementShape::bind`](crate::shape::StatementShape::bind) reads every literal of these conditions, or the statement is relayed),
    /// conditions of lists (they are part of the lists' internal queries), bounds that are read for certain, LIMIT and OFFSET.
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
        self.literals_without(statement, bounds)
    }

    /// The same where bounds are conditions, as of a count of all messages within them.
    #[must_use]
    pub fn cache_key_literals_and_bounds(&self, statement: FeedStatement<'_>) -> Option<Vec<u8>> {
        self.literals_without(statement, std::iter::empty())
    }

    fn literals_without<'a>(
        &'a self,
        statement: FeedStatement<'_>,
        bounds: impl Iterator<Item = &'a Range<usize>>,
    ) -> Option<Vec<u8>> {
        let apart: Vec<&Range<usize>> = self.independent_words.iter().chain(bounds).collect();
        let mut literals = Vec::new();
        for (at, word) in statement.words.words.iter().enumerate() {
            if word.is_verbatim || apart.iter().any(|range| range.contains(&at)) {
                continue;
            }
            // Nothing else shows which of two bounds is left out.
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
