//! A logged-in connection of the service account: questions, several in one write, and their answers.

use std::sync::Arc;
use std::time::Duration;

use super::error::AccountError;
use super::login::{self, Dialogue, Login, Turn};
use super::seats::{Purpose, Seat};
use super::target::{Aim, Moved};
use super::{Account, Server};
use crate::backend::{Backend, Batch};
use crate::wire::capability::Capabilities;
use crate::wire::command::Command;
use crate::wire::frame::{self, HEADER_BYTES, Header};
use crate::wire::handshake::{Greeting, login_with, ssl_request};
use crate::wire::response::ErrPacket;
use crate::wire::resultset::{Answer, Limits, Rows};

/// To connect and to log in.
const PATIENCE: Duration = Duration::from_secs(10);
/// A server that says nothing for so long to a question is not asked any more: its answer, or the question, was lost on a network that told
/// nobody. Short lookups and no locks are waited for, so no server takes as long.
const SILENCE: Duration = Duration::from_secs(120);
/// The same of lists that a server has at hand, and that memory waits for.
const SHORT_SILENCE: Duration = Duration::from_secs(10);
/// The longest packet of a login; real ones have some hundred bytes.
pub(super) const LOGIN_PACKET_BYTES: usize = 64 * 1024;
/// What an answer may hold as a rule: a procedure's body, a list of transactions.
const LIMITS: Limits = Limits {
    max_rows: 1 << 20,
    max_bytes: 16 << 20,
};
/// Rows that one may have that is asked for to be kept in memory.
const LOAD_ROWS: usize = 8 << 20;

/// A connection. It says good-bye when it is dropped; in the middle of an answer, once the server has given that.
#[derive(Debug)]
pub struct Conn {
    /// `None` once it was handed on.
    backend: Option<Backend>,
    capabilities: Capabilities,
    seat: Option<Seat>,
    load_bytes: usize,
    /// A question was not answered to its end: whoever goes on without its answer needs another connection.
    asked: bool,
    /// The server is not followed any more.
    moved: Moved,
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Some(mut backend) = self.backend.take() else {
            return;
        };
        if !self.asked {
            let _ = backend.link.send(&frame::opening(&[Command::Quit.byte()]));
            return;
        }
        // It is the server's for as long as it has it.
        let seat = self.seat.take();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                see_off(backend).await;
                drop(seat);
            });
        }
    }
}

/// Says that nothing more will come, and waits until the server has ended the connection, or has been silent for too long. Nothing of what it
/// says is kept.
async fn see_off(mut backend: Backend) {
    let _ = backend.link.finish().await;
    while backend.fill().await.is_ok() {
        backend.inbox.clear();
        tokio::task::yield_now().await;
    }
}

impl Conn {
    /// Connects and logs in.
    ///
    /// # Errors
    /// When the server cannot be reached, does not let the account in, or has all connections that there are for this purpose.
    pub async fn open(account: &Account, purpose: Purpose) -> Result<Conn, AccountError> {
        let aim = account.target.aim_within(PATIENCE).await;
        let aim = aim.ok_or(AccountError::NoPrimary)?;
        let seat = aim.server.seats.take(purpose)?;
        let moved = aim.moved.clone();
        let silence = match purpose {
            Purpose::Transactions | Purpose::Proofs => SHORT_SILENCE,
            _ => SILENCE,
        };
        let opened = tokio::time::timeout(PATIENCE, Self::log_in(account, aim, seat, silence));
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let opened = while_followed(&moved, opened).await?.map_err(timed_out)?;
        account.told.note(&opened);
        opened
    }

    async fn log_in(
        account: &Account,
        aim: Aim,
        seat: Seat,
        silence: Duration,
    ) -> Result<Conn, AccountError> {
        let Aim { server, moved, .. } = aim;
        let mut backend = Backend::dial(server.address(), PATIENCE).await?;
        backend.silence = Some(silence);
        let mut conn = Conn {
            backend: Some(backend),
            capabilities: Capabilities::NONE,
            load_bytes: account.load_bytes,
            seat: Some(seat),
            asked: true,
            moved,
        };
        let introduced = introduce(conn.backend()?, account, &server).await;
        if matches!(introduced, Err(AccountError::Tls { .. })) {
            // Nothing was asked, so the server has nothing to end: the seat is free.
            conn.backend = None;
        }
        conn.capabilities = introduced?;
        conn.asked = false;
        for answer in conn.ask(&account.session).await? {
            done(answer)?;
        }
        Ok(conn)
    }

    fn backend(&mut self) -> Result<&mut Backend, AccountError> {
        self.backend.as_mut().ok_or(AccountError::Unexpected)
    }

