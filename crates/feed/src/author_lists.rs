//! Author lists of a statement besides the authors whom a reader follows: which of the reader's edges (rows of the follow table) count
//! (`AND followers.accepted = 1`), and whom the reader has blocked (`NOT IN (SELECT blocked ...)`). Memory holds no such rows. An internal
//! query reads the authors from the server, with the statement's own conditions.

use std::ops::Range;

use headwater_sql::quoted;

use crate::authors::AuthorSearch;
use crate::binding::{FeedStatement, ParameterValue};
use crate::equalities::{column_equal_to, conjuncts, equal_keys};
use crate::joined_tables::{JoinedRowReference, ReferenceKeySource};
use crate::query::{
    ColumnReference, ComparisonOperator, ConditionKind, Literal, Operand, SelectCondition, Subquery,
};
use crate::schema::ComparisonClass;
use crate::scope::{NameScope, ScopedColumn, ScopedTable};
use crate::words::{ListKind, WordKind};

/// Most lists that a statement may have for its rows to be cached.
pub const MOST_LISTS: usize = 4;

/// The authors that one reader's rows of a table name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorList {
    /// The table.
    pub table: String,
    /// Its column that holds the reader.
    pub reader_column: String,
    /// True: only messages of these authors pass. False: their messages do not pass.
    pub admits: bool,
    /// An author is listed for each edge.
    pub copies: bool,
    author_column: String,
    /// The word by which the conditions refer to the table.
    alias_word: usize,
    reader: Literal,
    /// Word ranges of the other conditions on the rows.
    pub(crate) conditions: Vec<Range<usize>>,
}

impl AuthorList {
    /// The same list; `copies`: with an author for each edge.
    pub(crate) fn with_copies(self, copies: bool) -> AuthorList {
        AuthorList { copies, ..self }
    }

    /// The internal query for the authors, up to the reader's id, which follows. `None`: a parameter in a condition is no number.
    #[must_use]
    pub fn author_query(&self, statement: FeedStatement<'_>) -> Option<String> {
        let FeedStatement { text, words, .. } = statement;
        let called = std::str::from_utf8(words.text(self.alias_word, text)).ok()?;
        let (table, author) = (quoted(&self.table), quoted(&self.author_column));
        let column = quoted(&self.reader_column);
        let distinct = if self.copies { "" } else { "DISTINCT " };
        let mut query = format!("SELECT {distinct}{called}.{author} FROM {table} {called} WHERE ");
        for range in &self.conditions {
            query.push('(');
            query.push_str(&condition_text(statement, range)?);
            query.push_str(") AND ");
        }
        Some(format!("{query}{called}.{column} = "))
    }

    /// The reader's id. `None`: it is no integer from 0 on.
    #[must_use]
    pub fn reader(&self, statement: FeedStatement<'_>) -> Option<u64> {
        statement.number(self.reader)
    }
}

/// The conditions on one table's rows.
pub(crate) struct TableConditions<'a> {
    /// Columns that are equal to the message's author.
    author_columns: Vec<ScopedColumn>,
    /// Conditions on the table's own columns and literals only.
    local: Vec<&'a SelectCondition>,
}

#[derive(Clone, Copy)]
pub(crate) struct AuthorListSearch<'s, 'a> {
    pub(crate) scope: &'s NameScope<'a>,
    pub(crate) search: &'s AuthorSearch<'a>,
}

