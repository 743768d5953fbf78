//! The newest message of each author, such as the last one of each conversation: `SELECT author, MAX(id) ... GROUP BY author`, joined back to
//! rows; `ROW_NUMBER()`; messages for which there is no newer one.
//!
//! The newest ids are cached numbers of single authors, as those of [`crate::count`]. They are the candidates, and the server's text is narrowed to
//! them where it looks for the newest. Of these, rows are shown and cached as those of ids in a list.

use std::ops::Range;

use crate::author_groups::AuthorColumns;
use crate::author_lists::AuthorList;
use crate::binding::FeedStatement;
use crate::count::{CountShape, NewestTime, count_shape};
use crate::equalities::conjuncts;
use crate::id_list::{IdOrder, shows_joined_keys};
use crate::query::{
    AggregateFunction, ColumnReference, ComparisonOperator, ConditionKind, FeedSelect, LargestKind,
    Literal, MessageCount, MessageSelection, NewestForm, NewestSelect, Operand, OrderKey,
    SelectCondition, SelectItem, SqlIdentifier, TableReference,
};
use crate::refusal::NarrowingRefusal;
use crate::row_dependencies::RowDependencies;
use crate::schema::{ComparisonClass, Schema};
use crate::scope::{NameScope, ScopedColumn};
use crate::shape::{FeedNames, StatementShape, message_column, select_shape, sort_column};
use crate::words::StatementWords;

/// A statement of the newest message of each author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestShape {
    /// The shape of the newest ids, by author.
    pub numbers: Box<StatementShape>,
    /// The literal that has to be 1, where rows are ranked.
    rank: Option<Literal>,
    /// The order of its rows.
    pub order: NewestOrder,
    /// No condition excludes one of the newest.
    pub shows_all: bool,
}

/// The order of the newest messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestOrder {
    /// A time of theirs comes before the id: the latest first if this is true.
    pub time_descending: Option<bool>,
    /// By the id, downwards if this is true. `None`: the server orders messages of one time.
    pub id_descending: Option<bool>,
}

impl NewestShape {
    /// True if its numbers are those that make it what it is.
    #[must_use]
    pub fn fits(&self, of: FeedStatement<'_>) -> bool {
        self.rank.is_none_or(|rank| of.number(rank) == Some(1))
    }

    fn new(
        numbers: StatementShape,
        rank: Option<Literal>,
        (order, time): (NewestOrder, Option<NewestTime>),
        rows: &StatementShape,
    ) -> NewestShape {
        let count = numbers.count.map(|count| count.with_newest_time(time));
        NewestShape {
            numbers: Box::new(StatementShape { count, ..numbers }),
            rank,
            order,
            shows_all: shows_all(rows),
        }
    }
}

/// The shape of a statement that reads a SELECT of the newest messages.
pub(crate) fn newest_shape(
    query: &FeedSelect,
    newest: &NewestSelect,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let numbers = numbers_shape(newest, words, feed, schema)?;
    let message = newest.message(feed).ok_or(NarrowingRefusal::Names)?;
    let Reading {
        mut rows,
        rank,
        is_derived,
    } = Reading::within(query, newest, message, feed)?;
    rows.selection = MessageSelection::Newest(newest.words.clone());
    rows.newest = None;
    let (shape, order) = rows_shape(&rows, words, feed, schema)?;
    let mut literal_checks = shape.literal_checks.clone();
    literal_checks.extend_from_slice(&numbers.literal_checks);
    Ok(StatementShape {
        sites: numbers.sites.clone(),
        literal_checks,
        zoned: shape.zoned || numbers.zoned,
        has_constant_subquery: shape.has_constant_subquery || numbers.has_constant_subquery,
        derived: is_derived,
        newest: Some(NewestShape::new(numbers, rank, order, &shape)),
        ..shape
    })
}

