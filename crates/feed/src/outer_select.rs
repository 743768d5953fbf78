//! The SELECT around a page: whether its rows, and their order, are the same whichever plan reads the page.
//!
//! It reads the same rows of the page, so what it computes is the same. Its order has to tell the page's messages apart; rows of one message
//! come from LEFT JOINs behind it.

use crate::definition::TieOrder;
use crate::equalities::{ColumnEqualities, conditions_of_every_row};
use crate::join_cardinality::single_row_tables;
use crate::plain_check::{LiteralCheck, PlainCheck};
use crate::query::{
    ColumnReference, ConditionKind, FeedSelect, Operand, OuterSelect, SelectCondition, SelectItem,
};
use crate::refusal::NarrowingRefusal;
use crate::schema::{ColumnSchema, ComparisonClass, Schema, TableSchema};
use crate::scope::{NameScope, ScopedColumn, ScopedTable};
use crate::shape::{FeedNames, TieBreak, TieColumn, sort_column};
use crate::words::StatementWords;

/// The page as the SELECT around it sees it.
pub(crate) struct PageColumns {
    /// Its columns, with the id as a unique key if each message has one row.
    pub(crate) table: TableSchema,
    /// The name of the key, if it is shown.
    pub(crate) key: Option<String>,
    /// The name of the id, if it is shown.
    pub(crate) id: Option<String>,
}

/// The tables, and the page.
struct PageSchema<'a> {
    tables: &'a dyn Schema,
    page: &'a TableSchema,
}

impl Schema for PageSchema<'_> {
    fn table(&self, database: Option<&str>, name: &str) -> Option<&TableSchema> {
        self.tables.table(database, name)
    }

    fn page(&self) -> Option<&TableSchema> {
        Some(self.page)
    }
}

impl PageColumns {
    /// The columns that a page shows.
    pub(crate) fn of(
        query: &FeedSelect,
        scope: &NameScope<'_>,
        (key, id): (Option<ScopedColumn>, ScopedColumn),
        has_copies: bool,
    ) -> PageColumns {
        let mut page = PageColumns {
            table: TableSchema::default(),
            key: None,
            id: None,
        };
        for item in &query.items {
            match item {
                SelectItem::Operand(operand, alias) => {
                    let of = match operand {
                        Operand::Column(column) => scope.resolve(column).ok(),
                        _ => None,
                    };
                    let name = match (alias, operand) {
                        (Some(alias), _) => &alias.text,
                        (None, Operand::Column(column)) => &column.name.text,
                        // It has a name that nothing here knows.
                        (None, _) => continue,
                    };
                    page.add(name, of, scope, (key, id));
                }
                SelectItem::All | SelectItem::AllOf(_) => {
                    for scoped in scope.shown_tables(item) {
                        for (column, facts) in scoped.table.columns.iter().enumerate() {
                            let table = scoped.number;
                            let of = Some(ScopedColumn { table, column });
                            if !facts.is_hidden {
                                page.add(&facts.name, of, scope, (key, id));
                            }
                        }
                    }
                }
            }
        }
        let id = page.id.as_deref();
        let unique = id.and_then(|id| page.table.column_position(id));
        page.table.unique_keys = unique
            .filter(|_| !has_copies)
            .map(|at| vec![at])
            .into_iter()
            .collect();
        page
    }

    fn add(
        &mut self,
        name: &str,
        of: Option<ScopedColumn>,
        scope: &NameScope<'_>,
        (key, id): (Option<ScopedColumn>, ScopedColumn),
    ) {
        if of == Some(id) {
            self.id.get_or_insert_with(|| name.to_owned());
        }
        if of.is_some() && of == key {
            self.key.get_or_insert_with(|| name.to_owned());
        }
        let facts = of.and_then(|of| scope.column_schema(of));
        self.table.columns.push(ColumnSchema {
            name: name.to_owned(),
            class: facts.map_or(ComparisonClass::Other, |facts| facts.class),
            is_virtual: false,
            is_zoned: facts.is_some_and(|facts| facts.is_zoned),
            is_hidden: false,
            is_nullable: facts.is_none_or(|facts| facts.is_nullable),
            is_long: facts.is_none_or(|facts| facts.is_long),
        });
    }
}

