//! The figures of each strategy.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::known_words;
use super::strategy::FreshnessClaim;

/// All figures, as `--json` writes them.
#[derive(Clone, Debug, Serialize)]
pub struct StrategiesReport {
    /// Version of Headwater.
    pub headwater: &'static str,
    /// Processors of the machine; all processes share them.
    pub cores: usize,
    /// Connections that read, and as many that write.
    pub connections: usize,
    /// Time for each rate of each strategy, in seconds.
    pub seconds: f64,
    /// Each server.
    pub engines: Vec<EngineDataset>,
    /// Each strategy on each server.
    pub strategies: Vec<StrategyFigures>,
}

impl StrategiesReport {
    /// The strategies' names, in the order of the server that has the most of them.
    #[must_use]
    pub fn strategy_names(&self) -> Vec<&'static str> {
        let of = |engine: &EngineDataset| -> Vec<&'static str> {
            let all = self.strategies.iter();
            all.filter(|it| it.engine == engine.engine)
                .map(|it| it.name)
                .collect()
        };
        self.engines
            .iter()
            .map(of)
            .max_by_key(Vec::len)
            .unwrap_or_default()
    }
}

/// A name or description from the code. An alias, so that serde does not borrow it from the input.
pub type StaticText = &'static str;

/// Deserializes a name or description into the same text of the code.
///
/// # Errors
/// Fails if this version does not have it.
pub fn known<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    let text = String::deserialize(from)?;
    let known = known_words().into_iter().find(|word| *word == text);
    known.ok_or_else(|| D::Error::custom(format!("this version has no {text:?}")))
}

/// A server, and its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineDataset {
    /// `mariadb` or `mysql`.
    #[serde(deserialize_with = "known")]
    pub engine: StaticText,
    /// Its version.
    pub version: String,
    /// Users.
    pub users: u32,
    /// Rows of follows.
    pub follows: u64,
    /// Rows of messages before the first write.
    pub messages: u64,
    /// Data and indexes of both tables, in bytes.
    pub base_bytes: u64,
    /// Followers of a message's author, on average over the messages.
    pub followers_per_message: f64,
    /// Authors whom a reader follows, on average over the readers with follows.
    pub follows_per_reader: f64,
    /// Additional readers who all follow one more author: for the cost of a message with many followers.
    pub fans: u32,
    /// The buffer pool, in gigabytes.
    #[serde(default = "one")]
    pub buffer_pool_gb: u16,
    /// Time to fill the tables, in seconds.
    pub filled_s: f64,
    /// Strategies that were left out because they would take too much space.
    pub left_out: Vec<OmittedStrategy>,
}

impl EngineDataset {
    /// A description of the server and its data.
    #[must_use]
    pub fn description(&self) -> String {
        let fans = match self.fans {
            0 => String::new(),
            many => format!(", and {many} readers who follow one author more"),
        };
        format!(
            "{} {} with {} GB for pages of its tables: {} users, {} follows, {} messages{fans}",
            self.engine, self.version, self.buffer_pool_gb, self.users, self.follows, self.messages
        )
    }
}

/// The buffer pool of older reports, which lack the field.
fn one() -> u16 {
    1
}

/// A strategy that would take too much room.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OmittedStrategy {
    /// Its name.
    #[serde(deserialize_with = "known")]
    pub name: StaticText,
    /// Its estimated size on disk, in bytes.
    pub bytes: f64,
}

