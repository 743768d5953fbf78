//! Whether a feed can be served from the tables of a database, and what would mend it where it cannot.

use std::fmt;

use headwater_sql::quoted;
use headwater_timeline::{Integer, KeyType};

use crate::bind::Types;
use crate::definition::FeedDefinition;
use crate::facts::{Index, TableFacts, Tables};

/// Why a feed is not served from a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A table is not there, or the service account may not see it.
    NoTable {
        /// Which.
        table: String,
    },
    /// It is a view, or a table with a history of its own.
    Kind {
        /// Which.
        table: String,
        /// What it is.
        kind: String,
    },
    /// Its engine has no transactions that the log is in step with.
    Engine {
        /// Which table.
        table: String,
        /// Its engine.
        engine: String,
    },
    /// A column is not there.
    NoColumn {
        /// Its table.
        table: String,
        /// Which.
        column: String,
    },
    /// A column's type cannot be kept in memory.
    Type {
        /// Its table.
        table: String,
        /// Which.
        column: String,
        /// Its type.
        is: String,
        /// What it has to be.
        needed: &'static str,
    },
    /// A column is computed from others, and may follow the session.
    Generated {
        /// Its table.
        table: String,
        /// Which.
        column: String,
    },
    /// The id is not the primary key.
    PrimaryKey {
        /// The table.
        table: String,
        /// The id.
        id: String,
    },
    /// No index leads to an author's messages, or to a reader's authors.
    NoIndex {
        /// The table.
        table: String,
        /// The columns that it begins with.
        columns: Vec<String>,
    },
    /// Who follows whom may be there more than once.
    NotUnique {
        /// The table.
        table: String,
        /// Reader and author.
        columns: Vec<String>,
    },
}

impl Obstacle {
    /// What mends it: the statement, where one does, for an account and a database as a statement names them.
    #[must_use]
    pub fn cure(&self, database: &str, account: &str) -> Option<String> {
        let correct = |what: &str| format!("correct {what} in the feed's section of the settings");
        match self {
            Obstacle::NoTable { table } => Some(right_to_see(database, table, account)),
            Obstacle::NoColumn { column, .. } => Some(correct(&format!("the column {column}"))),
            Obstacle::Kind { .. } => Some(correct("the table, which has to be a plain one,")),
            _ => self.alter(),
        }
    }

    /// The statement that makes the table fit.
    fn alter(&self) -> Option<String> {
        let columns = |columns: &[String]| {
            let columns = columns.iter().map(|name| quoted(name));
            columns.collect::<Vec<_>>().join(", ")
        };
        let (table, what) = match self {
            Obstacle::Engine { table, .. } => (table, "ENGINE = InnoDB".to_owned()),
            Obstacle::NoIndex {
                table,
                columns: own,
            } => (table, format!("ADD INDEX ({})", columns(own))),
            Obstacle::NotUnique {
                table,
                columns: own,
            } => (table, format!("ADD UNIQUE INDEX ({})", columns(own))),
            _ => return None,
        };
        Some(format!("ALTER TABLE {} {what}", quoted(table)))
    }
}

/// The statement that lets an account see a table, as the statement names the account.
#[must_use]
pub fn right_to_see(database: &str, table: &str, account: &str) -> String {
    let (database, table) = (quoted(database), quoted(table));
    format!("GRANT SELECT ON {database}.{table} TO {account}")
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::NoTable { table } => write!(
                f,
                "there is no table {table}, or the service account may not see it: correct the feed's database and tables in the settings, or \
                 GRANT SELECT"
            ),
            Obstacle::Kind { table, kind } => {
                write!(
                    f,
                    "{table} is a {}, and has to be a plain table",
                    kind.to_ascii_lowercase()
                )
            }
            Obstacle::Engine { table, engine } => write!(
                f,
                "{table} is kept by {engine}, and has to be kept by InnoDB"
            ),
            Obstacle::NoColumn { table, column } => write!(f, "{table} has no column {column}"),
            Obstacle::Type {
                table,
                column,
                is,
                needed,
            } => write!(f, "{table}.{column} is {is}, and has to be {needed}"),
            Obstacle::Generated { table, column } => {
                write!(f, "{table}.{column} is computed from other columns")
            }
            Obstacle::PrimaryKey { table, id } => {
                write!(f, "{id} alone has to be the primary key of {table}")
            }
            Obstacle::NoIndex { .. } => {
                f.write_str("no index leads to the rows that are asked for")
            }
            Obstacle::NotUnique { table, .. } => {
                write!(f, "{table} may hold the same follow twice")
            }
        }?;
        match self.alter() {
            Some(alter) => write!(f, ": {alter}"),
            None => Ok(()),
        }
    }
}

