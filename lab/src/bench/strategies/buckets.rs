//! Push of whole posts: a reader's timeline is a sequence of buckets that contain posts, not references to them, so that a page is read
//! without the table of messages. A bucket covers a span of time, or a number of posts.

use super::StrategyError;
use super::base_tables::BaseTables;
use super::page::{MESSAGES_PER_PAGE, MessagePage, PageMessage, query_column};
use super::servers::StrategyServers;
use super::strategy::{AppSession, TimelineStrategy};

/// Ids in a bucket by time.
const BUCKET_IDS: u64 = 1_024;
/// Posts in a bucket by size.
const BUCKET_POSTS: u64 = 50;
/// Buckets that one statement reads.
const BUCKETS_AT_ONCE: usize = 2;
const READERS_AT_ONCE: u64 = 20;
/// The format of a post in a bucket: id, author, length, text.
const POST_SQL: &str = "UNHEX(CONCAT(LPAD(HEX(message.id),8,'0'),LPAD(HEX(message.user_id),8,'0'),\
     LPAD(HEX(LENGTH(message.body)),4,'0'),HEX(message.body)))";
const HEAD_BYTES: usize = 10;
/// Buckets exceed the servers' default limit of GROUP_CONCAT.
const LONG_GROUPS: &str = "SET SESSION group_concat_max_len=67108864";

/// What limits a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketStrategy {
    /// A span of time; here the id is the time.
    Time,
    /// A number of posts: fifty.
    Size,
}

impl BucketStrategy {
    const fn table(self) -> &'static str {
        match self {
            BucketStrategy::Time => "timed",
            BucketStrategy::Size => "sized",
        }
    }

    /// The statement that fills the buckets of these readers with these authors' posts.
    fn fill_sql(self, readers: &str, authors: &str) -> String {
        match self {
            BucketStrategy::Time => format!(
                "INSERT INTO timed (user_id,number,posts) SELECT follower.user_id,message.id DIV {BUCKET_IDS},\
                 GROUP_CONCAT({POST_SQL} ORDER BY message.id SEPARATOR '') FROM follower \
                 INNER JOIN message ON message.user_id=follower.follower_id \
                 WHERE follower.user_id {readers}{authors} GROUP BY 1,2 \
                 ON DUPLICATE KEY UPDATE posts=CONCAT(timed.posts,VALUES(posts))"
            ),
            BucketStrategy::Size => format!(
                "INSERT INTO sized (user_id,number,posts) SELECT reader,number,\
                 GROUP_CONCAT(post ORDER BY id SEPARATOR '') FROM (SELECT follower.user_id AS reader,message.id AS id,{POST_SQL} AS post,\
                 (ROW_NUMBER() OVER (PARTITION BY follower.user_id ORDER BY message.id)-1) DIV {BUCKET_POSTS} AS number FROM follower \
                 INNER JOIN message ON message.user_id=follower.follower_id WHERE follower.user_id {readers}{authors}) AS posts \
                 GROUP BY reader,number"
            ),
        }
    }

    /// The statement that stores the number of posts of these readers.
    fn count_sql(readers: &str) -> String {
        format!(
            "REPLACE INTO sized_head (user_id,posts) SELECT follower.user_id,COUNT(message.id) FROM follower \
             LEFT JOIN message ON message.user_id=follower.follower_id WHERE follower.user_id {readers} GROUP BY follower.user_id"
        )
    }
}

impl TimelineStrategy for BucketStrategy {
    fn name(&self) -> &'static str {
        match self {
            BucketStrategy::Time => "push-buckets-time",
            BucketStrategy::Size => "push-buckets-size",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            BucketStrategy::Time => "whole posts in a bucket for each reader and span of 1,024 ids",
            BucketStrategy::Size => "whole posts in buckets of 50 for each reader",
        }
    }

    fn tables(&self) -> &'static [&'static str] {
        match self {
            BucketStrategy::Time => &["timed"],
            BucketStrategy::Size => &["sized", "sized_head"],
        }
    }

    fn pushed_bytes(&self) -> Option<f64> {
        // The post itself, and the free space in pages of a table.
        Some(230.0)
    }

    fn build(&self, servers: &StrategyServers) -> Result<(), StrategyError> {
        let mut base = BaseTables(servers.builder_connection()?);
        base.run(LONG_GROUPS)?;
        let table = self.table();
        base.run(&format!(
            "CREATE TABLE {table} (user_id int unsigned NOT NULL, number int unsigned NOT NULL, posts mediumblob NOT NULL, \
             PRIMARY KEY (user_id, number)) ENGINE=InnoDB"
        ))?;
        if *self == BucketStrategy::Size {
            base.run("CREATE TABLE sized_head (user_id int unsigned NOT NULL PRIMARY KEY, posts int unsigned NOT NULL) ENGINE=InnoDB")?;
        }
        for (first, last) in servers.reader_ranges(READERS_AT_ONCE) {
            let readers = format!("BETWEEN {first} AND {last}");
            base.run(&self.fill_sql(&readers, ""))?;
            if *self == BucketStrategy::Size {
                base.run(&BucketStrategy::count_sql(&readers))?;
            }
        }
        if *self == BucketStrategy::Size {
            // Readers whose timelines are still empty.
            let beyond = format!(">{}", servers.size.users);
            base.run(&BucketStrategy::count_sql(&beyond))?;
        }
        base.run(&format!("ANALYZE TABLE {table}"))
    }

    fn session(&self, servers: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError> {
        let mut base = BaseTables(servers.connect()?);
        base.run(LONG_GROUPS)?;
        Ok(Box::new(BucketSession { base, kind: *self }))
    }
}

struct BucketSession {
    base: BaseTables,
    kind: BucketStrategy,
}

