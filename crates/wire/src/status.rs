//! The server status flags of OK and EOF packets.
//!
//! Names and values are those of `SERVER_STATUS_*` in both servers' sources. Session state is in the first three and the
//! two IN_TRANS flags; the others depend on plans and cursors (MySQL 9.7 leaks `CURSOR_EXISTS` and `LAST_ROW_SENT` into
//! the OK of a CALL).

/// A transaction is open.
pub const IN_TRANS: u16 = 0x0001;
/// Each statement commits by itself.
pub const AUTOCOMMIT: u16 = 0x0002;
/// Another response follows this one.
pub const MORE_RESULTS: u16 = 0x0008;
/// No good index was used.
pub const NO_GOOD_INDEX: u16 = 0x0010;
/// No index was used.
pub const NO_INDEX: u16 = 0x0020;
/// A cursor holds the rows; COM_STMT_FETCH brings them.
pub const CURSOR_EXISTS: u16 = 0x0040;
/// The cursor has no more rows.
pub const LAST_ROW_SENT: u16 = 0x0080;
/// A database was dropped.
pub const DB_DROPPED: u16 = 0x0100;
/// `NO_BACKSLASH_ESCAPES` is in `sql_mode`.
pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
/// A prepared statement now has other columns.
pub const METADATA_CHANGED: u16 = 0x0400;
/// The statement took longer than `long_query_time`.
pub const QUERY_WAS_SLOW: u16 = 0x0800;
/// This result set holds the OUT parameters of a prepared CALL.
pub const PS_OUT_PARAMS: u16 = 0x1000;
/// The open transaction is a read-only one.
pub const IN_TRANS_READONLY: u16 = 0x2000;
/// Session state trackers follow in this OK packet.
pub const SESSION_STATE_CHANGED: u16 = 0x4000;
/// `ANSI_QUOTES` is in `sql_mode` (MariaDB).
pub const ANSI_QUOTES: u16 = 0x8000;