/// The tables that a feed is made of.
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

const INTEGER: &str = "an integer";
const ORDERED: &str = "an integer, DATETIME or TIMESTAMP";

/// The types of a feed's columns.
///
/// # Errors
/// All that is in its way.
pub fn check(definition: &FeedDefinition, known: &Tables) -> Result<Types, Vec<Obstacle>> {
    let mut found = Vec::new();
    let message = &definition.message;
    let messages = table(&message.table, known, &mut found);
    let mut id = None;
    let mut key = None;
    let mut authors = Vec::new();
    if let Some(facts) = messages {
        let own = Own {
            name: &message.table,
            facts,
        };
        id = own.integer(&message.id, &mut found);
        authors.extend(own.integer(&message.author, &mut found));
        key = definition.key().map(|key| own.key(key, &mut found));
        own.primary_key(&message.id, &mut found);
        let leads = [Some(&*message.author), definition.key()];
        own.index(&leads.into_iter().flatten().collect::<Vec<_>>(), &mut found);
    }
    if let Some(follow) = &definition.follow
        && let Some(facts) = table(&follow.table, known, &mut found)
    {
        let own = Own {
            name: &follow.table,
            facts,
        };
        for column in [&follow.reader, &follow.author] {
            authors.extend(own.integer(column, &mut found));
        }
        own.index(&[&follow.reader], &mut found);
        own.unique(&[&follow.reader, &follow.author], &mut found);
    }
    match (id, key) {
        (Some(id), Some(Some(key))) if found.is_empty() => Ok(Types {
            id,
            author: common(&authors),
            key: Some(key),
        }),
        (Some(id), None) if found.is_empty() => Ok(Types {
            id,
            author: common(&authors),
            key: None,
        }),
        _ => Err(found),
    }
}

fn table<'a>(name: &str, known: &'a Tables, found: &mut Vec<Obstacle>) -> Option<&'a TableFacts> {
    let table = name.to_owned();
    let Some(facts) = known.facts(name) else {
        found.push(Obstacle::NoTable { table });
        return None;
    };
    if !facts.is_plain() {
        let kind = facts.kind.clone();
        found.push(Obstacle::Kind { table, kind });
        return None;
    }
    if !facts.engine.eq_ignore_ascii_case("InnoDB") {
        let engine = facts.engine.clone();
        found.push(Obstacle::Engine { table, engine });
    }
    Some(facts)
}

/// What all of them hold.
fn common(types: &[Integer]) -> Integer {
    Integer {
        bits: types.iter().map(|own| own.bits).min().unwrap_or(64),
        signed: types.iter().any(|own| own.signed),
    }
}

/// One of the feed's tables.
struct Own<'a> {
    name: &'a str,
    facts: &'a TableFacts,
}

