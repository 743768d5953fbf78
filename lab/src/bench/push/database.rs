//! The database for push and pull: created, filled, dropped.

use std::fmt::Write as _;

use indicatif::ProgressBar;

use crate::bench::client::{BenchClient, BenchClientError};
use crate::bench::flags::BenchFlags;
use crate::bench::{BenchError, StopSignal, bench_database};
use crate::demo::dataset::DatasetSize;

/// Its name; an existing database is never touched.
pub const DATABASE: &str = "headwater_bench_push";
/// The push model's table, as in the classic article.
const CREATE_MAILBOX: &str = "CREATE TABLE mailbox (user_id int unsigned NOT NULL, message_id int unsigned NOT NULL, \
     PRIMARY KEY (user_id, message_id)) ENGINE=InnoDB";
/// Readers whose mailboxes one statement fills.
const READERS_AT_ONCE: u32 = 20;

/// Loads tables, procedures and rows, and fills all mailboxes; `client` is in the database.
///
/// # Errors
/// Fails if the server refuses a statement, or the bench is stopped.
pub fn fill(
    flags: &BenchFlags,
    size: DatasetSize,
    client: &mut BenchClient,
    stop: &StopSignal,
) -> Result<(), BenchError> {
    let bar = ProgressBar::new(0).with_message("loading");
    bench_database::load(DATABASE, flags, size, &bar)?;
    let at = BenchError::for_address(&flags.upstream);
    client.execute(CREATE_MAILBOX).map_err(&at)?;
    bar.set_length(u64::from(size.users));
    for statement in mailbox_inserts(size.users) {
        if stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        client.execute(&statement.sql).map_err(&at)?;
        bar.set_position(u64::from(statement.up_to));
    }
    bar.finish_and_clear();
    client
        .execute("ANALYZE NO_WRITE_TO_BINLOG TABLE follower, message, mailbox")
        .map_err(&at)
}

/// Data and indexes of these tables, in bytes.
///
/// # Errors
/// Fails if the query fails.
pub fn table_bytes(client: &mut BenchClient, tables: &[&str]) -> Result<u64, BenchClientError> {
    let mut names = String::new();
    for table in tables {
        let comma = if names.is_empty() { "" } else { "," };
        // Writing to a String does not fail.
        let _ = write!(names, "{comma}'{table}'");
    }
    let sizes = client.query_numbers(&format!(
        "SELECT DATA_LENGTH+INDEX_LENGTH FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA='{DATABASE}' AND TABLE_NAME IN ({names})"
    ))?;
    Ok(sizes.iter().sum())
}

#[derive(Debug)]
struct MailboxInsert {
    sql: String,
    up_to: u32,
}

/// Ordered by the primary key, so that the table is as small as possible.
fn mailbox_inserts(users: u32) -> impl Iterator<Item = MailboxInsert> {
    let step = usize::try_from(READERS_AT_ONCE).unwrap_or(1);
    (1..=users).step_by(step).map(move |first| {
        let up_to = users.min(first.saturating_add(READERS_AT_ONCE - 1));
        MailboxInsert {
            sql: format!(
                "INSERT INTO mailbox (user_id,message_id) SELECT follower.user_id,message.id FROM follower \
                 INNER JOIN message ON message.user_id=follower.follower_id \
                 WHERE follower.user_id BETWEEN {first} AND {up_to} ORDER BY 1,2"
            ),
            up_to,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_gets_a_mailbox_once() {
        let ranges: Vec<_> = mailbox_inserts(45).collect();
        let ends: Vec<_> = ranges.iter().map(|statement| statement.up_to).collect();
        assert_eq!(ends, [20, 40, 45]);
        for (statement, range) in ranges.iter().zip(["1 AND 20", "21 AND 40", "41 AND 45"]) {
            assert!(statement.sql.contains(&format!("BETWEEN {range} ORDER")));
        }
    }
}
