//! The shape of a feed's SELECT: its authors, order and page bounds, and how it may be narrowed.

use std::ops::Range;

use crate::authors::{AuthorSearch, AuthorSelection, FollowNames};
use crate::bounds::{self, OrderColumns, PageBound};
use crate::definition::TieOrder;
use crate::equalities::{ColumnEqualities, conditions_of_every_row};
use crate::join_cardinality;
use crate::plain_check::{LiteralCheck, PlainCheck};
use crate::plan_dependence::{self, PlanDependence};
use crate::postings::{PostingSearch, PostingSelection};
use crate::query::{
    ColumnReference, ConditionKind, FeedSelect, LiteralList, Operand, OrderKey, SelectCondition,
    SelectItem,
};
use crate::refusal::NarrowingRefusal;
use crate::row_dependencies::{self, RowDependencies};
use crate::schema::{ComparisonClass, Schema};
use crate::scope::{NameScope, ScopedColumn, ScopedTable};
use crate::words::StatementWords;

/// The names of a feed's tables and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedNames {
    /// The database by which a statement may qualify its tables.
    pub database: Option<String>,
    /// The table of messages.
    pub message: String,
    /// Its primary key.
    pub id: String,
    /// The column of the author.
    pub author: String,
    /// The column that orders pages, newest first; `None`: the id alone.
    pub key: Option<String>,
    /// The order of messages with equal keys.
    pub ties: TieOrder,
    /// The follow table.
    pub follow: Option<FollowNames>,
}

/// A feed's statement by its template. Positions are indexes of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementShape {
    /// The word by which the statement refers to the table of messages.
    pub qualifier: usize,
    /// The authors.
    pub authors: AuthorSelection,
    /// What it selects by the columns of other feeds over the same messages.
    pub postings: Vec<PostingSelection>,
    /// The list of authors that the ids may replace: a condition of its own, which alone selects the authors.
    pub replaceable_list: Option<Range<usize>>,
    /// The page's bounds.
    pub bounds: Vec<PageBound>,
    /// The position of LIMIT's number.
    pub limit: usize,
    /// The position of OFFSET's number.
    pub offset: Option<usize>,
    /// The position of the word WHERE, if there is one.
    pub filter: Option<usize>,
    /// The position of the clause after it.
    pub filter_end: usize,
    /// Only the key orders, so the server alone knows the order of messages with one key.
    pub ties: bool,
    /// The word before which the id is added as the last key of ORDER BY, where the feed orders messages of one key by it.
    pub tie_break: Option<usize>,
    /// Values to check in each statement.
    pub literal_checks: Vec<LiteralCheck>,
    /// A TIMESTAMP is compared.
    pub zoned: bool,
    /// It reads a SELECT in FROM.
    pub derived: bool,
    /// What plans change in its column definitions.
    pub plan_dependence: PlanDependence,
    /// A condition has a subquery that names only constants: EXPLAIN on MariaDB does not show its result.
    pub has_constant_subquery: bool,
    /// What rows depend on, if they can be cached.
    pub row_dependencies: Option<RowDependencies>,
}

/// Finds the shape of a SELECT that reads a feed.
///
/// # Errors
/// Why it cannot be narrowed.
pub fn shape(
    query: &FeedSelect,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    shape_of_postings(query, words, feed, &[], schema)
}