/// What the SELECT around a page adds to a statement's shape.
pub(crate) struct OuterShape {
    /// Where the id is added to its ORDER BY.
    pub(crate) tie_break: Option<TieBreak>,
    /// Values to check in each statement.
    pub(crate) literal_checks: Vec<LiteralCheck>,
    /// A TIMESTAMP is compared.
    pub(crate) zoned: bool,
}

/// Checks the SELECT around a page. `are_keys_distinct`: no two messages of the page share a key.
pub(crate) fn outer_shape(
    outer: &OuterSelect,
    page: &PageColumns,
    (feed, are_keys_distinct): (&FeedNames, bool),
    words: &StatementWords,
    schema: &dyn Schema,
) -> Result<OuterShape, NarrowingRefusal> {
    let schema = PageSchema {
        tables: schema,
        page: &page.table,
    };
    let scope = NameScope::default().within(&outer.sources, &schema)?;
    let mut plain = PlainCheck {
        words,
        schema: &schema,
        literal_checks: Vec::new(),
        zoned: false,
    };
    for item in &outer.items {
        plain.item(item, &scope)?;
    }
    let conditions = outer.sources.iter().filter_map(|source| source.on.as_ref());
    for condition in conditions.chain(&outer.filter) {
        plain.condition(condition, &scope)?;
    }
    let base = base(outer, feed, &scope)?;
    let holds = conditions_of_every_row(&outer.sources, outer.filter.as_ref());
    let mut equal = ColumnEqualities::default();
    equal.add_conditions(&holds, &scope);
    let column = |name: Option<&str>| {
        let column = base.table.column_position(name?)?;
        Some(ScopedColumn {
            table: base.number,
            column,
        })
    };
    let (key, id) = match base.source.is_page {
        true => (column(page.key.as_deref()), column(page.id.as_deref())),
        false => (column(feed.key.as_deref()), column(Some(&feed.id))),
    };
    let by_id = outer
        .group
        .iter()
        .any(|column| id.is_some() && scope.resolve(column).ok() == id);
    if !outer.group.is_empty() && !by_id {
        return Err(NarrowingRefusal::Grouped);
    }
    if !base.source.is_page && !holds.iter().any(|one| is_in_page(one, id, page, &scope)) {
        return Err(NarrowingRefusal::Structure);
    }
    let shown = FeedSelect {
        items: outer.items.clone(),
        ..FeedSelect::default()
    };
    let mut order = Vec::with_capacity(outer.order.len());
    for one in &outer.order {
        if one.is_null || one.is_extreme && outer.group.is_empty() {
            return Err(NarrowingRefusal::Order);
        }
        let of = sort_column(one, &shown, &scope)?;
        plain.zoned |= scope.is_zoned(of);
        order.push(Some(of));
    }
    let single = single_row_tables(&scope, &equal, base.number);
    let is_alike = |of: ScopedColumn| single.contains(&of.table);
    let rejected = scope.rejected_outer_joins(&holds);
    // Rows of one message come from LEFT JOINs behind it: in an order of their own, or, where the feed orders ties, in the server's.
    let is_behind = |scoped: &ScopedTable<'_>| {
        let is_outer = scoped
            .source
            .outer
            .is_some_and(|join| !rejected.contains(&join));
        let is_ordered = scoped.table.unique_keys.iter().any(|key| {
            key.iter().all(|column| {
                order.contains(&Some(ScopedColumn {
                    table: scoped.number,
                    column: *column,
                }))
            })
        });
        single.contains(&scoped.number) || is_outer && (is_ordered || feed.ties == TieOrder::Id)
    };
    let shows_alike = |item: &SelectItem| match item {
        SelectItem::Operand(Operand::Count(_), _) => true,
        SelectItem::Operand(operand, _) => {
            let columns = operand.columns();
            let mut resolved = columns.iter().map(|column| scope.resolve(column));
            !operand.has_subquery() && resolved.all(|of| of.is_ok_and(is_alike))
        }
        SelectItem::All | SelectItem::AllOf(_) => {
            let mut shown = scope.shown_tables(item);
            shown.all(|scoped| single.contains(&scoped.number))
        }
    };
    let is_ordered_alike = order.iter().flatten().all(|of| is_alike(*of));
    if by_id && !(outer.items.iter().all(shows_alike) && is_ordered_alike) {
        return Err(NarrowingRefusal::Grouped);
    }
    if !by_id && !scope.innermost_tables().iter().all(is_behind) {
        return Err(NarrowingRefusal::Joins);
    }
    let adds_id = match (id, key) {
        _ if order.is_empty() => {
            let is_alone = outer.sources.len() == 1 && base.source.is_page;
            (is_alone && outer.group.is_empty() && !outer.distinct)
                .then_some(false)
                .ok_or(NarrowingRefusal::Order)?
        }
        (Some(_), _) if order.contains(&id) => false,
        (_, Some(_)) if order.contains(&key) && are_keys_distinct && base.source.is_page => false,
        (Some(_), Some(_)) if order.contains(&key) && feed.ties == TieOrder::Id => true,
        _ => return Err(NarrowingRefusal::Order),
    };
    let shows_id = id.is_some_and(|id| outer.items.iter().any(|item| scope.shows(item, id)));
    if outer.distinct && !(shows_id && is_ordered_alike) {
        return Err(NarrowingRefusal::Order);
    }
    let name = id.and_then(|id| scope.column_schema(id));
    let tie_break = name.filter(|_| adds_id).map(|facts| TieBreak {
        at: outer.order_end,
        column: TieColumn::Derived(
            Some(
                base.source
                    .alias
                    .as_ref()
                    .unwrap_or(&base.source.table)
                    .word,
            ),
            facts.name.clone(),
        ),
    });
    Ok(OuterShape {
        tie_break,
        literal_checks: plain.literal_checks,
        zoned: plain.zoned,
    })
}

