//! MySQL bytes to values and back: no sockets, no clock.
//!
//! The chapters follow the protocol manual. [`frame`] cuts a byte stream into packets, [`cursor`] is the only way to
//! read what is inside one, [`handshake`] and [`command`] are what opens a connection and what a client asks,
//! [`response`] and [`resultset`] are what a server answers.
pub mod capability;
pub mod command;
pub mod cursor;
pub mod frame;
pub mod handshake;
pub mod response;
pub mod status;
