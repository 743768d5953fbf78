//! A page of a SELECT in FROM: `SELECT d.a FROM (SELECT m.a AS a FROM m WHERE ...) d ORDER BY d.a DESC LIMIT 20`, as ORMs ask for the ids of
//! a page. It is read as the inner SELECT with the outer's columns, order and limit: the inner one has neither of its own.

use super::words::Reader;
use crate::query::{Column, Condition, Item, Key, Literal, Name, Operand, Query, Source};
use crate::refused::Refused;

/// The inner SELECT.
pub(super) struct Derived {
    columns: Vec<(String, Operand)>,
    sources: Vec<Source>,
    filter: Option<(usize, Condition)>,
    /// The parenthesis behind it.
    end: usize,
    called: Name,
}

impl Reader<'_> {
    /// The SELECT that FROM has alone, if it has one.
    pub(super) fn derived(&mut self) -> Result<Option<Derived>, Refused> {
        let start = self.place();
        if !(self.takes_punct(b'(') && self.takes("SELECT")) {
            self.go_back(start);
            return Ok(None);
        }
        match self.behind_select() {
            // More than is read through.
            Err(Refused::NotUnderstood) => Err(Refused::Structure),
            read => read.map(Some),
        }
    }

    fn behind_select(&mut self) -> Result<Derived, Refused> {
        if self.is_next("DISTINCT") || self.is_next("DISTINCTROW") {
            return Err(Refused::Structure);
        }
        self.takes("ALL");
        let items = self.separated(Reader::item)?;
        let columns: Option<Vec<_>> = items.into_iter().map(column).collect();
        let columns = columns.ok_or(Refused::Structure)?;
        self.keyword("FROM")?;
        let sources = self.sources()?;
        let filter = self.filter()?;
        let end = self.place();
        if !self.takes_punct(b')') {
            return Err(Refused::Structure);
        }
        let called = self.named()?.ok_or(Refused::Structure)?;
        if !(self.is_next("ORDER") || self.is_next("LIMIT") || self.is_at_end()) {
            return Err(Refused::Structure);
        }
        Ok(Derived {
            columns,
            sources,
            filter,
            end,
            called,
        })
    }
}

/// A column of the inner SELECT: its name, and what it is. `*` and parameters are none, and what has no name cannot be called.
fn column(item: Item) -> Option<(String, Operand)> {
    match item {
        Item::Operand(Operand::Literal(Literal::Parameter(_)), _) => None,
        Item::Operand(operand, Some(name)) => Some((name.text, operand)),
        Item::Operand(Operand::Column(column), None) => {
            Some((column.name.text.clone(), Operand::Column(column)))
        }
        _ => None,
    }
}

impl Derived {
    /// The outer SELECT, told by the inner one's columns and tables.
    pub(super) fn read_through(self, outer: Query) -> Result<Query, Refused> {
        let items = self.items(outer.items)?;
        let order = self.order(outer.order, &items)?;
        let inner = self.columns.into_iter();
        Ok(Query {
            items,
            order,
            inner: inner
                .map(|(_, operand)| Item::Operand(operand, None))
                .collect(),
            sources: self.sources,
            filter: self.filter,
            filter_end: self.end,
            ..outer
        })
    }

    /// The outer SELECT's columns.
    fn items(&self, outer: Vec<Item>) -> Result<Vec<Item>, Refused> {
        let each = outer.into_iter().map(|item| match item {
            Item::Operand(Operand::Column(column), alias) => {
                let inner = self.of(&column)?.clone();
                Ok(Item::Operand(inner, Some(alias.unwrap_or(column.name))))
            }
            _ => Err(Refused::Structure),
        });
        each.collect()
    }

    /// ORDER BY. `items`: as [`Derived::items`] tells them, with their names.
    fn order(&self, outer: Vec<Key>, items: &[Item]) -> Result<Vec<Key>, Refused> {
        let each = outer.into_iter().map(|key| {
            // A name without a table may be one that a column of the answer is given: then both have to be the same.
            let called = items.iter().filter_map(|item| match item {
                Item::Operand(operand, Some(name))
                    if key.column.qualifier.is_empty()
                        && name.text.eq_ignore_ascii_case(&key.column.name.text) =>
                {
                    Some(operand)
                }
                _ => None,
            });
            let mut meant: Vec<&Operand> = called.collect();
            if self.has(&key.column.name.text) || meant.is_empty() {
                meant.push(self.of(&key.column)?);
            }
            match meant.split_first() {
                Some((Operand::Column(first), others))
                    if others.iter().all(|other| is(other, first)) =>
                {
                    Ok(Key {
                        column: first.clone(),
                        descending: key.descending,
                    })
                }
                _ => Err(Refused::Order),
            }
        });
        each.collect()
    }

    fn has(&self, name: &str) -> bool {
        self.columns
            .iter()
            .any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    fn of(&self, column: &Column) -> Result<&Operand, Refused> {
        let own = match column.qualifier.as_slice() {
            [] => true,
            [table] => table.text == self.called.text,
            _ => false,
        };
        let named = |(name, _): &&(String, Operand)| name.eq_ignore_ascii_case(&column.name.text);
        let mut found = self.columns.iter().filter(named);
        match (own, found.next(), found.next()) {
            (true, Some((_, operand)), None) => Ok(operand),
            _ => Err(Refused::Names),
        }
    }
}

/// Whether an operand is this column, written alike.
fn is(operand: &Operand, column: &Column) -> bool {
    let texts = |column: &Column| -> Vec<String> {
        let names = column.qualifier.iter().chain([&column.name]);
        names.map(|name| name.text.clone()).collect()
    };
    matches!(operand, Operand::Column(other) if texts(other) == texts(column))
}
