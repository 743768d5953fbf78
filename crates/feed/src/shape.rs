//! The shape of a feed's SELECT: its authors, order and page bounds, and how it may be narrowed.

use std::ops::Range;

use crate::author_groups::author_groups_shape;
use crate::authors::{AuthorSearch, AuthorSelection, FollowNames};
use crate::bounds::{self, OrderColumns, PageBound};
use crate::count::{CountShape, count_shape};
use crate::definition::TieOrder;
use crate::equalities::{ColumnEqualities, conditions_of_every_row};
use crate::id_list::{IdListShape, id_list_shape};
use crate::newest::{NewestShape, newest_shape, unsurpassed_shape};
use crate::outer_select::{PageColumns, outer_shape};
use crate::plain_check::{LiteralCheck, PlainCheck};
use crate::plan_dependence::{self, PlanDependence};
use crate::postings::{self, PostingSearch, PostingSelection, SelectionByFeed};
use crate::query::{
    ConditionKind, FeedSelect, LiteralList, MessageSelection, Operand, OrderKey, SelectCondition,
    SelectItem, SqlIdentifier,
};
use crate::refusal::NarrowingRefusal;
use crate::row_dependencies::{self, RowDependencies};
use crate::row_multiplicity::{RowMultiplicity, row_multiplicity};
use crate::schema::{ComparisonClass, Schema};
use crate::scope::{NameScope, ScopedColumn, ScopedTable};
use crate::template::TableName;
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
    /// Where the table of messages is read: once in each SELECT of a UNION.
    pub sites: Vec<NarrowingSite>,
    /// The word that names the table of messages whose rows are shown.
    pub shown_table: usize,
    /// The authors.
    pub authors: AuthorSelection,
    /// What it selects by the columns of other feeds over the same messages.
    pub postings: Vec<PostingSelection>,
    /// The list of authors that the ids may replace: a condition of its own, which alone selects the authors.
    pub replaceable_list: Option<Range<usize>>,
    /// The page's bounds in each SELECT of a UNION.
    pub bounds: Vec<Vec<PageBound>>,
    /// The position of LIMIT's number, if it has a limit.
    pub limit: Option<usize>,
    /// The position of OFFSET's number.
    pub offset: Option<usize>,
    /// The positions of LIMIT's numbers of the SELECTs of a UNION: each is to have a whole page.
    pub branch_limits: Vec<usize>,
    /// Only the key orders, so the server alone knows the order of messages with one key.
    pub ties: bool,
    /// Other columns order messages of one key: candidates have to be all of a key's, or none.
    pub whole_keys: bool,
    /// Keys that are added to each ORDER BY, where the feed orders what that leaves equal.
    pub tie_breaks: Vec<TieBreak>,
    /// The word FROM of the page, where another SELECT is around it.
    pub page_in_outer: Option<usize>,
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
    /// Its messages are counted.
    pub count: Option<CountShape>,
    /// It names its messages by their ids.
    pub id_list: Option<IdListShape>,
    /// Its messages are the newest of their authors.
    pub newest: Option<NewestShape>,
}

/// A place in the statement that reads the table of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NarrowingSite {
    /// The word by which it refers to the table.
    pub qualifier: usize,
    /// The position of the word WHERE, if there is one.
    pub filter: Option<usize>,
    /// The position of the clause after it.
    pub filter_end: usize,
}

/// A place where a key is added to an ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TieBreak {
    /// The word after ORDER BY.
    pub at: usize,
    /// The key.
    pub column: TieColumn,
}

/// A key that is added to an ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TieColumn {
    /// The message's id, descending.
    Id,
    /// The message's id, ascending: the statement has no order.
    IdAscending,
    /// The message's id as a derived table names it, descending, with the word of that table's name.
    Derived(Option<usize>, String),
    /// A column of a joined table, ascending, with the word of that table's name: rows of one message come in its order.
    Joined(usize, String),
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
    if let Some(count) = query.count {
        return count_shape(query, count, words, feed, schema);
    }
    if let Some(groups) = &query.author_groups {
        let shape = author_groups_shape(query, groups, words, feed, schema);
        // It may be a page that groups by message.
        if shape.is_ok() || query.has_groups_only() {
            return shape;
        }
    }
    if let Some(newest) = &query.newest {
        return newest_shape(query, newest, words, feed, schema);
    }
    if let Ok(shape) = unsurpassed_shape(query, words, feed, schema) {
        return Ok(shape);
    }
    if query.limit.is_none() {
        return id_list_shape(query, words, feed, schema);
    }
    page_shape(query, words, feed, others, schema).or_else(|refusal| {
        let by_ids = id_list_shape(query, words, feed, schema);
        by_ids.map_err(|_| refusal)
    })
}