/// A strategy on a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrategyFigures {
    /// Its name.
    #[serde(deserialize_with = "known")]
    pub name: StaticText,
    /// A description.
    #[serde(deserialize_with = "known")]
    pub about: StaticText,
    /// The server with the messages: `mariadb` or `mysql`.
    #[serde(deserialize_with = "known")]
    pub engine: StaticText,
    /// The freshness that it promises.
    pub claims: FreshnessClaim,
    /// Pages compared with the procedure's: newest ones; if fresh and complete also deep ones, and those after follow, unfollow, delete.
    pub compared_pages: u64,
    /// The equal pages among them.
    pub equal_pages: u64,
    /// Newest pages read a second.
    pub pages_per_s: f64,
    /// Median latency of a page, in microseconds.
    pub page_p50_us: f64,
    /// 99th percentile, in microseconds.
    pub page_p99_us: f64,
    /// Newest pages read in alternation with those of the smallest size, in growth runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<SizeComparison>,
    /// Deep pages read a second: from the reader's 200th message on.
    pub deep_pages_per_s: f64,
    /// Messages written a second, by authors with the distribution of the data set.
    pub messages_per_s: f64,
    /// Time to write a message, by the author's number of followers.
    pub posts: Vec<PostCost>,
    /// Median time to follow, in milliseconds (all times here are medians).
    pub follow_ms: f64,
    /// Time to unfollow.
    pub unfollow_ms: f64,
    /// Time to delete a message.
    pub delete_ms: f64,
    /// Time for the first page after an unfollow.
    pub refill_ms: f64,
    /// Bytes in total: messages and follows, the strategy's own tables, and memory (Redis; Headwater's whole process).
    pub bytes: u64,
    /// Bytes of the strategy's own tables.
    pub own_table_bytes: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Time to build the strategy from messages and follows, in seconds.
    pub build_s: f64,
    /// Pages read immediately after an acknowledged write, during other writes.
    pub stale_looked: u64,
    /// The share of stale pages: those that lacked the write.
    pub stale_share: f64,
    /// Median time until the write appeared on a stale page, in milliseconds.
    pub stale_p50_ms: f64,
    /// The longest such time, in milliseconds.
    pub stale_max_ms: f64,
}

/// Newest pages at one size and at the smallest one, read in alternation, so that both meet the same drift of the machine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SizeComparison {
    /// Pages read a second.
    pub pages_per_s: f64,
    /// Median latency, in microseconds.
    pub page_p50_us: f64,
    /// Pages of the smallest size read a second.
    pub smallest_pages_per_s: f64,
    /// Their median latency, in microseconds.
    pub smallest_page_p50_us: f64,
}

impl SizeComparison {
    /// The cost of a page as a multiple of that at the smallest size.
    #[must_use]
    pub fn cost_multiple(&self) -> f64 {
        self.smallest_pages_per_s / self.pages_per_s
    }
}

/// The cost of a message by an author with so many followers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PostCost {
    /// The requested number of followers.
    pub about: u64,
    /// The author's number of followers.
    pub followers: u64,
    /// Median time, in milliseconds.
    pub ms: f64,
}

#[cfg(test)]
impl EngineDataset {
    /// An empty value, for tests.
    pub fn empty() -> EngineDataset {
        EngineDataset {
            engine: "mariadb",
            version: String::new(),
            users: 0,
            follows: 0,
            messages: 0,
            base_bytes: 0,
            followers_per_message: 0.0,
            follows_per_reader: 0.0,
            fans: 0,
            buffer_pool_gb: 1,
            filled_s: 0.0,
            left_out: Vec::new(),
        }
    }
}

#[cfg(test)]
impl StrategyFigures {
    /// An empty value, for tests.
    pub fn empty() -> StrategyFigures {
        StrategyFigures {
            name: "",
            about: "",
            engine: "mariadb",
            claims: FreshnessClaim::Fresh,
            compared_pages: 0,
            equal_pages: 0,
            pages_per_s: 0.0,
            page_p50_us: 0.0,
            page_p99_us: 0.0,
            beside: None,
            deep_pages_per_s: 0.0,
            messages_per_s: 0.0,
            posts: Vec::new(),
            follow_ms: 0.0,
            unfollow_ms: 0.0,
            delete_ms: 0.0,
            refill_ms: 0.0,
            bytes: 0,
            own_table_bytes: 0,
            memory_bytes: 0,
            build_s: 0.0,
            stale_looked: 0,
            stale_share: 0.0,
            stale_p50_ms: 0.0,
            stale_max_ms: 0.0,
        }
    }
}
