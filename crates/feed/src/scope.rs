//! Which table a name of a column belongs to.

use crate::query::{Column, Item, Source};
use crate::refused::Refused;
use crate::schema::{Class, ColumnFacts, Schema, Table};

/// A column of a table in scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Of {
    /// The table, by its number in the whole statement.
    pub table: usize,
    /// The column's place in it.
    pub column: usize,
}

/// One table in scope.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// As the statement has it.
    pub source: &'a Source,
    /// What is known of it.
    pub table: &'a Table,
    /// Its number in the whole statement.
    pub number: usize,
}

/// The tables that a condition may name: those of its own SELECT, and of those around it.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// From the outermost SELECT to the condition's own.
    levels: Vec<Vec<Seen<'a>>>,
}

impl<'a> Scope<'a> {
    /// The scope within a SELECT from these tables, which stands in this one.
    ///
    /// # Errors
    /// A table is not known, or two have one name.
    pub fn within(
        &self,
        sources: &'a [Source],
        schema: &'a dyn Schema,
    ) -> Result<Scope<'a>, Refused> {
        let outer: usize = self.levels.iter().map(Vec::len).sum();
        let mut level: Vec<Seen<'a>> = Vec::with_capacity(sources.len());
        for source in sources {
            let database = source.database.as_ref().map(|name| name.text.as_str());
            let table = schema
                .table(database, &source.table.text)
                .ok_or(Refused::Names)?;
            let same = |seen: &Seen<'_>| seen.source.called().eq_ignore_ascii_case(source.called());
            if level.iter().any(same) {
                return Err(Refused::Names);
            }
            level.push(Seen {
                source,
                table,
                number: outer + level.len(),
            });
        }
        let mut scope = self.clone();
        scope.levels.push(level);
        Ok(scope)
    }

    /// The tables of the innermost SELECT whose columns an item of it shows whole: all for `*`, that one for `t.*`.
    pub fn shown(&self, item: &Item) -> impl Iterator<Item = &Seen<'a>> {
        self.own().iter().filter(move |seen| match item {
            Item::All => true,
            Item::AllOf(names) => {
                matches!(names.as_slice(), [table] if table.text == seen.source.called())
            }
            Item::Operand(..) => false,
        })
    }

    /// The tables of all SELECTs.
    pub fn all(&self) -> impl Iterator<Item = &Seen<'a>> {
        self.levels.iter().flatten()
    }

    /// The tables of the innermost SELECT.
    #[must_use]
    pub fn own(&self) -> &[Seen<'a>] {
        self.levels.last().map_or(&[], Vec::as_slice)
    }

    /// A table by its number.
    #[must_use]
    pub fn seen(&self, number: usize) -> Option<&Seen<'a>> {
        self.all().find(|seen| seen.number == number)
    }

    /// What is known of a column.
    #[must_use]
    pub fn facts(&self, of: Of) -> Option<&ColumnFacts> {
        self.seen(of.table)?.table.columns.get(of.column)
    }

    /// What a column may be compared with.
    #[must_use]
    pub fn class(&self, of: Of) -> Class {
        self.facts(of).map_or(Class::Other, |facts| facts.class)
    }

    /// Whether it is a TIMESTAMP.
    #[must_use]
    pub fn is_zoned(&self, of: Of) -> bool {
        self.facts(of).is_some_and(|facts| facts.is_zoned)
    }

    /// Which column a name means: of the innermost SELECT that has one.
    ///
    /// # Errors
    /// None, or more than one; or one that is computed as it is read.
    pub fn resolve(&self, column: &Column) -> Result<Of, Refused> {
        for level in self.levels.iter().rev() {
            let mut found = None;
            for seen in level.iter().filter(|seen| seen.source.is_meant_by(column)) {
                let Some(place) = seen.table.place(&column.name.text) else {
                    continue;
                };
                if found.is_some() {
                    return Err(Refused::Names);
                }
                found = Some(Of {
                    table: seen.number,
                    column: place,
                });
            }
            if let Some(of) = found {
                return match self.facts(of) {
                    Some(facts) if !facts.is_virtual => Ok(of),
                    _ => Err(Refused::NotPlain),
                };
            }
        }
        Err(Refused::Names)
    }
}

impl Source {
    /// The name by which its columns are called.
    #[must_use]
    pub fn called(&self) -> &str {
        let name = self.alias.as_ref().unwrap_or(&self.table);
        &name.text
    }

    /// Whether a column's qualifier, if it has one, may mean this table.
    fn is_meant_by(&self, column: &Column) -> bool {
        match column.qualifier.as_slice() {
            [] => true,
            [table] => table.text == self.called(),
            [database, table] => {
                let own = self.database.as_ref();
                self.alias.is_none()
                    && table.text == self.table.text
                    && own.is_some_and(|own| own.text == database.text)
            }
            _ => false,
        }
    }
}
