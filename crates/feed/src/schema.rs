//! What is known of the tables that a statement names.

/// Tables by name.
pub trait Schema {
    /// A table as last read. `None`: unknown, or no plain table. Without a database, it is the session's own.
    fn table(&self, database: Option<&str>, name: &str) -> Option<&TableSchema>;

    /// The page of a feed that stands in FROM.
    fn page(&self) -> Option<&TableSchema> {
        None
    }
}

/// A base table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSchema {
    /// Its columns, in order.
    pub columns: Vec<ColumnSchema>,
    /// Its unique keys, including the primary one, as positions of columns. Keys with a nullable column are left out.
    pub unique_keys: Vec<Vec<usize>>,
    /// The columns of its indexes besides the primary key; `None` in place of one: a prefix of a column, or an expression. `None`: unknown,
    /// or its rows are not stored in the order of a primary key.
    pub secondary_indexes: Option<Vec<Vec<Option<usize>>>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: String,
    /// The class of values that it may be compared with.
    pub class: ComparisonClass,
    /// It is virtual: computed on each read, which may fail.
    pub is_virtual: bool,
    /// A TIMESTAMP: it is sent, and compared by row, in the session's time zone, but by index in UTC.
    pub is_zoned: bool,
    /// `*` does not show it.
    pub is_hidden: bool,
    /// It may be NULL.
    pub is_nullable: bool,
    /// It is a MEDIUMTEXT, LONGTEXT or the like.
    pub is_long: bool,
}

/// Classes of values that may be compared without an error or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonClass {
    /// An integer.
    Integer,
    /// Another number.
    Number,
    /// A string, or a member of an ENUM.
    Text,
    /// DATE, DATETIME or TIMESTAMP, with so many fractional digits.
    Moment(u8),
    /// Anything else.
    Other,
}

impl ComparisonClass {
    /// True if values of both may be compared.
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
    /// The position of a column, by its name in any case.
    #[must_use]
    pub fn column_position(&self, column: &str) -> Option<usize> {
        let named = |facts: &ColumnSchema| facts.name.eq_ignore_ascii_case(column);
        self.columns.iter().position(named)
    }
}
