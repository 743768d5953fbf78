//! Timelines as values: what one is made of, and whether a server has it as Headwater knows it.
pub mod body;
pub mod check;
pub mod definition;
pub mod merge;
pub mod procedures;

pub use body::Routine;
pub use definition::{Definition, Form, IntType};
