//! Which tables of the log belong to which timeline, and where their columns stand.

use super::evidence::Table;
use crate::timeline::definition::IntType;

/// A table that is listened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) place: usize,
    pub(super) table: Table,
    pub(super) database: String,
    pub(super) name: String,
    /// How many columns the table has; `None` until the schema was read.
    pub(super) columns: Option<usize>,
    /// The message's id, or the reader.
    pub(super) first: Column,
    /// The author.
    pub(super) second: Column,
}

/// A column of a row: where it stands, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) at: usize,
    pub(super) kind: IntType,
}

/// Every table that is listened to.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    pub(super) routes: Vec<Route>,
    /// The server compares names without case (`lower_case_table_names`).
    pub(super) caseless: bool,
}

impl Routes {
    /// The routes of a table in the log: one for each timeline that it belongs to.
    pub(super) fn of(&self, database: &[u8], name: &[u8]) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(move |route| {
            self.same(route.database.as_bytes(), database) && self.same(route.name.as_bytes(), name)
        })
    }

    /// True when two names are one to the server.
    pub(super) fn same(&self, own: &[u8], other: &[u8]) -> bool {
        own == other || self.caseless && own.eq_ignore_ascii_case(other)
    }
}
