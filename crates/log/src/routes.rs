//! Which tables of the log belong to which timeline, and the positions of their columns.

use super::evidence::TableRole;
use headwater_timeline::KeyType;
use headwater_timeline::definition::IdType;
use headwater_timeline::index::TableId;

/// A watched table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRoute {
    /// The timeline that it belongs to.
    pub table_id: TableId,
    /// Its role.
    pub table: TableRole,
    /// The table's database.
    pub database: String,
    /// The table's name.
    pub name: String,
    /// The table's number of columns; `None` until the schema is read.
    pub columns: Option<usize>,
    /// The message's id, or the reader.
    pub first: ColumnPosition,
    /// The author.
    pub second: ColumnPosition,
    /// The sort key that orders pages before the id, if any.
    pub key: Option<KeyColumnPosition>,
    /// It may hold a follow twice.
    pub has_copies: bool,
    /// Some of its timeline's columns that hold users are signed, and others are not: of a value with the sign's bit nothing is certain.
    pub has_mixed_signs: bool,
}

/// Position and type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPosition {
    /// Position, from 0.
    pub at: usize,
    /// The column's type.
    pub kind: IdType,
}

/// Position and type of a sort key's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyColumnPosition {
    /// Position, from 0.
    pub at: usize,
    /// The column's type.
    pub kind: KeyType,
}

/// All watched tables.
#[derive(Clone, Debug, Default)]
pub struct TableRoutes {
    /// One for each table of each timeline.
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

    /// A table that may hold a follow twice may do so for each timeline that it belongs to, also for one that was added before.
    pub fn spread_copies(&mut self) {
        let has_copies = |route: &TableRoute| {
            let mut same = self.matching(route.database.as_bytes(), route.name.as_bytes());
            same.any(|other| other.has_copies)
        };
        let copies: Vec<bool> = self.routes.iter().map(has_copies).collect();
        for (route, has_copies) in self.routes.iter_mut().zip(copies) {
            route.has_copies = has_copies;
        }
    }

    /// True if the server takes both names for the same.
    pub fn is_same_name(&self, own: &[u8], other: &[u8]) -> bool {
        own == other || self.caseless && own.eq_ignore_ascii_case(other)
    }
}

#[cfg(test)]
mod tests {
    use headwater_timeline::IdType;
    use headwater_timeline::index::{TableId, TimelineId};

    use super::*;

    fn route(timeline: usize, name: &str, has_copies: bool) -> TableRoute {
        let column = ColumnPosition {
            at: 0,
            kind: IdType::Int,
        };
        TableRoute {
            table_id: TableId::Messages(TimelineId(timeline)),
            table: TableRole::Follower,
            database: "app".into(),
            name: name.into(),
            columns: None,
            first: column,
            second: column,
            key: None,
            has_copies,
            has_mixed_signs: false,
        }
    }

    /// A unique key was dropped after the first timeline was added: its rows prove nothing any more either.
    #[test]
    fn copies_of_a_table_are_those_of_each_timeline() {
        for (caseless, expected) in [(false, [true, false, true]), (true, [true, true, true])] {
            let mut routes = TableRoutes {
                routes: vec![
                    route(0, "follows", false),
                    route(1, "FOLLOWS", false),
                    route(2, "follows", true),
                ],
                caseless,
            };
            routes.spread_copies();
            let copies: Vec<bool> = routes.routes.iter().map(|route| route.has_copies).collect();
            assert_eq!(copies, expected);
        }
    }
}
