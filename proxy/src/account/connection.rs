//! A logged-in connection of the service account: pipelined queries and their replies.

use std::sync::Arc;
use std::time::Duration;

use super::connection_permits::{ConnectionPermit, ConnectionPurpose};
use super::error::AccountError;
use super::login::{self, AuthAction, AuthDialogue, LoginCredentials};
use super::target::{SelectedServer, ServerChangeSignal};
use super::{UpstreamAccount, UpstreamServer};
use crate::backend::{BackendConnection, QueryBatch};
use headwater_wire::capability::Capabilities;
use headwater_wire::command::Command;
use headwater_wire::handshake::{ServerGreeting, login_with_flags, ssl_request};
use headwater_wire::packet::{self, HEADER_BYTES, PacketHeader};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{CollectLimits, QueryReply, ResultSet};

/// Timeout for connecting and logging in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A query is given up after this long without a byte from the server: the query or its reply was lost on the network. Queries are short
/// and do not wait for locks, so no server takes as long.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);
/// The same for short queries that memory waits for.
const SHORT_SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest packet of a login in bytes; real ones have some hundred.
pub(super) const LOGIN_PACKET_BYTES: usize = 64 * 1024;
/// Default limits of a reply: a procedure's body, a list of transactions.
const ANSWER_LIMITS: CollectLimits = CollectLimits {
    max_rows: 1 << 20,
    max_bytes: 16 << 20,
};
/// The most rows of a reply that is loaded into memory.
const LOAD_ROWS: usize = 8 << 20;

/// A connection. Dropping it sends COM_QUIT; in the middle of a reply, the reply is drained first.
#[derive(Debug)]
pub struct AccountConnection {
    /// `None` once the connection was handed over.
    backend: Option<BackendConnection>,
    capabilities: Capabilities,
    permit: Option<ConnectionPermit>,
    load_bytes: usize,
    /// A reply was not read to its end: the next query needs another connection.
    awaits_reply: bool,
    /// Fires when the server is no longer followed.
    server_change: ServerChangeSignal,
}

impl Drop for AccountConnection {
    fn drop(&mut self) {
        let Some(mut backend) = self.backend.take() else {
            return;
        };
        if !self.awaits_reply {
            let _ = backend
                .link
                .send(&packet::encode_first(&[Command::Quit.byte()]));
            return;
        }
        // The server still counts the connection, so the permit is held until it ends.
        let permit = self.permit.take();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                drain_until_closed(backend).await;
                drop(permit);
            });
        }
    }
}

/// Shuts down writing, and discards what comes until the server ends the connection or has been silent for too long.
async fn drain_until_closed(mut backend: BackendConnection) {
    let _ = backend.link.shutdown_write().await;
    while backend.fill().await.is_ok() {
        backend.inbox.clear();
        tokio::task::yield_now().await;
    }
}

