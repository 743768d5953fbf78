//! Lists of authors that a statement has beside those whom a reader follows: which of the reader's edges count (`AND followers.accepted = 1`),
//! and whom the reader has blocked (`NOT IN (SELECT blocked ...)`). Memory knows no such rows, so the server is asked for the authors, by a
//! statement of its own with the conditions as they stand.

use std::ops::Range;

use headwater_sql::quoted;

use crate::authors::AuthorSearch;
use crate::binding::{FeedStatement, ParameterValue};
use crate::equalities::conjuncts;
use crate::query::{
    ColumnReference, ComparisonOperator, ConditionKind, Literal, Operand, SelectCondition, Subquery,
};
use crate::schema::ComparisonClass;
use crate::scope::{NameScope, ScopedColumn, ScopedTable};
use crate::words::{ListKind, WordKind};

/// Rows of a statement with more lists are not kept.
pub const MOST_LISTS: usize = 4;

/// Authors whom one reader's rows of a table name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorList {
    /// The table.
    pub table: String,
    /// Its column that says whose a row is.
    pub reader_column: String,
    /// Messages of these authors pass, and of nobody else; false: they do not.
    pub admits: bool,
    /// Its column with the authors.
    author_column: String,
    /// The word by which the conditions call the table.
    alias_word: usize,
    /// The reader.
    reader: Literal,
    /// What else is said of the rows, by its words.
    pub(crate) conditions: Vec<Range<usize>>,
}

impl AuthorList {
    /// The statement that asks for the authors, up to the reader's number. `None`: a parameter in a condition is no number.
    #[must_use]
    pub fn author_query(&self, statement: FeedStatement<'_>) -> Option<String> {
        let FeedStatement { text, words, .. } = statement;
        let called = std::str::from_utf8(words.text(self.alias_word, text)).ok()?;
        let (table, author) = (quoted(&self.table), quoted(&self.author_column));
        let column = quoted(&self.reader_column);
        let mut query = format!("SELECT DISTINCT {called}.{author} FROM {table} {called} WHERE ");
        for range in &self.conditions {
            query.push('(');
            query.push_str(&condition_text(statement, range)?);
            query.push_str(") AND ");
        }
        Some(format!("{query}{called}.{column} = "))
    }

    /// The reader. `None`: no number from 0 on.
    #[must_use]
    pub fn reader(&self, statement: FeedStatement<'_>) -> Option<u64> {
        statement.number(self.reader)
    }
}

/// What is said of one table's rows.
pub(crate) struct TableConditions<'a> {
    /// Columns that are equal to the message's author.
    author_columns: Vec<ScopedColumn>,
    /// Conditions about its own columns and literals.
    local: Vec<&'a SelectCondition>,
}

/// Where lists are looked for.
#[derive(Clone, Copy)]
pub(crate) struct AuthorListSearch<'s, 'a> {
    pub(crate) scope: &'s NameScope<'a>,
    pub(crate) search: &'s AuthorSearch<'a>,
}

