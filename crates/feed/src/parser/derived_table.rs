//! A page of a SELECT in FROM: `SELECT d.a FROM (SELECT m.a AS a FROM m WHERE ...) d ORDER BY d.a DESC LIMIT 20`, as ORMs request the ids
//! of a page. It is read as the inner SELECT with the outer one's columns, order and limit. The inner one has no order or limit.

use super::word_reader::WordReader;
use crate::query::{
    ColumnReference, FeedSelect, Literal, Operand, OrderKey, SelectCondition, SelectItem,
    SqlIdentifier, TableReference,
};
use crate::refusal::NarrowingRefusal;

/// The inner SELECT.
pub(super) struct DerivedTable {
    columns: Vec<(String, Operand)>,
    sources: Vec<TableReference>,
    filter: Option<(usize, SelectCondition)>,
    /// The parenthesis after it.
    end: usize,
    alias: SqlIdentifier,
}

impl WordReader<'_> {
    /// The SELECT in FROM, if FROM has nothing else.
    pub(super) fn derived(&mut self) -> Result<Option<DerivedTable>, NarrowingRefusal> {
        let start = self.position();
        if !(self.take_punct(b'(') && self.take_keyword("SELECT")) {
            self.rewind(start);
            return Ok(None);
        }
        match self.after_select() {
            // It has more than can be read through.
            Err(NarrowingRefusal::NotUnderstood) => Err(NarrowingRefusal::Structure),
            read => read.map(Some),
        }
    }

    fn after_select(&mut self) -> Result<DerivedTable, NarrowingRefusal> {
        if self.is_next("DISTINCT") || self.is_next("DISTINCTROW") {
            return Err(NarrowingRefusal::Structure);
        }
        self.take_keyword("ALL");
        let items = self.separated(WordReader::item)?;
        let columns: Option<Vec<_>> = items.into_iter().map(derived_column).collect();
        let columns = columns.ok_or(NarrowingRefusal::Structure)?;
        self.expect_keyword("FROM")?;
        let sources = self.table_references()?;
        let filter = self.filter()?;
        let end = self.position();
        if !self.take_punct(b')') {
            return Err(NarrowingRefusal::Structure);
        }
        let alias = self.optional_alias()?.ok_or(NarrowingRefusal::Structure)?;
        if !(self.is_next("ORDER") || self.is_next("LIMIT") || self.is_at_end()) {
            return Err(NarrowingRefusal::Structure);
        }
        Ok(DerivedTable {
            columns,
            sources,
            filter,
            end,
            alias,
        })
    }
}

/// A column of the inner SELECT: its name and operand. `None`: `*`, a parameter, or a column without a name.
fn derived_column(item: SelectItem) -> Option<(String, Operand)> {
    match item {
        SelectItem::Operand(Operand::Literal(Literal::Parameter(_)) | Operand::Count(_), _) => None,
        SelectItem::Operand(operand, _) if operand.has_subquery() => None,
        SelectItem::Operand(operand, Some(name)) => Some((name.text, operand)),
        SelectItem::Operand(Operand::Column(column), None) => {
            Some((column.name.text.clone(), Operand::Column(column)))
        }
        _ => None,
    }
}

impl DerivedTable {
    /// The outer SELECT, in the inner one's columns and tables.
    pub(super) fn read_through(self, outer: FeedSelect) -> Result<FeedSelect, NarrowingRefusal> {
        let items = self.items(outer.items)?;
        let order = self.order(outer.order, &items)?;
        let inner = self.columns.into_iter();
        Ok(FeedSelect {
            items,
            order,
            derived_items: inner
                .map(|(_, operand)| SelectItem::Operand(operand, None))
                .collect(),
            sources: self.sources,
            filter: self.filter,
            filter_end: self.end,
            ..outer
        })
    }

    /// The outer SELECT's columns, in the inner one's.
    fn items(&self, outer: Vec<SelectItem>) -> Result<Vec<SelectItem>, NarrowingRefusal> {
        let each = outer.into_iter().map(|item| match item {
            SelectItem::Operand(Operand::Column(column), alias) => {
                let inner = self.resolve(&column)?.clone();
                Ok(SelectItem::Operand(
                    inner,
                    Some(alias.unwrap_or(column.name)),
                ))
            }
            _ => Err(NarrowingRefusal::Structure),
        });
        each.collect()
    }

    /// ORDER BY. `items`: the result of [`DerivedTable::items`].
    fn order(
        &self,
        outer: Vec<OrderKey>,
        items: &[SelectItem],
    ) -> Result<Vec<OrderKey>, NarrowingRefusal> {
        let each = outer.into_iter().map(|key| {
            // A name without a table may be an alias of the reply: then both have to be the same column.
            let aliased = items.iter().filter_map(|item| match item {
                SelectItem::Operand(operand, Some(name))
                    if key.column.qualifier.is_empty()
                        && name.text.eq_ignore_ascii_case(&key.column.name.text) =>
                {
                    Some(operand)
                }
                _ => None,
            });
            let mut operands: Vec<&Operand> = aliased.collect();
            if self.has_column(&key.column.name.text) || operands.is_empty() {
                operands.push(self.resolve(&key.column)?);
            }
            match operands.split_first() {
                Some((Operand::Column(first), others))
                    if others.iter().all(|other| is_same_column(other, first)) =>
                {
                    Ok(OrderKey {
                        column: first.clone(),
                        descending: key.descending,
                    })
                }
                _ => Err(NarrowingRefusal::Order),
            }
        });
        each.collect()
    }

    fn has_column(&self, name: &str) -> bool {
        self.columns
            .iter()
            .any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    fn resolve(&self, column: &ColumnReference) -> Result<&Operand, NarrowingRefusal> {
        let matches_alias = match column.qualifier.as_slice() {
            [] => true,
            [table] => table.text == self.alias.text,
            _ => false,
        };
        let named = |(name, _): &&(String, Operand)| name.eq_ignore_ascii_case(&column.name.text);
        let mut matching = self.columns.iter().filter(named);
        match (matches_alias, matching.next(), matching.next()) {
            (true, Some((_, operand)), None) => Ok(operand),
            _ => Err(NarrowingRefusal::Names),
        }
    }
}

/// True if an operand is this column, written alike.
fn is_same_column(operand: &Operand, column: &ColumnReference) -> bool {
    let texts = |column: &ColumnReference| -> Vec<String> {
        let names = column.qualifier.iter().chain([&column.name]);
        names.map(|name| name.text.clone()).collect()
    };
    matches!(operand, Operand::Column(other) if texts(other) == texts(column))
}
