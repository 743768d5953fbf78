//! Freshness of memory, and its size.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use headwater_log::event_reader::EVENT_BYTES;

/// When memory may answer a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum FreshnessMode {
    /// With every commit that anyone was told of, or could have read, before the call came.
    #[default]
    Strict,
    /// With every commit older than `freshness.bounded_ms`.
    Bounded,
    /// With every commit that the session itself was told of, or has read.
    Session,
}

/// How fresh memory has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FreshnessSection {
    /// When memory may answer.
    pub mode: FreshnessMode,
    /// The most milliseconds that an answer may be stale in mode `bounded`.
    pub bounded_ms: u64,
    /// How many milliseconds a call waits until memory has caught up; then it is served by lookups.
    pub wait_ms: u64,
}

impl Default for FreshnessSection {
    fn default() -> Self {
        FreshnessSection {
            mode: FreshnessMode::Strict,
            bounded_ms: 1_000,
            wait_ms: 50,
        }
    }
}

impl std::fmt::Display for FreshnessSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.mode {
            FreshnessMode::Strict => f.write_str("strict"),
            FreshnessMode::Bounded => write!(f, "bounded({}ms)", self.bounded_ms),
            FreshnessMode::Session => f.write_str("session"),
        }
    }
}

/// Bounds of following the log, and of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinlogLimits {
    /// Bytes of memory for each timeline in each database; 0: no memory.
    pub memory_bytes: usize,
    /// Bytes for all timelines together, which share them evenly.
    pub index_bytes: usize,
    /// Everything is loaded at startup, as far as it fits.
    pub preload: bool,
    /// How many milliseconds a call waits for a load; then it is served by lookups.
    pub wait_ms: u64,
    /// Bytes of memory for cached rows; 0: none are cached.
    pub rows_bytes: usize,
    /// The longest reply to a load that is read, in bytes.
    pub load_bytes: usize,
    /// The most pending row changes, and the most row changes of one transaction.
    pub transaction_rows: usize,
    /// The longest row event of the timelines' tables that is read, in bytes; also the longest once unpacked.
    pub event_bytes: usize,
    /// If Spider stores messages on data nodes, their logs are followed as well.
    pub data_nodes: bool,
}

/// Less memory holds no useful timeline, and is surely a mistake: the value is in bytes, not mebibytes.
const LEAST_MEMORY_BYTES: usize = 1 << 20;

impl BinlogLimits {
    /// A warning if there is too little memory to be of use.
    #[must_use]
    pub fn too_little_memory(&self) -> Option<String> {
        let bytes = self.memory_bytes;
        (1..LEAST_MEMORY_BYTES).contains(&bytes).then(|| {
            format!(
                "index.memory_bytes = {bytes} (--index-memory-bytes, HEADWATER_INDEX_MEMORY_BYTES) is too little for a timeline: set \
                 {LEAST_MEMORY_BYTES} or more, or 0 for no memory at all"
            )
        })
    }
}

/// The settings file's section `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IndexSection {
    /// As [`BinlogLimits::memory_bytes`].
    #[serde(deserialize_with = "crate::size::read")]
    pub memory_bytes: usize,
    /// As [`BinlogLimits::preload`].
    pub preload: bool,
    /// As [`BinlogLimits::wait_ms`].
    pub wait_ms: u64,
}

impl Default for IndexSection {
    fn default() -> Self {
        IndexSection {
            memory_bytes: 256 * 1024 * 1024,
            preload: false,
            wait_ms: 1_000,
        }
    }
}

/// The settings file's section `rows`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RowsSection {
    /// As [`BinlogLimits::rows_bytes`].
    #[serde(deserialize_with = "crate::size::read")]
    pub memory_bytes: usize,
    /// The tables of messages whose rows are cached, with or without their database; empty: all.
    pub tables: Vec<String>,
}

impl Default for RowsSection {
    fn default() -> Self {
        RowsSection {
            memory_bytes: 256 * 1024 * 1024,
            tables: Vec::new(),
        }
    }
}

impl RowsSection {
    /// True if rows of a table of messages are cached.
    #[must_use]
    pub fn caches(&self, database: &str, table: &str) -> bool {
        let is_meant =
            |entry: &String| entry == table || entry.split_once('.') == Some((database, table));
        self.memory_bytes > 0 && (self.tables.is_empty() || self.tables.iter().any(is_meant))
    }
}

/// The settings file's section `binlog`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BinlogSection {
    /// As [`BinlogLimits::transaction_rows`].
    pub transaction_rows: usize,
    /// As [`BinlogLimits::event_bytes`].
    #[serde(deserialize_with = "crate::size::read")]
    pub event_bytes: usize,
    /// As [`BinlogLimits::data_nodes`].
    pub data_nodes: bool,
}

impl Default for BinlogSection {
    fn default() -> Self {
        BinlogSection {
            transaction_rows: 200_000,
            event_bytes: EVENT_BYTES,
            data_nodes: true,
        }
    }
}
