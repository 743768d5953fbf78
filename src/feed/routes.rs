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
    /// The route of a table in the log.
    pub(super) fn find(&self, database: &[u8], name: &[u8]) -> Option<&Route> {
        self.routes.iter().find(|route| {
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
const RIGHTS: [&str; 2] = ["GRANT", "REVOKE"];

impl Statement {
    /// Judges a statement of the log, where the log is in row format: no row change comes as a statement.
    pub(super) fn judge(text: &[u8], schema: &[u8], routes: &Routes) -> Statement {
        let Some(text) = bare(text) else {
            return Statement::Unknown;
        };
        let mut words = text
            .split(|byte| !is_name(*byte))
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).to_ascii_uppercase());
        let first = words.next().unwrap_or_default();
        let second = words.next().unwrap_or_default();
        match (first.as_str(), second.as_str()) {
            ("", _) => Statement::Harmless,
            ("BEGIN", "") | ("SAVEPOINT", _) => Statement::Begin,
            ("COMMIT", "") => Statement::Commit,
            ("ROLLBACK", "") => Statement::Rollback,
            ("DROP", "DATABASE" | "SCHEMA") if routes.holds_database_named_in(text) => {
                Statement::Schema
            }
            (word, _) if RIGHTS.contains(&word) => Statement::Harmless,
            (word, _) if DEFINING.contains(&word) => {
                if routes.named_in(text, schema) {
                    Statement::Schema
                } else {
                    Statement::Harmless
                }
            }
            _ => Statement::Unknown,
        }
    }
}

/// A statement without what may stand before it: comments, white space.
fn bare(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        text = text.trim_ascii_start();
        if text.starts_with(b"/*") && !text.starts_with(b"/*!") && !text.starts_with(b"/*M!") {
            let end = text.windows(2).position(|two| two == b"*/")?;
            text = text.get(end + 2..)?;
        } else if text.starts_with(b"#") || text.starts_with(b"-- ") {
            let end = text.iter().position(|byte| *byte == b'\n');
            text = end.map_or(&[][..], |end| text.get(end + 1..).unwrap_or_default());
        } else {
            return Some(text);
        }
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
