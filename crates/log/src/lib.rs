//! The server's binary log: from its bytes to changes of timelines, and what proves that these can be read.
//!
//! ```text
//! bytes -> event -> events (routes, statement) -> transaction -> queue (evidence) -> cut -> index
//! ```
//!
//! No IO: bytes of the log and rows that were seen in, changes that may be applied out.

pub mod applied_gtids;
pub mod assembler;
pub mod edits;
mod error;
pub mod event_reader;
pub mod evidence;
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
