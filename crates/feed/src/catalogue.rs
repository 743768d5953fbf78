//! Queries of the server's catalogue (`information_schema`), and the tables that their replies describe.

use std::collections::BTreeMap;

use headwater_sql::{NameCase, hex_literal};
use headwater_timeline::{IntegerColumnType, KeyType};

use crate::schema::{ColumnSchema, ComparisonClass, Schema, TableSchema};

/// Rows of one reply, with a text in each cell.
pub type CatalogueRows = Vec<Vec<Option<Vec<u8>>>>;

/// The first column of a reply, as names.
pub fn first_column_names(
    rows: impl IntoIterator<Item = Vec<Option<Vec<u8>>>>,
) -> impl Iterator<Item = String> {
    let names = rows.into_iter().filter_map(|row| row.into_iter().next()?);
    names.map(|name| String::from_utf8_lossy(&name).into_owned())
}

/// The tables of one database, as read at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCatalogue {
    /// The database.
    pub database: String,
    /// How the server compares names.
    pub case: NameCase,
    tables: BTreeMap<String, CatalogueTable>,
}

/// A table as the catalogue describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogueTable {
    /// BASE TABLE, VIEW, SYSTEM VERSIONED, ...
    pub kind: String,
    /// Its storage engine.
    pub engine: String,
    /// Its rows are spread over partitions.
    is_partitioned: bool,
    /// The columns and keys that statements need.
    pub table: TableSchema,
    /// The SQL type of each column.
    column_types: Vec<String>,
    /// EXTRA of each column, in upper case.
    column_extras: Vec<String>,
    /// Its indexes, by name.
    pub indexes: BTreeMap<String, TableIndex>,
}

/// An index of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableIndex {
    /// No two rows have the same values.
    pub unique: bool,
    /// Its columns, by position; `None`: a prefix of a column, or an expression.
    pub columns: Vec<Option<usize>>,
}

/// The name that servers give the index of a primary key.
const PRIMARY_KEY: &str = "PRIMARY";

/// The queries for tables of a database. [`DatabaseCatalogue::read`] takes their replies.
#[must_use]
pub fn catalogue_queries(database: &str, tables: &[String]) -> [String; 3] {
    let those = tables_condition(database, tables);
    [
        format!(
            "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, CREATE_OPTIONS FROM information_schema.TABLES WHERE {those}"
        ),
        format!(
            "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, EXTRA FROM information_schema.COLUMNS \
             WHERE {those} ORDER BY TABLE_NAME, ORDINAL_POSITION"
        ),
        format!(
            "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS \
             WHERE {those} ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
        ),
    ]
}

/// The condition for rows of `information_schema` about these tables.
pub(crate) fn tables_condition(database: &str, tables: &[String]) -> String {
    let names: Vec<String> = tables.iter().map(|name| hex_literal(name)).collect();
    format!(
        "TABLE_SCHEMA = {} AND TABLE_NAME IN ({})",
        hex_literal(database),
        names.join(",")
    )
}

/// A cell as text; NULL is empty.
pub(crate) fn cell(row: &[Option<Vec<u8>>], at: usize) -> String {
    let cell = row.get(at).and_then(Option::as_deref);
    String::from_utf8_lossy(cell.unwrap_or_default()).into_owned()
}

impl DatabaseCatalogue {
    /// Reads the replies.
    #[must_use]
    pub fn read(
        database: &str,
        [tables, columns, indexes]: &[CatalogueRows; 3],
    ) -> DatabaseCatalogue {
        let mut read = DatabaseCatalogue {
            database: database.to_owned(),
            case: NameCase::Sensitive,
            tables: BTreeMap::new(),
        };
        for row in tables {
            let facts = CatalogueTable {
                kind: cell(row, 1),
                engine: cell(row, 2),
                is_partitioned: cell(row, 3).to_ascii_lowercase().contains("partitioned"),
                ..CatalogueTable::default()
            };
            read.tables.insert(cell(row, 0), facts);
        }
        for row in columns {
            if let Some(facts) = read.tables.get_mut(&cell(row, 0)) {
                facts.add_column(row);
            }
        }
        for row in indexes {
            if let Some(facts) = read.tables.get_mut(&cell(row, 0)) {
                facts.add_index_part(row);
            }
        }
        for facts in read.tables.values_mut() {
            facts.table.unique_keys = facts.unique_keys();
            facts.table.secondary_indexes = facts.secondary_indexes();
        }
        read
    }

    /// Sets how the server compares names.
    #[must_use]
    pub fn with_case(self, case: NameCase) -> DatabaseCatalogue {
        DatabaseCatalogue { case, ..self }
    }

