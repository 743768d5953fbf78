//! One session: its two connections, its protocol state, and what is known besides.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Sleep, sleep};
use tracing::Span;

use super::admission::SessionAdmission;
use super::call_decision::{ProcedureLocation, TimelineRequest};
use super::current_generation::CurrentGeneration;
use super::log_span;
use super::machine::{self, SessionMachine};
use super::session_counters::SessionEvent;
use super::session_registry::SessionRecord;
use super::shared_state::SharedState;
use super::slow_statements::SlowStatementTimer;
use super::stall::ClientStall;
use crate::account::SelectedServer;
use crate::backend::{BackendConnection, InternalQueryError};
use crate::binlog::{CachedTimeline, ReplicationMark};
use crate::catalogue::DefinerRights;
use crate::link::NetworkLink;
use crate::tls::TlsAcceptor;
use crate::wire::packet::HEADER_BYTES;

/// The end of a row, and of the next one as much as it takes to know that it is long as well.
const BETWEEN_ROWS_BYTES: usize = 1 + HEADER_BYTES + 1;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub enum SessionEnd {
    /// The client closed its connection, or it failed.
    #[error("the client left")]
    ClientLeft,
    /// The server closed its connection, or it failed.
    #[error("the server closed the connection: {0}")]
    ServerClosed(io::Error),
    /// The server is the primary no more, where there are several.
    #[error("its server is not the primary any more")]
    ServerMoved,
    /// The process shuts down.
    #[error("shutting down")]
    Drained,
    /// The client was told why it cannot go on.
    #[error("the client was refused")]
    Refused,
    /// The client did not log in.
    #[error("its client did not log in within limits.login_ms = {limit_ms}")]
    LoginTimeout {
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

impl From<InternalQueryError> for SessionEnd {
    fn from(error: InternalQueryError) -> Self {
        match error {
            InternalQueryError::ConnectionLost(source) => SessionEnd::ServerClosed(source),
            other => SessionEnd::ServerClosed(io::Error::other(other)),
        }
    }
}

/// What becomes of the bytes that the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InboundState {
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
pub(super) struct RequestedPage {
    pub(super) timeline: Arc<CachedTimeline>,
    pub(super) request: TimelineRequest,
    /// The moment before the answer, if that is to be compared with the procedure's.
    pub(super) mark: Option<ReplicationMark>,
}

/// Whose messages memory named last, and when.
#[derive(Debug)]
pub(super) struct CandidateScope {
    pub(super) timeline: Arc<CachedTimeline>,
    pub(super) readers: Vec<u64>,
    pub(super) authors: Vec<u64>,
    pub(super) mark: ReplicationMark,
}

/// How the long rows of a reply go from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongRowMode {
    /// As all else, until there is one.
    Read,
    /// The last one was carried: the next may be as long.
    Spliced,
    /// These two connections have to be read from.
    Unsupported,
}

impl LongRowMode {
    /// How many bytes are to be read now, if not as many as there are.
    pub(super) fn read_limit(&mut self) -> Option<usize> {
        let carried = *self == LongRowMode::Spliced;
        if carried {
            *self = LongRowMode::Read;
        }
        carried.then_some(BETWEEN_ROWS_BYTES)
    }
}

/// One client connection and its backend connection.
#[derive(Debug)]
pub struct Session {
    pub(super) client: NetworkLink,
    /// Its address; `None` at the socket.
    pub(super) source: Option<SocketAddr>,
    pub(super) backend: BackendConnection,
    /// The server, and what tells that it is followed no more.
    pub(super) aim: SelectedServer,
    pub(super) machine: SessionMachine,
    pub(super) shared: Arc<SharedState>,
    /// Where a newer generation of it is found, and which one it is.
    pub(super) current: Arc<CurrentGeneration>,
    pub(super) generation: u64,
    /// Client bytes that are not passed on yet.
    pub(super) client_in: Vec<u8>,
    pub(super) inbound: InboundState,
    pub(super) holding: bool,
    /// The login has not ended, as far as was looked.
    pub(super) is_logging_in: bool,
    /// By when its client has to have logged in, until it has.
    pub(super) login_deadline: Option<Pin<Box<Sleep>>>,
    pub(super) admission: SessionAdmission,
    /// Where those who watch see it.
    pub(super) record: Arc<SessionRecord>,
    pub(super) stall: ClientStall,
    pub(super) long_row_mode: LongRowMode,
    /// The server has been asked for something since the last page from memory.
    pub(super) server_was_queried: bool,
    /// How many functions may have been made when the server was known to have none, for the first statement since the last proof that
    /// trusted in that.
    pub(super) trusted_function_count: u64,
    /// The last call was answered from memory.
    pub(super) call_was_proved: bool,
    /// What the client is told together with what comes next.
    pub(super) deferred_reply: Vec<u8>,
    /// The page that was looked for in memory last.
    pub(super) requested_page: Option<RequestedPage>,
    /// The page that is wanted now of a timeline whose messages are on data nodes.
    pub(super) requested_node_page: Option<TimelineRequest>,
    /// The candidates that are in use.
    pub(super) candidate_scope: Option<CandidateScope>,
    /// Where the messages are of the answer that was proved last, and since when.
    pub(super) proved_since: Option<(Arc<CachedTimeline>, ReplicationMark)>,
    /// A moment before the transaction that is open, if one is, began to read.
    pub(super) transaction_mark: Option<ReplicationMark>,
    /// What is known of the definers of the procedures that were called last.
    pub(super) definer_rights: RefCell<Option<Arc<DefinerRights>>>,
    /// The known procedure of the call that was relayed last.
    pub(super) relayed_procedure: Option<ProcedureLocation>,
    /// How long the statement that waits has taken, where that is told of.
    pub(super) slow_timer: Option<SlowStatementTimer>,
}

impl Session {
    /// A session whose two connections stand. Its client has that address, if not the socket, and has said `client_in` already.
    #[must_use]
    pub fn new(
        client: NetworkLink,
        source: Option<SocketAddr>,
        client_in: Vec<u8>,
        (backend, aim): (BackendConnection, SelectedServer),
        current: &Arc<CurrentGeneration>,
        admission: SessionAdmission,
    ) -> Self {
        let (shared, generation) = current.with_generation();
        let login_ms = shared.limits.login_ms;
        shared.counters.add(SessionEvent::Session);
        let listed = shared.sessions.register(source);
        let limits = machine::SessionLimits {
            statement_bytes: shared.limits.statement_bytes,
            in_flight: shared.limits.in_flight,
            prepared_statements: shared.limits.prepared_statements,
        };
        let mut ways = shared.transport.session_policy.clone();
        // The operating system says the same of this client as of Headwater.
        if client.is_same_user() {
            ways.process_user = None;
        }
        ways.tls.local_client = client.is_local();
        ways.tls.local_server = backend.link.is_local();
        let own = shared
            .transport
            .acceptor
            .as_ref()
            .and_then(TlsAcceptor::generated);
        if let Some(own) = own.filter(|_| ways.tls.is_optional()) {
            ways.tls.offered = own.is_offered_to(source.map(|source| source.ip()));
        }
        let mut machine = SessionMachine::new(limits, ways);
        if shared.tally.is_some() {
            machine.watch();
        }
        let slow = SlowStatementTimer::from_settings(&shared);
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
            inbound: InboundState::Open,
            holding: false,
            is_logging_in: true,
            login_deadline: (login_ms > 0)
                .then(|| Box::pin(sleep(Duration::from_millis(login_ms)))),
            admission,
            record: listed,
            stall: ClientStall::default(),
            long_row_mode: LongRowMode::Read,
            server_was_queried: true,
            trusted_function_count: 0,
            call_was_proved: false,
            deferred_reply: Vec::new(),
            requested_page: None,
            requested_node_page: None,
            candidate_scope: None,
            proved_since: None,
            transaction_mark: None,
            definer_rights: RefCell::default(),
            relayed_procedure: None,
            slow_timer: slow,
        }
    }

    /// What is known of this session by now, for its log lines. Neither passwords nor statements are.
    pub(super) fn span(&self) -> Span {
        log_span::session_span(
            self.source,
            self.machine.thread_id(),
            self.machine.account(),
        )
    }
}
