//! Why the server does not answer the service account.

use std::io;

use crate::backend::InternalQueryError;
use crate::log::EventError;
use crate::tls::TlsMode;
use crate::wire::cursor::MalformedPacket;
use crate::wire::response::ErrPacket;

/// Denied with a password or without one; the account is locked (MySQL, MariaDB); its password has expired.
const LOGIN_REFUSED: [u16; 5] = [1045, 1698, 3118, 4151, 1862];

/// Why a question has no answer, or an account no connection.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    Io(#[from] io::Error),
    /// Both sides do not agree on TLS.
    #[error(
        "TLS with the server failed (upstream_tls.mode = {mode}): {source}. Look at upstream_tls.ca and upstream_tls.name, and at the \
         certificate that the server shows"
    )]
    Tls {
        /// What the server has to prove.
        mode: TlsMode,
        /// Why.
        source: io::Error,
    },
    /// Every connection of that purpose is being made, or waits for the server's answer.
    #[error(
        "the service account's connections for this ({0}) are taken: the server has not let them in yet, or has not answered them \
         (SHOW PROCESSLIST shows what it does there)"
    )]
    Waiting(&'static str),
    /// Of several servers none is followed.
    #[error("none of the servers in upstream takes writes now")]
    NoPrimary,
    /// The server that was asked is not followed any more.
    #[error("another server is the primary now")]
    Moved,
    /// The server refused; or its answer came whole and is of no use.
    #[error("{0}")]
    Server(ErrPacket),
    /// The server does not let the account in.
    #[error(
        "the server refuses the service account {user:?}: {error}. Set service.user and service.password (--service-user, \
         --service-password) to an account that may log in from this machine; `headwater check` prints the statements that make one"
    )]
    Refused {
        /// The account's name.
        user: String,
        /// What the server says.
        error: ErrPacket,
    },
    /// The account's way of logging in is not known here.
    #[error(
        "the server asks the service account {user:?} (service.user, --service-user) to log in by {plugin}, which Headwater cannot do. \
         Either there is no such account (MySQL then asks for any plugin): `headwater check` prints the statements that make it. Or it \
         was made with {plugin}: ALTER USER ... IDENTIFIED WITH caching_sha2_password BY ... (mysql_native_password on MariaDB)"
    )]
    Plugin {
        /// The account's name.
        user: String,
        /// What the server asks for.
        plugin: String,
    },
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
    Malformed(#[from] MalformedPacket),
    /// A reply cannot be followed.
    #[error(transparent)]
    Reply(InternalQueryError),
    /// The log's file is too long to be followed from its end.
    #[error(
        "the server's log file has more than 4 GiB: have it begin another one (FLUSH BINARY LOGS)"
    )]
    TooFar,
    /// An event of the log cannot be read.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl AccountError {
    /// The code of the server's own error.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            AccountError::Server(error) | AccountError::Refused { error, .. } => Some(error.code),
            _ => None,
        }
    }

    /// True when the server does not let the account in, whatever is tried: the log was told of that where it happened.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            AccountError::Refused { .. } | AccountError::Plugin { .. }
        )
    }

    /// True when the server sent what cannot be read here, or not from there on: it would send it again.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(
            self,
            AccountError::Event(_)
                | AccountError::Malformed(_)
                | AccountError::Reply(_)
                | AccountError::Unexpected
                | AccountError::TooFar
        )
    }

    /// What this is where it came in answer to a login.
    pub(super) fn at_login(self, user: &str) -> AccountError {
        let user = user.to_owned();
        match self {
            AccountError::Server(error) if LOGIN_REFUSED.contains(&error.code) => {
                AccountError::Refused { user, error }
            }
            AccountError::Plugin { plugin, .. } => AccountError::Plugin { user, plugin },
            other => other,
        }
    }
}

impl From<InternalQueryError> for AccountError {
    fn from(error: InternalQueryError) -> Self {
        match error {
            InternalQueryError::ConnectionLost(source) => AccountError::Io(source),
            other => AccountError::Reply(other),
        }
    }
}