    /// True if the server has not ended the connection while it was idle: it has said nothing then; and if it is the one still that is
    /// followed.
    pub fn is_open(&mut self) -> bool {
        if self.moved.is_so() {
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
    pub(super) fn hand_on(mut self) -> Result<(Backend, Option<Seat>), AccountError> {
        let backend = self.backend.take().ok_or(AccountError::Unexpected)?;
        Ok((backend, self.seat.take()))
    }

    /// The answers to these questions, sent in one write: one behind the other, whatever became of those before.
    ///
    /// # Errors
    /// When the connection fails. What the server has against a question is its answer, and so is that it was too long.
    pub async fn ask(
        &mut self,
        questions: &[impl AsRef<str>],
    ) -> Result<Vec<Answer>, AccountError> {
        self.ask_within(questions, LIMITS).await
    }

    async fn ask_within(
        &mut self,
        questions: &[impl AsRef<str>],
        limits: Limits,
    ) -> Result<Vec<Answer>, AccountError> {
        let mut batch = Batch::new(self.capabilities);
        for question in questions {
            batch.query(question.as_ref());
        }
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        if self.asked {
            return Err(std::io::Error::from(std::io::ErrorKind::NotConnected).into());
        }
        let capabilities = self.capabilities;
        self.asked = true;
        let moved = self.moved.clone();
        let answers = self.backend()?.ask(&batch, capabilities, limits);
        let answers = while_followed(&moved, answers).await??;
        self.asked = false;
        Ok(answers)
    }

    /// The rows of each of these questions.
    ///
    /// # Errors
    /// The first that has none.
    pub async fn rows_of(
        &mut self,
        questions: &[impl AsRef<str>],
    ) -> Result<Vec<Rows>, AccountError> {
        let answers = self.ask(questions).await?;
        answers.into_iter().map(rows).collect()
    }

    /// As [`Self::rows_of`], where they may be many.
    ///
    /// # Errors
    /// As [`Self::rows_of`].
    pub async fn load(&mut self, questions: &[impl AsRef<str>]) -> Result<Vec<Rows>, AccountError> {
        let limits = Limits {
            max_rows: LOAD_ROWS,
            max_bytes: self.load_bytes,
        };
        let answers = self.ask_within(questions, limits).await?;
        answers.into_iter().map(rows).collect()
    }

    /// The rows of a question.
    ///
    /// # Errors
    /// When it has none.
    pub async fn rows(&mut self, question: &str) -> Result<Rows, AccountError> {
        let rows = self.rows_of(&[question]).await?;
        rows.into_iter().next().ok_or(AccountError::Unexpected)
    }

    /// Has a statement done. Rows that it may have are left aside.
    ///
    /// # Errors
    /// When it fails.
    pub async fn run(&mut self, statement: &str) -> Result<(), AccountError> {
        for answer in self.ask(&[statement]).await? {
            done(answer)?;
        }
        Ok(())
    }
}

/// Says who it is, and returns what both sides will use.
async fn introduce(
    backend: &mut Backend,
    account: &Account,
    server: &Server,
) -> Result<Capabilities, AccountError> {
    let (mut seq, packet) = read_packet(backend).await?;
    if let Ok(refused) = ErrPacket::parse(&packet) {
        return Err(AccountError::Server(refused));
    }
    let greeting = Greeting::parse(&packet)?;
    let password = account.password();
    let who = Login {
        user: &account.user,
        password: &password,
        database: account.database.as_deref(),
    };
    let (mut response, capabilities) = login::response(&greeting, &who);
    let tls = server.tls();
    if let Some(tls) = tls {
        if !greeting.capabilities.contains(Capabilities::SSL) {
            return Err(AccountError::NoTls);
        }
        response = login_with(&response, Capabilities::SSL, Capabilities::SSL);
        let request = ssl_request(&response, Capabilities::NONE, Capabilities::NONE);
        seq = say(backend, seq, &request).await?;
        let config = Arc::clone(&tls.config);
        let link = &mut backend.link;
        let shaken = link.connect_tls(config, tls.name.clone()).await;
        let mode = tls.mode;
        shaken.map_err(|source| AccountError::Tls { mode, source })?;
    }
    say(backend, seq, &response).await?;
    let secure = tls.is_some() || backend.link.is_local();
    let mut dialogue = Dialogue::new(&greeting, &password, secure);
    loop {
        let (seq, packet) = read_packet(backend).await?;
        let turn = dialogue.hear(&packet);
        match turn.map_err(|error| error.at_login(&account.user))? {
            Turn::In => return Ok(capabilities),
            Turn::Wait => {}
            Turn::Say(answer) => {
                say(backend, seq, &answer).await?;
            }
        }
    }
}

/// What comes of this, unless another server is followed before: nobody waits for one that may be gone.
async fn while_followed<T>(
    moved: &Moved,
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

fn rows(answer: Answer) -> Result<Rows, AccountError> {
    match answer {
        Answer::Rows(rows) => Ok(rows),
        Answer::Err(error) => Err(AccountError::Server(error)),
        Answer::Ok(_) => Err(AccountError::Unexpected),
    }
}

fn done(answer: Answer) -> Result<(), AccountError> {
    match answer {
        Answer::Err(error) => Err(AccountError::Server(error)),
        Answer::Ok(_) | Answer::Rows(_) => Ok(()),
    }
}

/// A packet of the login, and the number that follows its own.
pub(super) async fn read_packet(backend: &mut Backend) -> Result<(u8, Vec<u8>), AccountError> {
    loop {
        if let Some(packet) = frame::whole(&backend.inbox) {
            let packet = packet.to_vec();
            let header = Header::parse(&backend.inbox).unwrap_or_default();
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
async fn say(backend: &mut Backend, seq: u8, payload: &[u8]) -> Result<u8, AccountError> {
    let mut packet = Vec::new();
    let next = frame::encode(seq, payload, &mut packet);
    backend.link.send_all(&packet).await?;
    Ok(next)
}
