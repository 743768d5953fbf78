//! Loads a data set into a server: schema, procedures, rows.

use std::fmt::Write;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::dataset::{Dataset, DatasetSize, MessageRow};
use super::script;

/// Tables of the classic definition.
pub const SCHEMA: &str = include_str!("../../../fixtures/sql/schema.sql");
/// Procedures of the classic definition.
pub const PROCEDURES: &str = include_str!("../../../fixtures/sql/procedures.sql");

/// The length of an INSERT statement, about: long enough to save round trips, below every server's default limit.
const STATEMENT_BYTES: usize = 256 * 1024;

/// The secondary keys of [`SCHEMA`]: table, name, columns.
const SECONDARY_KEYS: [(&str, &str, &str); 2] = [
    ("follower", "follower_id", "follower_id"),
    ("message", "user_id_id", "user_id, id"),
];

/// Messages that a server copies in one statement.
const COPIED_AT_ONCE: u64 = 50_000;

/// Why a data set could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing}")]
pub struct LoadError {
    /// The failed action, as an infinitive.
    pub doing: &'static str,
    /// The server's error, or the connection failure.
    pub source: mysql_async::Error,
}

/// The progress of loading, in rows of both tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgress {
    /// Rows in the server.
    pub rows: u64,
    /// Rows of the whole data set.
    pub total: u64,
}

/// Recreates `database` with the classic tables and procedures, and fills it. `conn` belongs to an account that may do so and may disable
/// the binlog (`root`); its database is `database` afterwards. `progress` is called after each statement.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn load(
    conn: &mut Conn,
    database: &str,
    size: DatasetSize,
    progress: impl FnMut(LoadProgress),
) -> Result<(), LoadError> {
    create(conn, database).await?;
    fill(conn, size, progress).await
}

/// Fills the empty tables of the connection's database.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn fill(
    conn: &mut Conn,
    size: DatasetSize,
    progress: impl FnMut(LoadProgress),
) -> Result<(), LoadError> {
    let dataset = Dataset::new(size);
    let follows = dataset
        .follows()
        .map(|follow| (follow.reader, follow.author));
    let of = size.rows();
    insert_rows(conn, follows, dataset.messages(), of, progress).await
}

/// Fills the tables with these follows (reader, author) and messages, about `total` together. Bodies need no escapes.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn insert_rows(
    conn: &mut Conn,
    follows: impl Iterator<Item = (u32, u32)>,
    messages: impl Iterator<Item = MessageRow>,
    of: u64,
    mut progress: impl FnMut(LoadProgress),
) -> Result<(), LoadError> {
    let mut rows = 0;
    let mut report = |statement_rows| {
        rows += statement_rows;
        progress(LoadProgress { rows, total: of });
    };

    let mut insert = BulkInsert::into("follower (user_id, follower_id)", "fill the follow table");
    for (reader, author) in follows {
        insert.row(format_args!("({reader},{author})"));
        if insert.is_full() {
            report(insert.send(conn).await?);
        }
    }
    report(insert.send(conn).await?);

    let mut insert = BulkInsert::into("message (id, user_id, body)", "fill the message table");
    for message in messages {
        insert.row(format_args!(
            "({},{},'{}')",
            message.id, message.author, message.body
        ));
        if insert.is_full() {
            report(insert.send(conn).await?);
        }
    }
    report(insert.send(conn).await?);

    analyze_tables(conn).await
}

/// Drops the secondary keys of the connection's empty tables: with millions of rows it is several times as fast to build them after the
/// rows, since the keys exceed the server's memory and have another order.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn drop_keys(conn: &mut Conn) -> Result<(), LoadError> {
    for (table, key, _) in SECONDARY_KEYS {
        let drop = format!("ALTER TABLE {table} DROP KEY {key}");
        run(conn, &drop, "take a key from an empty table").await?;
    }
    Ok(())
}