impl AccountConnection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// When the server is unreachable, refuses the account, or has all permitted connections for this purpose.
    pub async fn open(
        account: &UpstreamAccount,
        purpose: ConnectionPurpose,
    ) -> Result<AccountConnection, AccountError> {
        let selected = account.target.select_within(CONNECT_TIMEOUT).await;
        let selected = selected.ok_or(AccountError::NoPrimary)?;
        let permit = selected.server.permits.take(purpose)?;
        let change = selected.server_change.clone();
        let silence = match purpose {
            ConnectionPurpose::Transactions | ConnectionPurpose::Proofs => SHORT_SILENCE_TIMEOUT,
            _ => SILENCE_TIMEOUT,
        };
        let opened = tokio::time::timeout(
            CONNECT_TIMEOUT,
            Self::log_in(account, selected, permit, silence),
        );
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let opened = while_followed(&change, opened).await?.map_err(timed_out)?;
        account.refusal_log.record(&opened);
        opened
    }

    async fn log_in(
        account: &UpstreamAccount,
        selected: SelectedServer,
        permit: ConnectionPermit,
        silence: Duration,
    ) -> Result<AccountConnection, AccountError> {
        let SelectedServer {
            server,
            server_change: change,
            ..
        } = selected;
        let mut backend = BackendConnection::dial(server.address(), CONNECT_TIMEOUT).await?;
        backend.silence_timeout = Some(silence);
        let mut conn = AccountConnection {
            backend: Some(backend),
            capabilities: Capabilities::NONE,
            load_bytes: account.load_bytes,
            permit: Some(permit),
            awaits_reply: true,
            server_change: change,
        };
        let introduced = authenticate(conn.backend()?, account, &server).await;
        if matches!(introduced, Err(AccountError::Tls { .. })) {
            // Nothing was queried, so the server has nothing to finish: the permit is free.
            conn.backend = None;
        }
        conn.capabilities = introduced?;
        conn.awaits_reply = false;
        for answer in conn.query(&account.session).await? {
            check_done(answer)?;
        }
        Ok(conn)
    }

    fn backend(&mut self) -> Result<&mut BackendConnection, AccountError> {
        self.backend.as_mut().ok_or(AccountError::Unexpected)
    }

    /// True if the server is still followed, and has not closed the idle connection or sent anything.
    pub fn is_open(&mut self) -> bool {
        if self.server_change.has_changed() {
            return false;
        }
        let read = self.backend().map(|backend| backend.link.read(&mut [0]));
        matches!(read, Ok(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Waits until the server has closed the connection, or has sent something unexpected.
    pub async fn ended(&mut self) {
        while self.is_open() {
            let Ok(backend) = self.backend() else {
                return;
            };
            if backend.link.readable().await.is_err() {
                return;
            }
        }
    }

    /// Hands the connection over to a long-lived reader, which closes it.
    pub(super) fn into_backend(
        mut self,
    ) -> Result<(BackendConnection, Option<ConnectionPermit>), AccountError> {
        let backend = self.backend.take().ok_or(AccountError::Unexpected)?;
        Ok((backend, self.permit.take()))
    }

    /// Sends these queries in one write. Returns one reply for each, in order, even if earlier ones failed.
    ///
    /// # Errors
    /// When the connection fails. A server error, and a reply that is too long, is returned as the reply.
    pub async fn query(
        &mut self,
        queries: &[impl AsRef<str>],
    ) -> Result<Vec<QueryReply>, AccountError> {
        self.query_within(queries, ANSWER_LIMITS).await
    }

    async fn query_within(
        &mut self,
        queries: &[impl AsRef<str>],
        limits: CollectLimits,
    ) -> Result<Vec<QueryReply>, AccountError> {
        let mut batch = QueryBatch::new(self.capabilities);
        for query in queries {
            batch.push_query(query.as_ref());
        }
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        if self.awaits_reply {
            return Err(std::io::Error::from(std::io::ErrorKind::NotConnected).into());
        }
        let capabilities = self.capabilities;
        self.awaits_reply = true;
        let change = self.server_change.clone();
        let answers = self.backend()?.query(&batch, capabilities, limits);
        let answers = while_followed(&change, answers).await??;
        self.awaits_reply = false;
        Ok(answers)
    }

    /// Returns the rows of each query.
    ///
    /// # Errors
    /// The first query that returns no rows.
    pub async fn rows_of(
        &mut self,
        queries: &[impl AsRef<str>],
    ) -> Result<Vec<ResultSet>, AccountError> {
        let answers = self.query(queries).await?;
        answers.into_iter().map(rows_of_answer).collect()
    }

    /// As [`Self::rows_of`], with the larger limits for loads.
    ///
    /// # Errors
    /// As [`Self::rows_of`].
    pub async fn load(
        &mut self,
        queries: &[impl AsRef<str>],
    ) -> Result<Vec<ResultSet>, AccountError> {
        let limits = CollectLimits {
            max_rows: LOAD_ROWS,
            max_bytes: self.load_bytes,
        };
        let answers = self.query_within(queries, limits).await?;
        answers.into_iter().map(rows_of_answer).collect()
    }

    /// Returns the rows of a query.
    ///
    /// # Errors
    /// When it returns none.
    pub async fn rows(&mut self, query: &str) -> Result<ResultSet, AccountError> {
        let rows = self.rows_of(&[query]).await?;
        rows.into_iter().next().ok_or(AccountError::Unexpected)
    }

    /// Runs a statement; discards its rows, if any.
    ///
    /// # Errors
    /// When it fails.
    pub async fn run(&mut self, statement: &str) -> Result<(), AccountError> {
        for answer in self.query(&[statement]).await? {
            check_done(answer)?;
        }
        Ok(())
    }
}

/// Logs in; returns the negotiated capabilities.
async fn authenticate(
    backend: &mut BackendConnection,
    account: &UpstreamAccount,
    server: &UpstreamServer,
) -> Result<Capabilities, AccountError> {
    let (mut seq, packet) = read_packet(backend).await?;
    if let Ok(refused) = ErrPacket::parse(&packet) {
        return Err(AccountError::Server(refused));
    }
    let greeting = ServerGreeting::parse(&packet)?;
    let password = account.password();
    let who = LoginCredentials {
        user: &account.user,
        password: &password,
        database: account.database.as_deref(),
    };
    let (mut response, capabilities) = login::handshake_response(&greeting, &who);
    let tls = server.tls();
    if let Some(tls) = tls {
        if !greeting.capabilities.contains(Capabilities::SSL) {
            return Err(AccountError::NoTls);
        }
        response = login_with_flags(&response, Capabilities::SSL, Capabilities::SSL);
        let request = ssl_request(&response, Capabilities::NONE, Capabilities::NONE);
        seq = send_packet(backend, seq, &request).await?;
        let config = Arc::clone(&tls.config);
        let link = &mut backend.link;
        let shaken = link.connect_tls(config, tls.name.clone()).await;
        let mode = tls.mode;
        shaken.map_err(|source| AccountError::Tls { mode, source })?;
    }
    send_packet(backend, seq, &response).await?;
    let secure = tls.is_some() || backend.link.is_local();
    let mut dialogue = AuthDialogue::new(&greeting, &password, secure);
    loop {
        let (seq, packet) = read_packet(backend).await?;
        let action = dialogue.receive(&packet);
        match action.map_err(|error| error.at_login(&account.user))? {
            AuthAction::Authenticated => return Ok(capabilities),
            AuthAction::Wait => {}
            AuthAction::Send(answer) => {
                send_packet(backend, seq, &answer).await?;
            }
        }
    }
}

/// Runs `work` unless another server is followed first: the old server may be gone and never reply.
async fn while_followed<T>(
    change: &ServerChangeSignal,
    work: impl Future<Output = T>,
) -> Result<T, AccountError> {
    if !change.is_possible() {
        return Ok(work.await);
    }
    tokio::select! {
        biased;
        () = change.wait() => Err(AccountError::Moved),
        done = work => Ok(done),
    }
}

fn rows_of_answer(answer: QueryReply) -> Result<ResultSet, AccountError> {
    match answer {
        QueryReply::Rows(rows) => Ok(rows),
        QueryReply::Err(error) => Err(AccountError::Server(error)),
        QueryReply::Ok(_) => Err(AccountError::Unexpected),
    }
}

fn check_done(answer: QueryReply) -> Result<(), AccountError> {
    match answer {
        QueryReply::Err(error) => Err(AccountError::Server(error)),
        QueryReply::Ok(_) | QueryReply::Rows(_) => Ok(()),
    }
}

/// Reads a packet of the login; returns the next sequence number with it.
pub(super) async fn read_packet(
    backend: &mut BackendConnection,
) -> Result<(u8, Vec<u8>), AccountError> {
    loop {
        if let Some(packet) = packet::complete_payload(&backend.inbox) {
            let packet = packet.to_vec();
            let header = PacketHeader::parse(&backend.inbox).unwrap_or_default();
            backend.inbox.drain(..HEADER_BYTES + packet.len());
            return Ok((header.seq.wrapping_add(1), packet));
        }
        if backend.inbox.len() > LOGIN_PACKET_BYTES {
            return Err(AccountError::Unexpected);
        }
        backend.fill().await?;
    }
}

/// Sends a packet; returns the next sequence number.
async fn send_packet(
    backend: &mut BackendConnection,
    seq: u8,
    payload: &[u8],
) -> Result<u8, AccountError> {
    let mut packet = Vec::new();
    let next = packet::encode(seq, payload, &mut packet);
    backend.link.send_all(&packet).await?;
    Ok(next)
}