fn page_shape(
    query: &FeedSelect,
    words: &StatementWords,
    feed: &FeedNames,
    others: &[FeedNames],
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let known = |table: &TableName| {
        schema
            .table(table.database.as_deref(), &table.table)
            .is_some()
    };
    if query.outer.is_some() && !query.tables().iter().all(known) {
        return Err(NarrowingRefusal::Names);
    }
    let (mut shape, shown) = select_shape(query, words, feed, others, schema)?;
    for branch in &query.union {
        let (other, also_shown) = select_shape(branch, words, feed, others, schema)?;
        // Rows of one message in two SELECTs are equal, so that their order cannot be told apart.
        if shown.is_none() || shown != also_shown {
            return Err(NarrowingRefusal::Structure);
        }
        shape.join(other);
    }
    Ok(shape)
}

impl StatementShape {
    /// Adds another SELECT of a UNION.
    fn join(&mut self, other: StatementShape) {
        self.ties |= other.ties || self.derived_id() != other.derived_id();
        self.whole_keys |= other.whole_keys;
        self.authors = std::mem::take(&mut self.authors).union(other.authors);
        for posting in other.postings {
            postings::add_posting(&mut self.postings, posting);
        }
        self.sites.extend(other.sites);
        self.bounds.extend(other.bounds);
        self.branch_limits.extend(other.branch_limits);
        let own = other.tie_breaks.into_iter();
        self.tie_breaks
            .extend(own.filter(|one| one.column == TieColumn::Id));
        self.literal_checks.extend(other.literal_checks);
        self.zoned |= other.zoned;
        self.has_constant_subquery |= other.has_constant_subquery;
        self.replaceable_list = None;
        self.row_dependencies = None;
    }

    /// What the id is called outside of a derived table.
    fn derived_id(&self) -> Option<&TieColumn> {
        let mut columns = self.tie_breaks.iter().map(|one| &one.column);
        columns.find(|column| matches!(column, TieColumn::Derived(..)))
    }

    /// True where the feed, not the server, orders messages of one key.
    #[must_use]
    pub fn orders_messages(&self) -> bool {
        let mut columns = self.tie_breaks.iter().map(|one| &one.column);
        columns.any(|column| !matches!(column, TieColumn::Joined(..) | TieColumn::IdAscending))
    }

    /// True where the feed, not the server, orders what its ORDER BY leaves equal.
    #[must_use]
    pub fn orders_ties(&self) -> bool {
        !self.tie_breaks.is_empty()
    }
}

