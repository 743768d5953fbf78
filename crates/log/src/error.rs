//! Why an event of the log cannot be read.

use std::io;

use headwater_wire::cursor::MalformedPacket;

/// Why an event cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// A packet that has no place where it came.
    #[error("the server sent a packet that has no place here")]
    Unexpected,
    /// An event is none of the format.
    #[error("the server sent a malformed packet: {0}")]
    Malformed(#[from] MalformedPacket),
    /// An event does not have the checksum that stands behind it.
    #[error("an event of the server's log does not have its checksum")]
    Checksum,
    /// A compressed transaction is none, or looks back at more bytes than an event may have.
    #[error(
        "a compressed transaction of the server's log cannot be unpacked: {0} (binlog.event_bytes)"
    )]
    Decompression(io::Error),
    /// An event that is longer than may be held.
    #[error("an event of the server's log has more than {0} bytes (binlog.event_bytes)")]
    TooLong(usize),
}
