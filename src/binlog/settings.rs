//! How fresh memory has to be, and how much of it there is.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::log::event_reader::EVENT_BYTES;

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
    /// So many milliseconds old may an answer be in mode `bounded`.
    pub bounded_ms: u64,
    /// So many milliseconds a call waits until memory has caught up; then it is answered by lookups.
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

/// Bounds of following the log, and of the memory that is filled by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinlogLimits {
    /// Bytes of memory for each timeline in each database; 0: nothing is kept in memory.
    pub memory_bytes: usize,
    /// The same for all of them together, which share it evenly.
    pub index_bytes: usize,
    /// Everything is loaded at the start, as far as it fits.
    pub preload: bool,
    /// So many milliseconds a call waits for what it lacks to be loaded; then it is answered by lookups.
    pub wait_ms: u64,
    /// Bytes of memory for rows as the server sent them; 0: none are kept.
    pub rows_bytes: usize,
    /// The longest answer to a load that is read, in bytes.
    pub load_bytes: usize,
    /// Row changes that may wait until they can be read, and the most that one transaction may make.
    pub transaction_rows: usize,
    /// The longest row event of the timelines' tables that is read, in bytes: as long as a row, and as long unpacked.
    pub event_bytes: usize,
    /// Where Spider keeps messages on data nodes, their logs are followed as well.
    pub data_nodes: bool,
}

/// Less memory than this holds no timeline of any use, and is a slip of the pen: bytes are meant, not mebibytes.
const LEAST_MEMORY_BYTES: usize = 1 << 20;

impl BinlogLimits {
    /// What is to be said where there is so little memory that it is of no use.
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
    /// Rows of these tables of messages alone are kept, each with its database in front or not; none: of all.
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
    /// True where rows of a table of messages are kept.
    #[must_use]
    pub fn caches(&self, database: &str, table: &str) -> bool {
        let is_meant =
            |own: &String| own == table || own.split_once('.') == Some((database, table));
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