/// The shape of a statement of the messages for which there is no newer one of their author: by NOT EXISTS, or a LEFT JOIN that finds none.
pub(crate) fn unsurpassed_shape(
    query: &FeedSelect,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let is_simple = query.outer.is_none()
        && query.union.is_empty()
        && query.derived_names.is_none()
        && query.group.is_empty()
        && !query.distinct
        && feed.key.is_none();
    let rows = is_simple.then(|| without_newer(query, feed, schema));
    let rows = rows.flatten().ok_or(NarrowingRefusal::Structure)?;
    let (shape, order) = rows_shape(&rows, words, feed, schema)?;
    let dependencies = shape.row_dependencies.as_ref();
    let dependencies = dependencies.ok_or(NarrowingRefusal::Joins)?;
    // A bound would exclude messages that are cached without it.
    if !dependencies.bounds.is_empty() {
        return Err(NarrowingRefusal::Order);
    }
    let all_words = 0..words.words.len();
    let numbers = StatementShape {
        count: Some(CountShape::of_all(AggregateFunction::Newest)),
        row_dependencies: Some(RowDependencies::of_authors(
            all_words,
            dependencies.lists.clone(),
        )),
        replaceable_list: None,
        ..shape.clone()
    };
    let rows = RowDependencies {
        lists: Vec::new(),
        ..dependencies.clone()
    };
    Ok(StatementShape {
        newest: Some(NewestShape::new(numbers, None, order, &shape)),
        row_dependencies: Some(rows),
        replaceable_list: None,
        ..shape
    })
}

/// True if every message passes.
fn shows_all(shape: &StatementShape) -> bool {
    let dependencies = shape.row_dependencies.as_ref();
    dependencies.is_some_and(|it| it.is_unfiltered)
}

