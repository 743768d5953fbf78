//! Checks whether a feed can be served from the tables of a database, and names the remedies.

use std::fmt;

use headwater_sql::quoted;
use headwater_timeline::{IntegerColumnType, KeyType};

use crate::binding::FeedColumnTypes;
use crate::catalogue::{CatalogueTable, DatabaseCatalogue, TableIndex};
use crate::definition::FeedDefinition;

/// Why a feed is not served from a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedObstacle {
    /// A table does not exist, or the service account may not see it.
    NoTable {
        /// The table.
        table: String,
    },
    /// It is a view, or a system-versioned table.
    Kind {
        /// The table.
        table: String,
        /// Its kind.
        kind: String,
    },
    /// Its engine has no transactions that are in step with the binary log.
    Engine {
        /// The table.
        table: String,
        /// Its engine.
        engine: String,
    },
    /// A column does not exist.
    NoColumn {
        /// Its table.
        table: String,
        /// The column.
        column: String,
    },
    /// Memory cannot hold a column's type.
    Type {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// Its type.
        is: String,
        /// The type that is needed.
        needed: &'static str,
    },
    /// A column is generated, and may depend on the session.
    Generated {
        /// Its table.
        table: String,
        /// The column.
        column: String,
    },
    /// The id is not the primary key.
    PrimaryKey {
        /// The table.
        table: String,
        /// The id.
        id: String,
    },
    /// No index finds an author's messages, or a reader's authors.
    NoIndex {
        /// The table.
        table: String,
        /// The columns that the index has to begin with.
        columns: Vec<String>,
    },
}

impl FeedObstacle {
    /// The remedy, if there is one: a statement, or a correction of the settings. `account` is written as in a statement.
    #[must_use]
    pub fn remedy(&self, database: &str, account: &str) -> Option<String> {
        let correct = |what: &str| format!("correct {what} in the feed's section of the settings");
        match self {
            FeedObstacle::NoTable { table } => Some(select_grant(database, table, account)),
            FeedObstacle::NoColumn { column, .. } => Some(correct(&format!("the column {column}"))),
            FeedObstacle::Kind { .. } => Some(correct("the table, which has to be a plain one,")),
            _ => self.alter_statement(),
        }
    }

    /// The statement that makes the table fit, if there is one.
    fn alter_statement(&self) -> Option<String> {
        let columns = |columns: &[String]| {
            let columns = columns.iter().map(|name| quoted(name));
            columns.collect::<Vec<_>>().join(", ")
        };
        let (table, what) = match self {
            FeedObstacle::Engine { table, .. } => (table, "ENGINE = InnoDB".to_owned()),
            FeedObstacle::NoIndex {
                table,
                columns: names,
            } => (table, format!("ADD INDEX ({})", columns(names))),
            _ => return None,
        };
        Some(format!("ALTER TABLE {} {what}", quoted(table)))
    }
}

/// The statement that lets an account see a table. `account` is written as in a statement.
#[must_use]
pub fn select_grant(database: &str, table: &str, account: &str) -> String {
    let (database, table) = (quoted(database), quoted(table));
    format!("GRANT SELECT ON {database}.{table} TO {account}")
}

impl fmt::Display for FeedObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedObstacle::NoTable { table } => write!(
                f,
                "there is no table {table}, or the service account may not see it: correct the feed's database and tables in the settings, or \
                 GRANT SELECT"
            ),
            FeedObstacle::Kind { table, kind } => {
                write!(
                    f,
                    "{table} is a {}, and has to be a plain table",
                    kind.to_ascii_lowercase()
                )
            }
            FeedObstacle::Engine { table, engine } => write!(
                f,
                "{table} is kept by {engine}, and has to be kept by InnoDB"
            ),
            FeedObstacle::NoColumn { table, column } => write!(f, "{table} has no column {column}"),
            FeedObstacle::Type {
                table,
                column,
                is,
                needed,
            } => write!(f, "{table}.{column} is {is}, and has to be {needed}"),
            FeedObstacle::Generated { table, column } => {
                write!(f, "{table}.{column} is computed from other columns")
            }
            FeedObstacle::PrimaryKey { table, id } => {
                write!(f, "{id} alone has to be the primary key of {table}")
            }
            FeedObstacle::NoIndex { .. } => {
                f.write_str("no index leads to the rows that are asked for")
            }
        }?;
        match self.alter_statement() {
            Some(alter) => write!(f, ": {alter}"),
            None => Ok(()),
        }
    }
}