/// As [`shape`], where other feeds over the same messages may hold what this one does not.
///
/// # Errors
/// As [`shape`].
pub fn shape_of_postings(
    query: &FeedSelect,
    words: &StatementWords,
    feed: &FeedNames,
    others: &[FeedNames],
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let (written, inner) = (query, query.with_inner_joins(schema));
    let query = inner.as_ref().unwrap_or(written);
    let scope = NameScope::default().within(&query.sources, schema)?;
    let message = message_table(feed, &scope)?;
    let column = |name: &str| {
        let position = message
            .table
            .column_position(name)
            .ok_or(NarrowingRefusal::Names)?;
        Ok::<_, NarrowingRefusal>(ScopedColumn {
            table: message.number,
            column: position,
        })
    };
    let (id, author) = (column(&feed.id)?, column(&feed.author)?);
    let key = feed.key.as_deref().map(column).transpose()?;
    if scope.class(author) != ComparisonClass::Integer
        || scope.class(id) != ComparisonClass::Integer
    {
        return Err(NarrowingRefusal::Types);
    }
    let precision = order_precision(query, &scope, key, id)?;
    // The columns of a SELECT in FROM need not include the id.
    let adds_id = precision == OrderPrecision::KeyAlone
        && feed.ties == TieOrder::Id
        && query.derived_items.is_empty();
    let ties = precision != OrderPrecision::Total && !adds_id;
    let tie_break = adds_id.then_some(query.order_end);

    let mut plain = PlainCheck {
        words,
        schema,
        literal_checks: Vec::new(),
        zoned: false,
    };
    for item in query.items.iter().chain(&query.derived_items) {
        plain.item(item, &scope)?;
    }
    let filter = query.filter.as_ref().map(|(_, filter)| filter);
    let conditions = query.sources.iter().filter_map(|source| source.on.as_ref());
    for condition in conditions.chain(filter) {
        plain.condition(condition, &scope)?;
    }
    let holds = conditions_of_every_row(&query.sources, filter);
    let mut equal = ColumnEqualities::default();
    equal.add_conditions(&holds, &scope);
    let multiplicity = row_multiplicity(query, &scope, &equal, id)?;

    let search = AuthorSearch {
        schema,
        author,
        follow: feed.follow.as_ref(),
        database: feed.database.as_deref(),
    };
    let searches = PostingSearch {
        own: search,
        others: posting_searches(others, &search, message, &scope),
    };
    let selected = searches.of_rows(&holds, &scope, &equal);
    let (authors, postings) = selected.ok_or(NarrowingRefusal::Authors)?;
    let order = match key {
        Some(key) => OrderColumns { key, id: Some(id) },
        None => OrderColumns { key: id, id: None },
    };
    let analysis = row_dependencies::DependencyAnalysis {
        scope: &scope,
        search: &search,
        authors: &authors,
        order,
    };
    let dependencies = analysis
        .row_dependencies(query, &holds)
        .filter(|_| !ties && postings.is_empty() && multiplicity == RowMultiplicity::One);
    // Plans are made of the joins as written.
    let written_scope = NameScope::default().within(&written.sources, schema)?;
    let written_holds = conditions_of_every_row(&written.sources, filter);
    let mut written_equal = ColumnEqualities::default();
    written_equal.add_conditions(&written_holds, &written_scope);
    let statement = plan_dependence::SelectAnalysis {
        query: written,
        scope: &written_scope,
        schema,
        equal: &written_equal,
        holds: &written_holds,
    };
    Ok(StatementShape {
        plan_dependence: statement.plan_dependence(),
        has_constant_subquery: statement.has_constant_subquery(),
        row_dependencies: dependencies,
        qualifier: match &message.source.alias {
            Some(alias) => alias.word,
            None => message.source.table.word,
        },
        replaceable_list: replaceable_list(&authors, filter, author, &scope)
            .filter(|_| postings.is_empty()),
        authors,
        postings,
        bounds: holds
            .iter()
            .flat_map(|condition| bounds::bounds_of(condition, order, &scope))
            .collect(),
        limit: query.limit,
        offset: query.offset,
        filter: query.filter.as_ref().map(|(at, _)| *at),
        filter_end: query.filter_end,
        ties,
        tie_break,
        literal_checks: plain.literal_checks,
        zoned: plain.zoned,
        derived: !query.derived_items.is_empty(),
    })
}

