//! A joined table, whose rows are shown beside messages: its routes in the log, and queries about it.

use headwater_sql::{hex_literal, quoted};
use headwater_timeline::definition::IdType;
use headwater_timeline::index::TableId;

use super::evidence::TableRole;
use super::routes::{ColumnPosition, TableRoute};

/// A table whose rows messages refer to by an integer key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedTable {
    /// Its id.
    pub table_id: TableId,
    /// The table's database.
    pub database: String,
    /// The table's name.
    pub table: String,
    /// The unique column by which messages refer to its rows.
    pub id: String,
}

impl JoinedTable {
    /// True if both are the same table and column, whatever their `table_id`.
    #[must_use]
    pub fn is_same_table(&self, other: &JoinedTable) -> bool {
        (&self.database, &self.table, &self.id) == (&other.database, &other.table, &other.id)
    }

    /// Its route without column positions: the table is watched, but its rows cannot be read yet.
    #[must_use]
    pub fn blind_route(&self) -> TableRoute {
        // A negative value is read as a number that no row has.
        let column = ColumnPosition {
            at: 0,
            kind: IdType::BigIntUnsigned,
        };
        TableRoute {
            table_id: self.table_id,
            table: TableRole::Referred,
            database: self.database.clone(),
            name: self.table.clone(),
            columns: None,
            first: column,
            second: column,
            key: None,
            has_copies: false,
            has_mixed_signs: false,
        }
    }

    /// Query for all columns of the table.
    #[must_use]
    pub fn columns_query(&self) -> String {
        format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
             ORDER BY ORDINAL_POSITION",
            hex_literal(&self.database),
            hex_literal(&self.table),
        )
    }

    /// Query for the table's definition.
    #[must_use]
    pub fn show_create_query(&self) -> String {
        let (database, table) = (quoted(&self.database), quoted(&self.table));
        format!("SHOW CREATE TABLE {database}.{table}")
    }

    /// The route, from the columns that the server lists; `None` if the key column is missing.
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
        let joined = JoinedTable {
            table_id: TableId::Joined(9),
            database: "app".into(),
            table: "users".into(),
            id: "id".into(),
        };
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let columns: Vec<String> = columns(&["name", "ID"]);
        let route = joined.route(&columns).unwrap();
        assert_eq!((route.columns, route.first.at), (Some(2), 1));
        assert_eq!(joined.route(&[]), None);
        assert!(joined.is_same_table(&JoinedTable {
            table_id: TableId::Joined(1),
            ..joined.clone()
        }));
    }
}
