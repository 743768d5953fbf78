//! The short responses: OK, EOF and ERR packets, read and written.
//!
//! Not by `mysql_common`, which the tests use as a second opinion: it refuses unknown status flags, and reads a NULL
//! marker as the length 0.

mod err_packet;
mod ok_packet;

pub use err_packet::ErrPacket;
pub use ok_packet::{OkPacket, without_redirect};

/// First byte of an OK packet.
pub const OK: u8 = 0x00;
/// First byte of an EOF packet, and of the OK packet that ends a result set under DEPRECATE_EOF.
pub const EOF: u8 = 0xFE;
/// First byte of an ERR packet, and of MariaDB's progress reports.
pub const ERR: u8 = 0xFF;
/// First byte of a LOCAL INFILE request.
pub const LOCAL_INFILE: u8 = 0xFB;