/// The shape of the rows, which can be cached, and their order.
fn rows_shape(
    rows: &FeedSelect,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<(StatementShape, (NewestOrder, Option<NewestTime>)), NarrowingRefusal> {
    // How computed columns are described depends on the plan, of which this is a part.
    if rows.items.iter().any(SelectItem::is_computed) {
        return Err(NarrowingRefusal::Structure);
    }
    let scope = NameScope::default().within(&rows.sources, schema)?;
    let id = message_column(feed, &scope, &feed.id)?;
    let (order, time) = NewestOrder::of(rows, &scope, id)?;
    let unordered = match &time {
        None => None,
        // The candidates are known, whatever their order.
        Some(_) => {
            let message = scope.table(id.table).ok_or(NarrowingRefusal::Names)?;
            let by_id = OrderKey::descending(message.source.column(&feed.id));
            Some(FeedSelect {
                order: vec![by_id],
                ..rows.clone()
            })
        }
    };
    let rows = unordered.as_ref().unwrap_or(rows);
    let (shape, _) = select_shape(rows, words, feed, &[], schema)?;
    let dependencies = shape.row_dependencies.as_ref();
    let is_cached = shape.postings.is_empty()
        && dependencies.is_some_and(|it| {
            rows.selection == MessageSelection::Authors || shows_joined_keys(it, rows, feed, &scope)
        });
    let shape = StatementShape {
        bounds: Vec::new(),
        replaceable_list: None,
        ..shape
    };
    is_cached
        .then_some((shape, (order, time)))
        .ok_or(NarrowingRefusal::Joins)
}

impl NewestOrder {
    /// The order by the id, or by a time of the message and maybe then by the id.
    fn of(
        rows: &FeedSelect,
        scope: &NameScope<'_>,
        id: ScopedColumn,
    ) -> Result<(NewestOrder, Option<NewestTime>), NarrowingRefusal> {
        let first = rows.order.first().ok_or(NarrowingRefusal::Order)?;
        if let Ok(by_id) = IdOrder::of(first, rows, scope, id) {
            let order = NewestOrder {
                time_descending: None,
                id_descending: Some(by_id == IdOrder::Descending),
            };
            return Ok((order, None));
        }
        let at = sort_column(first, rows, scope)?;
        let table = scope.table(at.table).filter(|_| at.table == id.table);
        let column = table.and_then(|scoped| scoped.table.columns.get(at.column));
        let column = column.filter(|column| !column.is_virtual);
        let column = column.ok_or(NarrowingRefusal::Order)?;
        let ComparisonClass::Moment(digits) = column.class else {
            return Err(NarrowingRefusal::Order);
        };
        if first.is_extreme || first.is_null {
            return Err(NarrowingRefusal::Order);
        }
        let second = rows.order.get(1);
        let by_id = second.and_then(|second| IdOrder::of(second, rows, scope, id).ok());
        let order = NewestOrder {
            time_descending: Some(first.descending),
            id_descending: by_id.map(|by_id| by_id == IdOrder::Descending),
        };
        let time = NewestTime {
            column: column.name.clone(),
            kind: LargestKind::Moment {
                digits,
                is_zoned: column.is_zoned,
            },
        };
        Ok((order, Some(time)))
    }
}

/// The shape of the newest ids, by author.
fn numbers_shape(
    newest: &NewestSelect,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let scope = NameScope::default().within(&newest.rows.sources, schema)?;
    let id = message_column(feed, &scope, &feed.id)?;
    let authors = AuthorColumns::of(&newest.rows, &scope, feed)?;
    // What it shows besides the id is what it groups by.
    let mut shown = newest.rows.group.iter().chain([&newest.author]);
    if !shown.all(|column| authors.contains(column)) || scope.resolve(&newest.id) != Ok(id) {
        return Err(NarrowingRefusal::Grouped);
    }
    let rows = FeedSelect {
        group: Vec::new(),
        ..newest.rows.clone()
    };
    let count = MessageCount::new(AggregateFunction::Newest, newest.from);
    count_shape(&rows, count, words, feed, schema)
}

/// The rows that a statement shows of the newest messages.
struct Reading {
    rows: FeedSelect,
    rank: Option<Literal>,
    is_derived: bool,
}

impl Reading {
    /// The SELECT is in FROM, in IN, or behind WITH.
    fn within(
        query: &FeedSelect,
        newest: &NewestSelect,
        message: &TableReference,
        feed: &FeedNames,
    ) -> Result<Reading, NarrowingRefusal> {
        let at = query.sources.iter().position(|source| source.is_page);
        let page = at.and_then(|at| query.sources.get(at));
        if page.is_some_and(|page| page.outer.is_some() || page.is_using) {
            return Err(NarrowingRefusal::Joins);
        }
        let mut rows = query.clone();
        if let (NewestForm::Ranked { items, rank }, Some(at), Some(page)) = (&newest.form, at, page)
        {
            if !shows_message(items, newest, message) {
                return Err(NarrowingRefusal::Structure);
            }
            let named = TableReference {
                alias: Some(page.alias.clone().unwrap_or_else(|| page.table.clone())),
                table: message.table.clone(),
                database: message.database.clone(),
                is_page: false,
                ..page.clone()
            };
            let first = take_conjunct(&mut rows, |condition| {
                first_rank(condition, named.reference_name(), rank)
            });
            rows.sources
                .get_mut(at)
                .map(|source| *source = named)
                .ok_or(NarrowingRefusal::Structure)?;
            return Ok(Reading {
                rank: Some(first.ok_or(NarrowingRefusal::Structure)?),
                rows,
                is_derived: true,
            });
        }
        let NewestForm::Grouped { items } = &newest.form else {
            return Err(NarrowingRefusal::Structure);
        };
        let own = rows.sources.iter().find(|source| {
            !source.is_page && source.outer.is_none() && source.table.text == feed.message
        });
        let own = own.cloned().ok_or(NarrowingRefusal::Names)?;
        let names = PageNames::of(items, newest, page);
        let is_own = |column: &ColumnReference, name: &str| {
            column.name.text.eq_ignore_ascii_case(name)
                && match column.qualifier.as_slice() {
                    [] => true,
                    [table] => table.text == own.reference_name(),
                    _ => false,
                }
        };
        let found = match page {
            None => take_conjunct(&mut rows, |condition| match &condition.kind {
                ConditionKind::InSubquery(Operand::Column(column), list, true) => {
                    let [page] = list.sources.as_slice() else {
                        return None;
                    };
                    let names = PageNames::of(items, newest, Some(page));
                    let shows_id = page.table.text.is_empty()
                        || list.columns.iter().all(|column| names.is_id(column));
                    let is_list = page.is_page && list.filter.is_none() && shows_id;
                    (is_list && is_own(column, &feed.id)).then_some(())
                }
                _ => None,
            }),
            Some(_) => {
                let joins = |condition: &SelectCondition,
                             is_page: &dyn Fn(&ColumnReference) -> bool,
                             name: &str| {
                    let (left, right) = equal_columns(condition)?;
                    let is_join = is_page(left) && is_own(right, name)
                        || is_page(right) && is_own(left, name);
                    is_join.then_some(())
                };
                let by_id = take_conjunct(&mut rows, |condition| {
                    joins(condition, &|column| names.is_qualified_id(column), &feed.id)
                });
                take_conjunct(&mut rows, |condition| {
                    let is_author = |column: &ColumnReference| names.is_qualified_author(column);
                    joins(condition, &is_author, &feed.author)
                });
                by_id
            }
        };
        found.ok_or(NarrowingRefusal::Structure)?;
        if let Some(at) = at {
            remove_table(&mut rows, at);
        }
        // The newest id is the message's own.
        for key in &mut rows.order {
            if page.is_some() && names.is_qualified_id(&key.column) && !key.is_extreme {
                key.column = own.column(&feed.id);
            }
        }
        Ok(Reading {
            rows,
            rank: None,
            is_derived: page.is_some(),
        })
    }
}

/// The names that a SELECT in FROM gives its columns.
struct PageNames<'a> {
    table: Option<&'a str>,
    id: Option<&'a str>,
    author: Option<&'a str>,
}

