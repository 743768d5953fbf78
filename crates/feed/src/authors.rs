//! The authors whose messages a condition lets pass, at most.
//!
//! The search derives from a condition that the message's author is in a list, or is one whom a reader follows. Further conditions only
//! remove rows, so they need not be understood.

use crate::equalities::{ColumnEqualities, conditions_of_every_row};
use crate::query::{
    ColumnReference, ConditionKind, Literal, LiteralList, Operand, ScalarValue, SelectCondition,
    Subquery,
};
use crate::schema::{ComparisonClass, Schema};
use crate::scope::{NameScope, ScopedColumn, ScopedTable};

/// The possible authors of a reply's messages: all of these together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorSelection {
    /// Lists of readers: the authors whom they follow.
    pub readers: Vec<LiteralList>,
    /// Single authors.
    pub single: Vec<Literal>,
    /// Lists of authors.
    pub lists: Vec<LiteralList>,
}

/// The names of the follow table and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowNames {
    /// The table: who follows whom.
    pub table: String,
    /// The column of the follower.
    pub reader: String,
    /// The column of the followed author.
    pub author: String,
}

/// Searches a statement for its authors.
#[derive(Clone, Copy)]
pub struct AuthorSearch<'a> {
    /// The tables that the statement may name.
    pub schema: &'a dyn Schema,
    /// The column that holds a message's author.
    pub author: ScopedColumn,
    /// The follow table, if the feed has one.
    pub follow: Option<&'a FollowNames>,
    /// The database by which a statement may qualify these tables.
    pub database: Option<&'a str>,
}