/// Builds the secondary keys.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn build_keys(conn: &mut Conn) -> Result<(), LoadError> {
    for (table, key, columns) in SECONDARY_KEYS {
        let add = format!("ALTER TABLE {table} ADD KEY {key} ({columns})");
        run(conn, &add, "build a key").await?;
    }
    analyze_tables(conn).await
}

/// Without statistics a server plans by guesses until it updates them by itself.
async fn analyze_tables(conn: &mut Conn) -> Result<(), LoadError> {
    run(conn, "ANALYZE TABLE follower, message", "count the rows").await
}

/// Repeats the messages, whose ids are 1 to `have`, until there are `want`: the same authors and texts in the same order, under the next
/// ids. The server copies them several times as fast as the network sends them.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn repeat_messages(
    conn: &mut Conn,
    have: u64,
    want: u64,
    mut progress: impl FnMut(LoadProgress),
) -> Result<(), LoadError> {
    if have >= want {
        return Ok(());
    }
    let mut rows = have;
    while rows < want {
        // Not beyond the last of the original messages.
        let copied = rows % have;
        let many = COPIED_AT_ONCE.min(have - copied).min(want - rows);
        let shift = rows - copied;
        let copy = format!(
            "INSERT INTO message (id, user_id, body) SELECT id+{shift}, user_id, body FROM message \
             WHERE id BETWEEN {} AND {}",
            copied + 1,
            copied + many
        );
        run(conn, &copy, "repeat the messages").await?;
        rows += many;
        progress(LoadProgress { rows, total: want });
    }
    analyze_tables(conn).await
}

/// Recreates `database` with the classic tables and procedures, all empty, and makes it the connection's current one.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn create(conn: &mut Conn, database: &str) -> Result<(), LoadError> {
    for sql in [
        format!("DROP DATABASE IF EXISTS `{database}`"),
        format!("CREATE DATABASE `{database}`"),
        format!("USE `{database}`"),
    ] {
        run(conn, &sql, "make a database").await?;
    }
    create_tables(conn).await
}

/// Creates the classic tables and procedures in the connection's database.
///
/// # Errors
/// The server's error, with the failed action.
pub async fn create_tables(conn: &mut Conn) -> Result<(), LoadError> {
    for sql in script::statements(SCHEMA) {
        run(conn, &sql, "make the tables").await?;
    }
    for sql in script::statements(PROCEDURES) {
        run(conn, &sql, "make the procedures").await?;
    }
    Ok(())
}

async fn run(conn: &mut Conn, sql: &str, doing: &'static str) -> Result<(), LoadError> {
    let result = conn.query_drop(sql).await;
    result.map_err(|source| LoadError { doing, source })
}

/// An INSERT of many rows under construction. LOAD DATA LOCAL was measured a tenth faster on MariaDB 10.11: too little for depending on a
/// switch that most servers have off.
#[derive(Debug)]
struct BulkInsert {
    prefix: String,
    doing: &'static str,
    sql: String,
    rows: u64,
}

impl BulkInsert {
    fn into(columns: &str, doing: &'static str) -> BulkInsert {
        let head = format!("INSERT INTO {columns} VALUES ");
        BulkInsert {
            sql: head.clone(),
            prefix: head,
            doing,
            rows: 0,
        }
    }

    fn row(&mut self, row: std::fmt::Arguments<'_>) {
        if self.rows > 0 {
            self.sql.push(',');
        }
        // Writing to a string does not fail.
        let _ = self.sql.write_fmt(row);
        self.rows += 1;
    }

    fn is_full(&self) -> bool {
        self.sql.len() >= STATEMENT_BYTES
    }

    /// The number of rows sent, which may be none.
    async fn send(&mut self, conn: &mut Conn) -> Result<u64, LoadError> {
        let rows = std::mem::take(&mut self.rows);
        if rows > 0 {
            run(conn, &self.sql, self.doing).await?;
            self.prefix.clone_into(&mut self.sql);
        }
        Ok(rows)
    }
}
