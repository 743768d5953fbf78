//! Connections for questions beside the stream: proofs of freshness, and loads.

use std::time::Duration;

use super::Binlog;
use super::error::BinlogError;
use super::server_facts::{self, ServerFacts};
use crate::account::{AccountConnection, AccountError, ConnectionPurpose};
use crate::log::replication_state::StreamGeneration;

/// A question that takes longer is given up with its connection. Its statements wait a second for a lock.
pub(super) const LATEST: Duration = Duration::from_secs(5);

/// A connection that is kept between questions, while the stream is the one that it was made beside: a later stream may
/// come from another server.
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

    /// Takes the connection out, or makes one. Who has read all answers puts it back.
    pub(super) async fn take(
        &mut self,
        binlog: &Binlog,
        generation: StreamGeneration,
        server: &ServerFacts,
    ) -> Result<AccountConnection, BinlogError> {
        let mut kept = self.cached.take();
        // What is not of use any more is gone before another one is made; so is one that the server has ended while it was idle.
        let is_of_use = |(own, conn): &mut (StreamGeneration, AccountConnection)| {
            *own == generation && conn.is_open()
        };
        if !kept.as_mut().is_some_and(is_of_use) {
            kept = None;
        }
        match kept {
            Some((_, conn)) => Ok(conn),
            None => connect(binlog, server, self.purpose).await,
        }
    }

    pub(super) fn put_back(&mut self, generation: StreamGeneration, conn: AccountConnection) {
        self.cached = Some((generation, conn));
    }
}

impl Binlog {
    /// True where that is the server whose log is followed.
    #[must_use]
    pub fn follows(&self, identity: &[u8]) -> bool {
        let state = self.state();
        let server = state.server.as_ref();
        server.is_some_and(|server| server.identity.as_bytes() == identity)
    }

    /// True where a connection leads to the server whose log is followed. Behind one address may be several.
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

/// A connection to the server that the stream comes from.
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
        // What is cut off nevertheless is noticed, and asked for in another way.
        "SET SESSION group_concat_max_len = 1048576",
        // Whoever waits for longer is answered by lookups in any case.
        "SET SESSION lock_wait_timeout = 1",
        // Keys are told and asked for as they are kept, whether they are dates or not.
        "SET SESSION time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'",
    ] {
        conn.run(statement).await.map_err(&failed)?;
    }
    // A load may come from a member that does not serve: what it brings is not told without a proof.
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