/// The tables that a feed needs.
#[must_use]
pub fn tables(definition: &FeedDefinition) -> Vec<String> {
    let follow = definition
        .follow
        .as_ref()
        .map(|follow| follow.table.clone());
    [definition.message.table.clone()]
        .into_iter()
        .chain(follow)
        .collect()
}

const INTEGER_REQUIRED: &str = "an integer";
const ORDERED_REQUIRED: &str = "an integer, DATETIME or TIMESTAMP";

/// Checks a feed's tables, and returns the types of its columns.
///
/// # Errors
/// All obstacles.
pub fn check(
    definition: &FeedDefinition,
    known: &DatabaseCatalogue,
) -> Result<FeedColumnTypes, Vec<FeedObstacle>> {
    let mut obstacles = Vec::new();
    let message = &definition.message;
    let messages = table(&message.table, known, &mut obstacles);
    let mut id = None;
    let mut key = None;
    let mut authors = Vec::new();
    let mut has_follow_copies = false;
    if let Some(facts) = messages {
        let message_table = CheckedTable {
            name: &message.table,
            facts,
        };
        id = message_table.integer_type(&message.id, &mut obstacles);
        authors.extend(message_table.integer_type(&message.author, &mut obstacles));
        key = definition
            .key()
            .map(|key| message_table.key_type(key, &mut obstacles));
        message_table.check_primary_key(&message.id, &mut obstacles);
        // A message has one place in the order of its own.
        let is_followed = message.author.eq_ignore_ascii_case(&message.id);
        let key_name = definition.key().filter(|_| !is_followed);
        let leads = [Some(&*message.author), key_name];
        message_table.check_index(
            &leads.into_iter().flatten().collect::<Vec<_>>(),
            &mut obstacles,
        );
    }
    if let Some(follow) = &definition.follow
        && let Some(facts) = table(&follow.table, known, &mut obstacles)
    {
        let follow_table = CheckedTable {
            name: &follow.table,
            facts,
        };
        for column in [&follow.reader, &follow.author] {
            authors.extend(follow_table.integer_type(column, &mut obstacles));
        }
        follow_table.check_index(&[&follow.reader], &mut obstacles);
        has_follow_copies = !follow_table.is_unique(&[&follow.reader, &follow.author]);
    }
    match id {
        Some(id) if obstacles.is_empty() => Ok(FeedColumnTypes {
            id,
            author: common_integer(&authors),
            // A key without a type is an obstacle.
            key: key.flatten(),
            has_follow_copies,
            has_mixed_signs: authors.iter().any(|integer| integer.signed)
                && !authors.iter().all(|integer| integer.signed),
        }),
        _ => Err(obstacles),
    }
}

fn table<'a>(
    name: &str,
    known: &'a DatabaseCatalogue,
    obstacles: &mut Vec<FeedObstacle>,
) -> Option<&'a CatalogueTable> {
    let table = name.to_owned();
    let Some(facts) = known.catalogue_table(name) else {
        obstacles.push(FeedObstacle::NoTable { table });
        return None;
    };
    if !facts.is_plain() {
        let kind = facts.kind.clone();
        obstacles.push(FeedObstacle::Kind { table, kind });
        return None;
    }
    if !facts.engine.eq_ignore_ascii_case("InnoDB") {
        let engine = facts.engine.clone();
        obstacles.push(FeedObstacle::Engine { table, engine });
    }
    Some(facts)
}

/// The range that all these types hold.
fn common_integer(types: &[IntegerColumnType]) -> IntegerColumnType {
    IntegerColumnType {
        bits: types.iter().map(|integer| integer.bits).min().unwrap_or(64),
        signed: types.iter().any(|integer| integer.signed),
    }
}

struct CheckedTable<'a> {
    name: &'a str,
    facts: &'a CatalogueTable,
}

