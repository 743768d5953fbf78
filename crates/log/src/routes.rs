//! Which tables of the log belong to which timeline, and where their columns stand.

use super::evidence::Table;
use headwater_timeline::KeyType;
use headwater_timeline::definition::IntType;
use headwater_timeline::index::PlaceId;

/// A table that is listened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The number of the place that it belongs to.
    pub place: PlaceId,
    /// Which of the two it is.
    pub table: Table,
    /// The database that it is in.
    pub database: String,
    /// Its name.
    pub name: String,
    /// How many columns the table has; `None` until the schema was read.
    pub columns: Option<usize>,
    /// The message's id, or the reader.
    pub first: Column,
    /// The author.
    pub second: Column,
    /// What pages are ordered by in front of the id, where it is not the id alone.
    pub key: Option<KeyColumn>,
}

/// A column of a row: where it stands, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its number from the left, from 0 on.
    pub at: usize,
    /// Its type.
    pub kind: IntType,
}

/// The column of a key: where it stands, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its number from the left, from 0 on.
    pub at: usize,
    /// Its type.
    pub kind: KeyType,
}

/// Every table that is listened to.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// One for each table of each place.
    pub routes: Vec<Route>,
    /// The server compares names without case (`lower_case_table_names`).
    pub caseless: bool,
}

impl Routes {
    /// The routes of a table in the log: one for each timeline that it belongs to.
    pub fn of(&self, database: &[u8], name: &[u8]) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(move |route| {
            self.same(route.database.as_bytes(), database) && self.same(route.name.as_bytes(), name)
        })
    }

    /// True when two names are one to the server.
    pub fn same(&self, own: &[u8], other: &[u8]) -> bool {
        own == other || self.caseless && own.eq_ignore_ascii_case(other)
    }
}
