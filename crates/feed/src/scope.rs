//! Resolves names of columns to tables.

use crate::equalities::conjuncts;
use crate::query::{
    ColumnReference, Operand, SelectCondition, SelectItem, SqlIdentifier, TableReference,
};
use crate::refusal::NarrowingRefusal;
use crate::schema::{ColumnSchema, ComparisonClass, Schema, TableSchema};

/// A column of a table in scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopedColumn {
    /// The table's number in the whole statement.
    pub table: usize,
    /// The column's position in it.
    pub column: usize,
}

/// A table in scope.
#[derive(Clone, Debug)]
pub struct ScopedTable<'a> {
    /// The statement's reference to it.
    pub source: &'a TableReference,
    /// Its schema.
    pub table: &'a TableSchema,
    /// Its number in the whole statement.
    pub number: usize,
}

/// The tables that a condition may name: those of its own SELECT, and of the outer ones.
#[derive(Clone, Debug, Default)]
pub struct NameScope<'a> {
    /// From the outermost SELECT to the innermost one.
    levels: Vec<Vec<ScopedTable<'a>>>,
}

impl<'a> NameScope<'a> {
    /// The scope within a SELECT from these tables, nested in this one.
    ///
    /// # Errors
    /// A table is unknown, or two have one name.
    pub fn within(
        &self,
        sources: &'a [TableReference],
        schema: &'a dyn Schema,
    ) -> Result<NameScope<'a>, NarrowingRefusal> {
        let outer: usize = self.levels.iter().map(Vec::len).sum();
        let mut level: Vec<ScopedTable<'a>> = Vec::with_capacity(sources.len());
        for source in sources {
            let database = source.database.as_ref().map(|name| name.text.as_str());
            let table = match source.is_page {
                true => schema.page(),
                false => schema.table(database, &source.table.text),
            };
            let table = table.ok_or(NarrowingRefusal::Names)?;
            let same = |scoped: &ScopedTable<'_>| {
                scoped
                    .source
                    .reference_name()
                    .eq_ignore_ascii_case(source.reference_name())
            };
            if level.iter().any(same) {
                return Err(NarrowingRefusal::Names);
            }
            level.push(ScopedTable {
                source,
                table,
                number: outer + level.len(),
            });
        }
        let mut scope = self.clone();
        scope.levels.push(level);
        Ok(scope)
    }

    /// The tables of the innermost SELECT that an item shows whole: all for `*`, that one for `t.*`.
    pub fn shown_tables(&self, item: &SelectItem) -> impl Iterator<Item = &ScopedTable<'a>> {
        self.innermost_tables().iter().filter(move |scoped| match item {
            SelectItem::All => true,
            SelectItem::AllOf(names) => {
                matches!(names.as_slice(), [table] if table.text == scoped.source.reference_name())
            }
            SelectItem::Operand(..) => false,
        })
    }

    /// True if an item of the innermost SELECT shows this column as it is.
    #[must_use]
    pub fn shows(&self, item: &SelectItem, of: ScopedColumn) -> bool {
        match item {
            SelectItem::Operand(Operand::Column(column), _) => self.resolve(column) == Ok(of),
            _ => {
                let is_hidden = self.column_schema(of).is_none_or(|facts| facts.is_hidden);
                let mut shown = self.shown_tables(item);
                !is_hidden && shown.any(|scoped| scoped.number == of.table)
            }
        }
    }

    /// The tables of all SELECTs.
    pub fn all_tables(&self) -> impl Iterator<Item = &ScopedTable<'a>> {
        self.levels.iter().flatten()
    }

    /// The tables of the innermost SELECT.
    #[must_use]
    pub fn innermost_tables(&self) -> &[ScopedTable<'a>] {
        self.levels.last().map_or(&[], Vec::as_slice)
    }

    /// The conditions of a LEFT JOIN, split at AND: each row that it finds meets all of them.
    #[must_use]
    pub fn outer_join_conditions(&self, outer_join: usize) -> Vec<&'a SelectCondition> {
        let mut all = Vec::new();
        let tables = self.innermost_tables().iter();
        for scoped in tables.filter(|scoped| scoped.source.outer == Some(outer_join)) {
            if let Some(on) = &scoped.source.on {
                conjuncts(on, &mut all);
            }
        }
        all
    }

    /// A table by its number.
    #[must_use]
    pub fn table(&self, number: usize) -> Option<&ScopedTable<'a>> {
        self.all_tables().find(|scoped| scoped.number == number)
    }

    /// The schema of a column.
    #[must_use]
    pub fn column_schema(&self, of: ScopedColumn) -> Option<&ColumnSchema> {
        self.table(of.table)?.table.columns.get(of.column)
    }

    /// The class of values that a column may be compared with.
    #[must_use]
    pub fn class(&self, of: ScopedColumn) -> ComparisonClass {
        self.column_schema(of)
            .map_or(ComparisonClass::Other, |facts| facts.class)
    }

    /// True for a TIMESTAMP.
    #[must_use]
    pub fn is_zoned(&self, of: ScopedColumn) -> bool {
        self.column_schema(of).is_some_and(|facts| facts.is_zoned)
    }

    /// Resolves a column's name in the innermost SELECT that has it.
    ///
    /// # Errors
    /// No table has it, or several do; or it is a virtual column.
    pub fn resolve(&self, column: &ColumnReference) -> Result<ScopedColumn, NarrowingRefusal> {
        for level in self.levels.iter().rev() {
            let mut resolved = None;
            for scoped in level
                .iter()
                .filter(|scoped| scoped.source.matches_qualifier(column))
            {
                let Some(position) = scoped.table.column_position(&column.name.text) else {
                    continue;
                };
                if resolved.is_some() {
                    return Err(NarrowingRefusal::Names);
                }
                resolved = Some(ScopedColumn {
                    table: scoped.number,
                    column: position,
                });
            }
            if let Some(of) = resolved {
                return match self.column_schema(of) {
                    Some(facts) if !facts.is_virtual => Ok(of),
                    _ => Err(NarrowingRefusal::NotPlain),
                };
            }
        }
        Err(NarrowingRefusal::Names)
    }
}

impl TableReference {
    /// A reference to one of its columns.
    pub(crate) fn column(&self, column: &str) -> ColumnReference {
        let name = self.alias.as_ref().unwrap_or(&self.table);
        ColumnReference {
            qualifier: vec![name.clone()],
            name: SqlIdentifier {
                text: column.to_owned(),
                word: name.word,
            },
        }
    }

    /// The name that qualifies its columns: the alias, or else the table's own.
    #[must_use]
    pub fn reference_name(&self) -> &str {
        let name = self.alias.as_ref().unwrap_or(&self.table);
        &name.text
    }

    /// True if a column's qualifier, if it has one, may mean this table.
    fn matches_qualifier(&self, column: &ColumnReference) -> bool {
        match column.qualifier.as_slice() {
            [] => true,
            [table] => table.text == self.reference_name(),
            [database, table] => {
                let own_database = self.database.as_ref();
                self.alias.is_none()
                    && table.text == self.table.text
                    && own_database.is_some_and(|own| own.text == database.text)
            }
            _ => false,
        }
    }
}
