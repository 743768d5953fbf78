//! Push into a table: each message is inserted for each of its author's followers; in the hybrid only for authors with few followers, the
//! others are pulled.

use std::fmt::Write as _;

use super::StrategyError;
use super::base_tables::BaseTables;
use super::page::MessagePage;
use super::servers::StrategyServers;
use super::strategy::{AppSession, TimelineStrategy};
use crate::query_path::{PAGE_ROWS, PageTask};

/// Readers whose mailboxes one statement fills.
const READERS_AT_ONCE: u64 = 20;
/// From so many followers on, the hybrid pulls an author.
const BIG_AUTHOR_FOLLOWERS: u64 = 100;

/// Pure push, or the hybrid.
#[derive(Clone, Copy, Debug)]
pub struct MailboxStrategy {
    hybrid: bool,
}

/// Pushes all messages.
pub const MAILBOX: MailboxStrategy = MailboxStrategy { hybrid: false };
/// Does not push those of authors with a hundred followers or more.
pub const HYBRID: MailboxStrategy = MailboxStrategy { hybrid: true };

impl MailboxStrategy {
    const fn table(self) -> &'static str {
        if self.hybrid { "hybrid" } else { "mailbox" }
    }

    /// The condition on the author for pushed messages.
    const fn pushed_condition(self) -> &'static str {
        if self.hybrid {
            " AND message.user_id NOT IN (SELECT user_id FROM big)"
        } else {
            ""
        }
    }
}

impl TimelineStrategy for MailboxStrategy {
    fn name(&self) -> &'static str {
        if self.hybrid {
            "hybrid"
        } else {
            "push-mailbox"
        }
    }

    fn about(&self) -> &'static str {
        if self.hybrid {
            "mailbox rows, but for authors with 100 followers and more, whose messages are pulled"
        } else {
            "a row in the table mailbox for each follower of the author"
        }
    }

    fn tables(&self) -> &'static [&'static str] {
        if self.hybrid {
            &["hybrid", "big"]
        } else {
            &["mailbox"]
        }
    }

    fn pushed_bytes(&self) -> Option<f64> {
        Some(if self.hybrid { 15.0 } else { 35.0 })
    }

    fn build(&self, servers: &StrategyServers) -> Result<(), StrategyError> {
        let mut base = BaseTables(servers.builder_connection()?);
        let (table, pushed) = (self.table(), self.pushed_condition());
        base.run(&format!(
            "CREATE TABLE {table} (user_id int unsigned NOT NULL, message_id int unsigned NOT NULL, \
             PRIMARY KEY (user_id, message_id)) ENGINE=InnoDB"
        ))?;
        if self.hybrid {
            base.run("CREATE TABLE big (user_id int unsigned NOT NULL PRIMARY KEY) ENGINE=InnoDB")?;
            base.run(&format!(
                "INSERT INTO big SELECT follower_id FROM follower GROUP BY follower_id HAVING COUNT(*)>={BIG_AUTHOR_FOLLOWERS}"
            ))?;
        }
        for (first, last) in servers.reader_ranges(READERS_AT_ONCE) {
            base.run(&format!(
                "INSERT INTO {table} (user_id,message_id) SELECT follower.user_id,message.id FROM follower \
                 INNER JOIN message ON message.user_id=follower.follower_id \
                 WHERE follower.user_id BETWEEN {first} AND {last}{pushed} ORDER BY 1,2"
            ))?;
        }
        base.run(&format!("ANALYZE TABLE {table}"))
    }

    fn session(&self, servers: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError> {
        let base = BaseTables(servers.connect()?);
        Ok(Box::new(MailboxSession { base, kind: *self }))
    }
}

struct MailboxSession {
    base: BaseTables,
    kind: MailboxStrategy,
}

impl AppSession for MailboxSession {
    fn page(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        let task = PageTask { reader, bound };
        if !self.kind.hybrid {
            return page.query(&mut self.base.0, &task.mailbox());
        }
        // One SELECT for each of the big authors: with a join, the server reads all their messages.
        let big = self.base.0.query_numbers(&format!(
            "SELECT big.user_id FROM follower INNER JOIN big ON big.user_id=follower.follower_id WHERE follower.user_id={reader}"
        ))?;
        let below = |column: &str| bound.map_or(String::new(), |id| format!(" AND {column}<={id}"));
        let mut select = format!("({})", task.mailbox().replace("mailbox", "hybrid"));
        for author in big {
            // Writing to a String does not fail.
            let _ = write!(
                select,
                " UNION ALL (SELECT id,user_id,body FROM message WHERE user_id={author}{} ORDER BY id DESC LIMIT {PAGE_ROWS})",
                below("id")
            );
        }
        let _ = write!(select, " ORDER BY 1 DESC LIMIT {PAGE_ROWS}");
        page.query(&mut self.base.0, &select)
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError> {
        self.base.post(id, author, body)?;
        // The condition is on the author, so it is evaluated once: with IN, MySQL evaluates it for each follower.
        let small = match self.kind.hybrid {
            true => format!(" AND NOT EXISTS (SELECT 1 FROM big WHERE user_id={author})"),
            false => String::new(),
        };
        self.base.run(&format!(
            "INSERT INTO {} (user_id,message_id) SELECT user_id,{id} FROM follower WHERE follower_id={author}{small}",
            self.kind.table()
        ))
    }

    fn delete(&mut self, id: u64, author: u64) -> Result<(), StrategyError> {
        self.base.delete(id)?;
        let table = self.kind.table();
        self.base.run(&format!(
            "DELETE {table} FROM {table} INNER JOIN follower ON follower.user_id={table}.user_id \
             WHERE follower.follower_id={author} AND {table}.message_id={id}"
        ))
    }

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.follow(reader, author)?;
        self.base.run(&format!(
            "INSERT IGNORE INTO {} (user_id,message_id) SELECT {reader},id FROM message WHERE user_id={author}{}",
            self.kind.table(),
            self.kind.pushed_condition()
        ))
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.unfollow(reader, author)?;
        let table = self.kind.table();
        self.base.run(&format!(
            "DELETE {table} FROM {table} INNER JOIN message ON message.id={table}.message_id \
             WHERE {table}.user_id={reader} AND message.user_id={author}"
        ))
    }
}
