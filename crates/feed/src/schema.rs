//! What is known of the tables that a statement names.

/// Tables by their names.
pub trait Schema {
    /// A table as it was seen last; `None`: it is not known, or no plain table. No database: the session's own.
    fn table(&self, database: Option<&str>, name: &str) -> Option<&Table>;
}

/// A base table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its columns, in order.
    pub columns: Vec<ColumnFacts>,
    /// Its unique keys, the primary one among them, each by the places of its columns. Those with a column that may be NULL are
    /// not among them.
    pub unique: Vec<Vec<usize>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFacts {
    /// Its name.
    pub name: String,
    /// What it may be compared with.
    pub class: Class,
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
pub enum Class {
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

impl Class {
    /// Whether values of both may be compared.
    #[must_use]
    pub fn compares_with(self, other: Class) -> bool {
        match (self, other) {
            (Class::Other, _) | (_, Class::Other) => false,
            (Class::Integer | Class::Number, Class::Integer | Class::Number)
            | (Class::Text, Class::Text)
            | (Class::Moment(_), Class::Moment(_)) => true,
            _ => false,
        }
    }
}

impl Table {
    /// The place of a column.
    #[must_use]
    pub fn place(&self, column: &str) -> Option<usize> {
        let named = |facts: &ColumnFacts| facts.name.eq_ignore_ascii_case(column);
        self.columns.iter().position(named)
    }
}
