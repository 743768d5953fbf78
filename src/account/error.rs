//! Why the server does not answer the service account.

use std::io;

use crate::backend::AskError;
use crate::wire::cursor::Malformed;
use crate::wire::response::ErrPacket;

/// Why a question has no answer, or an account no connection.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    Io(#[from] io::Error),
    /// The server refused; or its answer came whole and is of no use.
    #[error("{0}")]
    Server(ErrPacket),
    /// The account's way of logging in is not known here.
    #[error(
        "the account logs in by {0:?}, which Headwater itself cannot do: make it one of mysql_native_password or \
         caching_sha2_password"
    )]
    Plugin(String),
    /// The key with which the server wants passwords enciphered is none.
    #[error("the server's public key cannot be used")]
    Key,
    /// The server offers no TLS, and the settings want it.
    #[error("the server offers no TLS, and upstream_tls.mode wants it")]
    NoTls,
    /// A packet that has no place where it came.
    #[error("the server sent a packet that has no place here")]
    Unexpected,
    /// A packet is none of the protocol.
    #[error("the server sent a malformed packet: {0}")]
    Malformed(#[from] Malformed),
    /// A reply cannot be followed.
    #[error(transparent)]
    Reply(AskError),
    /// The log's file is too long to be followed from its end.
    #[error(
        "the server's log file has more than 4 GiB: have it begin another one (FLUSH BINARY LOGS)"
    )]
    TooFar,
    /// An event of the log that is longer than may be held.
    #[error("an event of the server's log has more than {0} bytes (binlog.event_bytes)")]
    EventTooLong(usize),
}

impl AccountError {
    /// The code of the server's own error.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            AccountError::Server(error) => Some(error.code),
            _ => None,
        }
    }
}

impl From<AskError> for AccountError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Lost(source) => AccountError::Io(source),
            other => AccountError::Reply(other),
        }
    }
}