/// Finds the table of messages: it is in FROM once, and on no nullable side.
fn message_table<'s, 'a>(
    feed: &FeedNames,
    scope: &'s NameScope<'a>,
) -> Result<&'s ScopedTable<'a>, NarrowingRefusal> {
    let is = |scoped: &&ScopedTable<'_>| {
        let database = scoped.source.database.as_ref().map(|name| &name.text);
        scoped.source.table.text == feed.message
            && (database.is_none() || database == feed.database.as_ref())
    };
    let mut all = scope.innermost_tables().iter().filter(is);
    match (all.next(), all.next()) {
        (Some(message), None) if message.source.outer.is_none() => Ok(message),
        (None, _) => Err(NarrowingRefusal::Names),
        _ => Err(NarrowingRefusal::Joins),
    }
}

/// The searches by the columns of other feeds.
fn posting_searches<'a>(
    others: &'a [FeedNames],
    own: &AuthorSearch<'a>,
    message: &ScopedTable<'_>,
    scope: &NameScope<'_>,
) -> Vec<(usize, AuthorSearch<'a>)> {
    let search = |(feed, names): (usize, &'a FeedNames)| {
        let author = ScopedColumn {
            table: message.number,
            column: message.table.column_position(&names.author)?,
        };
        let search = AuthorSearch {
            author,
            follow: names.follow.as_ref(),
            ..*own
        };
        (scope.class(author) == ComparisonClass::Integer).then_some((feed, search))
    };
    others.iter().enumerate().filter_map(search).collect()
}

/// What an order says about messages with equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OrderPrecision {
    /// The id orders them.
    Total,
    /// Nothing.
    KeyAlone,
    /// Other columns order them, or some of them.
    KeyAndOthers,
}

/// Checks that the order is the feed's, newest first.
fn order_precision(
    query: &FeedSelect,
    scope: &NameScope<'_>,
    key: Option<ScopedColumn>,
    id: ScopedColumn,
) -> Result<OrderPrecision, NarrowingRefusal> {
    let mut order: Vec<(ScopedColumn, bool)> = Vec::with_capacity(query.order.len());
    for one in &query.order {
        let of = sort_column(one, query, scope)?;
        // A column that repeats sorts nothing more.
        if !order.iter().any(|(before, _)| *before == of) {
            order.push((of, one.descending));
        }
    }
    let newest_first = |column: ScopedColumn, at: usize| order.get(at) == Some(&(column, true));
    match key {
        None if newest_first(id, 0) => Ok(OrderPrecision::Total),
        Some(key) if newest_first(key, 0) && newest_first(id, 1) => Ok(OrderPrecision::Total),
        Some(key) if newest_first(key, 0) && order.len() == 1 => Ok(OrderPrecision::KeyAlone),
        Some(key) if newest_first(key, 0) => Ok(OrderPrecision::KeyAndOthers),
        _ => Err(NarrowingRefusal::Order),
    }
}

/// The column that a key of ORDER BY sorts by. A name without a table may be an alias of the reply.
fn sort_column(
    key: &OrderKey,
    query: &FeedSelect,
    scope: &NameScope<'_>,
) -> Result<ScopedColumn, NarrowingRefusal> {
    let name = &key.column.name.text;
    if !key.column.qualifier.is_empty() {
        return scope.resolve(&key.column);
    }
    let aliased = query.items.iter().filter_map(|item| match item {
        SelectItem::Operand(operand, Some(alias)) if alias.text.eq_ignore_ascii_case(name) => {
            Some(operand)
        }
        _ => None,
    });
    // If a table has a column of this name, the alias has to mean that column.
    let is_column = scope
        .innermost_tables()
        .iter()
        .any(|scoped| scoped.table.column_position(name).is_some());
    let mut resolved = is_column.then(|| scope.resolve(&key.column)).transpose()?;
    for operand in aliased {
        let Operand::Column(column) = operand else {
            return Err(NarrowingRefusal::Order);
        };
        let of = scope.resolve(column)?;
        if resolved.is_some_and(|found| found != of) {
            return Err(NarrowingRefusal::Order);
        }
        resolved = Some(of);
    }
    resolved.ok_or(NarrowingRefusal::Names)
}