impl<'a> AuthorSearch<'a> {
    /// The authors of rows in which these conditions and equalities hold. `None`: any author.
    #[must_use]
    pub fn of_rows(
        &self,
        holds: &[&'a SelectCondition],
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<AuthorSelection> {
        if let Some(literal) = equal.literal(self.author) {
            return Some(AuthorSelection::of_literal(literal));
        }
        let mut equal = equal.clone();
        self.add_subquery_literals(holds, scope, &mut equal);
        let selection = holds
            .iter()
            .find_map(|one| self.of_condition(one, scope, &equal));
        selection.or_else(|| self.joined(scope, &equal))
    }

    /// The authors whose messages a condition lets pass. `None`: any author.
    pub(crate) fn of_condition(
        &self,
        condition: &'a SelectCondition,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<AuthorSelection> {
        match &condition.kind {
            ConditionKind::And(all) => {
                // What one part says of a LEFT JOIN's row helps to read the others.
                let parts: Vec<&SelectCondition> = all.iter().collect();
                let mut equal = equal.clone();
                for join in scope.rejected_outer_joins(&parts) {
                    equal.add_conditions(&scope.outer_join_conditions(join), scope);
                }
                all.iter()
                    .find_map(|one| self.of_condition(one, scope, &equal))
            }
            ConditionKind::Or(all) => {
                let each: Option<Vec<_>> = all
                    .iter()
                    .map(|one| self.of_condition(one, scope, equal))
                    .collect();
                Some(
                    each?
                        .into_iter()
                        .fold(AuthorSelection::default(), AuthorSelection::union),
                )
            }
            ConditionKind::In(Operand::Column(column), list, true) => {
                let of = scope.resolve(column).ok()?;
                equal.are_equal(of, self.author).then(|| AuthorSelection {
                    lists: vec![list.clone()],
                    ..AuthorSelection::default()
                })
            }
            ConditionKind::InSubquery(Operand::Column(column), rows, true) => {
                let of = scope.resolve(column).ok()?;
                let column = rows.columns.first()?;
                let of_row = || self.of_subquery(rows, Some(column), scope, equal);
                equal.are_equal(of, self.author).then(of_row).flatten()
            }
            // `7 IN (SELECT reader FROM follow WHERE followed = author)`
            ConditionKind::InSubquery(Operand::Literal(literal), rows, true) => {
                let (holds, inner, mut equal) = self.subquery_equalities(rows, scope, equal)?;
                let of = inner.resolve(rows.columns.first()?).ok()?;
                equal.set_literal(of, *literal);
                self.of_rows(&holds, &inner, &equal)
            }
            ConditionKind::Exists(rows) => self.of_subquery(rows, None, scope, equal),
            // A value other than NULL is of a row.
            ConditionKind::Null(Operand::Subquery(select), false) => match select.value {
                ScalarValue::Row | ScalarValue::FirstRow => {
                    self.of_subquery(&select.rows, None, scope, equal)
                }
                ScalarValue::Count | ScalarValue::Extreme | ScalarValue::Sum => None,
            },
            _ => {
                let mut with_condition = equal.clone();
                with_condition.add_conditions(&[condition], scope);
                if let Some(literal) = with_condition.literal(self.author) {
                    return Some(AuthorSelection::of_literal(literal));
                }
                self.of_outer_join(condition, scope, with_condition)
            }
        }
    }

    /// A condition that rejects the NULL row of a LEFT JOIN, so that the join's ON holds.
    fn of_outer_join(
        &self,
        condition: &SelectCondition,
        scope: &NameScope<'a>,
        mut equal: ColumnEqualities,
    ) -> Option<AuthorSelection> {
        let joins = scope.rejected_outer_joins(&[condition]);
        if joins.is_empty() {
            return None;
        }
        for join in &joins {
            equal.add_conditions(&scope.outer_join_conditions(*join), scope);
        }
        if let Some(literal) = equal.literal(self.author) {
            return Some(AuthorSelection::of_literal(literal));
        }
        let is_joined = |scoped: &&ScopedTable<'_>| {
            scoped
                .source
                .outer
                .is_some_and(|join| joins.contains(&join))
        };
        let mut joined = scope.innermost_tables().iter().filter(is_joined);
        joined.find_map(|scoped| self.follows_in(scoped.number, scope, &equal))
    }

    /// Adds the literals of columns that are in a subquery of one value: `reader IN (SELECT id FROM users WHERE id = 7)`.
    pub(crate) fn add_subquery_literals(
        &self,
        holds: &[&'a SelectCondition],
        scope: &NameScope<'a>,
        equal: &mut ColumnEqualities,
    ) {
        for condition in holds {
            let ConditionKind::InSubquery(Operand::Column(column), rows, true) = &condition.kind
            else {
                continue;
            };
            let Ok(of) = scope.resolve(column) else {
                continue;
            };
            if let Some((_, inner, inner_equal)) = self.subquery_equalities(rows, scope, equal)
                && let Some(value) = rows.columns.first()
                && let Ok(value) = inner.resolve(value)
                && inner.class(value) == ComparisonClass::Integer
                && let Some(literal) = inner_equal.literal(value)
            {
                equal.set_literal(of, literal);
            }
        }
    }

    /// The conditions, the scope and the equalities of a subquery's rows.
    fn subquery_equalities(
        &self,
        rows: &'a Subquery,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<(Vec<&'a SelectCondition>, NameScope<'a>, ColumnEqualities)> {
        let inner = scope.within(&rows.sources, self.schema).ok()?;
        let holds = conditions_of_every_row(&rows.sources, rows.filter.as_ref());
        let mut equal = equal.clone();
        equal.add_conditions(&holds, &inner);
        Some((holds, inner, equal))
    }

    /// The authors for whom a subquery has a row; `column`, if given, is the author:
    /// `EXISTS (SELECT ... FROM follow WHERE followed = author AND reader = ...)`, `author IN (SELECT followed FROM follow WHERE ...)`.
    fn of_subquery(
        &self,
        rows: &'a Subquery,
        column: Option<&ColumnReference>,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<AuthorSelection> {
        let (holds, inner, mut equal) = self.subquery_equalities(rows, scope, equal)?;
        if let Some(column) = column {
            let of = inner.resolve(column).ok()?;
            if inner.class(of) != ComparisonClass::Integer {
                return None;
            }
            equal.join(of, self.author);
        }
        self.of_rows(&holds, &inner, &equal)
    }

    /// The followed authors, where this SELECT or an outer one joins the follow table.
    fn joined(&self, scope: &NameScope<'a>, equal: &ColumnEqualities) -> Option<AuthorSelection> {
        let mut inner = scope
            .all_tables()
            .filter(|scoped| scoped.source.outer.is_none());
        inner.find_map(|scoped| self.follows_in(scoped.number, scope, equal))
    }

    fn follows_in(
        &self,
        table: usize,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<AuthorSelection> {
        let (reader, author) = self.follow_columns(table, scope)?;
        if !equal.are_equal(author, self.author) {
            return None;
        }
        let readers = match equal.literal(reader) {
            Some(one) => LiteralList::Each(vec![one]),
            None => equal.list(reader)?.clone(),
        };
        Some(AuthorSelection {
            readers: vec![readers],
            ..AuthorSelection::default()
        })
    }

    /// The reader and author columns, if this is the follow table.
    pub(crate) fn follow_columns(
        &self,
        table: usize,
        scope: &NameScope<'_>,
    ) -> Option<(ScopedColumn, ScopedColumn)> {
        let follow = self.follow?;
        let scoped = scope.table(table)?;
        let database = scoped
            .source
            .database
            .as_ref()
            .map(|name| name.text.as_str());
        if scoped.source.table.text != follow.table
            || (database.is_some() && database != self.database)
        {
            return None;
        }
        let of = |column: &str| {
            let column = scoped.table.column_position(column)?;
            Some(ScopedColumn { table, column })
        };
        Some((of(&follow.reader)?, of(&follow.author)?))
    }
}

impl AuthorSelection {
    fn of_literal(literal: Literal) -> AuthorSelection {
        AuthorSelection {
            single: vec![literal],
            ..AuthorSelection::default()
        }
    }

    pub(crate) fn union(mut self, other: AuthorSelection) -> AuthorSelection {
        self.readers.extend(other.readers);
        self.single.extend(other.single);
        self.lists.extend(other.lists);
        self
    }
}