    /// A table or view of any kind.
    #[must_use]
    pub fn catalogue_table(&self, name: &str) -> Option<&CatalogueTable> {
        self.tables.get(name)
    }
}

impl Schema for DatabaseCatalogue {
    fn table(&self, database: Option<&str>, name: &str) -> Option<&TableSchema> {
        if database.is_some_and(|database| database != self.database) {
            return None;
        }
        let facts = self.catalogue_table(name).filter(|facts| facts.is_plain());
        facts.map(|facts| &facts.table)
    }
}

impl CatalogueTable {
    /// True for a base table: no view, and not system-versioned.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.kind == "BASE TABLE"
    }

    /// A column's SQL type.
    #[must_use]
    pub fn sql_type(&self, at: usize) -> &str {
        self.column_types.get(at).map_or("", String::as_str)
    }

    /// A column's integer type, if it has one.
    #[must_use]
    pub fn integer_type(&self, at: usize) -> Option<IntegerColumnType> {
        parse_integer_type(self.sql_type(at))
    }

    /// True for a generated column.
    #[must_use]
    pub fn is_generated(&self, at: usize) -> bool {
        self.column_extras
            .get(at)
            .is_some_and(|extra| is_generated(extra))
    }

    /// True for a column that may be NULL.
    #[must_use]
    pub fn is_nullable(&self, at: usize) -> bool {
        self.table
            .columns
            .get(at)
            .is_none_or(|column| column.is_nullable)
    }

    /// A column's type, if it can order pages.
    #[must_use]
    pub fn key_type(&self, at: usize) -> Option<KeyType> {
        let sql = self.sql_type(at);
        match split_type(sql) {
            ("datetime", rest) => precision(rest).map(KeyType::Datetime),
            ("timestamp", rest) => precision(rest).map(KeyType::Timestamp),
            _ => parse_integer_type(sql).map(KeyType::Integer),
        }
    }

    fn add_column(&mut self, row: &[Option<Vec<u8>>]) {
        let sql = cell(row, 2).to_ascii_lowercase();
        let extra = cell(row, 4).to_ascii_uppercase();
        self.table.columns.push(ColumnSchema {
            name: cell(row, 1),
            class: comparison_class(&sql),
            is_virtual: extra.contains("VIRTUAL"),
            is_zoned: split_type(&sql).0 == "timestamp",
            is_hidden: extra.contains("INVISIBLE"),
            is_nullable: cell(row, 3) != "NO",
            is_long: sql.starts_with("long") || sql.starts_with("medium"),
        });
        self.column_types.push(sql);
        self.column_extras.push(extra);
    }

    fn add_index_part(&mut self, row: &[Option<Vec<u8>>]) {
        let position = self.table.column_position(&cell(row, 3));
        let whole = row.get(4).is_some_and(Option::is_none);
        let index = self.indexes.entry(cell(row, 1)).or_default();
        index.unique = cell(row, 2) == "0";
        index.columns.push(position.filter(|_| whole));
    }

    /// See [`TableSchema::secondary_indexes`].
    fn secondary_indexes(&self) -> Option<Vec<Vec<Option<usize>>>> {
        let is_clustered = self.engine.eq_ignore_ascii_case("InnoDB")
            && self.indexes.contains_key(PRIMARY_KEY)
            && !self.is_partitioned;
        is_clustered.then(|| {
            let indexes = self.indexes.iter();
            let others = indexes.filter(|(name, _)| *name != PRIMARY_KEY);
            others.map(|(_, index)| index.columns.clone()).collect()
        })
    }

    fn unique_keys(&self) -> Vec<Vec<usize>> {
        let keys = self.indexes.values().filter(|index| index.unique);
        let whole = keys.filter_map(|index| index.columns.iter().copied().collect());
        whole
            .filter(|key: &Vec<usize>| !key.iter().any(|at| self.is_nullable(*at)))
            .collect()
    }
}

fn is_generated(extra: &str) -> bool {
    // DEFAULT_GENERATED only means that the default is an expression.
    ["VIRTUAL", "STORED", "PERSISTENT"]
        .iter()
        .any(|word| extra.contains(word))
}

fn parse_integer_type(sql: &str) -> Option<IntegerColumnType> {
    let (name, rest) = split_type(sql);
    let bits = match name {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        "bigint" => 64,
        _ => return None,
    };
    let signed = !rest.contains("unsigned") && !rest.contains("zerofill");
    Some(IntegerColumnType { bits, signed })
}

/// Splits a type into its name and the rest.
fn split_type(sql: &str) -> (&str, &str) {
    let end = sql.find(|letter: char| !letter.is_ascii_alphabetic());
    sql.split_at(end.unwrap_or(sql.len()))
}

