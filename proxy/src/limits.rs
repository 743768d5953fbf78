//! Every limit of the process, by the name of its setting.

use serde::{Deserialize, Serialize};

/// The section `[limits]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessLimits {
    /// Concurrent client connections; more are refused with error 1040.
    pub sessions: usize,
    /// Concurrent sessions of one account; more are refused with error 1203. 0: no limit.
    pub sessions_per_account: usize,
    /// Concurrent sessions from one address; more are refused with error 1040. 0: no limit.
    pub sessions_per_address: usize,
    /// Connections to the server being made at a time; further clients wait to be accepted.
    pub connecting: usize,
    /// Time in which a client has to log in, in milliseconds; 0: the server's limit alone.
    pub login_ms: u64,
    /// Longest statement that is parsed, in bytes; longer ones are relayed unread.
    #[serde(deserialize_with = "crate::size::read")]
    pub statement_bytes: usize,
    /// Most ids and heads that a served call may leave pending in a session.
    pub pending_ids: usize,
    /// Longest reply to a follow-up SELECT that is buffered until it is complete, in bytes.
    #[serde(deserialize_with = "crate::size::read")]
    pub tail_bytes: usize,
    /// Most authors in the list of a feed's statement; longer lists are relayed.
    pub list_authors: usize,
    /// Most candidates for a feed's statement; one that requests more rows, or whose filter passes too few, is relayed.
    pub candidates: usize,
    /// Cached templates of feeds' statements, over all sessions.
    pub templates: usize,
    /// Commands that one client may have in flight.
    pub in_flight: usize,
    /// Tracked prepared statements of one session; calls and feeds in further ones are relayed.
    pub prepared_statements: usize,
    /// Cached classes of statement texts, over all sessions.
    pub statements: usize,
    /// Authors whose newest ids have a cached lookup hint.
    pub authors: usize,
    /// Cached entries of follow lists, over all readers.
    pub follow_edges: usize,
    /// Databases whose check is cached.
    pub databases: usize,
    /// Time in which a client has to read its pending bytes, in milliseconds; then its session ends.
    pub stalled_ms: u64,
    /// The same after the server has ended the session.
    pub last_words_ms: u64,
    /// Time to connect to the server, in milliseconds.
    pub connect_ms: u64,
    /// Time for a check by the service account, in milliseconds.
    pub check_ms: u64,
    /// Interval at which definitions are checked again, in milliseconds.
    pub recheck_ms: u64,
    /// Time for commands and transactions in flight to end at shutdown, in milliseconds.
    pub drain_ms: u64,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        ProcessLimits {
            sessions: 10_000,
            sessions_per_account: 0,
            sessions_per_address: 0,
            connecting: 256,
            login_ms: 60_000,
            statement_bytes: 256 * 1024,
            pending_ids: 20_000,
            tail_bytes: 1024 * 1024,
            list_authors: 10_000,
            candidates: 4_000,
            templates: 1_000,
            in_flight: 64,
            prepared_statements: 1_000,
            statements: 1_000,
            authors: 65_536,
            follow_edges: 1_000_000,
            databases: 1_000,
            // Longer than the usual net_write_timeout (600 s, which JDBC sets for rows that it reads one by one).
            stalled_ms: 900_000,
            last_words_ms: 60_000,
            connect_ms: 10_000,
            check_ms: 2_000,
            recheck_ms: 10_000,
            drain_ms: 10_000,
        }
    }
}
