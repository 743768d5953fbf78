//! The SQL of lookups, and how the server's answers become pages.
//!
//! No IO: a call and hints in, statements out; rows in, ids out.

pub mod backlog;
mod by_author;
pub mod deep;
pub mod guess;
pub mod heads;
pub mod hints;
pub mod lists;
pub mod lookup;
pub mod plan;
pub mod proofs;
pub mod spans;
mod spread;
mod unusable;

pub use lookup::{Found, Lookup};
pub use unusable::Unusable;
