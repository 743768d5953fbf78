//! One server connection: dialled, then shared by the client's bytes and our own pipelined queries.

mod batch;

use std::io;
use std::time::Duration;

pub use batch::Batch;

use crate::link::{Link, Socket};
use crate::wire::capability::Capabilities;
use crate::wire::command::Command;
use crate::wire::frame;
use crate::wire::reply::{Event, Outcome, Reply};
use crate::wire::response::ErrPacket;
use crate::wire::resultset::{Answer, CollectError, Collector, Limits};

/// CR_MALFORMED_PACKET: an own answer that came whole and is of no use.
const UNUSABLE: u16 = 2027;

/// A connection to the server, authenticated by the client end to end.
#[derive(Debug)]
pub struct Backend {
    /// The connection.
    pub link: Link,
    /// Bytes read from the server and not yet taken by anyone.
    pub inbox: Vec<u8>,
    /// So long nothing may come before it is taken for lost. `None`: as long as the system lets it.
    pub silence: Option<Duration>,
}

/// Why an own query got no answer; the session cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    Lost(#[from] io::Error),
    /// The server's reply cannot be followed.
    #[error("the server's reply to an own query is malformed: {0}")]
    Malformed(#[from] CollectError),
    /// The server asks for something that an own query never leads to.
    #[error("the server's reply to an own query asks for data")]
    Unfollowable,
}

/// A reply read to its end.
#[derive(Debug)]
pub struct ReadReply {
    /// Its bytes; `None` when they were more than were to be kept.
    pub bytes: Option<Vec<u8>>,
    /// How many rows it had.
    pub rows: u64,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

impl Backend {
    /// Connects, within `limit`.
    ///
    /// # Errors
    /// As the operating system says; a timeout is `TimedOut`.
    pub async fn dial(upstream: &str, limit: Duration) -> io::Result<Backend> {
        let socket = Socket::dial(upstream, limit).await?;
        Ok(Backend {
            link: Link::new(socket),
            inbox: Vec::new(),
            silence: None,
        })
    }

    /// Sends every query of the batch in one write and returns their answers, in order.
    ///
    /// Own queries only ever go out while no reply is in flight, so what comes back is ours.
    ///
    /// # Errors
    /// When the connection fails or a reply cannot be followed; a query's ERR is an [`Answer`].
    pub async fn ask(
        &mut self,
        batch: &Batch,
        capabilities: Capabilities,
        limits: Limits,
    ) -> Result<Vec<Answer>, AskError> {
        self.link.send_all(batch.bytes()).await?;
        self.answers(batch.count(), capabilities, limits).await
    }

    /// As [`Self::ask`], with a packet of the client behind the batch in the same write; its reply
    /// is left to the caller.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_before(
        &mut self,
        batch: &Batch,
        packet: &[u8],
        capabilities: Capabilities,
        limits: Limits,
    ) -> Result<Vec<Answer>, AskError> {
        self.link
            .send_all(&[batch.bytes(), packet].concat())
            .await?;
        self.answers(batch.count(), capabilities, limits).await
    }

    /// Sends a command by its packet's payload, and reads the reply as [`Self::read_reply`] does.
    ///
    /// # Errors
    /// When the connection fails, or the reply cannot be followed.
    pub async fn run(
        &mut self,
        payload: &[u8],
        capabilities: Capabilities,
        keep: usize,
    ) -> Result<ReadReply, AskError> {
        self.link.send_all(&frame::opening(payload)).await?;
        let command = payload
            .first()
            .map_or(Command::Query, |byte| Command::from_byte(*byte));
        self.read_reply(&mut Reply::new(command, capabilities), keep)
            .await
    }

    /// Reads a reply to its end, and keeps its bytes while they are no more than `keep`.
    ///
    /// # Errors
    /// When the connection fails, or the reply cannot be followed.
    pub async fn read_reply(
        &mut self,
        reply: &mut Reply,
        keep: usize,
    ) -> Result<ReadReply, AskError> {
        let mut bytes = Some(Vec::new());
        loop {
            let step = reply.feed(&self.inbox);
            let taken: Vec<u8> = self.inbox.drain(..step.consumed).collect();
            if let Some(kept) = &mut bytes {
                kept.extend_from_slice(&taken);
                if kept.len() > keep {
                    bytes = None;
                }
            }
            match step.event {
                Some(Event::Done(outcome)) => {
                    return Ok(ReadReply {
                        bytes,
                        rows: reply.rows(),
                        outcome: Some(outcome),
                    });
                }
                None => {
                    if self.inbox.is_empty() || step.consumed == 0 {
                        self.fill().await?;
                    }
                }
                Some(_) => return Err(AskError::Unfollowable),
            }
        }
    }

    async fn answers(
        &mut self,
        count: usize,
        capabilities: Capabilities,
        limits: Limits,
    ) -> Result<Vec<Answer>, AskError> {
        let mut answers = Vec::with_capacity(count);
        for _ in 0..count {
            answers.push(self.answer(capabilities, limits).await?);
        }
        Ok(answers)
    }

    /// Reads the next own answer.
    async fn answer(
        &mut self,
        capabilities: Capabilities,
        limits: Limits,
    ) -> Result<Answer, AskError> {
        let mut collector = Collector::new(capabilities, limits);
        loop {
            let fed = collector.feed(&self.inbox)?;
            self.inbox.drain(..fed.consumed);
            if fed.done {
                // Followed to its end: the connection is in step, whatever is wrong with the answer.
                return Ok(collector.finish().unwrap_or_else(|error| {
                    Answer::Err(ErrPacket {
                        code: UNUSABLE,
                        sqlstate: None,
                        message: error.to_string().into_bytes(),
                    })
                }));
            }
            self.fill().await?;
        }
    }

    /// Waits for bytes and adds them to the inbox.
    ///
    /// # Errors
    /// `UnexpectedEof` when the server closed the connection, `TimedOut` when it has been silent for too long.
    pub async fn fill(&mut self) -> io::Result<usize> {
        let reading = self.link.read_more(&mut self.inbox);
        let read = match self.silence {
            Some(limit) => tokio::time::timeout(limit, reading).await?,
            None => reading.await,
        };
        match read? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}
