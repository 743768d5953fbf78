//! Lists of authors that a statement has beside those whom a reader follows: which of the reader's edges count (`AND followers.accepted = 1`),
//! and whom the reader has blocked (`NOT IN (SELECT blocked ...)`). Memory knows no such rows, so the server is asked for the authors, by a
//! statement of its own with the conditions as they stand.

use std::ops::Range;

use headwater_sql::quoted;

use crate::authors::Search;
use crate::bind::{Parameter, Statement};
use crate::equal::conjuncts;
use crate::query::{Column, Comparison, Condition, Literal, Operand, Rows, Says};
use crate::schema::Class;
use crate::scope::{Of, Scope, Seen};
use crate::words::{Is, Members};

/// Rows of a statement with more lists are not kept.
pub const MOST_LISTS: usize = 4;

/// Authors whom one reader's rows of a table name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorList {
    /// The table.
    pub table: String,
    /// Its column that says whose a row is.
    pub whose: String,
    /// Messages of these authors pass, and of nobody else; false: they do not.
    pub pass: bool,
    /// Its column with the authors.
    author: String,
    /// The word by which the conditions call the table.
    called: usize,
    /// The reader.
    reader: Literal,
    /// What else is said of the rows, by its words.
    pub(crate) conditions: Vec<Range<usize>>,
}

impl AuthorList {
    /// The statement that asks for the authors, up to the reader's number. `None`: a parameter in a condition is no number.
    #[must_use]
    pub fn query(&self, statement: Statement<'_>) -> Option<String> {
        let Statement { text, words, .. } = statement;
        let called = std::str::from_utf8(words.text(self.called, text)).ok()?;
        let (table, author) = (quoted(&self.table), quoted(&self.author));
        let column = quoted(&self.whose);
        let mut query = format!("SELECT DISTINCT {called}.{author} FROM {table} {called} WHERE ");
        for range in &self.conditions {
            query.push('(');
            query.push_str(&filled(statement, range)?);
            query.push_str(") AND ");
        }
        Some(format!("{query}{called}.{column} = "))
    }

    /// The reader. `None`: no number from 0 on.
    #[must_use]
    pub fn reader(&self, statement: Statement<'_>) -> Option<u64> {
        statement.number(self.reader)
    }
}

/// What is said of one table's rows.
pub(crate) struct Said<'a> {
    /// Columns that are equal to the message's author.
    authors: Vec<Of>,
    /// Conditions about its own columns and literals.
    own: Vec<&'a Condition>,
}

/// Where lists are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Lists<'s, 'a> {
    pub(crate) scope: &'s Scope<'a>,
    pub(crate) search: &'s Search<'a>,
}

