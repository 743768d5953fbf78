//! What is measured of each strategy.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::known_words;
use super::strategy::FreshnessClaim;

/// Everything, as it is written with `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct StrategiesReport {
    /// Version of Headwater.
    pub headwater: &'static str,
    /// Processors of the machine, which all share.
    pub cores: usize,
    /// Connections that read, and that write.
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

/// What a strategy or a server is called, or is said of it. An alias: serde would lend a reference from the text that is read.
pub type StaticText = &'static str;

/// What strategies and servers are called, and what is said of them, as it is in the code.
///
/// # Errors
/// When this version has none that is called so.
pub fn known<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    let text = String::deserialize(from)?;
    let known = known_words().into_iter().find(|word| *word == text);
    known.ok_or_else(|| D::Error::custom(format!("this version has no {text:?}")))
}

/// A server, and what it was filled with.
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
    /// Rows of messages before anything was written.
    pub messages: u64,
    /// Data and indexes of both, in bytes.
    pub base_bytes: u64,
    /// Followers of a message's author, on average over the messages.
    pub followers_per_message: f64,
    /// Authors whom a reader follows, on average over those who follow anybody.
    pub follows_per_reader: f64,
    /// Readers besides those users, who follow one author more: what a message costs that has many followers.
    pub fans: u32,
    /// Memory for pages of its tables, in gigabytes.
    #[serde(default = "one")]
    pub buffer_pool_gb: u16,
    /// Time in which the tables were filled, in seconds.
    pub filled_s: f64,
    /// Strategies that were to be measured here, and would have taken too much room.
    pub left_out: Vec<OmittedStrategy>,
}

impl EngineDataset {
    /// The server, and what it was filled with.
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

/// What it was before it could be said.
fn one() -> u16 {
    1
}

/// A strategy that would take too much room.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OmittedStrategy {
    /// Its name.
    #[serde(deserialize_with = "known")]
    pub name: StaticText,
    /// What it would take on disk, about, in bytes.
    pub bytes: f64,
}

/// A strategy on a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrategyFigures {
    /// Its name.
    #[serde(deserialize_with = "known")]
    pub name: StaticText,
    /// What it does.
    #[serde(deserialize_with = "known")]
    pub about: StaticText,
    /// The server that has the messages: `mariadb` or `mysql`.
    #[serde(deserialize_with = "known")]
    pub engine: StaticText,
    /// What it promises.
    pub claims: FreshnessClaim,
    /// Pages that were compared with the procedure's: newest ones, and for those that are fresh and whole deep ones, and those behind a follow, an unfollow and a delete.
    pub compared_pages: u64,
    /// Those of them that were equal.
    pub equal_pages: u64,
    /// Newest pages read a second.
    pub pages_per_s: f64,
    /// Half of them came within this time, in microseconds.
    pub page_p50_us: f64,
    /// And 99 of 100.
    pub page_p99_us: f64,
    /// Newest pages read in turn with those at the smallest size, where data grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<SizeComparison>,
    /// Deep pages read a second: at and below the reader's 200th message.
    pub deep_pages_per_s: f64,
    /// Messages written a second, by authors as they have written before.
    pub messages_per_s: f64,
    /// Time to write a message, by how many followers its author has.
    pub posts: Vec<PostCost>,
    /// Time to follow, in milliseconds; the median, as for all of these.
    pub follow_ms: f64,
    /// Time to unfollow.
    pub unfollow_ms: f64,
    /// Time to delete a message.
    pub delete_ms: f64,
    /// Time for the first page behind an unfollow.
    pub refill_ms: f64,
    /// Bytes that it needs: messages and follows, its own tables, and what it keeps in memory (Redis; Headwater's whole process).
    pub bytes: u64,
    /// Those of its own tables.
    pub own_table_bytes: u64,
    /// Those in memory.
    pub memory_bytes: u64,
    /// Time to build it from messages and follows, in seconds.
    pub build_s: f64,
    /// Pages that were looked at right behind an acknowledged write, while others write.
    pub stale_looked: u64,
    /// The share of them that lacked it.
    pub stale_share: f64,
    /// Half of those had it within this time, in milliseconds.
    pub stale_p50_ms: f64,
    /// The longest time.
    pub stale_max_ms: f64,
}

/// Newest pages at one size and at the smallest one, read in turn: whatever the machine does meanwhile meets both.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SizeComparison {
    /// Pages read a second.
    pub pages_per_s: f64,
    /// Half of them came within this time, in microseconds.
    pub page_p50_us: f64,
    /// Pages of the smallest size read a second.
    pub smallest_pages_per_s: f64,
    /// Half of those came within this time, in microseconds.
    pub smallest_page_p50_us: f64,
}

impl SizeComparison {
    /// What a page costs, as a multiple of one at the smallest size.
    #[must_use]
    pub fn cost_multiple(&self) -> f64 {
        self.smallest_pages_per_s / self.pages_per_s
    }
}

/// What a message by such an author costs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PostCost {
    /// Followers that were wanted.
    pub about: u64,
    /// Followers that the author has.
    pub followers: u64,
    /// Median time, in milliseconds.
    pub ms: f64,
}

#[cfg(test)]
impl EngineDataset {
    /// Nothing, for tests that fill in what they need.
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
    /// Nothing, for tests that fill in what they need.
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