/// True for `base.id IN (SELECT id FROM (page) p)`.
fn is_in_page(
    condition: &SelectCondition,
    id: Option<ScopedColumn>,
    page: &PageColumns,
    scope: &NameScope<'_>,
) -> bool {
    let ConditionKind::InSubquery(Operand::Column(column), rows, true) = &condition.kind else {
        return false;
    };
    let is_id = |column: &ColumnReference| {
        page.id
            .as_ref()
            .is_some_and(|id| column.name.text.eq_ignore_ascii_case(id))
    };
    let is_page = matches!(rows.sources.as_slice(), [only] if only.is_page);
    is_page
        && id.is_some()
        && scope.resolve(column).ok() == id
        && rows.columns.first().is_some_and(is_id)
}

/// The table whose rows are the page's messages: the page itself, or the table of messages where their ids are in the page.
fn base<'s, 'a>(
    outer: &OuterSelect,
    feed: &FeedNames,
    scope: &'s NameScope<'a>,
) -> Result<&'s ScopedTable<'a>, NarrowingRefusal> {
    let has_page = outer.sources.iter().any(|source| source.is_page);
    let is_base = |scoped: &&ScopedTable<'_>| match has_page {
        true => scoped.source.is_page,
        false => scoped.source.table.text == feed.message && scoped.source.outer.is_none(),
    };
    let mut tables = scope.innermost_tables().iter().filter(is_base);
    match (tables.next(), tables.next()) {
        (Some(base), None) => Ok(base),
        _ => Err(NarrowingRefusal::Joins),
    }
}
