//! Messages that a statement names by their ids: `WHERE id IN (1, 2, 3)`, as ORMs load what a page refers to.
//!
//! Without an ORDER BY they come by the primary key, where the server cannot but read them by it; else in an order that the feed decides
//! (`ties = "id"`), or the server.
//!
//! The list itself says which messages may be shown, so memory needs to know none. Such a statement is served from cached rows, or not at all.

use crate::binding::{FeedColumnTypes, FeedStatement};
use crate::definition::TieOrder;
use crate::equalities::conditions_of_every_row;
use crate::joined_tables::ReferenceKeySource;
use crate::query::{
    ConditionKind, FeedSelect, LiteralList, MessageSelection, Operand, OrderKey, SelectCondition,
    SelectItem,
};
use crate::refusal::NarrowingRefusal;
use crate::row_dependencies::RowDependencies;
use crate::schema::Schema;
use crate::scope::{NameScope, ScopedColumn};
use crate::shape::{
    FeedNames, StatementShape, TieBreak, TieColumn, message_column, select_shape, sort_column,
};
use crate::words::StatementWords;

/// A statement that names its messages by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdListShape {
    list: LiteralList,
    order: IdOrder,
    /// With one id, the server may read rows while it plans, and describe columns by what it finds.
    needs_several: bool,
}

/// The order of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdOrder {
    Ascending,
    Descending,
    /// The server's own: known of one message alone.
    Unknown,
}

/// The shape of a statement that names its messages by their ids, and whose rows can be cached.
pub(crate) fn id_list_shape(
    query: &FeedSelect,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let is_within = query.outer.is_some() || query.derived_names.is_some();
    let is_one_row = query.distinct || !query.group.is_empty();
    if is_within || is_one_row || !query.union.is_empty() {
        return Err(NarrowingRefusal::Structure);
    }
    let scope = NameScope::default().within(&query.sources, schema)?;
    let id = message_column(feed, &scope, &feed.id)?;
    let filter = query.filter.as_ref().map(|(_, filter)| filter);
    let holds = conditions_of_every_row(&query.sources, filter);
    let list = holds.iter().find_map(|one| id_list_of(one, id, &scope));
    let list = list.ok_or(match query.order.is_empty() {
        true => NarrowingRefusal::Order,
        false => NarrowingRefusal::Limit,
    })?;
    let order = match query.order.first() {
        Some(first) => IdOrder::of(first, query, &scope, id)?,
        None if feed.ties == TieOrder::Id => IdOrder::Ascending,
        None if is_read_by_id(query, &scope, id) => IdOrder::Ascending,
        None => IdOrder::Unknown,
    };
    let page = FeedSelect {
        selection: MessageSelection::Ids(list.clone()),
        ..query.clone()
    };
    let (shape, _) = select_shape(&page, words, feed, &[], schema)?;
    let dependencies = shape.row_dependencies.as_ref();
    if !dependencies.is_some_and(|it| shows_joined_keys(it, query, feed, &scope)) {
        return Err(NarrowingRefusal::Joins);
    }
    let adds_order = query.order.is_empty() && order == IdOrder::Ascending;
    let tie_break = TieBreak {
        at: query.order_end,
        column: TieColumn::IdAscending,
    };
    Ok(StatementShape {
        tie_breaks: adds_order.then_some(tie_break).into_iter().collect(),
        bounds: Vec::new(),
        replaceable_list: None,
        id_list: Some(IdListShape {
            list: list.clone(),
            order,
            needs_several: query.sources.iter().any(|source| source.outer.is_some()),
        }),
        ..shape
    })
}

/// True if the rows show what refers to the rows that they are joined with: memory does not know it.
pub(crate) fn shows_joined_keys(
    dependencies: &RowDependencies,
    query: &FeedSelect,
    feed: &FeedNames,
    scope: &NameScope<'_>,
) -> bool {
    let shows = |column: &str| {
        let of = message_column(feed, scope, column);
        of.is_ok_and(|of| query.items.iter().any(|item| scope.shows(item, of)))
    };
    let mut rows = dependencies.joined_rows.iter();
    rows.all(|row| match &row.key_source {
        ReferenceKeySource::Author => false,
        ReferenceKeySource::Column(column) => shows(column),
    })
}

