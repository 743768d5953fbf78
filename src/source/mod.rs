//! Where the ids of an owned call come from, and how they get into the result table.
mod by_author;
mod deep;
mod guess;
pub mod heads;
pub mod hints;
pub mod lists;
pub mod lookup;
pub mod plan;
pub mod proofs;
pub mod write;