/// How many rows a message may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowMultiplicity {
    /// One at most.
    One,
    /// Several that are equal: no order tells them apart.
    Copies,
}

/// Finds out how many rows a message may have: one by the keys of joined tables, or by DISTINCT or GROUP BY over columns of such tables;
/// or copies, where no column of the other tables is shown.
fn row_multiplicity(
    query: &FeedSelect,
    scope: &NameScope<'_>,
    equal: &ColumnEqualities,
    id: ScopedColumn,
) -> Result<RowMultiplicity, NarrowingRefusal> {
    let single = join_cardinality::single_row_tables(scope, equal, id.table);
    let only = |column: &ColumnReference| {
        scope
            .resolve(column)
            .is_ok_and(|of| single.contains(&of.table))
    };
    let of_single = |item: &SelectItem| match item {
        SelectItem::Operand(operand, _) => {
            !operand.has_subquery() && operand.columns().into_iter().all(only)
        }
        SelectItem::All | SelectItem::AllOf(_) => scope
            .shown_tables(item)
            .all(|scoped| single.contains(&scoped.number)),
    };
    let is_id = |item: &SelectItem| match item {
        SelectItem::Operand(Operand::Column(column), _) => scope.resolve(column) == Ok(id),
        _ => {
            let hidden = scope.column_schema(id).is_none_or(|facts| facts.is_hidden);
            !hidden
                && scope
                    .shown_tables(item)
                    .any(|scoped| scoped.number == id.table)
        }
    };
    let counts = |item: &SelectItem| matches!(item, SelectItem::Operand(Operand::Count(_), _));
    if query.group.is_empty() && query.items.iter().any(counts) {
        return Err(NarrowingRefusal::Grouped);
    }
    if !query.group.is_empty() {
        let by_id = query
            .group
            .iter()
            .any(|column| scope.resolve(column) == Ok(id));
        // DISTINCT makes one row of messages that show the same.
        let merges = query.distinct && !query.items.iter().any(is_id);
        if !by_id || merges || !query.group.iter().all(only) {
            return Err(NarrowingRefusal::Grouped);
        }
        return match query.items.iter().all(of_single) {
            true => Ok(RowMultiplicity::One),
            false => Err(NarrowingRefusal::Grouped),
        };
    }
    if query.distinct {
        let distinct = query.items.iter().any(is_id) && query.items.iter().all(of_single);
        return match distinct {
            true => Ok(RowMultiplicity::One),
            false => Err(NarrowingRefusal::Joins),
        };
    }
    match single.len() == scope.innermost_tables().len() {
        true => Ok(RowMultiplicity::One),
        false if query.items.iter().all(of_single) => Ok(RowMultiplicity::Copies),
        false => Err(NarrowingRefusal::Joins),
    }
}

/// The list that alone selects the authors, if it is a condition of WHERE by itself.
fn replaceable_list(
    authors: &AuthorSelection,
    filter: Option<&SelectCondition>,
    author: ScopedColumn,
    scope: &NameScope<'_>,
) -> Option<Range<usize>> {
    if !authors.readers.is_empty() || !authors.single.is_empty() {
        return None;
    }
    let [author_list] = authors.lists.as_slice() else {
        return None;
    };
    let filter = filter?;
    let all = match &filter.kind {
        ConditionKind::And(all) => all.as_slice(),
        _ => std::slice::from_ref(filter),
    };
    let matching = all
        .iter()
        .find(|condition| is_author_list(condition, author_list, author, scope));
    matching.map(|condition| condition.words.clone())
}

fn is_author_list(
    condition: &SelectCondition,
    author_list: &LiteralList,
    author: ScopedColumn,
    scope: &NameScope<'_>,
) -> bool {
    let ConditionKind::In(Operand::Column(column), list, true) = &condition.kind else {
        return false;
    };
    list == author_list && scope.resolve(column) == Ok(author)
}