/// The shape of one SELECT, and the positions of the message's columns that it shows, if it shows nothing else.
pub(crate) fn select_shape(
    query: &FeedSelect,
    words: &StatementWords,
    feed: &FeedNames,
    others: &[FeedNames],
    schema: &dyn Schema,
) -> Result<(StatementShape, Option<Vec<usize>>), NarrowingRefusal> {
    let (written, inner) = (query, query.with_inner_joins(schema));
    let query = inner.as_ref().unwrap_or(written);
    // USING makes two columns one, which `*` shows once.
    let shows_all = query.items.iter().chain(&query.derived_items);
    if query.sources.iter().any(|source| source.is_using)
        && shows_all.into_iter().any(|item| *item == SelectItem::All)
    {
        return Err(NarrowingRefusal::NotUnderstood);
    }
    let scope = NameScope::default().within(&query.sources, schema)?;
    let message = message_table(feed, &scope)?;
    let column = |name: &str| message_column(feed, &scope, name);
    let (id, author) = (column(&feed.id)?, column(&feed.author)?);
    let key = feed.key.as_deref().map(column).transpose()?;
    if scope.class(author) != ComparisonClass::Integer
        || scope.class(id) != ComparisonClass::Integer
    {
        return Err(NarrowingRefusal::Types);
    }
    let filter = query.filter.as_ref().map(|(_, filter)| filter);
    let holds = conditions_of_every_row(&query.sources, filter);
    let mut equal = ColumnEqualities::default();
    equal.add_conditions(&holds, &scope);
    let by_authors = query.selection == MessageSelection::Authors;
    let has_unique_keys = equal.literal(author).is_some()
        && key.is_some_and(|key| are_unique(&message.table.unique_keys, [author, key]));
    let precision = match by_authors {
        true => order_precision(query, &scope, key, id)?,
        false => OrderPrecision::Total,
    };
    let precision = match has_unique_keys {
        true => OrderPrecision::Total,
        false => precision,
    };
    let lacks_id = matches!(
        precision,
        OrderPrecision::KeyAlone | OrderPrecision::KeyAndOthers
    );
    let mut ties = lacks_id;
    let mut tie_breaks = Vec::new();
    if lacks_id
        && feed.ties == TieOrder::Id
        && let Some(column) = tie_column(query, &scope, id, feed)
    {
        ties = false;
        let at = query.order_end;
        tie_breaks.push(TieBreak { at, column });
    }
    let orders_by_others = matches!(
        precision,
        OrderPrecision::KeyAndOthers | OrderPrecision::KeyOthersAndId
    );
    let whole_keys = orders_by_others && !ties;
    if let Some(page) = &query.branch_page {
        let branch = FeedSelect {
            items: page.items.clone(),
            order: page.order.clone(),
            ..FeedSelect::default()
        };
        match order_precision(&branch, &scope, key, id)? {
            OrderPrecision::Total => {}
            OrderPrecision::KeyAlone if feed.ties == TieOrder::Id => tie_breaks.push(TieBreak {
                at: page.order_end,
                column: TieColumn::Id,
            }),
            OrderPrecision::KeyAlone
            | OrderPrecision::KeyAndOthers
            | OrderPrecision::KeyOthersAndId => ties = true,
        }
    }

    let mut plain = PlainCheck {
        words,
        schema,
        literal_checks: Vec::new(),
        zoned: false,
    };
    for item in query.items.iter().chain(&query.derived_items) {
        plain.item(item, &scope)?;
    }
    for one in &query.order {
        let of = sort_column(one, query, &scope)?;
        plain.zoned |= Some(of) != key && scope.is_zoned(of);
    }
    for column in &query.inner_columns {
        scope.resolve(column)?;
    }
    let conditions = query.sources.iter().filter_map(|source| source.on.as_ref());
    for condition in conditions.chain(filter) {
        plain.condition(condition, &scope)?;
    }
    let multiplicity = row_multiplicity(query, &scope, &equal, id, feed.ties)?;
    if let RowMultiplicity::Ordered(keys) = &multiplicity {
        // Around the page, or in a UNION, rows of one message are not told apart.
        if query.derived_names.is_some() || query.outer.is_some() || query.branch_page.is_some() {
            return Err(NarrowingRefusal::Joins);
        }
        tie_breaks.extend(keys.iter().map(|column| TieBreak {
            at: query.order_end,
            column: column.clone(),
        }));
    }
    if let Some(outer) = &query.outer {
        let has_copies = multiplicity == RowMultiplicity::Copies;
        let page = PageColumns::of(query, &scope, (key, id), has_copies);
        let around = outer_shape(outer, &page, (feed, ties || has_unique_keys), words, schema)?;
        tie_breaks.extend(around.tie_break);
        plain.literal_checks.extend(around.literal_checks);
        plain.zoned |= around.zoned;
    }

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
    let selected = match by_authors {
        true => searches.of_rows(&holds, &scope, &equal),
        false => Some(SelectionByFeed::default()),
    };
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
        id,
    };
    let dependencies = analysis.row_dependencies(query, &holds).filter(|_| {
        !ties
            && !whole_keys
            && postings.is_empty()
            && !query
                .sources
                .iter()
                .any(|source| source.is_using || source.is_flattened)
            && query.outer.is_none()
            && multiplicity == RowMultiplicity::One
    });
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
        listed: matches!(query.selection, MessageSelection::Ids(_)).then_some(id),
    };
    let shown = shown_columns(query, &scope, message);
    let outer = query.outer.as_deref();
    let qualifier = match &message.source.alias {
        Some(alias) => alias.word,
        None => message.source.table.word,
    };
    let shape = StatementShape {
        plan_dependence: match outer {
            Some(outer) => plan_dependence::of_outer(outer),
            None => statement.plan_dependence(),
        },
        has_constant_subquery: statement.has_constant_subquery()
            || outer.is_some_and(plan_dependence::has_subquery_around),
        row_dependencies: dependencies,
        count: None,
        id_list: None,
        newest: None,
        shown_table: qualifier,
        sites: vec![NarrowingSite {
            qualifier,
            filter: query.filter.as_ref().map(|(at, _)| *at),
            filter_end: query.filter_end,
        }],
        replaceable_list: replaceable_list(&authors, filter, author, &scope)
            .filter(|_| postings.is_empty() && outer.is_none()),
        authors,
        postings,
        bounds: vec![
            holds
                .iter()
                .flat_map(|condition| bounds::bounds_of(condition, order, &scope))
                .collect(),
        ],
        limit: query.limit,
        offset: query.offset,
        branch_limits: query.branch_page.iter().map(|page| page.limit).collect(),
        ties,
        whole_keys,
        tie_breaks,
        page_in_outer: outer.map(|outer| outer.page_from),
        literal_checks: plain.literal_checks,
        zoned: plain.zoned,
        derived: query.derived_names.is_some() || outer.is_some(),
    };
    Ok((shape, shown))
}

