//! Why an event of the log cannot be read.

use std::io;

use headwater_wire::cursor::MalformedPacket;

/// An error that makes an event unreadable.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// A packet that is not allowed at this point.
    #[error("the server sent a packet that has no place here")]
    Unexpected,
    /// The event does not have the expected format.
    #[error("the server sent a malformed packet: {0}")]
    Malformed(#[from] MalformedPacket),
    /// The event does not match its checksum.
    #[error("an event of the server's log does not have its checksum")]
    Checksum,
    /// A compressed transaction is invalid, or its zstd window exceeds the event size limit.
    #[error(
        "a compressed transaction of the server's log cannot be unpacked: {0} (binlog.event_bytes)"
    )]
    Decompression(io::Error),
    /// The event exceeds the event size limit.
    #[error("an event of the server's log has more than {0} bytes (binlog.event_bytes)")]
    TooLong(usize),
}
