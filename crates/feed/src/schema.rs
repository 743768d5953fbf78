//! What is known of the tables that a statement names.

/// Tables by their names.
pub trait Schema {
    /// A table as it was seen last; `None`: it is not known, or no plain table. No database: the session's own.
    fn table(&self, database: Option<&str>, name: &str) -> Option<&TableSchema>;
}

/// A base table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSchema {
    /// Its columns, in order.
    pub columns: Vec<ColumnSchema>,
    /// Its unique keys, the primary one among them, each by the places of its columns. Those with a column that may be NULL are
    /// not among them.
    pub unique_keys: Vec<Vec<usize>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: String,
    /// What it may be compared with.
    pub class: ComparisonClass,
    /// It is computed whenever it is read, which may fail.
    pub is_virtual: bool,
    /// A TIMESTAMP: it is told, and compared by row, in the session's time zone, but by index in UTC.
    pub is_zoned: bool,
    /// `*` does not show it.
    pub is_hidden: bool,
    /// It may be NULL.
    pub is_nullable: bool,
}

/// What may be compared without an error or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonClass {
    /// A whole number.
    Integer,
    /// Another number.
    Number,
    /// A string, and a member of an ENUM.
    Text,
    /// DATE, DATETIME or TIMESTAMP, with so many digits behind the second.
    Moment(u8),
    /// Anything else.
    Other,
}

impl ComparisonClass {
    /// Whether values of both may be compared.
    #[must_use]
    pub fn compares_with(self, other: ComparisonClass) -> bool {
        match (self, other) {
            (ComparisonClass::Other, _) | (_, ComparisonClass::Other) => false,
            (
                ComparisonClass::Integer | ComparisonClass::Number,
                ComparisonClass::Integer | ComparisonClass::Number,
            )
            | (ComparisonClass::Text, ComparisonClass::Text)
            | (ComparisonClass::Moment(_), ComparisonClass::Moment(_)) => true,
            _ => false,
        }
    }
}

impl TableSchema {
    /// The place of a column.
    #[must_use]
    pub fn column_position(&self, column: &str) -> Option<usize> {
        let named = |facts: &ColumnSchema| facts.name.eq_ignore_ascii_case(column);
        self.columns.iter().position(named)
    }
}
