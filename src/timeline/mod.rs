//! Timelines as values: what one is made of, and whether a server has it as Headwater knows it.
pub mod definition;
pub mod merge;

pub use definition::{Definition, Form, IntType};