/// The number of fractional digits: `(3)`, or nothing.
fn precision(rest: &str) -> Option<u8> {
    match rest {
        "" => Some(0),
        _ => rest.strip_prefix('(')?.strip_suffix(')')?.parse().ok(),
    }
}

fn comparison_class(sql: &str) -> ComparisonClass {
    let (name, rest) = split_type(sql);
    match name {
        _ if parse_integer_type(sql).is_some() => ComparisonClass::Integer,
        "decimal" | "float" | "double" | "bit" => ComparisonClass::Number,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" => {
            ComparisonClass::Text
        }
        "date" => ComparisonClass::Moment(0),
        "datetime" | "timestamp" => ComparisonClass::Moment(precision(rest).unwrap_or(0)),
        _ => ComparisonClass::Other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<Option<Vec<u8>>> {
        let cell = |cell: &&str| (*cell != "NULL").then(|| cell.as_bytes().to_vec());
        cells.iter().map(cell).collect()
    }

    fn tables() -> DatabaseCatalogue {
        let columns = [
            ["m", "id", "bigint(20) unsigned", "NO", "auto_increment"],
            ["m", "author", "int(11)", "YES", ""],
            ["m", "at", "timestamp(3)", "NO", "DEFAULT_GENERATED"],
            ["m", "title", "varchar(20)", "YES", ""],
            ["m", "sum", "int", "YES", "VIRTUAL GENERATED"],
            ["v", "id", "int", "NO", ""],
        ];
        let indexes = [
            ["m", "PRIMARY", "0", "id", "NULL"],
            ["m", "by_author", "1", "author", "NULL"],
            ["m", "by_author", "1", "at", "NULL"],
            ["m", "nullable", "0", "author", "NULL"],
            ["m", "part", "0", "title", "5"],
        ];
        DatabaseCatalogue::read(
            "app",
            &[
                vec![
                    row(&["m", "BASE TABLE", "InnoDB"]),
                    row(&["v", "VIEW", "NULL"]),
                ],
                columns.iter().map(|cells| row(cells)).collect(),
                indexes.iter().map(|cells| row(cells)).collect(),
            ],
        )
    }

    #[test]
    fn a_table_is_read_with_its_columns_and_keys() {
        let tables = tables();
        let facts = tables.catalogue_table("m").unwrap();
        assert_eq!(facts.engine, "InnoDB");
        assert_eq!(
            facts.integer_type(0),
            Some(IntegerColumnType {
                bits: 64,
                signed: false
            })
        );
        assert_eq!(
            facts.integer_type(1),
            Some(IntegerColumnType {
                bits: 32,
                signed: true
            })
        );
        assert_eq!(facts.key_type(2), Some(KeyType::Timestamp(3)));
        assert!(facts.is_generated(4) && !facts.is_generated(2));
        // An index on a prefix or on a nullable column does not make rows unique.
        assert_eq!(facts.table.unique_keys, [[0]]);
        assert_eq!(
            facts.indexes.get("by_author").unwrap().columns,
            [Some(1), Some(2)]
        );
        let classes: Vec<ComparisonClass> = facts.table.columns.iter().map(|it| it.class).collect();
        assert_eq!(
            classes,
            [
                ComparisonClass::Integer,
                ComparisonClass::Integer,
                ComparisonClass::Moment(3),
                ComparisonClass::Text,
                ComparisonClass::Integer
            ]
        );
    }

    #[test]
    fn a_view_and_a_table_of_another_database_are_none() {
        let tables = tables();
        assert!(tables.table(None, "m").is_some());
        assert!(tables.table(Some("app"), "m").is_some());
        assert!(tables.table(Some("other"), "m").is_none());
        assert!(tables.table(None, "v").is_none() && tables.catalogue_table("v").is_some());
        assert!(tables.table(None, "n").is_none());
    }

    #[test]
    fn types_are_classified_by_name() {
        for (sql, expected) in [
            ("tinyint(1)", ComparisonClass::Integer),
            ("decimal(10,2)", ComparisonClass::Number),
            ("enum('a','b')", ComparisonClass::Text),
            ("datetime", ComparisonClass::Moment(0)),
            ("datetime(6)", ComparisonClass::Moment(6)),
            ("time", ComparisonClass::Other),
            ("year(4)", ComparisonClass::Other),
            ("json", ComparisonClass::Other),
            ("blob", ComparisonClass::Other),
            ("set('a')", ComparisonClass::Other),
            ("uuid", ComparisonClass::Other),
        ] {
            assert_eq!(comparison_class(sql), expected, "{sql}");
        }
    }
}
