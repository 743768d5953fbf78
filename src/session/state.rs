//! One session: its two connections, its protocol state, and what is known besides.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Sleep, sleep};
use tracing::Span;

use super::admission::Admission;
use super::counts::Event;
use super::current::Current;
use super::listed::Listed;
use super::machine::{self, Machine};
use super::ownership::{ProcedurePlace, Want};
use super::shared::Shared;
use super::slow::Slow;
use super::stall::Stall;
use super::who;
use crate::account::Aim;
use crate::backend::{AskError, Backend};
use crate::binlog::{Mark, Place};
use crate::catalogue::DefinerRights;
use crate::link::Link;
use crate::tls::Acceptor;
use crate::wire::frame::HEADER_BYTES;

/// The end of a row, and of the next one as much as it takes to know that it is long as well.
const BETWEEN_ROWS_BYTES: usize = 1 + HEADER_BYTES + 1;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The client closed its connection, or it failed.
    #[error("the client left")]
    Client,
    /// The server closed its connection, or it failed.
    #[error("the server closed the connection: {0}")]
    Server(io::Error),
    /// The server is the primary no more, where there are several.
    #[error("its server is not the primary any more")]
    Moved,
    /// The process shuts down.
    #[error("shutting down")]
    Drained,
    /// The client was told why it cannot go on.
    #[error("the client was refused")]
    Refused,
    /// The client did not log in.
    #[error("its client did not log in within limits.login_ms = {limit_ms}")]
    Unknown {
        /// In milliseconds.
        limit_ms: u64,
    },
    /// The client did not take what waited for it.
    #[error("its client did not take what waited for it within limits.{limit} = {limit_ms}")]
    Stalled {
        /// The limit.
        limit: &'static str,
        /// In milliseconds.
        limit_ms: u64,
    },
}

impl From<AskError> for Ended {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Lost(source) => Ended::Server(source),
            other => Ended::Server(io::Error::other(other)),
        }
    }
}

/// What becomes of the bytes that the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inbound {
    /// They go on to the server.
    Open,
    /// The client has closed its side; what it sent before still goes on.
    Closing,
    /// The server knows that no more will come; its replies still go to the client.
    Closed,
    /// The server takes no more; its last words still go to the client, who sends in vain.
    Refused {
        /// The server's side has ended by a reset.
        reset: bool,
    },
}

/// The page that is wanted now, and where.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) place: Arc<Place>,
    pub(super) want: Want,
    /// The moment before the answer, if that is to be compared with the procedure's.
    pub(super) mark: Option<Mark>,
}

/// Whose messages memory named last, and when.
#[derive(Debug)]
pub(super) struct NamedFor {
    pub(super) place: Arc<Place>,
    pub(super) readers: Vec<u64>,
    pub(super) authors: Vec<u64>,
    pub(super) mark: Mark,
}

/// How the long rows of a reply go from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongRows {
    /// As all else, until there is one.
    Read,
    /// The last one was carried: the next may be as long.
    Carried,
    /// These two connections have to be read from.
    Unfit,
}

impl LongRows {
    /// How many bytes are to be read now, if not as many as there are.
    pub(super) fn room(&mut self) -> Option<usize> {
        let carried = *self == LongRows::Carried;
        if carried {
            *self = LongRows::Read;
        }
        carried.then_some(BETWEEN_ROWS_BYTES)
    }
}

