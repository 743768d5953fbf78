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
pub mod check;
pub mod cost;
pub mod counted;
pub mod definition;
pub mod described;
pub mod digest;
pub mod equal;
pub mod facts;
#[doc(hidden)]
pub mod fuzzing;
pub mod joins;
pub mod keep;
pub mod lists;
pub mod narrow;
pub mod parse;
pub mod plain;
pub mod propose;
pub mod query;
pub mod refers;
pub mod refused;
pub mod schema;
pub mod scope;
pub mod shape;
pub mod shown;
pub mod tally;
pub mod template;
pub mod variants;
pub mod words;

#[cfg(test)]
mod tests;

pub use definition::{FeedDefinition, FeedId};
pub use refused::Refused;
pub use shape::{Feed, Shape, shape};
pub use template::Template;
