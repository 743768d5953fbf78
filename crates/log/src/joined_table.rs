//! A table whose rows are shown beside messages: where the log tells of them, and the questions about it.

use headwater_sql::{hex_literal, quoted};
use headwater_timeline::definition::IdType;
use headwater_timeline::index::TimelineId;

use super::evidence::TableRole;
use super::routes::{ColumnPosition, TableRoute};

/// A table in a database whose rows messages refer to by a whole number, its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedTable {
    /// Its number among the places.
    pub timeline_id: TimelineId,
    /// The database that it is in.
    pub database: String,
    /// Its name.
    pub table: String,
    /// The column by which its rows are referred to: no two have the same.
    pub id: String,
}

impl JoinedTable {
    /// True where these are the same rows, whatever number they bear.
    #[must_use]
    pub fn is_same_table(&self, other: &JoinedTable) -> bool {
        (&self.database, &self.table, &self.id) == (&other.database, &other.table, &other.id)
    }

    /// Its route without columns: the table is listened for, its rows not read yet.
    #[must_use]
    pub fn blind_route(&self) -> TableRoute {
        // What is below 0 is told as a number of none.
        let column = ColumnPosition {
            at: 0,
            kind: IdType::BigIntUnsigned,
        };
        TableRoute {
            timeline_id: self.timeline_id,
            table: TableRole::Referred,
            database: self.database.clone(),
            name: self.table.clone(),
            columns: None,
            first: column,
            second: column,
            key: None,
        }
    }

    /// Asks for every column of the table.
    #[must_use]
    pub fn columns_query(&self) -> String {
        format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
             ORDER BY ORDINAL_POSITION",
            hex_literal(&self.database),
            hex_literal(&self.table),
        )
    }

    /// Asks how the table was made.
    #[must_use]
    pub fn show_create_query(&self) -> String {
        let (database, table) = (quoted(&self.database), quoted(&self.table));
        format!("SHOW CREATE TABLE {database}.{table}")
    }

    /// The route, from the columns that the server lists; `None` when it is not there.
    #[must_use]
    pub fn route(&self, columns: &[String]) -> Option<TableRoute> {
        let at = columns
            .iter()
            .position(|column| column.eq_ignore_ascii_case(&self.id))?;
        let blind = self.blind_route();
        let column = ColumnPosition { at, ..blind.first };
        Some(TableRoute {
            columns: Some(columns.len()),
            first: column,
            second: column,
            ..blind
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_route_knows_where_the_key_stands() {
        let referred = JoinedTable {
            timeline_id: TimelineId(9),
            database: "app".into(),
            table: "users".into(),
            id: "id".into(),
        };
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let columns: Vec<String> = columns(&["name", "ID"]);
        let route = referred.route(&columns).unwrap();
        assert_eq!((route.columns, route.first.at), (Some(2), 1));
        assert_eq!(referred.route(&[]), None);
        assert!(referred.is_same_table(&JoinedTable {
            timeline_id: TimelineId(1),
            ..referred.clone()
        }));
    }
}
