//! Whose messages a condition lets pass, at most.
//!
//! A condition is looked through for what follows from it: that the message's author is one of a list, or one whom a reader follows.
//! More conditions beside that take rows away only, so they need not be understood.

use crate::equal::{Equal, certain, conjuncts};
use crate::query::{Column, Condition, List, Literal, Operand, Rows, Says};
use crate::schema::{Class, Schema};
use crate::scope::{Of, Scope};

/// Who may have written the messages of an answer: all of these together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authors {
    /// Whom the readers in these lists follow.
    pub readers: Vec<List>,
    /// These themselves.
    pub single: Vec<Literal>,
    /// Those in these lists.
    pub lists: Vec<List>,
}

/// The table of who follows whom, and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    /// Its name.
    pub table: String,
    /// Who follows.
    pub reader: String,
    /// Who is followed.
    pub author: String,
}

/// Looks a statement through.
pub struct Search<'a> {
    /// Its tables.
    pub schema: &'a dyn Schema,
    /// The column that holds a message's author.
    pub author: Of,
    /// Who follows whom.
    pub follow: Option<&'a Follow>,
    /// The database of these tables, where the session's own is another.
    pub database: Option<&'a str>,
}

impl<'a> Search<'a> {
    /// Whose messages a statement asks for, in whose rows these conditions hold and these columns are equal.
    #[must_use]
    pub fn of_rows(
        &self,
        holds: &[&'a Condition],
        scope: &Scope<'a>,
        equal: &Equal,
    ) -> Option<Authors> {
        if let Some(literal) = equal.literal(self.author) {
            return Some(Authors::one(literal));
        }
        let said = holds.iter().find_map(|one| self.of(one, scope, equal));
        said.or_else(|| self.joined(scope, equal))
    }

    /// Whose messages a condition lets pass; `None`: anybody's.
    fn of(&self, condition: &'a Condition, scope: &Scope<'a>, equal: &Equal) -> Option<Authors> {
        match &condition.is {
            Says::And(all) => all.iter().find_map(|one| self.of(one, scope, equal)),
            Says::Or(all) => {
                let each: Option<Vec<_>> =
                    all.iter().map(|one| self.of(one, scope, equal)).collect();
                Some(each?.into_iter().fold(Authors::default(), Authors::and))
            }
            Says::In(Operand::Column(column), list, true) => {
                let of = scope.resolve(column).ok()?;
                equal.are_equal(of, self.author).then(|| Authors {
                    lists: vec![list.clone()],
                    ..Authors::default()
                })
            }
            Says::InRows(Operand::Column(column), rows, true) => {
                let of = scope.resolve(column).ok()?;
                let column = rows.columns.first()?;
                let of_row = || self.of_row(rows, Some(column), scope, equal);
                equal.are_equal(of, self.author).then(of_row).flatten()
            }
            Says::Exists(rows) => self.of_row(rows, None, scope, equal),
            _ => {
                let mut own = equal.clone();
                own.learn(&[condition], scope);
                if let Some(literal) = own.literal(self.author) {
                    return Some(Authors::one(literal));
                }
                self.of_outer(condition, scope, equal)
            }
        }
    }

    /// A condition that no row passes to which a LEFT JOIN has found nobody: then its ON holds.
    fn of_outer(&self, condition: &Condition, scope: &Scope<'a>, equal: &Equal) -> Option<Authors> {
        let (Says::Compare(operand, ..)
        | Says::Null(operand, false)
        | Says::In(operand, _, true)
        | Says::Between(operand, _, _, true)) = &condition.is
        else {
            return None;
        };
        let Operand::Column(column) = operand else {
            return None;
        };
        let of = scope.resolve(column).ok()?;
        let seen = scope.own().iter().find(|seen| seen.number == of.table)?;
        let on = seen.source.on.as_ref().filter(|_| seen.source.outer)?;
        let mut all = Vec::new();
        conjuncts(on, &mut all);
        let mut equal = equal.clone();
        equal.learn(&all, scope);
        self.follows_in(of.table, scope, &equal)
    }

    /// What follows from there being a row of a SELECT within a condition, whose column, if one is given, is the author:
    /// `EXISTS (SELECT ... FROM follow WHERE followed = author AND reader = ...)`, `author IN (SELECT followed FROM follow WHERE reader = ...)`.
    fn of_row(
        &self,
        rows: &'a Rows,
        column: Option<&Column>,
        scope: &Scope<'a>,
        equal: &Equal,
    ) -> Option<Authors> {
        let inner = scope.within(&rows.sources, self.schema).ok()?;
        let holds = certain(&rows.sources, rows.filter.as_ref());
        let mut equal = equal.clone();
        equal.learn(&holds, &inner);
        if let Some(column) = column {
            let of = inner.resolve(column).ok()?;
            if inner.class(of) != Class::Integer {
                return None;
            }
            equal.join(of, self.author);
        }
        self.of_rows(&holds, &inner, &equal)
    }

    /// A table of who follows whom is joined, here or in a SELECT around: whose edges they are.
    fn joined(&self, scope: &Scope<'a>, equal: &Equal) -> Option<Authors> {
        let mut inner = scope.all().filter(|seen| !seen.source.outer);
        inner.find_map(|seen| self.follows_in(seen.number, scope, equal))
    }

    fn follows_in(&self, table: usize, scope: &Scope<'a>, equal: &Equal) -> Option<Authors> {
        let (reader, author) = self.edge(table, scope)?;
        if !equal.are_equal(author, self.author) {
            return None;
        }
        let readers = match equal.literal(reader) {
            Some(one) => List::Each(vec![one]),
            None => equal.list(reader)?.clone(),
        };
        Some(Authors {
            readers: vec![readers],
            ..Authors::default()
        })
    }

    /// The columns of reader and author, if it is the table of who follows whom.
    pub(crate) fn edge(&self, table: usize, scope: &Scope<'_>) -> Option<(Of, Of)> {
        let follow = self.follow?;
        let seen = scope.seen(table)?;
        let database = seen.source.database.as_ref().map(|name| name.text.as_str());
        if seen.source.table.text != follow.table
            || (database.is_some() && database != self.database)
        {
            return None;
        }
        let of = |column: &str| {
            let column = seen.table.place(column)?;
            Some(Of { table, column })
        };
        Some((of(&follow.reader)?, of(&follow.author)?))
    }
}

impl Authors {
    fn one(literal: Literal) -> Authors {
        Authors {
            single: vec![literal],
            ..Authors::default()
        }
    }

    fn and(mut self, other: Authors) -> Authors {
        self.readers.extend(other.readers);
        self.single.extend(other.single);
        self.lists.extend(other.lists);
        self
    }
}
