//! Every bound of the process, by the name of its setting.

use serde::{Deserialize, Serialize};

/// Bounds, each named where it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessLimits {
    /// Client connections at a time; more are refused with error 1040.
    pub sessions: usize,
    /// Sessions of one account at a time; more are refused with error 1203. 0: as many as there are.
    pub sessions_per_account: usize,
    /// Sessions from one address at a time; more are refused with error 1040. 0: as many as there are.
    pub sessions_per_address: usize,
    /// Connections to the server that may be made at a time; further clients wait to be accepted.
    pub connecting: usize,
    /// Time that a client has to log in, in milliseconds; 0: as long as the server lets it.
    pub login_ms: u64,
    /// Longest statement that is looked at, in bytes; longer ones are relayed unseen.
    #[serde(deserialize_with = "crate::size::read")]
    pub statement_bytes: usize,
    /// Most ids and heads that an owned call may leave in a session.
    pub pending_ids: usize,
    /// Longest answer to a tail that is held until it is known to be whole, in bytes.
    #[serde(deserialize_with = "crate::size::read")]
    pub tail_bytes: usize,
    /// Most authors that a feed's statement may name itself; longer lists are relayed.
    pub list_authors: usize,
    /// Most candidates that memory names for a feed's statement; one that wants more rows, or whose filter lets too few of them pass, is
    /// relayed.
    pub candidates: usize,
    /// Templates of feeds' statements that are remembered, over all sessions.
    pub templates: usize,
    /// Commands that one client may have in flight.
    pub in_flight: usize,
    /// Prepared statements of one session that are remembered; calls and feeds among further ones are relayed.
    pub prepared_statements: usize,
    /// Classes of statement texts that are remembered, over all sessions.
    pub statements: usize,
    /// Authors of whom it is remembered where their newest ids lie.
    pub authors: usize,
    /// Authors in the follow lists that are remembered, over all readers.
    pub follow_edges: usize,
    /// Databases whose check is remembered.
    pub databases: usize,
    /// Time that a client has to take what waits for it, in milliseconds; then its session ends.
    pub stalled_ms: u64,
    /// The same where the server has ended the session already.
    pub last_words_ms: u64,
    /// Time to connect to the server, in milliseconds.
    pub connect_ms: u64,
    /// Time that a check by the service account may take, in milliseconds.
    pub check_ms: u64,
    /// After so long a definition is checked again, in milliseconds.
    pub recheck_ms: u64,
    /// Time that commands and transactions in flight have to end at shutdown, in milliseconds.
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
            // Beyond the longest net_write_timeout that is usual (600 s, which JDBC sets for rows that it reads one by one).
            stalled_ms: 900_000,
            last_words_ms: 60_000,
            connect_ms: 10_000,
            check_ms: 2_000,
            recheck_ms: 10_000,
            drain_ms: 10_000,
        }
    }
}