impl<'a> AuthorListSearch<'_, 'a> {
    /// Rows of whom a reader follows, and what is said of the edges beside the reader; `exists`: that there are such rows is all that is
    /// asked.
    pub(crate) fn followed_authors(&self, rows: &'a Subquery, exists: bool) -> Option<AuthorList> {
        let (inner, seen, said) = self.subquery_table(rows)?;
        let (reader, author) = self.search.follow_columns(seen.number, &inner)?;
        self.matches_author(rows, exists, author, &inner, &said)?;
        self.reader_edges(&seen, (reader, author), &said.local, &inner)
    }

    /// The edges of one reader of which these conditions hold.
    pub(crate) fn reader_edges(
        &self,
        seen: &ScopedTable<'a>,
        (reader, author): (ScopedColumn, ScopedColumn),
        own: &[&'a SelectCondition],
        scope: &NameScope<'a>,
    ) -> Option<AuthorList> {
        let mut readers = own
            .iter()
            .filter(|one| equal_literal(one, scope, reader).is_some());
        let (only, None) = (readers.next()?, readers.next()) else {
            return None;
        };
        author_list(seen, author, (reader, only), own, scope)
    }

    /// Those whom a condition has not pass: it says nothing else.
    pub(crate) fn blocked_authors(&self, condition: &'a SelectCondition) -> Option<AuthorList> {
        let (rows, exists) = match &condition.kind {
            ConditionKind::InSubquery(operand, rows, false)
                if is_column(operand, self.search.author, self.scope) =>
            {
                (rows, false)
            }
            ConditionKind::Not(inner) => match &inner.kind {
                ConditionKind::InSubquery(operand, rows, true)
                    if is_column(operand, self.search.author, self.scope) =>
                {
                    (rows, false)
                }
                ConditionKind::Exists(rows) => (rows, true),
                _ => return None,
            },
            _ => return None,
        };
        let (inner, seen, said) = self.subquery_table(rows)?;
        let author = match exists {
            true => *said.author_columns.first()?,
            false => inner.resolve(rows.columns.first()?).ok()?,
        };
        self.matches_author(rows, exists, author, &inner, &said)?;
        blocked_list(&seen, author, &said.local, &inner)
    }

    /// The same of a table that is joined by LEFT JOIN, and of which this condition has no row be found.
    pub(crate) fn blocked_by_outer_join(
        &self,
        seen: &ScopedTable<'a>,
        condition: &SelectCondition,
    ) -> Option<AuthorList> {
        let ConditionKind::Null(Operand::Column(column), true) = &condition.kind else {
            return None;
        };
        let on = seen.source.on.as_ref().filter(|_| seen.source.outer)?;
        let said = self.table_conditions(seen, conjuncts_of(on), self.scope)?;
        let author = *said
            .author_columns
            .first()
            .filter(|_| said.author_columns.len() == 1)?;
        let of = self.scope.resolve(column).ok()?;
        // A row that is found has a value there.
        let valued = |one: &&SelectCondition| equal_literal(one, self.scope, of).is_some();
        let is_found = of == author || of.table == seen.number && said.local.iter().any(valued);
        is_found.then(|| blocked_list(seen, author, &said.local, self.scope))?
    }

    /// The one table of a SELECT within a condition, and what is said of its rows.
    fn subquery_table(
        &self,
        rows: &'a Subquery,
    ) -> Option<(NameScope<'a>, ScopedTable<'a>, TableConditions<'a>)> {
        let [source] = rows.sources.as_slice() else {
            return None;
        };
        if source.outer || source.on.is_some() {
            return None;
        }
        let inner = self.scope.within(&rows.sources, self.search.schema).ok()?;
        let seen = inner.innermost_tables().first()?.clone();
        let all = rows.filter.as_ref().map(conjuncts_of).unwrap_or_default();
        let said = self.table_conditions(&seen, all, &inner)?;
        Some((inner, seen, said))
    }

    /// What these conditions say of a table; `None`: they are about more.
    fn table_conditions(
        &self,
        seen: &ScopedTable<'a>,
        all: Vec<&'a SelectCondition>,
        scope: &NameScope<'a>,
    ) -> Option<TableConditions<'a>> {
        let of_table = |column: &ColumnReference| {
            let of = scope.resolve(column);
            of.is_ok_and(|of| of.table == seen.number)
        };
        let mut said = TableConditions {
            author_columns: Vec::new(),
            local: Vec::new(),
        };
        for one in all {
            if let Some(of) = self.author_equal_column(one, scope) {
                said.author_columns.push(of);
            } else if uses_only(one, &of_table) && !is_constant(one) {
                said.local.push(one);
            } else {
                return None;
            }
        }
        Some(said)
    }

    /// Checks that these rows are about that column as the message's author, and about no other.
    fn matches_author(
        &self,
        rows: &Subquery,
        exists: bool,
        author: ScopedColumn,
        inner: &NameScope<'a>,
        said: &TableConditions<'a>,
    ) -> Option<()> {
        let shows = |column: &ColumnReference| inner.resolve(column) == Ok(author);
        let fits = match exists {
            true => said.author_columns == [author],
            false => said.author_columns.is_empty() && rows.columns.first().is_some_and(shows),
        };
        fits.then_some(())
    }

    /// The column of `column = message.author`.
    pub(crate) fn author_equal_column(
        &self,
        condition: &SelectCondition,
        scope: &NameScope<'_>,
    ) -> Option<ScopedColumn> {
        let ConditionKind::Compare(
            Operand::Column(left),
            ComparisonOperator::Equal,
            Operand::Column(right),
        ) = &condition.kind
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
fn blocked_list<'a>(
    seen: &ScopedTable<'a>,
    author: ScopedColumn,
    own: &[&'a SelectCondition],
    scope: &NameScope<'a>,
) -> Option<AuthorList> {
    let columns = 0..seen.table.columns.len();
    let of = |column| ScopedColumn {
        table: seen.number,
        column,
    };
    let whole = columns
        .map(of)
        .filter(|of| scope.class(*of) == ComparisonClass::Integer);
    let valued = whole.filter_map(|of| {
        let mut own = own.iter();
        Some((of, own.find(|one| equal_literal(one, scope, of).is_some())?))
    });
    // Of several the one that no two rows of an author share.
    let valued: Vec<_> = valued.collect();
    let is_keyed = |(of, _): &&(ScopedColumn, _)| {
        let mut unique = seen.table.unique_keys.iter();
        unique.any(|key| key.contains(&of.column) && key.contains(&author.column))
    };
    let whose = valued.iter().find(is_keyed).or(valued.first())?;
    let list = author_list(seen, author, *whose, own, scope)?;
    let fits = author.table == seen.number
        && scope.class(author) == ComparisonClass::Integer
        && seen.source.database.is_none();
    fits.then_some(AuthorList {
        admits: false,
        ..list
    })
}

/// `None`: the table is named by its database, and what is said of it may be as well.
fn author_list<'a>(
    seen: &ScopedTable<'a>,
    author: ScopedColumn,
    (whose, reader): (ScopedColumn, &&'a SelectCondition),
    own: &[&'a SelectCondition],
    scope: &NameScope<'a>,
) -> Option<AuthorList> {
    let others = own.iter().filter(|one| !std::ptr::eq(**one, *reader));
    let conditions: Vec<_> = others.map(|one| one.words.clone()).collect();
    if seen.source.database.is_some() && !conditions.is_empty() {
        return None;
    }
    let name = |of| Some(scope.column_schema(of)?.name.clone());
    let called = seen.source.alias.as_ref().unwrap_or(&seen.source.table);
    Some(AuthorList {
        table: seen.source.table.text.clone(),
        reader_column: name(whose)?,
        admits: true,
        author_column: name(author)?,
        alias_word: called.word,
        reader: equal_literal(reader, scope, whose)?,
        conditions,
    })
}

/// True for this column.
pub(crate) fn is_column(operand: &Operand, of: ScopedColumn, scope: &NameScope<'_>) -> bool {
    matches!(operand, Operand::Column(column) if scope.resolve(column) == Ok(of))
}

/// The literal of `column = 7`.
pub(crate) fn equal_literal(
    condition: &SelectCondition,
    scope: &NameScope<'_>,
    of: ScopedColumn,
) -> Option<Literal> {
    let (column, literal) = match &condition.kind {
        ConditionKind::Compare(
            Operand::Column(column),
            ComparisonOperator::Equal,
            Operand::Literal(literal),
        )
        | ConditionKind::Compare(
            Operand::Literal(literal),
            ComparisonOperator::Equal,
            Operand::Column(column),
        ) => (column, literal),
        _ => return None,
    };
    (scope.resolve(column) == Ok(of)).then_some(*literal)
}

/// True for a condition without a column: it is about no table.
pub(crate) fn is_constant(condition: &SelectCondition) -> bool {
    uses_only(condition, &|_| false)
}

/// True for a condition about such columns and literals alone.
pub(crate) fn uses_only(
    condition: &SelectCondition,
    own: &impl Fn(&ColumnReference) -> bool,
) -> bool {
    match &condition.kind {
        ConditionKind::And(all) | ConditionKind::Or(all) => {
            all.iter().all(|one| uses_only(one, own))
        }
        ConditionKind::Not(one) => uses_only(one, own),
        ConditionKind::Compare(left, _, right) => operands_use_only([left, right], own),
        ConditionKind::ComparePairs(left, _, right) => {
            operands_use_only(left.iter().chain(right), own)
        }
        ConditionKind::Between(operand, from, to, _) => operands_use_only([operand, from, to], own),
        ConditionKind::Null(operand, _)
        | ConditionKind::Like(operand, ..)
        | ConditionKind::In(operand, ..) => operands_use_only([operand], own),
        ConditionKind::Truth(column) => own(column),
        ConditionKind::InSubquery(..) | ConditionKind::Exists(_) => false,
    }
}

pub(crate) fn operands_use_only<'o>(
    operands: impl IntoIterator<Item = &'o Operand>,
    own: &impl Fn(&ColumnReference) -> bool,
) -> bool {
    operands.into_iter().all(|operand| match operand {
        Operand::Column(column) => own(column),
        Operand::Literal(_) => true,
        Operand::Coalesce(all) => operands_use_only(all, own),
        Operand::Now => false,
    })
}

fn conjuncts_of(condition: &SelectCondition) -> Vec<&SelectCondition> {
    let mut all = Vec::new();
    conjuncts(condition, &mut all);
    all
}

/// A condition's text, with numbers in the places of its parameters. `None`: one of them is none.
fn condition_text(statement: FeedStatement<'_>, range: &Range<usize>) -> Option<String> {
    let FeedStatement { text, words, .. } = statement;
    let own = words.words.get(range.clone())?;
    let mut condition = Vec::new();
    let mut from = own.first()?.start;
    for (at, word) in range.clone().zip(own) {
        match word.kind {
            WordKind::List(ListKind::Parameters) => return None,
            WordKind::Parameter => {
                condition.extend_from_slice(text.get(from..word.start)?);
                match statement.parameters(at)? {
                    [ParameterValue::Integer(value)] => {
                        condition.extend_from_slice(value.to_string().as_bytes());
                    }
                    [ParameterValue::Text(value)] if is_number(value) => {
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
