//! One client's session: its protocol state, its login, and what is known of it on the server.
//!
//! No IO and no clock: packets in, steps out. What moves the bytes is `headwater::session`.

pub mod asked;
pub mod commands;
pub mod difference;
mod dump;
pub mod frames;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod idle;
pub mod kept;
mod known;
pub mod legs;
pub mod lists;
pub mod login;
pub mod machine;
pub mod narrowing;
pub mod nobody;

pub mod ownership;
pub mod peer;
pub mod prepared;
pub mod probe;
pub mod reason;
pub mod result_table;
pub mod rights;
pub mod settling;
pub mod standing;
mod step;
mod write;
