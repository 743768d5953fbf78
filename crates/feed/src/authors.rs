//! Whose messages a condition lets pass, at most.
//!
//! A condition is looked through for what follows from it: that the message's author is one of a list, or one whom a reader follows.
//! More conditions beside that take rows away only, so they need not be understood.

use crate::equalities::{ColumnEqualities, conditions_of_every_row, conjuncts};
use crate::query::{
    ColumnReference, ConditionKind, Literal, LiteralList, Operand, SelectCondition, Subquery,
};
use crate::schema::{ComparisonClass, Schema};
use crate::scope::{NameScope, ScopedColumn};

/// Who may have written the messages of an answer: all of these together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorSelection {
    /// Whom the readers in these lists follow.
    pub readers: Vec<LiteralList>,
    /// These themselves.
    pub single: Vec<Literal>,
    /// Those in these lists.
    pub lists: Vec<LiteralList>,
}

/// The table of who follows whom, and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowNames {
    /// Its name.
    pub table: String,
    /// Who follows.
    pub reader: String,
    /// Who is followed.
    pub author: String,
}

/// Looks a statement through.
pub struct AuthorSearch<'a> {
    /// Its tables.
    pub schema: &'a dyn Schema,
    /// The column that holds a message's author.
    pub author: ScopedColumn,
    /// Who follows whom.
    pub follow: Option<&'a FollowNames>,
    /// The database of these tables, where the session's own is another.
    pub database: Option<&'a str>,
}

impl<'a> AuthorSearch<'a> {
    /// Whose messages a statement asks for, in whose rows these conditions hold and these columns are equal.
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
        let said = holds
            .iter()
            .find_map(|one| self.of_condition(one, scope, equal));
        said.or_else(|| self.joined(scope, equal))
    }

    /// Whose messages a condition lets pass; `None`: anybody's.
    fn of_condition(
        &self,
        condition: &'a SelectCondition,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<AuthorSelection> {
        match &condition.kind {
            ConditionKind::And(all) => all
                .iter()
                .find_map(|one| self.of_condition(one, scope, equal)),
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
            ConditionKind::Exists(rows) => self.of_subquery(rows, None, scope, equal),
            _ => {
                let mut own = equal.clone();
                own.add_conditions(&[condition], scope);
                if let Some(literal) = own.literal(self.author) {
                    return Some(AuthorSelection::of_literal(literal));
                }
                self.of_outer_join(condition, scope, equal)
            }
        }
    }

    /// A condition that no row passes to which a LEFT JOIN has found nobody: then its ON holds.
    fn of_outer_join(
        &self,
        condition: &SelectCondition,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<AuthorSelection> {
        let (ConditionKind::Compare(operand, ..)
        | ConditionKind::Null(operand, false)
        | ConditionKind::In(operand, _, true)
        | ConditionKind::Between(operand, _, _, true)) = &condition.kind
        else {
            return None;
        };
        let Operand::Column(column) = operand else {
            return None;
        };
        let of = scope.resolve(column).ok()?;
        let seen = scope
            .innermost_tables()
            .iter()
            .find(|seen| seen.number == of.table)?;
        let on = seen.source.on.as_ref().filter(|_| seen.source.outer)?;
        let mut all = Vec::new();
        conjuncts(on, &mut all);
        let mut equal = equal.clone();
        equal.add_conditions(&all, scope);
        self.follows_in(of.table, scope, &equal)
    }

    /// What follows from there being a row of a SELECT within a condition, whose column, if one is given, is the author:
    /// `EXISTS (SELECT ... FROM follow WHERE followed = author AND reader = ...)`, `author IN (SELECT followed FROM follow WHERE reader = ...)`.
    fn of_subquery(
        &self,
        rows: &'a Subquery,
        column: Option<&ColumnReference>,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<AuthorSelection> {
        let inner = scope.within(&rows.sources, self.schema).ok()?;
        let holds = conditions_of_every_row(&rows.sources, rows.filter.as_ref());
        let mut equal = equal.clone();
        equal.add_conditions(&holds, &inner);
        if let Some(column) = column {
            let of = inner.resolve(column).ok()?;
            if inner.class(of) != ComparisonClass::Integer {
                return None;
            }
            equal.join(of, self.author);
        }
        self.of_rows(&holds, &inner, &equal)
    }

    /// A table of who follows whom is joined, here or in a SELECT around: whose edges they are.
    fn joined(&self, scope: &NameScope<'a>, equal: &ColumnEqualities) -> Option<AuthorSelection> {
        let mut inner = scope.all_tables().filter(|seen| !seen.source.outer);
        inner.find_map(|seen| self.follows_in(seen.number, scope, equal))
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

    /// The columns of reader and author, if it is the table of who follows whom.
    pub(crate) fn follow_columns(
        &self,
        table: usize,
        scope: &NameScope<'_>,
    ) -> Option<(ScopedColumn, ScopedColumn)> {
        let follow = self.follow?;
        let seen = scope.table(table)?;
        let database = seen.source.database.as_ref().map(|name| name.text.as_str());
        if seen.source.table.text != follow.table
            || (database.is_some() && database != self.database)
        {
            return None;
        }
        let of = |column: &str| {
            let column = seen.table.column_position(column)?;
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

    fn union(mut self, other: AuthorSelection) -> AuthorSelection {
        self.readers.extend(other.readers);
        self.single.extend(other.single);
        self.lists.extend(other.lists);
        self
    }
}
