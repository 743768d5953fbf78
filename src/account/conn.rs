//! A logged-in connection of the service account: questions, several in one write, and their answers.

use std::sync::Arc;
use std::time::Duration;

use super::Account;
use super::error::AccountError;
use super::login::{self, Dialogue, Login, Turn};
use crate::backend::{Backend, Batch};
use crate::wire::capability::Capabilities;
use crate::wire::command::Command;
use crate::wire::frame::{self, HEADER_BYTES, Header};
use crate::wire::handshake::{Greeting, login_with, ssl_request};
use crate::wire::response::ErrPacket;
use crate::wire::resultset::{Answer, Limits, Rows};

/// To connect and to log in.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest packet of a login; real ones have some hundred bytes.
const LOGIN_PACKET_BYTES: usize = 64 * 1024;
/// What an answer may hold as a rule: a procedure's body, a list of transactions.
const LIMITS: Limits = Limits {
    max_rows: 1 << 20,
    max_bytes: 16 << 20,
};
/// What one may hold that is asked for to be kept in memory: the longest is a follow list of some millions.
const LOAD_LIMITS: Limits = Limits {
    max_rows: 8 << 20,
    max_bytes: 64 << 20,
};

/// A connection. It says good-bye when it is dropped.
#[derive(Debug)]
pub struct Conn {
    pub(super) backend: Backend,
    pub(super) capabilities: Capabilities,
}

impl Drop for Conn {
    fn drop(&mut self) {
        let _ = self
            .backend
            .link
            .send(&frame::opening(&[Command::Quit.byte()]));
    }
}

impl Conn {
    /// Connects and logs in.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not let the account in.
    pub async fn open(account: &Account) -> Result<Conn, AccountError> {
        let opened = tokio::time::timeout(PATIENCE, Self::log_in(account)).await;
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let opened = opened.map_err(timed_out)?;
        account.told.note(&opened);
        opened
    }

    async fn log_in(account: &Account) -> Result<Conn, AccountError> {
        let mut backend = Backend::dial(&account.upstream, PATIENCE).await?;
        let (mut seq, packet) = read_packet(&mut backend).await?;
        if let Ok(refused) = ErrPacket::parse(&packet) {
            return Err(AccountError::Server(refused));
        }
        let greeting = Greeting::parse(&packet)?;
        let who = Login {
            user: &account.user,
            password: &account.password,
            database: None,
        };
        let (mut response, capabilities) = login::response(&greeting, &who);
        if let Some(tls) = &account.tls {
            if !greeting.capabilities.contains(Capabilities::SSL) {
                return Err(AccountError::NoTls);
            }
            response = login_with(&response, Capabilities::SSL, Capabilities::SSL);
            seq = say(
                &mut backend,
                seq,
                &ssl_request(&response, Capabilities::NONE, Capabilities::NONE),
            )
            .await?;
            let config = Arc::clone(&tls.config);
            let link = &mut backend.link;
            link.connect_tls(config, tls.name.clone()).await?;
        }
        say(&mut backend, seq, &response).await?;
        let secure = account.tls.is_some() || backend.link.is_local();
        let mut dialogue = Dialogue::new(&greeting, &account.password, secure);
        loop {
            let (seq, packet) = read_packet(&mut backend).await?;
            let turn = dialogue.hear(&packet);
            match turn.map_err(|error| error.at_login(&account.user))? {
                Turn::In => break,
                Turn::Wait => {}
                Turn::Say(answer) => {
                    say(&mut backend, seq, &answer).await?;
                }
            }
        }
        let mut conn = Conn {
            backend,
            capabilities,
        };
        for answer in conn.ask(&account.session).await? {
            done(answer)?;
        }
        Ok(conn)
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
        Ok(self.backend.ask(&batch, self.capabilities, limits).await?)
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
        let answers = self.ask_within(questions, LOAD_LIMITS).await?;
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

    /// Sends a command that is no question.
    pub(super) async fn send(&mut self, payload: &[u8]) -> Result<(), AccountError> {
        Ok(self.backend.link.send_all(&frame::opening(payload)).await?)
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
async fn read_packet(backend: &mut Backend) -> Result<(u8, Vec<u8>), AccountError> {
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