impl<'a> AuthorListSearch<'_, 'a> {
    /// The edges that a subquery selects, with the conditions on them besides the reader. `exists`: the subquery stands in EXISTS.
    pub(crate) fn followed_authors(&self, rows: &'a Subquery, exists: bool) -> Option<AuthorList> {
        let (inner, scoped, conditions) = self.subquery_table(rows)?;
        let (reader, author) = self.search.follow_columns(scoped.number, &inner)?;
        self.matches_author(rows, exists, author, &inner, &conditions)?;
        self.reader_edges(&scoped, (reader, author), &conditions.local, &inner)
    }

    /// The edges that a subquery selects through the rows of another table that their authors name, as Django's of a relation:
    /// `SELECT u.id FROM users u JOIN follows f ON f.author = u.id WHERE f.reader = 7`.
    pub(crate) fn authors_through(
        &self,
        rows: &'a Subquery,
    ) -> Option<(AuthorList, JoinedRowReference)> {
        let [_, _] = rows.sources.as_slice() else {
            return None;
        };
        if rows.sources.iter().any(|source| source.outer.is_some()) {
            return None;
        }
        let inner = self.scope.within(&rows.sources, self.search.schema).ok()?;
        let tables = inner.innermost_tables();
        let edges =
            |scoped: &&ScopedTable<'a>| self.search.follow_columns(scoped.number, &inner).is_some();
        let edge = tables.iter().find(edges)?;
        let other = tables.iter().find(|scoped| scoped.number != edge.number)?;
        let (reader, author) = self.search.follow_columns(edge.number, &inner)?;
        let on = rows.sources.iter().filter_map(|source| source.on.as_ref());
        let all = on.chain(&rows.filter).flat_map(conjuncts_of);
        let of_edge = |column: &ColumnReference| {
            let of = inner.resolve(column);
            of.is_ok_and(|of| of.table == edge.number)
        };
        let (mut key, mut conditions) = (None, Vec::new());
        for one in all {
            if let Some(of) = unique_key_equal_to(one, author, other, &inner) {
                key = match key {
                    None => Some(of),
                    Some(_) => return None,
                };
            } else if uses_only(one, &of_edge) && !is_constant(one) {
                conditions.push(one);
            } else {
                return None;
            }
        }
        let key = key?;
        let shown = inner.resolve(rows.columns.first()?).ok()?;
        let is_plain = other.source.database.is_none() && (shown == key || shown == author);
        let reference = JoinedRowReference {
            table: other.source.table.text.clone(),
            id: inner.column_schema(key)?.name.clone(),
            key_source: ReferenceKeySource::Author,
            filters: true,
        };
        let list = self.reader_edges(edge, (reader, author), &conditions, &inner)?;
        is_plain.then_some((list, reference))
    }

    /// The edges of one reader that meet these conditions.
    pub(crate) fn reader_edges(
        &self,
        scoped: &ScopedTable<'a>,
        (reader, author): (ScopedColumn, ScopedColumn),
        conditions: &[&'a SelectCondition],
        scope: &NameScope<'a>,
    ) -> Option<AuthorList> {
        let mut readers = conditions
            .iter()
            .filter(|one| equal_literal(one, scope, reader).is_some());
        let (only, None) = (readers.next()?, readers.next()) else {
            return None;
        };
        author_list(scoped, author, (reader, only), conditions, scope)
    }

    /// The authors that a condition excludes, if it does nothing else.
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
        let (inner, scoped, conditions) = self.subquery_table(rows)?;
        let author = match exists {
            true => *conditions.author_columns.first()?,
            false => inner.resolve(rows.columns.first()?).ok()?,
        };
        self.matches_author(rows, exists, author, &inner, &conditions)?;
        blocked_list(&scoped, author, &conditions.local, &inner)
    }

    /// The same for a table joined by LEFT JOIN, where the condition requires that no row matches.
    pub(crate) fn blocked_by_outer_join(
        &self,
        scoped: &ScopedTable<'a>,
        condition: &SelectCondition,
    ) -> Option<AuthorList> {
        let ConditionKind::Null(Operand::Column(column), true) = &condition.kind else {
            return None;
        };
        let on = self.scope.outer_join_conditions(scoped.source.outer?);
        let conditions = self.table_conditions(scoped, on, self.scope)?;
        let author = *conditions
            .author_columns
            .first()
            .filter(|_| conditions.author_columns.len() == 1)?;
        let of = self.scope.resolve(column).ok()?;
        // A matching row has a value in this column.
        let valued = |one: &&SelectCondition| equal_literal(one, self.scope, of).is_some();
        let is_found =
            of == author || of.table == scoped.number && conditions.local.iter().any(valued);
        is_found.then(|| blocked_list(scoped, author, &conditions.local, self.scope))?
    }

    /// The only table of a subquery, and the conditions on its rows.
    fn subquery_table(
        &self,
        rows: &'a Subquery,
    ) -> Option<(NameScope<'a>, ScopedTable<'a>, TableConditions<'a>)> {
        let [source] = rows.sources.as_slice() else {
            return None;
        };
        if source.outer.is_some() || source.on.is_some() {
            return None;
        }
        let inner = self.scope.within(&rows.sources, self.search.schema).ok()?;
        let scoped = inner.innermost_tables().first()?.clone();
        let all = rows.filter.as_ref().map(conjuncts_of).unwrap_or_default();
        let conditions = self.table_conditions(&scoped, all, &inner)?;
        Some((inner, scoped, conditions))
    }

    /// Sorts the conditions on a table. `None`: one of them is about more.
    fn table_conditions(
        &self,
        scoped: &ScopedTable<'a>,
        all: Vec<&'a SelectCondition>,
        scope: &NameScope<'a>,
    ) -> Option<TableConditions<'a>> {
        let of_table = |column: &ColumnReference| {
            let of = scope.resolve(column);
            of.is_ok_and(|of| of.table == scoped.number)
        };
        let mut conditions = TableConditions {
            author_columns: Vec::new(),
            local: Vec::new(),
        };
        for one in all {
            if let Some(of) = self.author_equal_column(one, scope) {
                conditions.author_columns.push(of);
            } else if uses_only(one, &of_table) && !is_constant(one) {
                conditions.local.push(one);
            } else {
                return None;
            }
        }
        Some(conditions)
    }

    /// Checks that the subquery compares this column, and no other, with the message's author.
    fn matches_author(
        &self,
        rows: &Subquery,
        exists: bool,
        author: ScopedColumn,
        inner: &NameScope<'a>,
        conditions: &TableConditions<'a>,
    ) -> Option<()> {
        let shows = |column: &ColumnReference| inner.resolve(column) == Ok(author);
        let fits = match exists {
            true => conditions.author_columns == [author],
            false => {
                conditions.author_columns.is_empty() && rows.columns.first().is_some_and(shows)
            }
        };
        fits.then_some(())
    }

    /// The column of `column = message.author`.
    pub(crate) fn author_equal_column(
        &self,
        condition: &SelectCondition,
        scope: &NameScope<'_>,
    ) -> Option<ScopedColumn> {
        column_equal_to(self.search.author, condition, scope)
    }
}