impl BucketSession {
    fn rebuild(&mut self, reader: u64) -> Result<(), StrategyError> {
        let table = self.kind.table();
        self.base
            .run(&format!("DELETE FROM {table} WHERE user_id={reader}"))?;
        let readers = format!("={reader}");
        self.base.run(&self.kind.fill_sql(&readers, ""))?;
        match self.kind {
            BucketStrategy::Time => Ok(()),
            BucketStrategy::Size => self.base.run(&BucketStrategy::count_sql(&readers)),
        }
    }
}

impl AppSession for BucketSession {
    fn page(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        let table = self.kind.table();
        let from = match (self.kind, bound) {
            (BucketStrategy::Time, Some(bound)) => format!(" AND number<={}", bound / BUCKET_IDS),
            _ => String::new(),
        };
        let mut at_once = BUCKETS_AT_ONCE;
        let mut read = 0;
        loop {
            let blobs = query_column(
                &mut self.base.0,
                &format!(
                    "SELECT posts FROM {table} WHERE user_id={reader}{from} ORDER BY number DESC LIMIT {read},{at_once}"
                ),
            )?;
            for blob in &blobs {
                unpack_posts(blob, bound, &mut page.rows)?;
            }
            if page.rows.len() >= MESSAGES_PER_PAGE || blobs.len() < at_once {
                page.trim(bound);
                return Ok(());
            }
            read += at_once;
            at_once *= 2;
        }
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError> {
        self.base.post(id, author, body)?;
        let post = post_hex(id, author, body.as_bytes());
        let append = match self.kind {
            BucketStrategy::Time => format!(
                "INSERT INTO timed (user_id,number,posts) SELECT user_id,{},x'{post}' FROM follower WHERE follower_id={author} \
                 ON DUPLICATE KEY UPDATE posts=CONCAT(timed.posts,x'{post}')",
                id / BUCKET_IDS
            ),
            BucketStrategy::Size => format!(
                "INSERT INTO sized (user_id,number,posts) SELECT follower.user_id,sized_head.posts DIV {BUCKET_POSTS},x'{post}' FROM follower \
                 INNER JOIN sized_head ON sized_head.user_id=follower.user_id WHERE follower.follower_id={author} \
                 ON DUPLICATE KEY UPDATE posts=CONCAT(sized.posts,x'{post}')"
            ),
        };
        self.base.run(&append)?;
        match self.kind {
            BucketStrategy::Time => Ok(()),
            BucketStrategy::Size => self.base.run(&format!(
                "UPDATE sized_head INNER JOIN follower ON follower.user_id=sized_head.user_id \
                 SET sized_head.posts=sized_head.posts+1 WHERE follower.follower_id={author}"
            )),
        }
    }

    fn delete(&mut self, id: u64, author: u64) -> Result<(), StrategyError> {
        let body = query_column(
            &mut self.base.0,
            &format!("SELECT body FROM message WHERE id={id}"),
        )?;
        self.base.delete(id)?;
        let post = post_hex(id, author, body.first().map_or(&[][..], Vec::as_slice));
        let table = self.kind.table();
        let bucket = match self.kind {
            BucketStrategy::Time => format!(" AND timed.number={}", id / BUCKET_IDS),
            BucketStrategy::Size => String::new(),
        };
        self.base.run(&format!(
            "UPDATE {table} INNER JOIN follower ON follower.user_id={table}.user_id \
             SET {table}.posts=REPLACE({table}.posts,x'{post}','') WHERE follower.follower_id={author}{bucket}"
        ))
    }

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.follow(reader, author)?;
        match self.kind {
            BucketStrategy::Time => {
                let author = format!(" AND follower.follower_id={author}");
                self.base
                    .run(&self.kind.fill_sql(&format!("={reader}"), &author))
            }
            BucketStrategy::Size => self.rebuild(reader),
        }
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.unfollow(reader, author)?;
        self.rebuild(reader)
    }
}

fn post_hex(id: u64, author: u64, body: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{id:08x}{author:08x}{:04x}", body.len());
    for byte in body {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Parses the posts of a bucket, up to this id.
fn unpack_posts(
    mut blob: &[u8],
    bound: Option<u64>,
    rows: &mut Vec<PageMessage>,
) -> Result<(), StrategyError> {
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |all, byte| all << 8 | u64::from(*byte))
    };
    while let Some((head, rest)) = blob.split_at_checked(HEAD_BYTES) {
        let (id, rest_of_head) = head.split_at(4);
        let (author, length) = rest_of_head.split_at(4);
        let length = usize::try_from(number(length)).unwrap_or(usize::MAX);
        let (body, remaining) = rest
            .split_at_checked(length)
            .ok_or(StrategyError::UnexpectedRow)?;
        blob = remaining;
        let id = number(id);
        if bound.is_none_or(|bound| id <= bound) {
            rows.push(PageMessage {
                id,
                author: number(author),
                body: body.to_vec(),
            });
        }
    }
    if blob.is_empty() {
        Ok(())
    } else {
        Err(StrategyError::UnexpectedRow)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_bucket_comes_out() {
        let text = post_hex(7, 3, b"one") + &post_hex(70_000, 4, b"");
        let bytes: Vec<u8> = (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(text.get(at..at + 2).unwrap(), 16).unwrap())
            .collect();
        let mut rows = Vec::new();
        unpack_posts(&bytes, None, &mut rows).unwrap();
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.id, row.author, row.body.as_slice()))
            .collect();
        assert_eq!(told, [(7, 3, &b"one"[..]), (70_000, 4, &b""[..])]);
        rows.clear();
        unpack_posts(&bytes, Some(7), &mut rows).unwrap();
        assert_eq!(rows.len(), 1);
        unpack_posts(bytes.get(..12).unwrap(), None, &mut rows).unwrap_err();
    }
}
