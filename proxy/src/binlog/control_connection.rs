//! Connections for queries beside the stream: proofs of freshness, and loads.

use std::time::Duration;

use super::Binlog;
use super::error::BinlogError;
use super::server_facts::{self, ServerFacts};
use crate::account::{AccountConnection, AccountError, ConnectionPurpose};
use headwater_log::replication_state::StreamGeneration;

/// A slower query is abandoned with its connection. Its statements wait a second for a lock.
pub(super) const LATEST: Duration = Duration::from_secs(5);

/// A connection cached between queries, for the stream it was opened beside: a later stream may come from another server.
#[derive(Debug)]
pub(super) struct ControlConnection {
    purpose: ConnectionPurpose,
    cached: Option<(StreamGeneration, AccountConnection)>,
}

impl ControlConnection {
    pub(super) fn new(purpose: ConnectionPurpose) -> ControlConnection {
        ControlConnection {
            purpose,
            cached: None,
        }
    }

    /// Takes the cached connection, or opens one. The caller puts it back once all replies are read.
    pub(super) async fn take(
        &mut self,
        binlog: &Binlog,
        generation: StreamGeneration,
        server: &ServerFacts,
    ) -> Result<AccountConnection, BinlogError> {
        let mut cached = self.cached.take();
        // A connection that is stale, or that the server has closed, is dropped before another one is opened.
        let is_of_use = |(cached_generation, conn): &mut (StreamGeneration, AccountConnection)| {
            *cached_generation == generation && conn.is_open()
        };
        if !cached.as_mut().is_some_and(is_of_use) {
            cached = None;
        }
        match cached {
            Some((_, conn)) => Ok(conn),
            None => connect(binlog, server, self.purpose).await,
        }
    }

    pub(super) fn put_back(&mut self, generation: StreamGeneration, conn: AccountConnection) {
        self.cached = Some((generation, conn));
    }
}

impl Binlog {
    /// True if that is the server whose log is followed.
    #[must_use]
    pub fn follows(&self, identity: &[u8]) -> bool {
        let state = self.state();
        let server = state.server.as_ref();
        server.is_some_and(|server| server.identity.as_bytes() == identity)
    }

    /// True if a connection leads to the server whose log is followed. One address may lead to several servers.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn leads_to_followed_server(
        &self,
        conn: &mut AccountConnection,
    ) -> Result<bool, AccountError> {
        let server = self.state().server.clone();
        match server {
            Some(server) => {
                let identity = server_facts::identity(conn, server.session_request()).await?;
                Ok(identity == server.identity)
            }
            None => Ok(false),
        }
    }
}

/// Opens a connection to the server that the stream comes from.
pub(super) async fn connect(
    binlog: &Binlog,
    server: &ServerFacts,
    purpose: ConnectionPurpose,
) -> Result<AccountConnection, BinlogError> {
    let failed = BinlogError::while_doing("the service account cannot connect");
    let mut conn = AccountConnection::open(&binlog.account, purpose)
        .await
        .map_err(&failed)?;
    for statement in [
        // A list that is truncated nevertheless is detected, and read in another way.
        "SET SESSION group_concat_max_len = 1048576",
        // A call that waited longer is served by lookups anyway.
        "SET SESSION lock_wait_timeout = 1",
        // Keys are read and written as they are stored, whether they are valid dates or not.
        "SET SESSION time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'",
    ] {
        conn.run(statement).await.map_err(&failed)?;
    }
    // A load may come from a member that does not serve: its rows are not used without a proof.
    if purpose == ConnectionPurpose::Proofs {
        for statement in server.proof_session_statements() {
            conn.run(&statement).await.map_err(&failed)?;
        }
    }
    let other = server_facts::identity(&mut conn, server.session_request())
        .await
        .map_err(&failed)?;
    if other == server.identity {
        Ok(conn)
    } else {
        Err(BinlogError::UnexpectedServer {
            one: server.identity.clone(),
            other,
        })
    }
}
