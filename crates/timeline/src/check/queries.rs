//! The queries of the check. Names are in hexadecimal, which every `sql_mode` and character set reads alike.

use crate::body::TimelineRoutine;
use crate::definition::TimelineDefinition;
use headwater_sql::{hex_literal, quoted};

/// The queries, in the order in which they are sent.
#[derive(Clone, Copy)]
pub(super) enum CheckQuery {
    Version,
    InitConnect,
    Tables,
    Columns,
    Indexes,
    ShowCreate(TimelineRoutine),
    Routines,
    Privileges,
    PartialRevokes,
    MessageRows,
    NewestId,
    Functions,
}

/// The queries whose results [`super::evaluate`] takes, in that order. They only read; any account may send them.
pub fn queries(definition: &TimelineDefinition, database: &str) -> Vec<String> {
    let tables = format!(
        "TABLE_SCHEMA = {} AND TABLE_NAME IN ({}, {})",
        hex_literal(database),
        hex_literal(&definition.follower.table),
        hex_literal(&definition.message.table),
    );
    let mut queries = vec![
        "SELECT VERSION()".into(),
        "SELECT @@GLOBAL.init_connect".into(),
        format!(
            "SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE {tables}"
        ),
        format!(
            "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, EXTRA FROM information_schema.COLUMNS \
             WHERE {tables} ORDER BY TABLE_NAME, ORDINAL_POSITION"
        ),
        format!(
            "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, INDEX_TYPE, CARDINALITY \
             FROM information_schema.STATISTICS WHERE {tables} ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
        ),
    ];
    queries.extend(TimelineRoutine::ALL.map(|routine| {
        format!(
            "SHOW CREATE PROCEDURE {}.{}",
            quoted(database),
            quoted(routine.name(definition))
        )
    }));
    queries.push(format!(
        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {} AND ROUTINE_TYPE = {}",
        hex_literal(database),
        hex_literal("PROCEDURE"),
    ));
    queries.extend([privileges_query(database), partial_revokes_query()]);
    // The optimizer's own figure; the catalogue's may be a day old. MariaDB lacks this format.
    queries.push(format!(
        "EXPLAIN FORMAT=TRADITIONAL SELECT {} FROM {}.{}",
        quoted(&definition.message.id),
        quoted(database),
        quoted(&definition.message.table)
    ));
    queries.push(format!(
        "SELECT MAX({}) FROM {}.{}",
        quoted(&definition.message.id),
        quoted(database),
        quoted(&definition.message.table)
    ));
    queries.push(functions_query());
    queries
}

/// The queries whose results [`super::no_functions`] takes, in that order.
#[must_use]
pub fn functions_queries() -> [String; 3] {
    [
        functions_query(),
        privileges_query(""),
        partial_revokes_query(),
    ]
}

/// The privileges of the account: global, on a database, on the list of routines.
fn privileges_query(database: &str) -> String {
    // A grantee is 'user'@'host'; only the last @ of CURRENT_USER() separates the two.
    let host = format!("SUBSTRING_INDEX(CURRENT_USER(), {}, -1)", hex_literal("@"));
    let user =
        format!("LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH({host}) - 1)");
    let quote = hex_literal("'");
    let grantee = format!(
        "CONCAT({quote}, {user}, {quote}, {at}, {quote}, {host}, {quote})",
        at = hex_literal("@")
    );
    format!(
        "SELECT PRIVILEGE_TYPE, {} FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = {grantee} UNION ALL \
         SELECT PRIVILEGE_TYPE, {} FROM information_schema.SCHEMA_PRIVILEGES \
         WHERE GRANTEE = {grantee} AND TABLE_SCHEMA = {} UNION ALL \
         SELECT PRIVILEGE_TYPE, {} FROM information_schema.TABLE_PRIVILEGES \
         WHERE GRANTEE = {grantee} AND TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        hex_literal("global"),
        hex_literal("database"),
        hex_literal(database),
        hex_literal("routines"),
        hex_literal("mysql"),
        hex_literal("proc"),
    )
}

fn partial_revokes_query() -> String {
    format!(
        "SHOW GLOBAL VARIABLES WHERE Variable_name = {}",
        hex_literal("partial_revokes")
    )
}

/// Both servers bring some in `sys`, which change no session.
fn functions_query() -> String {
    format!(
        "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_TYPE <> {} AND ROUTINE_SCHEMA <> {}",
        hex_literal("PROCEDURE"),
        hex_literal("sys"),
    )
}

/// Lists the databases that hold both tables of a definition, at most `limit`.
#[must_use]
pub fn databases_query(definition: &TimelineDefinition, limit: usize) -> String {
    format!(
        "SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME IN ({}, {}) \
         GROUP BY TABLE_SCHEMA HAVING COUNT(*) = 2 ORDER BY TABLE_SCHEMA LIMIT {limit}",
        hex_literal(&definition.follower.table),
        hex_literal(&definition.message.table),
    )
}

impl CheckQuery {
    pub(super) fn index(self) -> usize {
        match self {
            Self::Version => 0,
            Self::InitConnect => 1,
            Self::Tables => 2,
            Self::Columns => 3,
            Self::Indexes => 4,
            Self::ShowCreate(TimelineRoutine::Newest) => 5,
            Self::ShowCreate(TimelineRoutine::Bounded) => 6,
            Self::ShowCreate(TimelineRoutine::Heads) => 7,
            Self::Routines => 8,
            Self::Privileges => 9,
            Self::PartialRevokes => 10,
            Self::MessageRows => 11,
            Self::NewestId => 12,
            Self::Functions => 13,
        }
    }

    /// What it requests, for a log line.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Version => "the version",
            Self::InitConnect => "init_connect",
            Self::Tables => "the tables",
            Self::Columns => "the columns",
            Self::Indexes => "the indexes",
            Self::ShowCreate(_) => "a procedure",
            Self::Routines => "the list of routines",
            Self::Privileges => "the account's privileges",
            Self::PartialRevokes => "partial_revokes",
            Self::MessageRows => "the estimate of messages",
            Self::NewestId => "the newest message",
            Self::Functions => "the number of functions",
        }
    }
}
