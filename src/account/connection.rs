//! A logged-in connection of the service account: questions, several in one write, and their answers.

use std::sync::Arc;
use std::time::Duration;

use super::connection_permits::{ConnectionPermit, ConnectionPurpose};
use super::error::AccountError;
use super::login::{self, AuthAction, AuthDialogue, LoginCredentials};
use super::target::{SelectedServer, ServerChangeSignal};
use super::{UpstreamAccount, UpstreamServer};
use crate::backend::{BackendConnection, QueryBatch};
use crate::wire::capability::Capabilities;
use crate::wire::command::Command;
use crate::wire::handshake::{ServerGreeting, login_with_flags, ssl_request};
use crate::wire::packet::{self, HEADER_BYTES, PacketHeader};
use crate::wire::response::ErrPacket;
use crate::wire::resultset::{CollectLimits, QueryReply, ResultSet};

/// To connect and to log in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that says nothing for so long to a question is not asked any more: its answer, or the question, was lost on a network that told
/// nobody. Short lookups and no locks are waited for, so no server takes as long.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);
/// The same of lists that a server has at hand, and that memory waits for.
const SHORT_SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest packet of a login; real ones have some hundred bytes.
pub(super) const LOGIN_PACKET_BYTES: usize = 64 * 1024;
/// What an answer may hold as a rule: a procedure's body, a list of transactions.
const ANSWER_LIMITS: CollectLimits = CollectLimits {
    max_rows: 1 << 20,
    max_bytes: 16 << 20,
};
/// Rows that one may have that is asked for to be kept in memory.
const LOAD_ROWS: usize = 8 << 20;

/// A connection. It says good-bye when it is dropped; in the middle of an answer, once the server has given that.
#[derive(Debug)]
pub struct AccountConnection {
    /// `None` once it was handed on.
    backend: Option<BackendConnection>,
    capabilities: Capabilities,
    permit: Option<ConnectionPermit>,
    load_bytes: usize,
    /// A question was not answered to its end: whoever goes on without its answer needs another connection.
    awaits_reply: bool,
    /// The server is not followed any more.
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
        // It is the server's for as long as it has it.
        let seat = self.permit.take();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                drain_until_closed(backend).await;
                drop(seat);
            });
        }
    }
}