impl<'a> PageNames<'a> {
    fn of(
        items: &'a [(bool, Option<SqlIdentifier>)],
        newest: &'a NewestSelect,
        page: Option<&'a TableReference>,
    ) -> PageNames<'a> {
        let item = |of_id: bool| {
            let mut items = items.iter().filter(move |(is_id, _)| *is_id == of_id);
            items.next()
        };
        let shown = newest.rows.group.first();
        let author = item(false).and_then(|(_, alias)| match alias {
            Some(alias) => Some(alias.text.as_str()),
            None => shown.map(|column| column.name.text.as_str()),
        });
        PageNames {
            table: page.map(TableReference::reference_name),
            id: item(true).and_then(|(_, alias)| alias.as_ref().map(|name| name.text.as_str())),
            author,
        }
    }

    fn is_id(&self, column: &ColumnReference) -> bool {
        column.qualifier.is_empty() && names(column, self.id) || self.is_qualified_id(column)
    }

    fn is_qualified_id(&self, column: &ColumnReference) -> bool {
        self.qualifies(column) && names(column, self.id)
    }

    fn is_qualified_author(&self, column: &ColumnReference) -> bool {
        self.qualifies(column) && names(column, self.author)
    }

    fn qualifies(&self, column: &ColumnReference) -> bool {
        matches!(column.qualifier.as_slice(), [table] if Some(table.text.as_str()) == self.table)
    }
}

fn names(column: &ColumnReference, name: Option<&str>) -> bool {
    name.is_some_and(|name| column.name.text.eq_ignore_ascii_case(name))
}

/// Both columns of an equality.
fn equal_columns(condition: &SelectCondition) -> Option<(&ColumnReference, &ColumnReference)> {
    match &condition.kind {
        ConditionKind::Compare(
            Operand::Column(left),
            ComparisonOperator::Equal,
            Operand::Column(right),
        ) => Some((left, right)),
        _ => None,
    }
}

