//! Which tables of the log belong to which timeline, and where their columns stand.

use super::evidence::TableRole;
use headwater_timeline::KeyType;
use headwater_timeline::definition::IdType;
use headwater_timeline::index::TimelineId;

/// A table that is listened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRoute {
    /// The number of the place that it belongs to.
    pub timeline_id: TimelineId,
    /// Which of the two it is.
    pub table: TableRole,
    /// The database that it is in.
    pub database: String,
    /// Its name.
    pub name: String,
    /// How many columns the table has; `None` until the schema was read.
    pub columns: Option<usize>,
    /// The message's id, or the reader.
    pub first: ColumnPosition,
    /// The author.
    pub second: ColumnPosition,
    /// What pages are ordered by in front of the id, where it is not the id alone.
    pub key: Option<KeyColumnPosition>,
}

/// A column of a row: where it stands, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPosition {
    /// Its number from the left, from 0 on.
    pub at: usize,
    /// Its type.
    pub kind: IdType,
}

/// The column of a key: where it stands, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyColumnPosition {
    /// Its number from the left, from 0 on.
    pub at: usize,
    /// Its type.
    pub kind: KeyType,
}

/// Every table that is listened to.
#[derive(Clone, Debug, Default)]
pub struct TableRoutes {
    /// One for each table of each place.
    pub routes: Vec<TableRoute>,
    /// The server compares names without case (`lower_case_table_names`).
    pub caseless: bool,
}

impl TableRoutes {
    /// The routes of a table in the log: one for each timeline that it belongs to.
    pub fn matching(&self, database: &[u8], name: &[u8]) -> impl Iterator<Item = &TableRoute> {
        self.routes.iter().filter(move |route| {
            self.is_same_name(route.database.as_bytes(), database)
                && self.is_same_name(route.name.as_bytes(), name)
        })
    }

    /// True when two names are one to the server.
    pub fn is_same_name(&self, own: &[u8], other: &[u8]) -> bool {
        own == other || self.caseless && own.eq_ignore_ascii_case(other)
    }
}