/// The column of this table that alone is a unique key, if the condition says that it equals another one.
fn unique_key_equal_to(
    condition: &SelectCondition,
    other: ScopedColumn,
    table: &ScopedTable<'_>,
    scope: &NameScope<'_>,
) -> Option<ScopedColumn> {
    let [key, equal] = equal_keys(table.number, condition, scope)?;
    let is_unique = table.table.unique_keys.iter().any(|of| *of == [key.column]);
    (equal == other && is_unique).then_some(key)
}

/// The authors in rows that an integer literal selects, such as the reader's id.
fn blocked_list<'a>(
    scoped: &ScopedTable<'a>,
    author: ScopedColumn,
    conditions: &[&'a SelectCondition],
    scope: &NameScope<'a>,
) -> Option<AuthorList> {
    let columns = 0..scoped.table.columns.len();
    let of = |column| ScopedColumn {
        table: scoped.number,
        column,
    };
    let whole = columns
        .map(of)
        .filter(|of| scope.class(*of) == ComparisonClass::Integer);
    let valued = whole.filter_map(|of| {
        let mut remaining = conditions.iter();
        Some((
            of,
            remaining.find(|one| equal_literal(one, scope, of).is_some())?,
        ))
    });
    // Of several columns, take one that shares a unique key with the author.
    let valued: Vec<_> = valued.collect();
    let is_keyed = |(of, _): &&(ScopedColumn, _)| {
        let mut unique = scoped.table.unique_keys.iter();
        unique.any(|key| key.contains(&of.column) && key.contains(&author.column))
    };
    let whose = valued.iter().find(is_keyed).or(valued.first())?;
    let list = author_list(scoped, author, *whose, conditions, scope)?;
    let fits = author.table == scoped.number
        && scope.class(author) == ComparisonClass::Integer
        && scoped.source.database.is_none();
    fits.then_some(AuthorList {
        admits: false,
        ..list
    })
}

