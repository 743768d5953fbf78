//! Push into a table of rows: each message is noted for each of its author's followers; or, as the hybrid has it, but for those of authors
//! whom many follow, which are pulled.

use std::fmt::Write as _;

use super::Failure;
use super::base::Base;
use super::page::Page;
use super::strategy::{Session, Strategy};
use super::world::World;
use crate::lab::bench::way::{PAGE, Task};

/// Readers whose mailboxes one statement fills.
const READERS_AT_ONCE: u64 = 20;
/// An author with so many followers is pulled in the hybrid.
const BIG: u64 = 100;

/// One of the two.
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    hybrid: bool,
}

/// Everybody's messages are pushed.
pub const MAILBOX: Mailbox = Mailbox { hybrid: false };
/// Those of authors with a hundred followers and more are not.
pub const HYBRID: Mailbox = Mailbox { hybrid: true };

impl Mailbox {
    const fn table(self) -> &'static str {
        if self.hybrid { "hybrid" } else { "mailbox" }
    }

    /// Of these authors alone, by the column.
    const fn pushed(self) -> &'static str {
        if self.hybrid {
            " AND message.user_id NOT IN (SELECT user_id FROM big)"
        } else {
            ""
        }
    }
}

impl Strategy for Mailbox {
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

    fn build(&self, world: &World) -> Result<(), Failure> {
        let mut base = Base(world.builder()?);
        let (table, pushed) = (self.table(), self.pushed());
        base.run(&format!(
            "CREATE TABLE {table} (user_id int unsigned NOT NULL, message_id int unsigned NOT NULL, \
             PRIMARY KEY (user_id, message_id)) ENGINE=InnoDB"
        ))?;
        if self.hybrid {
            base.run("CREATE TABLE big (user_id int unsigned NOT NULL PRIMARY KEY) ENGINE=InnoDB")?;
            base.run(&format!(
                "INSERT INTO big SELECT follower_id FROM follower GROUP BY follower_id HAVING COUNT(*)>={BIG}"
            ))?;
        }
        for (first, last) in world.readers_by(READERS_AT_ONCE) {
            base.run(&format!(
                "INSERT INTO {table} (user_id,message_id) SELECT follower.user_id,message.id FROM follower \
                 INNER JOIN message ON message.user_id=follower.follower_id \
                 WHERE follower.user_id BETWEEN {first} AND {last}{pushed} ORDER BY 1,2"
            ))?;
        }
        base.run(&format!("ANALYZE TABLE {table}"))
    }

    fn session(&self, world: &World) -> Result<Box<dyn Session>, Failure> {
        let base = Base(world.connect()?);
        Ok(Box::new(Boxes { base, kind: *self }))
    }
}

struct Boxes {
    base: Base,
    kind: Mailbox,
}

impl Session for Boxes {
    fn page(&mut self, reader: u64, bound: Option<u64>, page: &mut Page) -> Result<(), Failure> {
        let task = Task { reader, bound };
        if !self.kind.hybrid {
            return page.ask(&mut self.base.0, &task.mailbox());
        }
        // One SELECT for each of the big authors: a join with all of them has the server read every message that they have.
        let big = self.base.0.numbers(&format!(
            "SELECT big.user_id FROM follower INNER JOIN big ON big.user_id=follower.follower_id WHERE follower.user_id={reader}"
        ))?;
        let below = |column: &str| bound.map_or(String::new(), |id| format!(" AND {column}<={id}"));
        let mut select = format!("({})", task.mailbox().replace("mailbox", "hybrid"));
        for author in big {
            // Writing to a String does not fail.
            let _ = write!(
                select,
                " UNION ALL (SELECT id,user_id,body FROM message WHERE user_id={author}{} ORDER BY id DESC LIMIT {PAGE})",
                below("id")
            );
        }
        let _ = write!(select, " ORDER BY 1 DESC LIMIT {PAGE}");
        page.ask(&mut self.base.0, &select)
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), Failure> {
        self.base.post(id, author, body)?;
        // Of the author, and so once: an IN has MySQL look for each follower.
        let small = match self.kind.hybrid {
            true => format!(" AND NOT EXISTS (SELECT 1 FROM big WHERE user_id={author})"),
            false => String::new(),
        };
        self.base.run(&format!(
            "INSERT INTO {} (user_id,message_id) SELECT user_id,{id} FROM follower WHERE follower_id={author}{small}",
            self.kind.table()
        ))
    }

    fn delete(&mut self, id: u64, author: u64) -> Result<(), Failure> {
        self.base.delete(id)?;
        let table = self.kind.table();
        self.base.run(&format!(
            "DELETE {table} FROM {table} INNER JOIN follower ON follower.user_id={table}.user_id \
             WHERE follower.follower_id={author} AND {table}.message_id={id}"
        ))
    }

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.base.follow(reader, author)?;
        self.base.run(&format!(
            "INSERT IGNORE INTO {} (user_id,message_id) SELECT {reader},id FROM message WHERE user_id={author}{}",
            self.kind.table(),
            self.kind.pushed()
        ))
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), Failure> {
        self.base.unfollow(reader, author)?;
        let table = self.kind.table();
        self.base.run(&format!(
            "DELETE {table} FROM {table} INNER JOIN message ON message.id={table}.message_id \
             WHERE {table}.user_id={reader} AND message.user_id={author}"
        ))
    }
}
