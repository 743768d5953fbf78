//! Where the ids of an owned call come from.
pub mod deep;
pub mod pull;
pub mod write;