impl<'a> Lists<'_, 'a> {
    /// Rows of whom a reader follows, and what is said of the edges beside the reader; `exists`: that there are such rows is all that is
    /// asked.
    pub(crate) fn followed(&self, rows: &'a Rows, exists: bool) -> Option<AuthorList> {
        let (inner, seen, said) = self.rows(rows)?;
        let (reader, author) = self.search.edge(seen.number, &inner)?;
        self.is_of(rows, exists, author, &inner, &said)?;
        self.of_edges(&seen, (reader, author), &said.own, &inner)
    }

    /// The edges of one reader of which these conditions hold.
    pub(crate) fn of_edges(
        &self,
        seen: &Seen<'a>,
        (reader, author): (Of, Of),
        own: &[&'a Condition],
        scope: &Scope<'a>,
    ) -> Option<AuthorList> {
        let mut readers = own.iter().filter(|one| value(one, scope, reader).is_some());
        let (only, None) = (readers.next()?, readers.next()) else {
            return None;
        };
        list(seen, author, (reader, only), own, scope)
    }

    /// Those whom a condition has not pass: it says nothing else.
    pub(crate) fn blocked(&self, condition: &'a Condition) -> Option<AuthorList> {
        let (rows, exists) = match &condition.is {
            Says::InRows(operand, rows, false) if is(operand, self.search.author, self.scope) => {
                (rows, false)
            }
            Says::Not(inner) => match &inner.is {
                Says::InRows(operand, rows, true)
                    if is(operand, self.search.author, self.scope) =>
                {
                    (rows, false)
                }
                Says::Exists(rows) => (rows, true),
                _ => return None,
            },
            _ => return None,
        };
        let (inner, seen, said) = self.rows(rows)?;
        let author = match exists {
            true => *said.authors.first()?,
            false => inner.resolve(rows.columns.first()?).ok()?,
        };
        self.is_of(rows, exists, author, &inner, &said)?;
        blocked(&seen, author, &said.own, &inner)
    }

    /// The same of a table that is joined by LEFT JOIN, and of which this condition has no row be found.
    pub(crate) fn not_found(&self, seen: &Seen<'a>, condition: &Condition) -> Option<AuthorList> {
        let Says::Null(Operand::Column(column), true) = &condition.is else {
            return None;
        };
        let on = seen.source.on.as_ref().filter(|_| seen.source.outer)?;
        let said = self.said(seen, conjuncts_of(on), self.scope)?;
        let author = *said.authors.first().filter(|_| said.authors.len() == 1)?;
        let of = self.scope.resolve(column).ok()?;
        // A row that is found has a value there.
        let valued = |one: &&Condition| value(one, self.scope, of).is_some();
        let is_found = of == author || of.table == seen.number && said.own.iter().any(valued);
        is_found.then(|| blocked(seen, author, &said.own, self.scope))?
    }

    /// The one table of a SELECT within a condition, and what is said of its rows.
    fn rows(&self, rows: &'a Rows) -> Option<(Scope<'a>, Seen<'a>, Said<'a>)> {
        let [source] = rows.sources.as_slice() else {
            return None;
        };
        if source.outer || source.on.is_some() {
            return None;
        }
        let inner = self.scope.within(&rows.sources, self.search.schema).ok()?;
        let seen = inner.own().first()?.clone();
        let all = rows.filter.as_ref().map(conjuncts_of).unwrap_or_default();
        let said = self.said(&seen, all, &inner)?;
        Some((inner, seen, said))
    }

    /// What these conditions say of a table; `None`: they are about more.
    fn said(
        &self,
        seen: &Seen<'a>,
        all: Vec<&'a Condition>,
        scope: &Scope<'a>,
    ) -> Option<Said<'a>> {
        let of_table = |column: &Column| {
            let of = scope.resolve(column);
            of.is_ok_and(|of| of.table == seen.number)
        };
        let mut said = Said {
            authors: Vec::new(),
            own: Vec::new(),
        };
        for one in all {
            if let Some(of) = self.equated(one, scope) {
                said.authors.push(of);
            } else if is_own(one, &of_table) && !is_of_literals(one) {
                said.own.push(one);
            } else {
                return None;
            }
        }
        Some(said)
    }

    /// Checks that these rows are about that column as the message's author, and about no other.
    fn is_of(
        &self,
        rows: &Rows,
        exists: bool,
        author: Of,
        inner: &Scope<'a>,
        said: &Said<'a>,
    ) -> Option<()> {
        let shows = |column: &Column| inner.resolve(column) == Ok(author);
        let fits = match exists {
            true => said.authors == [author],
            false => said.authors.is_empty() && rows.columns.first().is_some_and(shows),
        };
        fits.then_some(())
    }

    /// The column of `column = message.author`.
    pub(crate) fn equated(&self, condition: &Condition, scope: &Scope<'_>) -> Option<Of> {
        let Says::Compare(Operand::Column(left), Comparison::Equal, Operand::Column(right)) =
            &condition.is
        else {
            return None;
        };
        let (left, right) = (scope.resolve(left).ok()?, scope.resolve(right).ok()?);
        let author = self.search.author;
        match (left == author, right == author) {
            (false, true) => Some(left),
            (true, false) => Some(right),
            _ => None,
        }
    }
}

