//! MySQL bytes to values and back: no sockets, no clock.
//!
//! The modules follow the protocol manual. [`packet`] splits a byte stream into packets, and [`cursor`] is the only way to
//! read the contents of one. [`handshake`] and [`command`] are what a client exchanges and sends, [`response`] and
//! [`resultset`] are a server's answers, and [`reply`] finds where an answer ends.
pub mod capability;
pub mod command;
pub mod compression;
pub mod cursor;
#[cfg(any(test, feature = "fuzzing"))]
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