/// One client connection and its backend connection.
#[derive(Debug)]
pub struct Session {
    pub(super) client: Link,
    /// Its address; `None` at the socket.
    pub(super) source: Option<SocketAddr>,
    pub(super) backend: Backend,
    /// The server, and what tells that it is followed no more.
    pub(super) aim: Aim,
    pub(super) machine: Machine,
    pub(super) shared: Arc<Shared>,
    /// Where a newer generation of it is found, and which one it is.
    pub(super) current: Arc<Current>,
    pub(super) generation: u64,
    /// Client bytes that are not passed on yet.
    pub(super) client_in: Vec<u8>,
    pub(super) inbound: Inbound,
    pub(super) holding: bool,
    /// The login has not ended, as far as was looked.
    pub(super) logs_in: bool,
    /// By when its client has to have logged in, until it has.
    pub(super) login_until: Option<Pin<Box<Sleep>>>,
    pub(super) admission: Admission,
    /// Where those who watch see it.
    pub(super) listed: Arc<Listed>,
    pub(super) stall: Stall,
    pub(super) long_rows: LongRows,
    /// The server has been asked for something since the last page from memory.
    pub(super) sent: bool,
    /// How many functions may have been made when the server was known to have none, for the first statement since the last proof that
    /// trusted in that.
    pub(super) trusted: u64,
    /// The last call was answered from memory.
    pub(super) proved_call: bool,
    /// What the client is told together with what comes next.
    pub(super) ahead: Vec<u8>,
    /// The page that was looked for in memory last.
    pub(super) wanted: Option<Wanted>,
    /// The page that is wanted now of a timeline whose messages are on data nodes.
    pub(super) spread: Option<Want>,
    /// The candidates that are in use.
    pub(super) named_for: Option<NamedFor>,
    /// Where the messages are of the answer that was proved last, and since when.
    pub(super) proved_since: Option<(Arc<Place>, Mark)>,
    /// A moment before the transaction that is open, if one is, began to read.
    pub(super) opened: Option<Mark>,
    /// What is known of the definers of the procedures that were called last.
    pub(super) definer_rights: RefCell<Option<Arc<DefinerRights>>>,
    /// The known procedure of the call that was relayed last.
    pub(super) relayed: Option<ProcedurePlace>,
    /// How long the statement that waits has taken, where that is told of.
    pub(super) slow: Option<Slow>,
}

impl Session {
    /// A session whose two connections stand. Its client has that address, if not the socket, and has said `client_in` already.
    #[must_use]
    pub fn new(
        client: Link,
        source: Option<SocketAddr>,
        client_in: Vec<u8>,
        (backend, aim): (Backend, Aim),
        current: &Arc<Current>,
        admission: Admission,
    ) -> Self {
        let (shared, generation) = current.with_generation();
        let login_ms = shared.limits.login_ms;
        shared.counts.add(Event::Session);
        let listed = shared.sessions.enter(source);
        let limits = machine::Limits {
            statement_bytes: shared.limits.statement_bytes,
            in_flight: shared.limits.in_flight,
            prepared_statements: shared.limits.prepared_statements,
        };
        let mut ways = shared.transport.ways.clone();
        // The operating system says the same of this client as of Headwater.
        if client.is_own_user() {
            ways.own_user = None;
        }
        ways.legs.local_client = client.is_local();
        ways.legs.local_server = backend.link.is_local();
        let own = shared.transport.acceptor.as_ref().and_then(Acceptor::own);
        if let Some(own) = own.filter(|_| ways.legs.are_free()) {
            ways.legs.offered = own.is_offered_to(source.map(|source| source.ip()));
        }
        let mut machine = Machine::new(limits, ways);
        if shared.tally.is_some() {
            machine.watch();
        }
        let slow = Slow::of(&shared);
        Session {
            client,
            source,
            backend,
            aim,
            machine,
            shared,
            current: Arc::clone(current),
            generation,
            client_in,
            inbound: Inbound::Open,
            holding: false,
            logs_in: true,
            login_until: (login_ms > 0).then(|| Box::pin(sleep(Duration::from_millis(login_ms)))),
            admission,
            listed,
            stall: Stall::default(),
            long_rows: LongRows::Read,
            sent: true,
            trusted: 0,
            proved_call: false,
            ahead: Vec::new(),
            wanted: None,
            spread: None,
            named_for: None,
            proved_since: None,
            opened: None,
            definer_rights: RefCell::default(),
            relayed: None,
            slow,
        }
    }

    /// What is known of this session by now, for its log lines. Neither passwords nor statements are.
    pub(super) fn span(&self) -> Span {
        who::span(
            self.source,
            self.machine.thread_id(),
            self.machine.account(),
        )
    }
}
