//! The server's binary log: from its bytes to changes of timelines, and what proves that these can be read.
//!
//! ```text
//! bytes -> event -> events (routes, statement) -> transaction -> queue (evidence) -> cut -> index
//! ```
//!
//! No IO: bytes of the log and rows that were seen in, changes that may be applied out.

pub mod edits;
mod error;
pub mod event;
pub mod events;
pub mod evidence;
pub mod following;
#[doc(hidden)]
pub mod fuzzing;
pub mod gtid;
mod packed;
pub mod proof;
pub mod queue;
pub mod recent;
pub mod referred;
pub mod routes;
#[cfg(test)]
mod script;
pub mod seek;
mod statement;
pub mod tables;
pub mod trail;

pub use error::EventError;
