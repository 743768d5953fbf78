//! Timelines as values: what one is made of, whether a server has it as Headwater knows it, and pages from memory.
//!
//! No IO: the queries of a check go out and their answers come in as values; [`index`] is told of changes and asked for pages.

pub mod body;
pub mod check;
pub mod definition;
pub mod head;
pub mod index;
pub mod integer;
pub mod key;
pub mod merge;
pub mod moment;
pub mod procedures;

pub use body::Routine;
pub use definition::{Definition, DefinitionId, Form, IntType};
pub use head::Head;
pub use integer::Integer;
pub use key::KeyType;
pub use moment::Moment;
