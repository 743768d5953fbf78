//! Which tables of the log belong to which timeline, and where their columns stand.

use super::evidence::Table;
use crate::sql::lexer::{Kind, Lexer};
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

    fn same(&self, own: &[u8], other: &[u8]) -> bool {
        own == other || self.caseless && own.eq_ignore_ascii_case(other)
    }

    /// True when a statement that ran in `schema` can be about one of the tables: it names it, and its database unless it
    /// ran there.
    fn named_in(&self, text: &[u8], schema: &[u8]) -> bool {
        self.routes.iter().any(|route| {
            let database = route.database.as_bytes();
            (self.same(database, schema) || names(text, database))
                && names(text, route.name.as_bytes())
        })
    }

    fn holds_database_named_in(&self, text: &[u8]) -> bool {
        let mut routes = self.routes.iter();
        routes.any(|route| names(text, route.database.as_bytes()))
    }
}

/// True when a name stands in a text, in whatever case. A name of several words counts if its first one stands there.
fn names(text: &[u8], name: &[u8]) -> bool {
    let word = name
        .split(|byte| !is_name(*byte))
        .find(|word| !word.is_empty());
    word.is_none_or(|word| {
        text.split(|byte| !is_name(*byte))
            .any(|other| other.eq_ignore_ascii_case(word))
    })
}

/// A byte of a name that needs no quotes.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// What a statement in the log can mean for the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// Starts a transaction, or marks a place in it.
    Begin,
    Commit,
    Rollback,
    /// Changes no rows of the tables, and not their form.
    Harmless,
    /// May change their form, or empty them.
    Schema,
    /// May change rows that are not told.
    Unknown,
}

/// Statements that define things.
const DEFINING: [&str; 11] = [
    "ALTER",
    "ANALYZE",
    "CREATE",
    "DROP",
    "FLUSH",
    "INSTALL",
    "OPTIMIZE",
    "RENAME",
    "REPAIR",
    "TRUNCATE",
    "UNINSTALL",
];
/// What CREATE may make: of those only a table is filled at once.
const OBJECTS: [&str; 7] = [
    "TABLE",
    "VIEW",
    "PROCEDURE",
    "FUNCTION",
    "TRIGGER",
    "EVENT",
    "PACKAGE",
];
const RIGHTS: [&str; 2] = ["GRANT", "REVOKE"];

impl Statement {
    /// Judges a statement of the log, where the log is in row format: no row change comes as a statement.
    pub(super) fn judge(text: &[u8], schema: &[u8], routes: &Routes) -> Statement {
        let words = words(text);
        let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
        match (word(0), word(1)) {
            ("", _) => Statement::Harmless,
            ("BEGIN", "") | ("SAVEPOINT", _) => Statement::Begin,
            ("COMMIT", "") => Statement::Commit,
            ("ROLLBACK", "") => Statement::Rollback,
            (first, _) if RIGHTS.contains(&first) => Statement::Harmless,
            (first, _) if DEFINING.contains(&first) => {
                let whole = names(text, b"DATABASE") || names(text, b"SCHEMA");
                if routes.named_in(text, schema) || whole && routes.holds_database_named_in(text) {
                    Statement::Schema
                } else if may_run_functions(&words) {
                    Statement::Unknown
                } else {
                    Statement::Harmless
                }
            }
            _ => Statement::Unknown,
        }
    }
}

/// A word of a statement, in capitals.
struct Upper {
    text: String,
    /// False where the servers may read the text in several ways, or not at all.
    sure: bool,
}

/// The words of a statement: no comments, nothing in quotes. Comments that a server may execute are read as well.
fn words(text: &[u8]) -> Vec<Upper> {
    let mut words = Vec::new();
    for token in Lexer::new(text) {
        let sure = match token.kind {
            Kind::Word => true,
            Kind::Opaque => false,
            _ => continue,
        };
        let parts = token.text.split(|byte| !is_name(*byte));
        words.extend(parts.filter(|part| !part.is_empty()).map(|part| Upper {
            text: String::from_utf8_lossy(part).to_ascii_uppercase(),
            sure,
        }));
    }
    words
}

