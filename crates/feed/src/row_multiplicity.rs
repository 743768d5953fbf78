//! How many rows a message may have in a statement's reply, and what orders them.

use std::collections::BTreeSet;

use crate::definition::TieOrder;
use crate::equalities::ColumnEqualities;
use crate::join_cardinality;
use crate::query::{ColumnReference, FeedSelect, OrderKey, SelectItem};
use crate::refusal::NarrowingRefusal;
use crate::schema::ComparisonClass;
use crate::scope::{NameScope, ScopedColumn};
use crate::shape::{TieColumn, sort_column};

/// How many rows a message may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowMultiplicity {
    /// One at most.
    One,
    /// Several that are equal: no order tells them apart.
    Copies,
    /// Several that these keys of joined tables order.
    Ordered(Vec<TieColumn>),
}

/// Finds out how many rows a message may have: one by the keys of joined tables, or by DISTINCT or GROUP BY over columns of such tables;
/// or copies, where no column of the other tables is shown; or rows in the order of those tables' keys, where the feed orders ties.
pub(crate) fn row_multiplicity(
    query: &FeedSelect,
    scope: &NameScope<'_>,
    equal: &ColumnEqualities,
    id: ScopedColumn,
    ties: TieOrder,
) -> Result<RowMultiplicity, NarrowingRefusal> {
    let single = join_cardinality::single_row_tables(scope, equal, id.table);
    // A number that equals a literal, or a column of such a table, is alike in all rows of a message. Equal texts may differ in case.
    let is_alike = |of: ScopedColumn| {
        let mut equals = equal.equal_columns(of);
        single.contains(&of.table)
            || scope.class(of) == ComparisonClass::Integer && equal.literal(of).is_some()
            || equals.any(|other| single.contains(&other.table))
    };
    let only = |column: &ColumnReference| scope.resolve(column).is_ok_and(is_alike);
    let of_single = |item: &SelectItem| match item {
        SelectItem::Operand(operand, _) => {
            !operand.has_subquery() && operand.columns().into_iter().all(only)
        }
        SelectItem::All | SelectItem::AllOf(_) => scope
            .shown_tables(item)
            .all(|scoped| single.contains(&scoped.number)),
    };
    let is_id = |item: &SelectItem| scope.shows(item, id);
    let is_one_row = !query.group.is_empty() || query.distinct;
    let is_ordered = |one: &OrderKey| sort_column(one, query, scope).is_ok_and(is_alike);
    // Of several rows that become one, any may give the value that it is sorted by.
    if is_one_row && !query.order.iter().all(is_ordered) {
        return Err(NarrowingRefusal::Order);
    }
    if query.group.is_empty() && query.items.iter().any(SelectItem::is_count) {
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
    let is_whole = single.len() == scope.innermost_tables().len();
    let keys = || match ties {
        TieOrder::Id => row_keys(query, scope, equal, (&single, &is_alike)),
        TieOrder::Server => None,
    };
    match query.items.iter().all(of_single) {
        _ if query.distinct && !query.items.iter().any(is_id) => Err(NarrowingRefusal::Joins),
        true if query.distinct => Ok(RowMultiplicity::One),
        _ if !query.distinct && is_whole => Ok(RowMultiplicity::One),
        true => Ok(RowMultiplicity::Copies),
        false => keys()
            .map(RowMultiplicity::Ordered)
            .ok_or(NarrowingRefusal::Joins),
    }
}

/// The keys of joined tables by which rows of one message that look different have one order. `single`: the tables of one row, and which
/// columns are alike in all rows of a message.
fn row_keys(
    query: &FeedSelect,
    scope: &NameScope<'_>,
    equal: &ColumnEqualities,
    (single, is_alike): (&BTreeSet<usize>, &dyn Fn(ScopedColumn) -> bool),
) -> Option<Vec<TieColumn>> {
    let mut shown = BTreeSet::new();
    for item in &query.items {
        match item {
            SelectItem::Operand(operand, _) if operand.has_subquery() => return None,
            SelectItem::Operand(operand, _) => {
                for column in operand.columns() {
                    let of = scope.resolve(column).ok()?;
                    shown.extend((!is_alike(of)).then_some(of.table));
                }
            }
            SelectItem::All | SelectItem::AllOf(_) => {
                shown.extend(scope.shown_tables(item).map(|scoped| scoped.number));
            }
        }
    }
    let (mut keys, mut single) = (Vec::new(), single.clone());
    for scoped in scope.innermost_tables() {
        if single.contains(&scoped.number) || !shown.contains(&scoped.number) {
            continue;
        }
        let source = scoped.source;
        if source.is_flattened || source.is_page {
            return None;
        }
        let is_ordered = |column: &usize| {
            let facts = scoped.table.columns.get(*column);
            facts.is_some_and(|facts| facts.class == ComparisonClass::Integer && !facts.is_virtual)
        };
        let unique = scoped.table.unique_keys.iter();
        let key = unique
            .filter(|key| !key.is_empty() && key.iter().all(is_ordered))
            .min_by_key(|key| key.len())?;
        let name = source.alias.as_ref().unwrap_or(&source.table).word;
        for column in key {
            let of = ScopedColumn {
                table: scoped.number,
                column: *column,
            };
            // DISTINCT sorts by what it shows.
            let is_shown = || query.items.iter().any(|item| scope.shows(item, of));
            if query.distinct && !is_shown() {
                return None;
            }
            keys.push(TieColumn::Joined(
                name,
                scope.column_schema(of)?.name.clone(),
            ));
        }
        single.insert(scoped.number);
        single = join_cardinality::with_single_rows(scope, equal, single);
    }
    Some(keys)
}
