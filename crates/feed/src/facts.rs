//! What the server's catalogue says of tables, and how it is asked.

use std::collections::BTreeMap;

use headwater_sql::{NameCase, hex};
use headwater_timeline::{Integer, KeyType};

use crate::schema::{Class, ColumnFacts, Schema, Table};

/// Rows of one answer, a text in each cell.
pub type Told = Vec<Vec<Option<Vec<u8>>>>;

/// The names that rows of an answer begin with.
pub fn names(rows: impl IntoIterator<Item = Vec<Option<Vec<u8>>>>) -> impl Iterator<Item = String> {
    let names = rows.into_iter().filter_map(|row| row.into_iter().next()?);
    names.map(|name| String::from_utf8_lossy(&name).into_owned())
}

/// Tables of one database, as they were seen at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// The database.
    pub database: String,
    /// How the server compares names.
    pub case: NameCase,
    tables: BTreeMap<String, TableFacts>,
}

/// A table as the catalogue describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// BASE TABLE, VIEW, SYSTEM VERSIONED, ...
    pub kind: String,
    /// Its engine.
    pub engine: String,
    /// What statements need to know of it.
    pub table: Table,
    /// Of each column: its type in SQL.
    types: Vec<String>,
    /// Of each column: how it comes by itself.
    extra: Vec<String>,
    /// Its indexes, by their names.
    pub indexes: BTreeMap<String, Index>,
}

/// An index of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// No two rows have the same values.
    pub unique: bool,
    /// Its columns, by their places; `None`: a part of a column, or an expression.
    pub columns: Vec<Option<usize>>,
}