/// `None`: the table is qualified by its database, so its conditions may be as well.
fn author_list<'a>(
    scoped: &ScopedTable<'a>,
    author: ScopedColumn,
    (whose, reader): (ScopedColumn, &&'a SelectCondition),
    local_conditions: &[&'a SelectCondition],
    scope: &NameScope<'a>,
) -> Option<AuthorList> {
    let others = local_conditions
        .iter()
        .filter(|one| !std::ptr::eq(**one, *reader));
    let conditions: Vec<_> = others.map(|one| one.words.clone()).collect();
    if scoped.source.database.is_some() && !conditions.is_empty() {
        return None;
    }
    let name = |of| Some(scope.column_schema(of)?.name.clone());
    let alias = scoped.source.alias.as_ref().unwrap_or(&scoped.source.table);
    Some(AuthorList {
        table: scoped.source.table.text.clone(),
        reader_column: name(whose)?,
        admits: true,
        copies: false,
        author_column: name(author)?,
        alias_word: alias.word,
        reader: equal_literal(reader, scope, whose)?,
        conditions,
    })
}

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

/// True for a condition without a column.
pub(crate) fn is_constant(condition: &SelectCondition) -> bool {
    uses_only(condition, &|_| false)
}

/// True for a condition on literals and accepted columns only.
pub(crate) fn uses_only(
    condition: &SelectCondition,
    accepts: &impl Fn(&ColumnReference) -> bool,
) -> bool {
    match &condition.kind {
        ConditionKind::And(all) | ConditionKind::Or(all) => {
            all.iter().all(|one| uses_only(one, accepts))
        }
        ConditionKind::Not(one) => uses_only(one, accepts),
        ConditionKind::Compare(left, _, right) => operands_use_only([left, right], accepts),
        ConditionKind::ComparePairs(left, _, right) => {
            operands_use_only(left.iter().chain(right), accepts)
        }
        ConditionKind::Between(operand, from, to, _) => {
            operands_use_only([operand, from, to], accepts)
        }
        ConditionKind::Null(operand, _)
        | ConditionKind::IsTruth(operand, ..)
        | ConditionKind::Like(operand, ..)
        | ConditionKind::In(operand, ..) => operands_use_only([operand], accepts),
        ConditionKind::Truth(column) => accepts(column),
        ConditionKind::InSubquery(..) | ConditionKind::Exists(_) => false,
    }
}

pub(crate) fn operands_use_only<'o>(
    operands: impl IntoIterator<Item = &'o Operand>,
    accepts: &impl Fn(&ColumnReference) -> bool,
) -> bool {
    operands.into_iter().all(|operand| match operand {
        Operand::Column(column) => accepts(column),
        Operand::Literal(_) => true,
        Operand::Coalesce(all) => operands_use_only(all, accepts),
        Operand::Now
        | Operand::Count(_)
        | Operand::Function(..)
        | Operand::Case(..)
        | Operand::Subquery(_)
        | Operand::Condition(_) => false,
    })
}

pub(crate) fn conjuncts_of(condition: &SelectCondition) -> Vec<&SelectCondition> {
    let mut all = Vec::new();
    conjuncts(condition, &mut all);
    all
}

/// A condition's text, with numbers in place of its parameters. `None`: a parameter is no number.
fn condition_text(statement: FeedStatement<'_>, range: &Range<usize>) -> Option<String> {
    let FeedStatement { text, words, .. } = statement;
    let range_words = words.words.get(range.clone())?;
    let mut condition = Vec::new();
    let mut from = range_words.first()?.start;
    for (at, word) in range.clone().zip(range_words) {
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
    condition.extend_from_slice(text.get(from..range_words.last()?.end)?);
    String::from_utf8(condition).ok()
}

/// True for a number of so few digits that every comparison of it is exact.
fn is_number(value: &[u8]) -> bool {
    (1..=15).contains(&value.len()) && value.iter().all(u8::is_ascii_digit)
}