/// Says that nothing more will come, and waits until the server has ended the connection, or has been silent for too long. Nothing of what it
/// says is kept.
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
    /// When the server cannot be reached, does not let the account in, or has all connections that there are for this purpose.
    pub async fn open(
        account: &UpstreamAccount,
        purpose: ConnectionPurpose,
    ) -> Result<AccountConnection, AccountError> {
        let aim = account.target.select_within(CONNECT_TIMEOUT).await;
        let aim = aim.ok_or(AccountError::NoPrimary)?;
        let seat = aim.server.permits.take(purpose)?;
        let moved = aim.server_change.clone();
        let silence = match purpose {
            ConnectionPurpose::Transactions | ConnectionPurpose::Proofs => SHORT_SILENCE_TIMEOUT,
            _ => SILENCE_TIMEOUT,
        };
        let opened =
            tokio::time::timeout(CONNECT_TIMEOUT, Self::log_in(account, aim, seat, silence));
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let opened = while_followed(&moved, opened).await?.map_err(timed_out)?;
        account.refusal_log.record(&opened);
        opened
    }

    async fn log_in(
        account: &UpstreamAccount,
        aim: SelectedServer,
        seat: ConnectionPermit,
        silence: Duration,
    ) -> Result<AccountConnection, AccountError> {
        let SelectedServer {
            server,
            server_change: moved,
            ..
        } = aim;
        let mut backend = BackendConnection::dial(server.address(), CONNECT_TIMEOUT).await?;
        backend.silence_timeout = Some(silence);
        let mut conn = AccountConnection {
            backend: Some(backend),
            capabilities: Capabilities::NONE,
            load_bytes: account.load_bytes,
            permit: Some(seat),
            awaits_reply: true,
            server_change: moved,
        };
        let introduced = authenticate(conn.backend()?, account, &server).await;
        if matches!(introduced, Err(AccountError::Tls { .. })) {
            // Nothing was asked, so the server has nothing to end: the seat is free.
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

    /// True if the server has not ended the connection while it was idle: it has said nothing then; and if it is the one still that is
    /// followed.
    pub fn is_open(&mut self) -> bool {
        if self.server_change.has_changed() {
            return false;
        }
        let said = self.backend().map(|backend| backend.link.read(&mut [0]));
        matches!(said, Ok(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Waits until the server has ended the connection, or has said something unasked.
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

    /// Hands the connection on to who listens to it for good; it ends when that does.
    pub(super) fn into_backend(
        mut self,
    ) -> Result<(BackendConnection, Option<ConnectionPermit>), AccountError> {
        let backend = self.backend.take().ok_or(AccountError::Unexpected)?;
        Ok((backend, self.permit.take()))
    }

    /// The answers to these questions, sent in one write: one behind the other, whatever became of those before.
    ///
    /// # Errors
    /// When the connection fails. What the server has against a question is its answer, and so is that it was too long.
    pub async fn query(
        &mut self,
        questions: &[impl AsRef<str>],
    ) -> Result<Vec<QueryReply>, AccountError> {
        self.query_within(questions, ANSWER_LIMITS).await
    }

    async fn query_within(
        &mut self,
        questions: &[impl AsRef<str>],
        limits: CollectLimits,
    ) -> Result<Vec<QueryReply>, AccountError> {
        let mut batch = QueryBatch::new(self.capabilities);
        for question in questions {
            batch.push_query(question.as_ref());
        }
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        if self.awaits_reply {
            return Err(std::io::Error::from(std::io::ErrorKind::NotConnected).into());
        }
        let capabilities = self.capabilities;
        self.awaits_reply = true;
        let moved = self.server_change.clone();
        let answers = self.backend()?.query(&batch, capabilities, limits);
        let answers = while_followed(&moved, answers).await??;
        self.awaits_reply = false;
        Ok(answers)
    }

    /// The rows of each of these questions.
    ///
    /// # Errors
    /// The first that has none.
    pub async fn rows_of(
        &mut self,
        questions: &[impl AsRef<str>],
    ) -> Result<Vec<ResultSet>, AccountError> {
        let answers = self.query(questions).await?;
        answers.into_iter().map(rows_of_answer).collect()
    }

    /// As [`Self::rows_of`], where they may be many.
    ///
    /// # Errors
    /// As [`Self::rows_of`].
    pub async fn load(
        &mut self,
        questions: &[impl AsRef<str>],
    ) -> Result<Vec<ResultSet>, AccountError> {
        let limits = CollectLimits {
            max_rows: LOAD_ROWS,
            max_bytes: self.load_bytes,
        };
        let answers = self.query_within(questions, limits).await?;
        answers.into_iter().map(rows_of_answer).collect()
    }

    /// The rows of a question.
    ///
    /// # Errors
    /// When it has none.
    pub async fn rows(&mut self, question: &str) -> Result<ResultSet, AccountError> {
        let rows = self.rows_of(&[question]).await?;
        rows.into_iter().next().ok_or(AccountError::Unexpected)
    }

    /// Has a statement done. Rows that it may have are left aside.
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

/// Says who it is, and returns what both sides will use.
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
        let turn = dialogue.receive(&packet);
        match turn.map_err(|error| error.at_login(&account.user))? {
            AuthAction::Authenticated => return Ok(capabilities),
            AuthAction::Wait => {}
            AuthAction::Send(answer) => {
                send_packet(backend, seq, &answer).await?;
            }
        }
    }
}

/// What comes of this, unless another server is followed before: nobody waits for one that may be gone.
async fn while_followed<T>(
    moved: &ServerChangeSignal,
    work: impl Future<Output = T>,
) -> Result<T, AccountError> {
    if !moved.is_possible() {
        return Ok(work.await);
    }
    tokio::select! {
        biased;
        () = moved.wait() => Err(AccountError::Moved),
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

/// A packet of the login, and the number that follows its own.
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

/// Answers; returns the number that follows.
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