/// The questions about tables of a database, whose answers [`Tables::read`] takes.
#[must_use]
pub fn queries(database: &str, tables: &[String]) -> [String; 3] {
    let names: Vec<String> = tables.iter().map(|name| hex(name)).collect();
    let those = format!(
        "TABLE_SCHEMA = {} AND TABLE_NAME IN ({})",
        hex(database),
        names.join(",")
    );
    [
        format!(
            "SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE {those}"
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

fn cell(row: &[Option<Vec<u8>>], at: usize) -> String {
    let cell = row.get(at).and_then(Option::as_deref);
    String::from_utf8_lossy(cell.unwrap_or_default()).into_owned()
}

impl Tables {
    /// Reads the answers.
    #[must_use]
    pub fn read(database: &str, [tables, columns, indexes]: &[Told; 3]) -> Tables {
        let mut read = Tables {
            database: database.to_owned(),
            case: NameCase::Kept,
            tables: BTreeMap::new(),
        };
        for row in tables {
            let facts = TableFacts {
                kind: cell(row, 1),
                engine: cell(row, 2),
                ..TableFacts::default()
            };
            read.tables.insert(cell(row, 0), facts);
        }
        for row in columns {
            if let Some(facts) = read.tables.get_mut(&cell(row, 0)) {
                facts.column(row);
            }
        }
        for row in indexes {
            if let Some(facts) = read.tables.get_mut(&cell(row, 0)) {
                facts.part(row);
            }
        }
        for facts in read.tables.values_mut() {
            facts.table.unique = facts.unique();
        }
        read
    }

    /// The same, of a server that compares names so.
    #[must_use]
    pub fn with_case(self, case: NameCase) -> Tables {
        Tables { case, ..self }
    }

    /// A table, whatever it is.
    #[must_use]
    pub fn facts(&self, name: &str) -> Option<&TableFacts> {
        self.tables.get(name)
    }
}

impl Schema for Tables {
    fn table(&self, database: Option<&str>, name: &str) -> Option<&Table> {
        if database.is_some_and(|database| database != self.database) {
            return None;
        }
        let facts = self.facts(name).filter(|facts| facts.is_plain());
        facts.map(|facts| &facts.table)
    }
}

impl TableFacts {
    /// A table of rows, and of these as they are now.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.kind == "BASE TABLE"
    }

    /// The type of a column, as SQL writes it.
    #[must_use]
    pub fn sql_type(&self, at: usize) -> &str {
        self.types.get(at).map_or("", String::as_str)
    }

    /// The integer type of a column that is one, and does not come by itself.
    #[must_use]
    pub fn integer(&self, at: usize) -> Option<Integer> {
        integer(self.sql_type(at))
    }

    /// True for a column that is computed from others.
    #[must_use]
    pub fn is_generated(&self, at: usize) -> bool {
        self.extra.get(at).is_some_and(|extra| is_generated(extra))
    }

    /// True for a column that may be NULL.
    #[must_use]
    pub fn is_nullable(&self, at: usize) -> bool {
        self.table
            .columns
            .get(at)
            .is_none_or(|column| column.is_nullable)
    }

    /// The type of a column by which pages can be ordered.
    #[must_use]
    pub fn key(&self, at: usize) -> Option<KeyType> {
        let sql = self.sql_type(at);
        match split(sql) {
            ("datetime", rest) => precision(rest).map(KeyType::Datetime),
            ("timestamp", rest) => precision(rest).map(KeyType::Timestamp),
            _ => integer(sql).map(KeyType::Integer),
        }
    }

    fn column(&mut self, row: &[Option<Vec<u8>>]) {
        let sql = cell(row, 2).to_ascii_lowercase();
        let extra = cell(row, 4).to_ascii_uppercase();
        self.table.columns.push(ColumnFacts {
            name: cell(row, 1),
            class: class(&sql),
            is_virtual: extra.contains("VIRTUAL"),
            is_zoned: split(&sql).0 == "timestamp",
            is_hidden: extra.contains("INVISIBLE"),
            is_nullable: cell(row, 3) != "NO",
        });
        self.types.push(sql);
        self.extra.push(extra);
    }

    fn part(&mut self, row: &[Option<Vec<u8>>]) {
        let place = self.table.place(&cell(row, 3));
        let whole = row.get(4).is_some_and(Option::is_none);
        let index = self.indexes.entry(cell(row, 1)).or_default();
        index.unique = cell(row, 2) == "0";
        index.columns.push(place.filter(|_| whole));
    }

    fn unique(&self) -> Vec<Vec<usize>> {
        let keys = self.indexes.values().filter(|index| index.unique);
        let whole = keys.filter_map(|index| index.columns.iter().copied().collect());
        whole
            .filter(|key: &Vec<usize>| !key.iter().any(|at| self.is_nullable(*at)))
            .collect()
    }
}

fn is_generated(extra: &str) -> bool {
    // DEFAULT_GENERATED is a default that is an expression.
    ["VIRTUAL", "STORED", "PERSISTENT"]
        .iter()
        .any(|word| extra.contains(word))
}

fn integer(sql: &str) -> Option<Integer> {
    let (name, rest) = split(sql);
    let bits = match name {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        "bigint" => 64,
        _ => return None,
    };
    let signed = !rest.contains("unsigned") && !rest.contains("zerofill");
    Some(Integer { bits, signed })
}

/// The name of a type, and what stands behind it.
fn split(sql: &str) -> (&str, &str) {
    let end = sql.find(|letter: char| !letter.is_ascii_alphabetic());
    sql.split_at(end.unwrap_or(sql.len()))
}

/// How many digits a moment has behind the second: `(3)`, or nothing.
fn precision(rest: &str) -> Option<u8> {
    match rest {
        "" => Some(0),
        _ => rest.strip_prefix('(')?.strip_suffix(')')?.parse().ok(),
    }
}

fn class(sql: &str) -> Class {
    let (name, rest) = split(sql);
    match name {
        _ if integer(sql).is_some() => Class::Integer,
        "decimal" | "float" | "double" => Class::Number,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" => {
            Class::Text
        }
        "date" => Class::Moment(0),
        "datetime" | "timestamp" => Class::Moment(precision(rest).unwrap_or(0)),
        _ => Class::Other,
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

    fn tables() -> Tables {
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
        Tables::read(
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
        let facts = tables.facts("m").unwrap();
        assert_eq!(facts.engine, "InnoDB");
        assert_eq!(
            facts.integer(0),
            Some(Integer {
                bits: 64,
                signed: false
            })
        );
        assert_eq!(
            facts.integer(1),
            Some(Integer {
                bits: 32,
                signed: true
            })
        );
        assert_eq!(facts.key(2), Some(KeyType::Timestamp(3)));
        assert!(facts.is_generated(4) && !facts.is_generated(2));
        // One with a part of a column, or with a column that may be NULL, says nothing of rows.
        assert_eq!(facts.table.unique, [[0]]);
        assert_eq!(
            facts.indexes.get("by_author").unwrap().columns,
            [Some(1), Some(2)]
        );
        let classes: Vec<Class> = facts.table.columns.iter().map(|it| it.class).collect();
        assert_eq!(
            classes,
            [
                Class::Integer,
                Class::Integer,
                Class::Moment(3),
                Class::Text,
                Class::Integer
            ]
        );
    }

    #[test]
    fn a_view_and_a_table_of_another_database_are_none() {
        let tables = tables();
        assert!(tables.table(None, "m").is_some());
        assert!(tables.table(Some("app"), "m").is_some());
        assert!(tables.table(Some("other"), "m").is_none());
        assert!(tables.table(None, "v").is_none() && tables.facts("v").is_some());
        assert!(tables.table(None, "n").is_none());
    }

    #[test]
    fn types_are_told_by_their_names() {
        for (sql, expected) in [
            ("tinyint(1)", Class::Integer),
            ("decimal(10,2)", Class::Number),
            ("enum('a','b')", Class::Text),
            ("datetime", Class::Moment(0)),
            ("datetime(6)", Class::Moment(6)),
            ("time", Class::Other),
            ("year(4)", Class::Other),
            ("json", Class::Other),
            ("blob", Class::Other),
            ("set('a')", Class::Other),
            ("uuid", Class::Other),
        ] {
            assert_eq!(class(sql), expected, "{sql}");
        }
    }
}
