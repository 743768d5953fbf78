//! Why the service account gets no reply.

use std::io;

use crate::backend::InternalQueryError;
use crate::tls::TlsMode;
use headwater_log::EventError;
use headwater_wire::cursor::MalformedPacket;
use headwater_wire::response::ErrPacket;

/// Access denied, with a password or without; account locked (MySQL, MariaDB); password expired.
const LOGIN_REFUSED: [u16; 5] = [1045, 1698, 3118, 4151, 1862];

/// ER_PROCACCESS_DENIED_ERROR, and a missing privilege on the database.
pub(crate) const EXECUTE_DENIED: [u16; 2] = [1370, 1044];

/// Why a query has no reply, or an account no connection.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    Io(#[from] io::Error),
    /// TLS negotiation failed.
    #[error(
        "TLS with the server failed (upstream_tls.mode = {mode}): {source}. Look at upstream_tls.ca and upstream_tls.name, and at the \
         certificate that the server shows"
    )]
    Tls {
        /// What the server must prove.
        mode: TlsMode,
        /// Why.
        source: io::Error,
    },
    /// All connections of that purpose are being opened or wait for the server.
    #[error(
        "the service account's connections for this ({0}) are taken: the server has not let them in yet, or has not answered them \
         (SHOW PROCESSLIST shows what it does there)"
    )]
    Waiting(&'static str),
    /// With several servers: none is followed.
    #[error("none of the servers in upstream takes writes now")]
    NoPrimary,
    /// The server that was queried is no longer followed.
    #[error("another server is the primary now")]
    Moved,
    /// The server returned an error, or a complete reply that is of no use.
    #[error("{0}")]
    Server(ErrPacket),
    /// The server refuses the account.
    #[error(
        "the server refuses the service account {user:?}: {error}. Set service.user and service.password (--service-user, \
         --service-password) to an account that may log in from this machine; `headwater check` prints the statements that make one"
    )]
    Refused {
        /// The account's name.
        user: String,
        /// The server's error.
        error: ErrPacket,
    },
    /// The account's authentication plugin is not supported.
    #[error(
        "the server asks the service account {user:?} (service.user, --service-user) to log in by {plugin}, which Headwater cannot do. \
         Either there is no such account (MySQL then asks for any plugin): `headwater check` prints the statements that make it. Or it \
         was made with {plugin}: ALTER USER ... IDENTIFIED WITH caching_sha2_password BY ... (mysql_native_password on MariaDB)"
    )]
    Plugin {
        /// The account's name.
        user: String,
        /// The plugin that the server requests.
        plugin: String,
    },
    /// The server's public key for passwords is invalid.
    #[error("the server's public key cannot be used")]
    Key,
    /// The server offers no TLS, and the settings require it.
    #[error("the server offers no TLS, and upstream_tls.mode wants it")]
    NoTls,
    /// A packet that is not valid at this point.
    #[error("the server sent a packet that has no place here")]
    Unexpected,
    /// A malformed packet.
    #[error("the server sent a malformed packet: {0}")]
    Malformed(#[from] MalformedPacket),
    /// A reply that cannot be parsed.
    #[error(transparent)]
    Reply(InternalQueryError),
    /// The log file has grown beyond the offsets that a dump request can name.
    #[error(
        "the server's log file has more than 4 GiB: have it begin another one (FLUSH BINARY LOGS)"
    )]
    TooFar,
    /// An event of the log cannot be read.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl AccountError {
    /// The code of the server's error, if this is one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            AccountError::Server(error) | AccountError::Refused { error, .. } => Some(error.code),
            _ => None,
        }
    }

    /// True if the server refuses the account permanently; this was logged when it happened.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            AccountError::Refused { .. } | AccountError::Plugin { .. }
        )
    }

    /// True if the server sent something that cannot be read: it would send it again.
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