/// The number of `rank = 1`.
fn first_rank(condition: &SelectCondition, table: &str, rank: &str) -> Option<Literal> {
    let ConditionKind::Compare(
        Operand::Column(column),
        ComparisonOperator::Equal,
        Operand::Literal(number),
    ) = &condition.kind
    else {
        return None;
    };
    let is_of_table = match column.qualifier.as_slice() {
        [] => true,
        [own] => own.text == table,
        _ => false,
    };
    (is_of_table && column.name.text.eq_ignore_ascii_case(rank)).then_some(*number)
}

/// True if a ranked SELECT shows columns of the message by their own names.
fn shows_message(items: &[SelectItem], newest: &NewestSelect, message: &TableReference) -> bool {
    let is_alone = newest.rows.sources.len() == 1;
    items.iter().all(|item| match item {
        SelectItem::All => is_alone,
        SelectItem::AllOf(names) => {
            matches!(names.as_slice(), [table] if table.text == message.reference_name())
        }
        SelectItem::Operand(Operand::Column(column), None) => match column.qualifier.as_slice() {
            [] => is_alone,
            [table] => table.text == message.reference_name(),
            _ => false,
        },
        SelectItem::Operand(..) => false,
    })
}

impl NewestSelect {
    /// The reference to the message's table.
    fn message(&self, feed: &FeedNames) -> Option<&TableReference> {
        let mut sources = self.rows.sources.iter();
        sources.find(|source| source.table.text == feed.message)
    }
}

/// Takes the first condition that holds in every row and that `read` knows out of a SELECT.
fn take_conjunct<T>(
    query: &mut FeedSelect,
    mut read: impl FnMut(&SelectCondition) -> Option<T>,
) -> Option<T> {
    let mut found = None;
    if let Some((at, filter)) = query.filter.take() {
        let rest = without_conjunct(filter, &mut read, &mut found);
        query.filter = rest.map(|filter| (at, filter));
    }
    let inner = query.sources.iter_mut().filter(|one| one.outer.is_none());
    for source in inner {
        if found.is_none()
            && let Some(on) = source.on.take()
        {
            source.on = without_conjunct(on, &mut read, &mut found);
        }
    }
    found
}

/// What is left of a condition.
fn without_conjunct<T>(
    condition: SelectCondition,
    read: &mut impl FnMut(&SelectCondition) -> Option<T>,
    found: &mut Option<T>,
) -> Option<SelectCondition> {
    if found.is_some() {
        return Some(condition);
    }
    let words = condition.words.clone();
    match condition.kind {
        ConditionKind::And(parts) => {
            let parts = parts.into_iter();
            let mut rest: Vec<SelectCondition> = parts
                .filter_map(|part| without_conjunct(part, read, found))
                .collect();
            match rest.len() {
                0 | 1 => rest.pop(),
                _ => Some(SelectCondition {
                    kind: ConditionKind::And(rest),
                    words,
                }),
            }
        }
        kind => {
            let condition = SelectCondition { kind, words };
            *found = read(&condition);
            found.is_none().then_some(condition)
        }
    }
}

/// Takes a table out of FROM, where later ones refer to positions.
fn remove_table(query: &mut FeedSelect, at: usize) {
    query.sources.remove(at);
    for source in &mut query.sources {
        source.outer = source.outer.map(|first| first - usize::from(first > at));
    }
}

