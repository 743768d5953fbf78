//! The service account's connections: they log in, ask, and follow the server's log, and hold no more of what comes than named
//! limits allow.
//!
//! Not by a library of clients: those that there are read a result for as long as it comes, and make room for as many columns as
//! the server says that there are.
//!
//! | module | what it is |
//! |---|---|
//! | `login` | what is said to be let in |
//! | `connection` | a connection, questions and answers |
//! | `target` | which server they are made to |
//! | `connection_permits` | how many connections there are at most, and what for |
//! | `binlog_stream` | a connection that is sent the log |
//! | `refusal_log` | what the log was told of a login that is refused |
//! | `event_reader`, `payload_decompressor` | pure: its bytes, as they stream by, become events |

pub mod binlog_stream;
mod connection;
mod connection_permits;
pub mod error;
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

/// What an answer may hold that is asked for to be kept in memory: the longest is a follow list of some millions.
const LOAD_BYTES: usize = 64 << 20;

/// Who connects to which server, and what is said first.
#[derive(Clone)]
pub struct UpstreamAccount {
    target: UpstreamTarget,
    user: String,
    /// The same for all that were made of one account.
    password: Arc<RwLock<String>>,
    database: Option<String>,
    session: Vec<String>,
    /// The longest answer to a load that is read, in bytes.
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
    /// An account on a server (`HOST:PORT`, or the path of its socket). There is TLS where the settings leave no choice.
    #[must_use]
    pub fn new(
        upstream: &str,
        user: &str,
        password: &str,
        connector: &TlsConnector,
    ) -> UpstreamAccount {
        UpstreamAccount::for_target(UpstreamTarget::one(upstream, connector), user, password)
    }

    /// An account on the server that is followed.
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

    /// Its name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Its password, as it is now.
    fn password(&self) -> String {
        let password = self.password.read();
        password.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Logs in with another password from now on, wherever this account is used. Connections that there are stay.
    pub fn set_password(&self, password: &str) {
        let own = self.password.write();
        password.clone_into(&mut own.unwrap_or_else(PoisonError::into_inner));
    }

    /// The same on the servers of another target.
    #[must_use]
    pub fn with_target(&self, target: UpstreamTarget) -> UpstreamAccount {
        UpstreamAccount {
            target,
            ..self.clone()
        }
    }

    /// Where it connects to.
    #[must_use]
    pub fn target(&self) -> &UpstreamTarget {
        &self.target
    }

    /// The same, which reads no longer answers to loads than this.
    #[must_use]
    pub fn with_load_bytes(self, load_bytes: usize) -> UpstreamAccount {
        UpstreamAccount { load_bytes, ..self }
    }

    /// The same with sessions that start in a database.
    #[must_use]
    pub fn in_database(&self, database: &str) -> UpstreamAccount {
        UpstreamAccount {
            database: Some(database.to_owned()),
            ..self.clone()
        }
    }

    /// The same with sessions that answer alike whatever the server's defaults: they see what is committed now, and all of it.
    #[must_use]
    pub fn with_internal_session(mut self) -> UpstreamAccount {
        self.session = vec![
            "SET SESSION autocommit = 1, completion_type = 0, sql_mode = '', sql_select_limit = 18446744073709551615, \
             sql_big_selects = 1, sql_quote_show_create = 1"
                .to_owned(),
            // They may be idle for longer than clients, and answers may be long.
            "SET SESSION wait_timeout = 28800, interactive_timeout = 28800, net_read_timeout = 30, net_write_timeout = 60 \
             /*M!100300 , idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, \
             idle_write_transaction_timeout = 0 */"
                .to_owned(),
            // One read view a statement.
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
