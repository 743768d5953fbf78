//! The service account's connections: they log in, query, and follow the server's log. Named limits bound what they buffer.
//!
//! Client libraries do not fit: they read a result of any length, and allocate as many columns as the server announces.
//!
//! | module | what it is |
//! |---|---|
//! | `login` | login packets |
//! | `greeting` | what a server says before the login |
//! | `connection` | a connection: queries and replies |
//! | `target` | which server to connect to |
//! | `connection_permits` | how many connections there may be, by purpose |
//! | `binlog_stream` | a connection that receives the log |
//! | `refusal_log` | logs a refused login once |
//! | `event_reader`, `payload_decompressor` | pure: turn streamed bytes into events |

pub mod binlog_stream;
mod connection;
mod connection_permits;
pub mod error;
pub mod greeting;
pub mod login;
mod refusal_log;
mod target;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

pub use connection::AccountConnection;
pub use connection_permits::{ConnectionPurpose, MOST_CONNECTIONS};
pub use error::AccountError;
pub use target::{
    FollowedServer, SelectedServer, ServerChangeSignal, UpstreamServer, UpstreamTarget,
};

use crate::link::is_path;
use crate::tls::TlsConnector;

/// The most bytes of a reply that is loaded into memory: the longest is a follow list of some millions.
const LOAD_BYTES: usize = 64 << 20;

/// An account and the server it connects to, with the statements that set up its sessions.
#[derive(Clone)]
pub struct UpstreamAccount {
    target: UpstreamTarget,
    user: String,
    /// Shared by all copies of this account.
    password: Arc<RwLock<String>>,
    database: Option<String>,
    session: Vec<String>,
    /// The longest reply to a load that is read, in bytes.
    load_bytes: usize,
    refusal_log: refusal_log::RefusalLog,
}

impl fmt::Debug for UpstreamAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Account({:?} at {})",
            self.user,
            self.target.address_list()
        )
    }
}

impl UpstreamAccount {
    /// An account on a server (`HOST:PORT`, or a socket path). TLS is used only if the settings require it.
    #[must_use]
    pub fn new(
        upstream: &str,
        user: &str,
        password: &str,
        connector: &TlsConnector,
    ) -> UpstreamAccount {
        UpstreamAccount::for_target(UpstreamTarget::one(upstream, connector), user, password)
    }

    /// An account on the server that `target` follows.
    #[must_use]
    pub fn for_target(target: UpstreamTarget, user: &str, password: &str) -> UpstreamAccount {
        UpstreamAccount {
            target,
            user: user.to_owned(),
            password: Arc::new(RwLock::new(password.to_owned())),
            database: None,
            session: Vec::new(),
            load_bytes: LOAD_BYTES,
            refusal_log: refusal_log::RefusalLog::default(),
        }
    }

    /// The user name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The current password.
    fn password(&self) -> String {
        let password = self.password.read();
        password.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the password for later logins, wherever this account is used. Open connections stay.
    pub fn set_password(&self, password: &str) {
        let current = self.password.write();
        password.clone_into(&mut current.unwrap_or_else(PoisonError::into_inner));
    }

    /// The same account on the servers of another target.
    #[must_use]
    pub fn with_target(&self, target: UpstreamTarget) -> UpstreamAccount {
        UpstreamAccount {
            target,
            ..self.clone()
        }
    }

    /// The servers it connects to.
    #[must_use]
    pub fn target(&self) -> &UpstreamTarget {
        &self.target
    }

    /// The same account with another limit on replies to loads, in bytes.
    #[must_use]
    pub fn with_load_bytes(self, load_bytes: usize) -> UpstreamAccount {
        UpstreamAccount { load_bytes, ..self }
    }

    /// The same account with sessions that start in a database.
    #[must_use]
    pub fn in_database(&self, database: &str) -> UpstreamAccount {
        UpstreamAccount {
            database: Some(database.to_owned()),
            ..self.clone()
        }
    }

    /// The same account with sessions that do not depend on the server's defaults: they read all that is committed.
    #[must_use]
    pub fn with_internal_session(mut self) -> UpstreamAccount {
        self.session = vec![
            "SET SESSION autocommit = 1, completion_type = 0, sql_mode = '', sql_select_limit = 18446744073709551615, \
             sql_big_selects = 1, sql_quote_show_create = 1"
                .to_owned(),
            // Internal sessions may be idle for longer than clients, and replies may be long.
            "SET SESSION wait_timeout = 28800, interactive_timeout = 28800, net_read_timeout = 30, net_write_timeout = 60 \
             /*M!100300 , idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, \
             idle_write_transaction_timeout = 0 */"
                .to_owned(),
            // One read view per statement.
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
        ];
        self
    }
}

/// The host of an address, without the brackets of IPv6.
#[must_use]
pub fn host(upstream: &str) -> &str {
    if is_path(upstream) {
        return "localhost";
    }
    let host = upstream.rsplit_once(':').map_or(upstream, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