/// The SELECT without the condition that there is no newer message of the author. `None`: it has no such condition.
fn without_newer(query: &FeedSelect, feed: &FeedNames, schema: &dyn Schema) -> Option<FeedSelect> {
    let mut rows = query.clone();
    let nullable = |source: &TableReference| {
        source.outer.is_some() && source.table.text == feed.message && !source.is_page
    };
    if let Some(at) = query.sources.iter().position(nullable) {
        let newer = query.sources.get(at)?;
        let scope = NameScope::default().within(&query.sources, schema).ok()?;
        let is_alone = newer.outer == Some(at)
            && !query
                .sources
                .iter()
                .any(|other| other.outer == Some(at) && other != newer);
        let on = conditions_of(newer.on.as_ref()?);
        let own = scope.innermost_tables().iter().find(|scoped| {
            scoped.source.table.text == feed.message && scoped.source.outer.is_none()
        })?;
        let is_newer = is_newer(&on, (at, own.number), feed, &scope)?;
        let id = scoped_column(&scope, at, &feed.id)?;
        let finds_none = take_conjunct(&mut rows, |condition| match &condition.kind {
            ConditionKind::Null(Operand::Column(column), true) => {
                (scope.resolve(column) == Ok(id)).then_some(())
            }
            _ => None,
        });
        (is_alone && is_newer).then_some(())?;
        finds_none?;
        remove_table(&mut rows, at);
        return Some(rows);
    }
    let scope = NameScope::default().within(&query.sources, schema).ok()?;
    let own = scope
        .innermost_tables()
        .iter()
        .find(|scoped| scoped.source.table.text == feed.message && scoped.source.outer.is_none())?;
    let own = own.number;
    take_conjunct(&mut rows, |condition| {
        let ConditionKind::Not(inner) = &condition.kind else {
            return None;
        };
        let ConditionKind::Exists(newer) = &inner.kind else {
            return None;
        };
        let [source] = newer.sources.as_slice() else {
            return None;
        };
        let is_message = source.table.text == feed.message && source.on.is_none();
        let inner = scope.within(&newer.sources, schema).ok()?;
        let [table] = inner.innermost_tables() else {
            return None;
        };
        let conditions = conditions_of(newer.filter.as_ref()?);
        let is_newer = is_newer(&conditions, (table.number, own), feed, &inner)?;
        (is_message && is_newer).then_some(())
    })?;
    Some(rows)
}

/// The conditions that are joined by AND.
fn conditions_of(condition: &SelectCondition) -> Vec<&SelectCondition> {
    let mut all = Vec::new();
    conjuncts(condition, &mut all);
    all
}

fn scoped_column(scope: &NameScope<'_>, table: usize, name: &str) -> Option<ScopedColumn> {
    let column = scope.table(table)?.table.column_position(name)?;
    Some(ScopedColumn { table, column })
}

/// True for exactly the conditions that a message of table `newer` has the author of table `own`'s, and a larger id.
fn is_newer(
    conditions: &[&SelectCondition],
    (newer, own): (usize, usize),
    feed: &FeedNames,
    scope: &NameScope<'_>,
) -> Option<bool> {
    let column = |table: usize, name: &str| scoped_column(scope, table, name);
    let authors = [column(newer, &feed.author)?, column(own, &feed.author)?];
    let ids = [column(newer, &feed.id)?, column(own, &feed.id)?];
    let [one, other] = conditions else {
        return Some(false);
    };
    let compared = |condition: &SelectCondition| match &condition.kind {
        ConditionKind::Compare(Operand::Column(left), by, Operand::Column(right)) => {
            Some((scope.resolve(left).ok()?, *by, scope.resolve(right).ok()?))
        }
        _ => None,
    };
    let is_same_author = |condition: &SelectCondition| {
        matches!(compared(condition), Some((left, ComparisonOperator::Equal, right))
            if [left, right] == authors || [right, left] == authors)
    };
    let is_later = |condition: &SelectCondition| match compared(condition) {
        Some((left, ComparisonOperator::Greater, right)) => [left, right] == ids,
        Some((left, ComparisonOperator::Less, right)) => [right, left] == ids,
        _ => false,
    };
    Some(is_same_author(one) && is_later(other) || is_same_author(other) && is_later(one))
}

impl RowDependencies {
    /// Numbers of single authors, which depend on nothing else in the statement but on lists of authors.
    fn of_authors(words: Range<usize>, lists: Vec<AuthorList>) -> RowDependencies {
        RowDependencies {
            independent_words: vec![words],
            bounds: Vec::new(),
            is_unfiltered: true,
            joined_rows: Vec::new(),
            lists,
        }
    }
}
