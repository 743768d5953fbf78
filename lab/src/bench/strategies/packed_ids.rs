//! Push of packed ids: a reader's timeline is one blob of ids of four bytes, the newest at its end. A message is appended to the blobs of
//! its author's followers; a blob that is too long is rewritten with its newest half.

use super::StrategyError;
use super::base_tables::BaseTables;
use super::page::{MESSAGES_PER_PAGE, MessagePage, query_column};
use super::servers::StrategyServers;
use super::strategy::{AppSession, TimelineStrategy};
use crate::query_path::{PageTask, bodies_select};

/// A blob of so many ids is trimmed to half of them when one more is appended.
const MAX_IDS: usize = 800;
const TRIMMED_IDS: usize = MAX_IDS / 2;
const ID_BYTES: usize = 4;
const READERS_AT_ONCE: u64 = 100;

/// The strategy.
#[derive(Clone, Copy, Debug)]
pub struct PackedStrategy;

/// The statement that refills the blobs of these readers.
fn fill_sql(readers: &str) -> String {
    format!(
        "REPLACE INTO packed (user_id,ids) SELECT follower.user_id,RIGHT(GROUP_CONCAT(\
         UNHEX(LPAD(HEX(message.id),8,'0')) ORDER BY message.id SEPARATOR ''),{}) FROM follower \
         INNER JOIN message ON message.user_id=follower.follower_id WHERE follower.user_id {readers} GROUP BY follower.user_id",
        TRIMMED_IDS * ID_BYTES
    )
}

/// Blobs exceed the servers' default limit of GROUP_CONCAT.
const LONG_GROUPS: &str = "SET SESSION group_concat_max_len=67108864";

impl TimelineStrategy for PackedStrategy {
    fn name(&self) -> &'static str {
        "push-packed"
    }

    fn about(&self) -> &'static str {
        "ids of four bytes in one blob a reader: appended to, and cut to the newest 400 at 800"
    }

    fn tables(&self) -> &'static [&'static str] {
        &["packed"]
    }

    fn pushed_bytes(&self) -> Option<f64> {
        // An id, while the blob is below its limit.
        Some(5.0)
    }

    fn build(&self, servers: &StrategyServers) -> Result<(), StrategyError> {
        let mut base = BaseTables(servers.builder_connection()?);
        base.run(LONG_GROUPS)?;
        base.run("CREATE TABLE packed (user_id int unsigned NOT NULL PRIMARY KEY, ids mediumblob NOT NULL) ENGINE=InnoDB")?;
        for (first, last) in servers.reader_ranges(READERS_AT_ONCE) {
            base.run(&fill_sql(&format!("BETWEEN {first} AND {last}")))?;
        }
        base.run("INSERT IGNORE INTO packed SELECT DISTINCT user_id,'' FROM follower")?;
        base.run("ANALYZE TABLE packed")
    }

    fn session(&self, servers: &StrategyServers) -> Result<Box<dyn AppSession>, StrategyError> {
        let mut base = BaseTables(servers.connect()?);
        base.run(LONG_GROUPS)?;
        Ok(Box::new(PackedSession { base }))
    }
}

struct PackedSession {
    base: BaseTables,
}

impl PackedSession {
    /// At most `most` of a reader's newest ids; true if the reader has no others.
    fn ids(&mut self, reader: u64, most: usize) -> Result<(Vec<u64>, bool), StrategyError> {
        let select = format!(
            "SELECT RIGHT(ids,{}),LENGTH(ids) FROM packed WHERE user_id={reader}",
            most * ID_BYTES
        );
        let values = query_column(&mut self.base.0, &select)?;
        let [blob, length] = values.as_slice() else {
            return Ok((Vec::new(), true));
        };
        let length = std::str::from_utf8(length).ok();
        let length: usize = length
            .and_then(|text| text.parse().ok())
            .ok_or(StrategyError::UnexpectedRow)?;
        let id = |bytes: &[u8]| bytes.iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
        let ids = blob.chunks_exact(ID_BYTES).map(id).collect();
        // A shorter blob was never trimmed.
        Ok((ids, length <= blob.len() && length < TRIMMED_IDS * ID_BYTES))
    }
}

impl AppSession for PackedSession {
    fn page(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        page: &mut MessagePage,
    ) -> Result<(), StrategyError> {
        // A few more, because ids of deleted messages stay.
        let first = if bound.is_none() {
            MESSAGES_PER_PAGE + 4
        } else {
            MAX_IDS
        };
        for most in [first, MAX_IDS] {
            let (mut ids, whole) = self.ids(reader, most)?;
            ids.retain(|id| bound.is_none_or(|bound| *id <= bound));
            ids.sort_unstable_by(|one, other| other.cmp(one));
            ids.truncate(MESSAGES_PER_PAGE + 4);
            page.rows.clear();
            page.query(&mut self.base.0, &bodies_select(&ids))?;
            page.trim(bound);
            if page.rows.len() == MESSAGES_PER_PAGE || whole {
                return Ok(());
            }
        }
        // The page lies below the blob's oldest id.
        page.rows.clear();
        page.query(&mut self.base.0, &PageTask { reader, bound }.join())
    }

    fn post(&mut self, id: u64, author: u64, body: &str) -> Result<(), StrategyError> {
        self.base.post(id, author, body)?;
        let (most, kept) = (MAX_IDS * ID_BYTES, TRIMMED_IDS * ID_BYTES);
        self.base.run(&format!(
            "UPDATE packed INNER JOIN follower ON follower.user_id=packed.user_id \
             SET packed.ids=CONCAT(IF(LENGTH(packed.ids)>={most},RIGHT(packed.ids,{kept}),packed.ids),x'{id:08x}') \
             WHERE follower.follower_id={author}"
        ))
    }

    fn delete(&mut self, id: u64, _: u64) -> Result<(), StrategyError> {
        self.base.delete(id)
    }

    fn follow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.follow(reader, author)?;
        self.base.run(&fill_sql(&format!("={reader}")))
    }

    fn unfollow(&mut self, reader: u64, author: u64) -> Result<(), StrategyError> {
        self.base.unfollow(reader, author)?;
        self.base
            .run(&format!("UPDATE packed SET ids='' WHERE user_id={reader}"))?;
        self.base.run(&fill_sql(&format!("={reader}")))
    }
}
