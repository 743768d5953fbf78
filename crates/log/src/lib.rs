//! The server's binary log: from its bytes to changes of timelines, and the proof that these changes are readable.
//!
//! ```text
//! bytes -> event_reader -> assembler (routes, statement) -> transaction -> queue (evidence) -> watermark -> index
//! ```
//!
//! No IO: it takes bytes of the log and observed rows, and returns changes that may be applied.

pub mod applied_gtids;
pub mod assembler;
pub mod edits;
mod error;
pub mod event_reader;
pub mod evidence;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gtid;
pub mod joined_table;
mod payload_decompressor;
pub mod proof;
pub mod queue;
pub mod recent_changes;
pub mod replication_state;
pub mod resume_search;
pub mod routes;
mod statement;
pub mod timeline_tables;
#[cfg(test)]
mod transaction_script;

pub use error::EventError;