/// What an ORDER BY calls the id; `None`: it has no name there.
fn tie_column(
    query: &FeedSelect,
    scope: &NameScope<'_>,
    id: ScopedColumn,
    feed: &FeedNames,
) -> Option<TieColumn> {
    let Some(names) = &query.derived_names else {
        return Some(TieColumn::Id);
    };
    let name = match &names.columns {
        Some(columns) => {
            let is_id = |item: &SelectItem| match item {
                SelectItem::Operand(Operand::Column(column), _) => scope.resolve(column) == Ok(id),
                _ => false,
            };
            columns.get(query.derived_items.iter().position(is_id)?)?
        }
        None => shown_name(&query.derived_items, scope, id).map(|_| &feed.id)?,
    };
    Some(TieColumn::Derived(names.alias, name.clone()))
}

/// The name under which one of these columns of the reply shows a column.
fn shown_name(items: &[SelectItem], scope: &NameScope<'_>, of: ScopedColumn) -> Option<String> {
    match items.iter().find(|item| scope.shows(item, of))? {
        SelectItem::Operand(Operand::Column(column), alias) => {
            Some(alias.as_ref().unwrap_or(&column.name).text.clone())
        }
        _ => Some(scope.column_schema(of)?.name.clone()),
    }
}

/// The positions of the message's columns that a SELECT of a UNION shows. `None`: it shows something else.
fn shown_columns(
    query: &FeedSelect,
    scope: &NameScope<'_>,
    message: &ScopedTable<'_>,
) -> Option<Vec<usize>> {
    let mut shown = Vec::new();
    for item in &query.derived_items {
        match item {
            SelectItem::Operand(Operand::Column(column), _) => {
                let of = scope.resolve(column).ok()?;
                shown.push((of.table == message.number).then_some(of.column)?);
            }
            SelectItem::Operand(..) => return None,
            SelectItem::All | SelectItem::AllOf(_) => {
                let mut tables = scope.shown_tables(item);
                let only = tables.all(|scoped| scoped.number == message.number);
                only.then_some(())?;
                shown.extend(0..message.table.columns.len());
            }
        }
    }
    Some(shown)
}

