//! One session: its two connections, its protocol state, and its knowledge.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Sleep, sleep};
use tracing::Span;

use super::admission::SessionAdmission;
use super::current_generation::CurrentGeneration;
use super::log_span;
use super::memory_access::CalledTimeline;
use super::session_counters::SessionEvent;
use super::session_registry::SessionRecord;
use super::shared_state::SharedState;
use super::slow_statements::SlowStatementTimer;
use super::stall::ClientStall;
use crate::account::SelectedServer;
use crate::backend::{BackendConnection, InternalQueryError};
use crate::binlog::ReplicationMark;
use crate::catalogue::DefinerRights;
use crate::clock;
use crate::link::NetworkLink;
use crate::tls::TlsAcceptor;
use headwater_session::call_decision::ProcedureLocation;
use headwater_session::machine::{self, SessionMachine};
use headwater_wire::packet::HEADER_BYTES;

/// The end of a row, and as much of the next one as shows whether it is long as well.
const BETWEEN_ROWS_BYTES: usize = 1 + HEADER_BYTES + 1;

/// Commands of one client in flight; further ones wait.
const IN_FLIGHT: usize = 64;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub enum SessionEnd {
    /// The client closed its connection, or it failed.
    #[error("the client left")]
    ClientLeft,
    /// The server closed its connection, or it failed.
    #[error("the server closed the connection: {0}")]
    ServerClosed(io::Error),
    /// The server is not the primary any more.
    #[error("its server is not the primary any more")]
    ServerMoved,
    /// The process shuts down.
    #[error("shutting down")]
    Drained,
    /// The client was sent an error that ends the session.
    #[error("the client was refused")]
    Refused,
    /// The client did not log in in time.
    #[error("its client did not log in within limits.login_ms = {limit_ms}")]
    LoginTimeout {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// The client did not read its bytes in time.
    #[error("its client did not take what waited for it within limits.{limit} = {limit_ms}")]
    Stalled {
        /// The name of the limit.
        limit: &'static str,
        /// The limit, in milliseconds.
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

/// The state of the client's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InboundState {
    /// Bytes are passed on to the server.
    Open,
    /// The client has closed its side; what it sent before is still passed on.
    Closing,
    /// The server knows that no more will come; its replies are still passed to the client.
    Closed,
    /// The server takes no more; its last bytes are still passed to the client, whose input is dropped.
    Refused {
        /// The server's side has ended by a reset.
        reset: bool,
    },
}

/// How the long rows of a reply get from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongRowMode {
    /// Like other bytes, until a long row arrives.
    Read,
    /// The last one was spliced: the next may be as long.
    Spliced,
    /// These two connections cannot be spliced.
    Unsupported,
}

impl LongRowMode {
    /// The most bytes to read now; `None`: no limit.
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
    /// Its address; `None`: a Unix socket.
    pub(super) source: Option<SocketAddr>,
    pub(super) backend: BackendConnection,
    /// The server, and the signal that it is not followed any more.
    pub(super) aim: SelectedServer,
    pub(super) machine: SessionMachine,
    pub(super) shared: Arc<SharedState>,
    /// The holder of the current generation, and the number of the one in use.
    pub(super) current: Arc<CurrentGeneration>,
    pub(super) generation: u64,
    /// Client bytes that are not passed on yet.
    pub(super) client_in: Vec<u8>,
    pub(super) inbound: InboundState,
    pub(super) holding: bool,
    /// The login has not ended yet.
    pub(super) is_logging_in: bool,
    /// The deadline of the login.
    pub(super) login_deadline: Option<Pin<Box<Sleep>>>,
    pub(super) admission: SessionAdmission,
    /// Its record in the registry.
    pub(super) record: Arc<SessionRecord>,
    pub(super) stall: ClientStall,
    pub(super) long_row_mode: LongRowMode,
    /// The server was sent something since the last page from memory.
    pub(super) server_was_queried: bool,
    /// The stream's number of a proof that succeeded after the waiting statement arrived.
    pub(super) early_proof: Option<u64>,
    /// Count of created functions when the first statement since the last proof relied on the server having none.
    pub(super) trusted_function_count: u64,
    /// The last call was answered from memory.
    pub(super) call_was_proved: bool,
    /// Bytes that the client gets together with the next reply.
    pub(super) deferred_reply: Vec<u8>,
    /// The timeline of the last call.
    pub(super) called_timeline: Option<CalledTimeline>,
    /// A moment before the open transaction began to read.
    pub(super) transaction_mark: Option<ReplicationMark>,
    /// Cached knowledge of the definers of the procedures called last.
    pub(super) definer_rights: RefCell<Option<Arc<DefinerRights>>>,
    /// The procedure of the call that was relayed last, if known.
    pub(super) relayed_procedure: Option<ProcedureLocation>,
    /// Times of the waiting statement, if slow ones are logged.
    pub(super) slow_timer: Option<SlowStatementTimer>,
}

impl Session {
    /// A session of two open connections. `source`: the client's address; `None`: a Unix socket. `client_in`: bytes received already.
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
            in_flight: IN_FLIGHT,
            prepared_statements: shared.limits.prepared_statements,
        };
        let mut policy = shared.transport.session_policy.clone();
        // To the server's socket, the client and Headwater are the same user.
        if client.is_same_user() {
            policy.process_user = None;
        }
        policy.tls.local_client = client.is_local();
        policy.tls.local_server = backend.link.is_local();
        let certificate = shared
            .transport
            .acceptor
            .as_ref()
            .and_then(TlsAcceptor::generated);
        if let Some(certificate) = certificate.filter(|_| policy.tls.is_optional()) {
            policy.tls.offered = certificate.is_offered_to(source.map(|source| source.ip()));
        }
        let mut machine = SessionMachine::new(limits, policy);
        machine.connected_at(clock::now());
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
            early_proof: None,
            trusted_function_count: 0,
            call_was_proved: false,
            deferred_reply: Vec::new(),
            called_timeline: None,
            transaction_mark: None,
            definer_rights: RefCell::default(),
            relayed_procedure: None,
            slow_timer: slow,
        }
    }

    /// The span for the session's log lines. Contains neither passwords nor statements.
    pub(super) fn span(&self) -> Span {
        log_span::session_span(
            self.source,
            self.machine.thread_id(),
            self.machine.account(),
        )
    }
}
