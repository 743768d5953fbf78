//! Timelines as values: what one is made of, whether a server has it as Headwater knows it, and pages from memory.
//!
//! No IO: the queries of a check go out and their answers come in as values; [`index`] is told of changes and asked for pages.

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
