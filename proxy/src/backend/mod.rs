//! One server connection: dialled, then shared by the client's bytes and Headwater's pipelined internal queries.

mod query_batch;

use std::io;
use std::time::Duration;

pub use query_batch::QueryBatch;

use crate::link::{NetworkLink, StreamSocket};
use headwater_wire::capability::Capabilities;
use headwater_wire::command::Command;
use headwater_wire::packet;
use headwater_wire::reply::{ReplyEvent, ReplyFollower, ReplyOutcome};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{CollectError, CollectLimits, QueryReply, ReplyCollector};

/// CR_MALFORMED_PACKET: the reply to an internal query is complete and unusable.
const MALFORMED_PACKET: u16 = 2027;

/// A connection to the server, authenticated by the client end to end.
#[derive(Debug)]
pub struct BackendConnection {
    /// The socket.
    pub link: NetworkLink,
    /// Bytes read from the server that no reply has consumed.
    pub inbox: Vec<u8>,
    /// Longest silence before the connection counts as lost. `None`: the operating system decides.
    pub silence_timeout: Option<Duration>,
}

/// Why an internal query got no answer; the session cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum InternalQueryError {
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    ConnectionLost(#[from] io::Error),
    /// The server's reply cannot be parsed.
    #[error("the server's reply to an own query is malformed: {0}")]
    Malformed(#[from] CollectError),
    /// The server asks for data (LOCAL INFILE), which an internal query never causes.
    #[error("the server's reply to an own query asks for data")]
    UnexpectedDataRequest,
}

/// A reply read to its end.
#[derive(Debug)]
pub struct BufferedReply {
    /// The reply; `None` if it was longer than the limit.
    pub bytes: Option<Vec<u8>>,
    /// Number of rows.
    pub rows: u64,
    /// How the reply ended.
    pub outcome: Option<ReplyOutcome>,
}

impl BackendConnection {
    /// Connects, within `limit`.
    ///
    /// # Errors
    /// I/O errors; a timeout is `TimedOut`.
    pub async fn dial(upstream: &str, limit: Duration) -> io::Result<BackendConnection> {
        let socket = StreamSocket::dial(upstream, limit).await?;
        Ok(BackendConnection {
            link: NetworkLink::new(socket),
            inbox: Vec::new(),
            silence_timeout: None,
        })
    }

    /// Sends every query of the batch in one write and returns their answers, in order.
    ///
    /// Internal queries are sent only while no reply is in flight, so the next replies belong to them.
    ///
    /// # Errors
    /// When the connection fails or a reply cannot be followed; a query's ERR is an answer.
    pub async fn query(
        &mut self,
        batch: &QueryBatch,
        capabilities: Capabilities,
        limits: CollectLimits,
    ) -> Result<Vec<QueryReply>, InternalQueryError> {
        self.link.send_all(batch.bytes()).await?;
        self.read_answers(batch.count(), capabilities, limits).await
    }

    /// As [`Self::query`], with a packet of the client after the batch in the same write. The caller reads that packet's reply.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub async fn query_then_send(
        &mut self,
        batch: &QueryBatch,
        packet: &[u8],
        capabilities: Capabilities,
        limits: CollectLimits,
    ) -> Result<Vec<QueryReply>, InternalQueryError> {
        self.link
            .send_all(&[batch.bytes(), packet].concat())
            .await?;
        self.read_answers(batch.count(), capabilities, limits).await
    }

    /// Sends a command by its packet's payload, and reads the reply as [`Self::read_reply`] does.
    ///
    /// # Errors
    /// When the connection fails, or the reply cannot be followed.
    pub async fn run_command(
        &mut self,
        payload: &[u8],
        capabilities: Capabilities,
        keep: usize,
    ) -> Result<BufferedReply, InternalQueryError> {
        self.link.send_all(&packet::encode_first(payload)).await?;
        let command = payload
            .first()
            .map_or(Command::Query, |byte| Command::from_byte(*byte));
        self.read_reply(&mut ReplyFollower::new(command, capabilities), keep)
            .await
    }

    /// Reads a reply to its end; keeps its bytes if they are at most `keep`.
    ///
    /// # Errors
    /// When the connection fails, or the reply cannot be followed.
    pub async fn read_reply(
        &mut self,
        reply: &mut ReplyFollower,
        keep: usize,
    ) -> Result<BufferedReply, InternalQueryError> {
        let mut bytes = Some(Vec::new());
        loop {
            let step = reply.feed(&self.inbox);
            let taken: Vec<u8> = self.inbox.drain(..step.consumed).collect();
            if let Some(buffered) = &mut bytes {
                buffered.extend_from_slice(&taken);
                if buffered.len() > keep {
                    bytes = None;
                }
            }
            match step.event {
                Some(ReplyEvent::Done(outcome)) => {
                    return Ok(BufferedReply {
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
                Some(_) => return Err(InternalQueryError::UnexpectedDataRequest),
            }
        }
    }

    async fn read_answers(
        &mut self,
        count: usize,
        capabilities: Capabilities,
        limits: CollectLimits,
    ) -> Result<Vec<QueryReply>, InternalQueryError> {
        let mut answers = Vec::with_capacity(count);
        for _ in 0..count {
            answers.push(self.read_answer(capabilities, limits).await?);
        }
        Ok(answers)
    }

    /// Reads the next internal query's answer.
    async fn read_answer(
        &mut self,
        capabilities: Capabilities,
        limits: CollectLimits,
    ) -> Result<QueryReply, InternalQueryError> {
        let mut collector = ReplyCollector::new(capabilities, limits);
        loop {
            let fed = collector.feed(&self.inbox)?;
            self.inbox.drain(..fed.consumed);
            if fed.done {
                // The reply was read to its end, so the connection stays in step although the answer is unusable.
                return Ok(collector.finish().unwrap_or_else(|error| {
                    QueryReply::Err(ErrPacket {
                        code: MALFORMED_PACKET,
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
        let read = match self.silence_timeout {
            Some(limit) => tokio::time::timeout(limit, reading).await?,
            None => reading.await,
        };
        match read? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}
