//! Where the ids of an owned call come from, and how they get into the result table.
pub mod deep;
pub mod heads;
pub mod lists;
pub mod lookup;
pub mod marks;
pub mod proofs;
pub mod write;