impl Own<'_> {
    fn place(&self, column: &str, found: &mut Vec<Obstacle>) -> Option<usize> {
        let place = self.facts.table.place(column);
        let Some(at) = place else {
            found.push(Obstacle::NoColumn {
                table: self.name.to_owned(),
                column: column.to_owned(),
            });
            return None;
        };
        if self.facts.is_generated(at) {
            found.push(Obstacle::Generated {
                table: self.name.to_owned(),
                column: column.to_owned(),
            });
            return None;
        }
        Some(at)
    }

    fn unfit(&self, column: &str, at: usize, needed: &'static str) -> Obstacle {
        Obstacle::Type {
            table: self.name.to_owned(),
            column: column.to_owned(),
            is: self.facts.sql_type(at).to_owned(),
            needed,
        }
    }

    fn integer(&self, column: &str, found: &mut Vec<Obstacle>) -> Option<Integer> {
        let at = self.place(column, found)?;
        let integer = self.facts.integer(at);
        if integer.is_none() {
            found.push(self.unfit(column, at, INTEGER));
        }
        integer
    }

    fn key(&self, column: &str, found: &mut Vec<Obstacle>) -> Option<KeyType> {
        let at = self.place(column, found)?;
        let key = self.facts.key(at);
        if key.is_none() {
            found.push(self.unfit(column, at, ORDERED));
        }
        key
    }

    /// Their places, where all are there: what is not was told already.
    fn places(&self, columns: &[&str]) -> Option<Vec<usize>> {
        let places = columns.iter().map(|column| self.facts.table.place(column));
        places.collect()
    }

    fn primary_key(&self, id: &str, found: &mut Vec<Obstacle>) {
        let Some(at) = self.facts.table.place(id) else {
            return;
        };
        let primary = self.facts.indexes.get("PRIMARY");
        if primary.is_none_or(|key| key.columns != [Some(at)]) {
            found.push(Obstacle::PrimaryKey {
                table: self.name.to_owned(),
                id: id.to_owned(),
            });
        }
    }

    fn index(&self, columns: &[&str], found: &mut Vec<Obstacle>) {
        let Some(places) = self.places(columns) else {
            return;
        };
        let leads = |index: &Index| {
            let own = index.columns.iter().map(|column| column.as_ref());
            own.take(places.len()).eq(places.iter().map(Some))
        };
        if !self.facts.indexes.values().any(leads) {
            found.push(Obstacle::NoIndex {
                table: self.name.to_owned(),
                columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            });
        }
    }

    fn unique(&self, columns: &[&str], found: &mut Vec<Obstacle>) {
        let Some(places) = self.places(columns) else {
            return;
        };
        // Rows with NULL may be there more than once, and are nobody's.
        let unique = |index: &Index| {
            let mut own = index.columns.iter();
            index.unique && own.all(|column| column.is_some_and(|at| places.contains(&at)))
        };
        if !self.facts.indexes.values().any(unique) {
            found.push(Obstacle::NotUnique {
                table: self.name.to_owned(),
                columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::facts::Told;

    fn home() -> FeedDefinition {
        toml::from_str(
            "name = 'home'\n[message]\ntable = 'm'\nauthor = 'author'\norder = ['at', 'id']\n\
             [follow]\ntable = 'f'\nreader = 'reader'\nauthor = 'author'",
        )
        .unwrap()
    }

    fn told(rows: &[&[&str]]) -> Told {
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
    fn what_one_statement_mends_is_told_with_it() {
        let table = || "m".to_owned();
        let cure = |obstacle: Obstacle| obstacle.cure("app", "`me`@`here`").unwrap_or_default();
        assert_eq!(
            cure(Obstacle::NoTable { table: table() }),
            "GRANT SELECT ON `app`.`m` TO `me`@`here`"
        );
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let index = Obstacle::NoIndex {
            table: table(),
            columns,
        };
        assert_eq!(cure(index), "ALTER TABLE `m` ADD INDEX (`a`, `b`)");
        let id = "id".to_owned();
        assert_eq!(cure(Obstacle::PrimaryKey { table: table(), id }), "");
    }

    /// What is said where one cell is another, or a row is not there.
    fn said(table: usize, row: usize, to: Option<(usize, &'static str)>) -> Vec<String> {
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
        let of = |rows: Vec<&[&str]>| told(&rows);
        let known = Tables::read(
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
        assert_eq!(said(0, 0, Some((2, "INNODB"))), Vec::<String>::new());
        // Types need not be the same.
        assert_eq!(
            said(1, 3, Some((2, "bigint unsigned"))),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_is_in_the_way_is_told_with_the_statement_that_mends_it() {
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
            (
                2,
                4,
                Some((2, "1")),
                "ALTER TABLE `f` ADD UNIQUE INDEX (`reader`, `author`)",
            ),
        ] {
            let all = said(table, row, to);
            let found = all.iter().any(|one| one.contains(expected));
            assert!(found, "{expected}: {all:?}");
        }
    }
}