/// The list that holds the id, if the condition says that.
pub(crate) fn id_list_of<'q>(
    condition: &'q SelectCondition,
    id: ScopedColumn,
    scope: &NameScope<'_>,
) -> Option<&'q LiteralList> {
    match &condition.kind {
        ConditionKind::In(Operand::Column(column), list, true)
            if scope.resolve(column) == Ok(id) =>
        {
            Some(list)
        }
        _ => None,
    }
}

/// True if the server has to read the rows by the primary key, in its order: no other index has all that it needs, or finds rows by
/// another condition.
fn is_read_by_id(query: &FeedSelect, scope: &NameScope<'_>, id: ScopedColumn) -> bool {
    let [message] = scope.innermost_tables() else {
        return false;
    };
    let Some(indexes) = &message.table.secondary_indexes else {
        return false;
    };
    let mut filtered = Vec::new();
    if let Some((_, filter)) = &query.filter {
        filter.visit_all_columns(&mut |column| filtered.extend(scope.resolve(column)));
    }
    let columns = (0..message.table.columns.len()).map(|column| ScopedColumn { column, ..id });
    let needed: Vec<ScopedColumn> = columns
        .filter(|of| {
            let shows = |item: &SelectItem| match item {
                SelectItem::Operand(operand, _) => {
                    let mut columns = operand.columns().into_iter();
                    columns.any(|column| scope.resolve(column) == Ok(*of))
                }
                _ => scope.shows(item, *of),
            };
            filtered.contains(of) || query.items.iter().any(shows)
        })
        .collect();
    let has = |index: &[Option<usize>], of: &ScopedColumn| index.contains(&Some(of.column));
    let finds_rows = |index: &[Option<usize>]| {
        let is_expression = index.contains(&None);
        is_expression || filtered.iter().any(|of| *of != id && has(index, of))
    };
    let covers = |index: &[Option<usize>]| needed.iter().all(|of| *of == id || has(index, of));
    indexes
        .iter()
        .all(|index| !finds_rows(index) && !covers(index))
}

impl IdOrder {
    /// The id decides it, whatever keys follow.
    pub(crate) fn of(
        first: &OrderKey,
        query: &FeedSelect,
        scope: &NameScope<'_>,
        id: ScopedColumn,
    ) -> Result<IdOrder, NarrowingRefusal> {
        let is_id = !first.is_extreme && !first.is_null && sort_column(first, query, scope)? == id;
        match (is_id, first.descending) {
            (false, _) => Err(NarrowingRefusal::Order),
            (true, true) => Ok(IdOrder::Descending),
            (true, false) => Ok(IdOrder::Ascending),
        }
    }
}

impl IdListShape {
    /// Reads the ids, in the order of the statement's rows, each once.
    ///
    /// # Errors
    /// One is no plain number from 0 on, or their order is not known.
    pub fn bind(
        &self,
        of: FeedStatement<'_>,
        types: FeedColumnTypes,
    ) -> Result<Vec<u64>, NarrowingRefusal> {
        let mut encoded = Vec::new();
        of.push_list_members(&self.list, types.id, &mut encoded)
            .ok_or(NarrowingRefusal::Types)?;
        let number = |stored: &u64| u64::try_from(types.id.decode(*stored));
        let ids: Result<Vec<u64>, _> = encoded.iter().map(number).collect();
        let mut ids = ids.map_err(|_| NarrowingRefusal::Types)?;
        ids.sort_unstable();
        ids.dedup();
        if self.needs_several && ids.len() == 1 {
            return Err(NarrowingRefusal::Joins);
        }
        match self.order {
            IdOrder::Ascending => {}
            IdOrder::Descending => ids.reverse(),
            IdOrder::Unknown if ids.len() > 1 => return Err(NarrowingRefusal::Order),
            IdOrder::Unknown => {}
        }
        Ok(ids)
    }
}
