//! MySQL bytes to values and back: no sockets, no clock.
//!
//! The chapters follow the protocol manual. [`packet`] cuts a byte stream into packets, [`cursor`] is the only way to
//! read what is inside one, [`handshake`] and [`command`] are what opens a connection and what a client asks,
//! [`response`] and [`resultset`] are what a server answers, and [`reply`] says where an answer ends.
pub mod capability;
pub mod command;
pub mod compression;
pub mod cursor;
#[doc(hidden)]
pub mod fuzzing;
pub mod handshake;
pub mod packet;
pub mod reply;
pub mod response;
pub mod resultset;
pub mod sequence_rewriter;
pub mod status;

#[cfg(test)]
mod captures;
