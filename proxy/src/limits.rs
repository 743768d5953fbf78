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
    /// Tracked prepared statements of one session; calls and feeds in further ones are relayed.
    pub prepared_statements: usize,
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
            prepared_statements: 1_000,
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

/// A server plans for each id in a list: MySQL takes some 230 bytes of `range_optimizer_max_mem_size` for one.
const MOST_CANDIDATES: usize = 20_000;
/// More ids may not fit a MEMORY table of the smallest size with which sessions are accelerated.
const MOST_PENDING_IDS: usize = 30_000;

/// A limit that no setting can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitFault {
    /// It is too small.
    #[error("limits.{limit} = {value} is below the least that works, {least}")]
    Below {
        /// The key.
        limit: &'static str,
        /// Its value.
        value: u64,
        /// The least value.
        least: u64,
    },
    /// It is too large.
    #[error("limits.{limit} = {value} is above the most that works, {most}")]
    Above {
        /// The key.
        limit: &'static str,
        /// Its value.
        value: u64,
        /// The greatest value.
        most: u64,
    },
}

impl ProcessLimits {
    /// These limits, but for those that the process was built upon: they stay as they are `now`. A new limit says here which of the two
    /// it is.
    #[must_use]
    pub fn retaining(self, now: &ProcessLimits) -> ProcessLimits {
        ProcessLimits {
            sessions: now.sessions,
            connecting: now.connecting,
            sessions_per_account: self.sessions_per_account,
            sessions_per_address: self.sessions_per_address,
            login_ms: self.login_ms,
            statement_bytes: self.statement_bytes,
            pending_ids: self.pending_ids,
            tail_bytes: self.tail_bytes,
            list_authors: self.list_authors,
            candidates: self.candidates,
            templates: self.templates,
            prepared_statements: self.prepared_statements,
            databases: self.databases,
            stalled_ms: self.stalled_ms,
            last_words_ms: self.last_words_ms,
            connect_ms: self.connect_ms,
            check_ms: self.check_ms,
            recheck_ms: self.recheck_ms,
            drain_ms: self.drain_ms,
        }
    }

    /// Checks the bounds of each limit.
    ///
    /// # Errors
    /// The first limit that is out of bounds.
    pub fn validate(&self) -> Result<(), LimitFault> {
        let bounds = [
            ("sessions", self.sessions as u64, 1, u64::MAX),
            ("connecting", self.connecting as u64, 1, u64::MAX),
            ("connect_ms", self.connect_ms, 1, u64::MAX),
            ("stalled_ms", self.stalled_ms, 1_000, u64::MAX),
            (
                "statement_bytes",
                self.statement_bytes as u64,
                256,
                u64::MAX,
            ),
            ("databases", self.databases as u64, 1, u64::MAX),
            ("check_ms", self.check_ms, 1, u64::MAX),
            ("tail_bytes", self.tail_bytes as u64, 1024, u64::MAX),
            ("list_authors", self.list_authors as u64, 1, u64::MAX),
            (
                "candidates",
                self.candidates as u64,
                2,
                MOST_CANDIDATES as u64,
            ),
            ("templates", self.templates as u64, 1, u64::MAX),
            (
                "pending_ids",
                self.pending_ids as u64,
                0,
                MOST_PENDING_IDS as u64,
            ),
        ];
        for (limit, value, least, most) in bounds {
            if value < least {
                return Err(LimitFault::Below {
                    limit,
                    value,
                    least,
                });
            }
            if value > most {
                return Err(LimitFault::Above { limit, value, most });
            }
        }
        Ok(())
    }
}