impl CheckedTable<'_> {
    fn column_position(&self, column: &str, obstacles: &mut Vec<FeedObstacle>) -> Option<usize> {
        let position = self.facts.table.column_position(column);
        let Some(at) = position else {
            obstacles.push(FeedObstacle::NoColumn {
                table: self.name.to_owned(),
                column: column.to_owned(),
            });
            return None;
        };
        if self.facts.is_generated(at) {
            obstacles.push(FeedObstacle::Generated {
                table: self.name.to_owned(),
                column: column.to_owned(),
            });
            return None;
        }
        Some(at)
    }

    fn wrong_type(&self, column: &str, at: usize, needed: &'static str) -> FeedObstacle {
        FeedObstacle::Type {
            table: self.name.to_owned(),
            column: column.to_owned(),
            is: self.facts.sql_type(at).to_owned(),
            needed,
        }
    }

    fn integer_type(
        &self,
        column: &str,
        obstacles: &mut Vec<FeedObstacle>,
    ) -> Option<IntegerColumnType> {
        let at = self.column_position(column, obstacles)?;
        let integer = self.facts.integer_type(at);
        if integer.is_none() {
            obstacles.push(self.wrong_type(column, at, INTEGER_REQUIRED));
        }
        integer
    }

    fn key_type(&self, column: &str, obstacles: &mut Vec<FeedObstacle>) -> Option<KeyType> {
        let at = self.column_position(column, obstacles)?;
        let key = self.facts.key_type(at);
        if key.is_none() {
            obstacles.push(self.wrong_type(column, at, ORDERED_REQUIRED));
        }
        key
    }

    /// The positions of these columns. `None`: one is missing, which was already reported.
    fn column_positions(&self, columns: &[&str]) -> Option<Vec<usize>> {
        let positions = columns
            .iter()
            .map(|column| self.facts.table.column_position(column));
        positions.collect()
    }

    fn check_primary_key(&self, id: &str, obstacles: &mut Vec<FeedObstacle>) {
        let Some(at) = self.facts.table.column_position(id) else {
            return;
        };
        let primary = self.facts.indexes.get("PRIMARY");
        if primary.is_none_or(|key| key.columns != [Some(at)]) {
            obstacles.push(FeedObstacle::PrimaryKey {
                table: self.name.to_owned(),
                id: id.to_owned(),
            });
        }
    }

    fn check_index(&self, columns: &[&str], obstacles: &mut Vec<FeedObstacle>) {
        let Some(positions) = self.column_positions(columns) else {
            return;
        };
        let leads = |index: &TableIndex| {
            let leading = index.columns.iter().map(|column| column.as_ref());
            leading.take(positions.len()).eq(positions.iter().map(Some))
        };
        if !self.facts.indexes.values().any(leads) {
            obstacles.push(FeedObstacle::NoIndex {
                table: self.name.to_owned(),
                columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            });
        }
    }

    /// True if no two rows have the same values in these columns.
    fn is_unique(&self, columns: &[&str]) -> bool {
        let Some(positions) = self.column_positions(columns) else {
            return false;
        };
        // Rows with NULL may occur more than once, and belong to no reader.
        let mut indexes = self.facts.indexes.values();
        indexes.any(|index| {
            let mut index_columns = index.columns.iter();
            index.unique
                && index_columns.all(|column| column.is_some_and(|at| positions.contains(&at)))
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::catalogue::CatalogueRows;

    fn home() -> FeedDefinition {
        toml::from_str(
            "name = 'home'\n[message]\ntable = 'm'\nauthor = 'author'\norder = ['at', 'id']\n\
             [follow]\ntable = 'f'\nreader = 'reader'\nauthor = 'author'",
        )
        .unwrap()
    }

    fn catalogue_rows(rows: &[&[&str]]) -> CatalogueRows {
        let cell = |cell: &&str| (*cell != "NULL").then(|| cell.as_bytes().to_vec());
        rows.iter()
            .map(|row| row.iter().map(cell).collect())
            .collect()
    }

    const TABLES: [[&str; 3]; 2] = [["m", "BASE TABLE", "InnoDB"], ["f", "BASE TABLE", "InnoDB"]];
    const COLUMNS: [[&str; 5]; 5] = [
        ["m", "id", "bigint unsigned", "NO", "auto_increment"],
        ["m", "author", "bigint", "YES", ""],
        ["m", "at", "datetime", "YES", ""],
        ["f", "reader", "int", "NO", ""],
        ["f", "author", "int", "NO", ""],
    ];
    const INDEXES: [[&str; 5]; 5] = [
        ["m", "PRIMARY", "0", "id", "NULL"],
        ["m", "feed", "1", "author", "NULL"],
        ["m", "feed", "1", "at", "NULL"],
        ["f", "PRIMARY", "0", "reader", "NULL"],
        ["f", "PRIMARY", "0", "author", "NULL"],
    ];

    #[test]
    fn a_remedy_by_one_statement_is_reported() {
        let table = || "m".to_owned();
        let cure =
            |obstacle: FeedObstacle| obstacle.remedy("app", "`me`@`here`").unwrap_or_default();
        assert_eq!(
            cure(FeedObstacle::NoTable { table: table() }),
            "GRANT SELECT ON `app`.`m` TO `me`@`here`"
        );
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let index = FeedObstacle::NoIndex {
            table: table(),
            columns,
        };
        assert_eq!(cure(index), "ALTER TABLE `m` ADD INDEX (`a`, `b`)");
        let id = "id".to_owned();
        assert_eq!(cure(FeedObstacle::PrimaryKey { table: table(), id }), "");
    }

    /// The obstacles where one cell is changed, or a row is missing.
    fn obstacles_with(table: usize, row: usize, to: Option<(usize, &'static str)>) -> Vec<String> {
        let (mut tables, mut columns, mut indexes) =
            (TABLES.to_vec(), COLUMNS.to_vec(), INDEXES.to_vec());
        match (table, to) {
            (0, Some((at, to))) => tables[row][at] = to,
            (1, Some((at, to))) => columns[row][at] = to,
            (2, Some((at, to))) => indexes[row][at] = to,
            (0, None) => drop(tables.remove(row)),
            (1, None) => drop(columns.remove(row)),
            _ => drop(indexes.remove(row)),
        }
        let of = |rows: Vec<&[&str]>| catalogue_rows(&rows);
        let known = DatabaseCatalogue::read(
            "app",
            &[
                of(tables.iter().map(|row| &row[..]).collect()),
                of(columns.iter().map(|row| &row[..]).collect()),
                of(indexes.iter().map(|row| &row[..]).collect()),
            ],
        );
        match check(&home(), &known) {
            Ok(_) => Vec::new(),
            Err(found) => found.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_feed_with_its_indexes_is_served() {
        assert_eq!(
            obstacles_with(0, 0, Some((2, "INNODB"))),
            Vec::<String>::new()
        );
        // Types need not be the same.
        assert_eq!(
            obstacles_with(1, 3, Some((2, "bigint unsigned"))),
            Vec::<String>::new()
        );
        // Nor need a follow be unique.
        assert_eq!(obstacles_with(2, 4, Some((2, "1"))), Vec::<String>::new());
    }

    #[test]
    fn obstacles_are_reported_with_their_remedies() {
        for (table, row, to, expected) in [
            (0, 0, None, "there is no table m"),
            (0, 0, Some((1, "VIEW")), "m is a view"),
            (0, 1, Some((2, "MyISAM")), "ALTER TABLE `f` ENGINE = InnoDB"),
            (
                1,
                1,
                Some((2, "char(36)")),
                "m.author is char(36), and has to be an integer",
            ),
            (
                1,
                2,
                Some((2, "date")),
                "has to be an integer, DATETIME or TIMESTAMP",
            ),
            (
                1,
                2,
                Some((2, "datetime /* mariadb-5.3 */")),
                "m.at is datetime /* mariadb-5.3 */, and has to be",
            ),
            (1, 2, Some((4, "STORED GENERATED")), "m.at is computed"),
            (1, 2, Some((1, "then")), "m has no column at"),
            (
                2,
                0,
                Some((3, "author")),
                "id alone has to be the primary key of m",
            ),
            (2, 2, None, "ALTER TABLE `m` ADD INDEX (`author`, `at`)"),
        ] {
            let all = obstacles_with(table, row, to);
            let is_reported = all.iter().any(|one| one.contains(expected));
            assert!(is_reported, "{expected}: {all:?}");
        }
    }
}