/// Whom rows name that are told by a number each, such as the reader's.
fn blocked<'a>(
    seen: &Seen<'a>,
    author: Of,
    own: &[&'a Condition],
    scope: &Scope<'a>,
) -> Option<AuthorList> {
    let columns = 0..seen.table.columns.len();
    let of = |column| Of {
        table: seen.number,
        column,
    };
    let whole = columns
        .map(of)
        .filter(|of| scope.class(*of) == Class::Integer);
    let valued = whole.filter_map(|of| {
        let mut own = own.iter();
        Some((of, own.find(|one| value(one, scope, of).is_some())?))
    });
    // Of several the one that no two rows of an author share.
    let valued: Vec<_> = valued.collect();
    let is_keyed = |(of, _): &&(Of, _)| {
        let mut unique = seen.table.unique.iter();
        unique.any(|key| key.contains(&of.column) && key.contains(&author.column))
    };
    let whose = valued.iter().find(is_keyed).or(valued.first())?;
    let list = list(seen, author, *whose, own, scope)?;
    let fits = author.table == seen.number
        && scope.class(author) == Class::Integer
        && seen.source.database.is_none();
    fits.then_some(AuthorList {
        pass: false,
        ..list
    })
}

/// `None`: the table is named by its database, and what is said of it may be as well.
fn list<'a>(
    seen: &Seen<'a>,
    author: Of,
    (whose, reader): (Of, &&'a Condition),
    own: &[&'a Condition],
    scope: &Scope<'a>,
) -> Option<AuthorList> {
    let others = own.iter().filter(|one| !std::ptr::eq(**one, *reader));
    let conditions: Vec<_> = others.map(|one| one.words.clone()).collect();
    if seen.source.database.is_some() && !conditions.is_empty() {
        return None;
    }
    let name = |of| Some(scope.facts(of)?.name.clone());
    let called = seen.source.alias.as_ref().unwrap_or(&seen.source.table);
    Some(AuthorList {
        table: seen.source.table.text.clone(),
        whose: name(whose)?,
        pass: true,
        author: name(author)?,
        called: called.word,
        reader: value(reader, scope, whose)?,
        conditions,
    })
}

/// True for this column.
pub(crate) fn is(operand: &Operand, of: Of, scope: &Scope<'_>) -> bool {
    matches!(operand, Operand::Column(column) if scope.resolve(column) == Ok(of))
}

/// The literal of `column = 7`.
pub(crate) fn value(condition: &Condition, scope: &Scope<'_>, of: Of) -> Option<Literal> {
    let (column, literal) = match &condition.is {
        Says::Compare(Operand::Column(column), Comparison::Equal, Operand::Literal(literal))
        | Says::Compare(Operand::Literal(literal), Comparison::Equal, Operand::Column(column)) => {
            (column, literal)
        }
        _ => return None,
    };
    (scope.resolve(column) == Ok(of)).then_some(*literal)
}

/// True for a condition without a column: it is about no table.
pub(crate) fn is_of_literals(condition: &Condition) -> bool {
    is_own(condition, &|_| false)
}

/// True for a condition about such columns and literals alone.
pub(crate) fn is_own(condition: &Condition, own: &impl Fn(&Column) -> bool) -> bool {
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

pub(crate) fn owns<'o>(
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

fn conjuncts_of(condition: &Condition) -> Vec<&Condition> {
    let mut all = Vec::new();
    conjuncts(condition, &mut all);
    all
}

/// A condition's text, with numbers in the places of its parameters. `None`: one of them is none.
fn filled(statement: Statement<'_>, range: &Range<usize>) -> Option<String> {
    let Statement { text, words, .. } = statement;
    let own = words.words.get(range.clone())?;
    let mut condition = Vec::new();
    let mut from = own.first()?.start;
    for (at, word) in range.clone().zip(own) {
        match word.is {
            Is::List(Members::Parameters) => return None,
            Is::Parameter => {
                condition.extend_from_slice(text.get(from..word.start)?);
                match statement.parameters(at)? {
                    [Parameter::Integer(value)] => {
                        condition.extend_from_slice(value.to_string().as_bytes());
                    }
                    [Parameter::Text(value)] if is_number(value) => {
                        condition.extend_from_slice(&[b"'", &value[..], b"'"].concat());
                    }
                    _ => return None,
                }
                from = word.end;
            }
            _ => {}
        }
    }
    condition.extend_from_slice(text.get(from..own.last()?.end)?);
    String::from_utf8(condition).ok()
}

/// True for so many digits that every way of comparing them tells them apart.
fn is_number(value: &[u8]) -> bool {
    (1..=15).contains(&value.len()) && value.iter().all(u8::is_ascii_digit)
}
