//! SELECTs that read a feed: whether a text is one that can be narrowed to candidates, and the narrowed text.
//!
//! ```text
//! text -> words (its template's key) -> parse (the grammar) -> shape (names and types) -> narrow
//! ```
//!
//! No IO: texts and facts in, texts out.

pub mod authors;
pub mod bind;
pub mod bounds;
pub mod cost;
pub mod equal;
pub mod joins;
pub mod narrow;
pub mod parse;
pub mod plain;
pub mod query;
pub mod refused;
pub mod schema;
pub mod scope;
pub mod shape;
pub mod value;
pub mod variants;
pub mod words;

#[cfg(test)]
mod tests;

pub use refused::Refused;
pub use shape::{Feed, Shape, shape};