/// A column of the message.
pub(crate) fn message_column(
    feed: &FeedNames,
    scope: &NameScope<'_>,
    column: &str,
) -> Result<ScopedColumn, NarrowingRefusal> {
    let message = message_table(feed, scope)?;
    let position = message.table.column_position(column);
    Ok(ScopedColumn {
        table: message.number,
        column: position.ok_or(NarrowingRefusal::Names)?,
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
        (Some(message), None) if message.source.outer.is_none() && !message.source.is_flattened => {
            Ok(message)
        }
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
    /// Other columns order them, and the id is one of these.
    KeyOthersAndId,
}

/// True if no two rows of the table have the same values in these columns.
fn are_unique(unique_keys: &[Vec<usize>], columns: [ScopedColumn; 2]) -> bool {
    let is_listed = |at: &usize| columns.iter().any(|of| of.column == *at);
    unique_keys.iter().any(|key| key.iter().all(is_listed))
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
        // Of a group of one message, an extreme is the message's own.
        if one.is_extreme && (query.group.is_empty() || of.table != id.table) {
            return Err(NarrowingRefusal::Order);
        }
        // NULL comes last where the newest come first, and a column without it sorts nothing by it.
        if one.is_null {
            let is_outer = |scoped: &ScopedTable<'_>| scoped.source.outer.is_some();
            let is_nullable = scope.table(of.table).is_none_or(is_outer)
                || scope
                    .column_schema(of)
                    .is_none_or(|facts| facts.is_nullable);
            let leads = order.is_empty() && Some(of) == key && !one.descending;
            match is_nullable && !leads {
                true => return Err(NarrowingRefusal::Order),
                false => continue,
            }
        }
        // A column that repeats sorts nothing more.
        if !order.iter().any(|(before, _)| *before == of) {
            order.push((of, one.descending));
        }
        // MariaDB warns of values that are longer than it sorts by.
        if matches!(
            scope.class(of),
            ComparisonClass::Text | ComparisonClass::Other
        ) {
            return Err(NarrowingRefusal::Order);
        }
    }
    let newest_first = |column: ScopedColumn, at: usize| order.get(at) == Some(&(column, true));
    match key {
        None if newest_first(id, 0) => Ok(OrderPrecision::Total),
        Some(key) if newest_first(key, 0) && newest_first(id, 1) => Ok(OrderPrecision::Total),
        Some(key) if newest_first(key, 0) && order.len() == 1 => Ok(OrderPrecision::KeyAlone),
        Some(key) if newest_first(key, 0) => match order.iter().any(|(of, _)| *of == id) {
            true => Ok(OrderPrecision::KeyOthersAndId),
            false => Ok(OrderPrecision::KeyAndOthers),
        },
        _ => Err(NarrowingRefusal::Order),
    }
}

/// The column that a key of ORDER BY sorts by. A name without a table may be an alias of the reply.
pub(crate) fn sort_column(
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
    // If a table has a column of this name, the alias has to mean that column. Of several, it is the one that the reply shows.
    let tables = scope.innermost_tables().iter();
    let named = tables.filter(|scoped| scoped.table.column_position(name).is_some());
    let mut resolved = match named.count() {
        0 => None,
        1 => Some(scope.resolve(&key.column)?),
        _ => Some(shown_column(name, query, scope).ok_or(NarrowingRefusal::Names)?),
    };
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

/// The only column of this name that a reply of whole tables shows.
fn shown_column(name: &str, query: &FeedSelect, scope: &NameScope<'_>) -> Option<ScopedColumn> {
    let mut columns = Vec::new();
    for item in &query.items {
        match item {
            SelectItem::Operand(Operand::Column(column), alias) => {
                let shown = alias.as_ref().unwrap_or(&column.name);
                if shown.text.eq_ignore_ascii_case(name) {
                    let is_own = column.name.text.eq_ignore_ascii_case(name);
                    is_own.then_some(())?;
                    columns.push(scope.resolve(column).ok()?);
                }
            }
            SelectItem::Operand(_, alias) => {
                let is_named = |alias: &SqlIdentifier| alias.text.eq_ignore_ascii_case(name);
                alias
                    .as_ref()
                    .is_none_or(|alias| !is_named(alias))
                    .then_some(())?;
            }
            SelectItem::All | SelectItem::AllOf(_) => {
                columns.extend(scope.shown_tables(item).filter_map(|scoped| {
                    let column = scoped.table.column_position(name)?;
                    let facts = scoped.table.columns.get(column)?;
                    let table = scoped.number;
                    (!facts.is_hidden && !facts.is_virtual)
                        .then_some(ScopedColumn { table, column })
                }));
            }
        }
    }
    match columns.as_slice() {
        [only] => Some(*only),
        _ => None,
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
