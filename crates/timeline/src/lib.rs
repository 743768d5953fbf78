//! Timelines without IO: their definitions, checks of a server against them, and pages from memory.
//!
//! The queries and results of a check are plain values; [`index`] receives changes and serves pages.

pub mod author_head;
pub mod body;
pub mod check;
pub mod datetime;
pub mod definition;
pub mod index;
pub mod integer;
pub mod key;
pub mod merge;
pub mod procedure_sql;

pub use author_head::AuthorHead;
pub use body::TimelineRoutine;
pub use datetime::DatetimeValue;
pub use definition::{DefinitionId, IdType, ProcedureForm, TimelineDefinition};
pub use integer::IntegerColumnType;
pub use key::KeyType;
