//! Timelines as values: what one is made of, and whether a server has it as Headwater knows it.
pub mod definition;

pub use definition::{Definition, Form, IntType};