/// True for statements that define things and may change rows of other tables, by a stored function or a trigger: a table
/// filled by a query, and MariaDB's ANALYZE of a statement that changes rows. In row format the log has the table without the
/// query, and the rows behind it; but a session may log statements.
fn may_run_functions(words: &[Upper]) -> bool {
    let Some((first, behind)) = words.split_first() else {
        return false;
    };
    match first.text.as_str() {
        "ANALYZE" => behind.first().is_none_or(|second| {
            let tables = ["TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"];
            !tables.contains(&second.text.as_str())
        }),
        "CREATE" => {
            let object = behind
                .iter()
                .find(|word| OBJECTS.contains(&word.text.as_str()));
            if object.is_none_or(|object| object.sure && object.text != "TABLE") {
                return false;
            }
            behind.iter().enumerate().any(|(at, word)| {
                let next = behind.get(at + 1).map(|next| next.text.as_str());
                let partition = matches!(next, Some("LESS" | "IN"));
                word.text == "SELECT" || word.text == "VALUES" && !partition
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes {
        let route = |table, name: &str| Route {
            place: 0,
            table,
            database: "tl".into(),
            name: name.into(),
            columns: Some(3),
            first: Column {
                at: 0,
                kind: IntType::IntUnsigned,
            },
            second: Column {
                at: 1,
                kind: IntType::IntUnsigned,
            },
        };
        Routes {
            routes: vec![
                route(Table::Message, "message"),
                route(Table::Follower, "follower"),
            ],
            caseless: false,
        }
    }

    #[test]
    fn statements_are_judged_by_their_first_words_and_the_names_in_them() {
        let judge = |text: &str| Statement::judge(text.as_bytes(), b"tl", &routes());
        for (text, expected) in [
            ("BEGIN", Statement::Begin),
            ("SAVEPOINT `a`", Statement::Begin),
            ("BEGIN /* app */", Statement::Begin),
            ("COMMIT", Statement::Commit),
            ("ROLLBACK", Statement::Rollback),
            ("ROLLBACK TO `a`", Statement::Unknown),
            (
                "# Dummy event replacing event type 162",
                Statement::Harmless,
            ),
            ("/* app */ DROP TABLE `tl`.`Message`", Statement::Schema),
            ("/*!40000 ALTER TABLE x */", Statement::Unknown),
            ("ALTER TABLE message_archive ADD b int", Statement::Harmless),
            (
                "alter table other exchange partition p with table message",
                Statement::Schema,
            ),
            ("TRUNCATE follower", Statement::Schema),
            ("DROP DATABASE other", Statement::Harmless),
            ("DROP DATABASE IF EXISTS `TL`", Statement::Schema),
            (
                "DROP TABLE `max_ids_of_followers` /* generated by server */",
                Statement::Harmless,
            ),
            ("DROP /* x */ DATABASE tl", Statement::Schema),
            ("DROP /*!50000 SCHEMA */ tl", Statement::Schema),
            ("CREATE OR REPLACE DATABASE tl", Statement::Schema),
            (
                "ALTER DATABASE other CHARACTER SET utf8mb4",
                Statement::Harmless,
            ),
            (
                "CREATE TABLE t (a int) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))",
                Statement::Harmless,
            ),
            (
                "CREATE TABLE t (a int) PARTITION BY LIST (a) (PARTITION p VALUES IN (1))",
                Statement::Harmless,
            ),
            ("CREATE TABLE t AS SELECT post()", Statement::Unknown),
            (
                "CREATE /* view */ TABLE t VALUES (post())",
                Statement::Unknown,
            ),
            ("CREATE -- view\n TABLE t SELECT post()", Statement::Unknown),
            (
                "CREATE /*!99999 view */ TABLE t SELECT post()",
                Statement::Unknown,
            ),
            (
                "CREATE DEFINER=`view`@`%` TABLE t SELECT post()",
                Statement::Unknown,
            ),
            (
                "CREATE TABLE t (a int) /* as select */",
                Statement::Harmless,
            ),
            (
                "CREATE TABLE t (a int) /*!50100 PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1)) */",
                Statement::Harmless,
            ),
            ("CREATE TABLE t AS VALUES (post())", Statement::Unknown),
            ("CREATE VIEW v AS SELECT 1", Statement::Harmless),
            (
                "CREATE DEFINER=`a`@`%` PROCEDURE p() BEGIN CREATE TABLE t AS SELECT 1; END",
                Statement::Harmless,
            ),
            ("ANALYZE TABLE other", Statement::Harmless),
            ("ANALYZE UPDATE other SET a = 1", Statement::Unknown),
            ("ANALYZE FORMAT=JSON DELETE FROM other", Statement::Unknown),
            ("GRANT SELECT ON tl.message TO a", Statement::Harmless),
            ("INSERT INTO other VALUES (1)", Statement::Unknown),
            ("XA COMMIT X'61'", Statement::Unknown),
            ("", Statement::Harmless),
        ] {
            assert_eq!(judge(text), expected, "{text}");
        }
        let elsewhere = |text: &str| Statement::judge(text.as_bytes(), b"other", &routes());
        assert_eq!(elsewhere("DROP TABLE message"), Statement::Harmless);
        assert_eq!(elsewhere("DROP TABLE tl.message"), Statement::Schema);
    }
}
