//! Why memory is suspended.

use super::MemorySuspension;
use super::obstacle::BinlogObstacle;
use super::server_facts::is_denial;
use crate::account::AccountError;
use headwater_log::assembler::LogStreamError;
use headwater_log::resume_search::HistoryMismatch;

/// ER_MASTER_FATAL_ERROR_READING_BINLOG: the log cannot be sent from there.
const NO_SUCH_LOG: u16 = 1236;

/// Why the server's log is not followed now. Meanwhile calls are served by lookups.
#[derive(Debug, thiserror::Error)]
pub(super) enum BinlogError {
    /// The server cannot be reached, refuses the account, or dropped a connection.
    #[error("{doing}: {source}")]
    Server {
        doing: &'static str,
        source: AccountError,
    },
    /// A setting of the server, or a missing privilege.
    #[error(transparent)]
    Obstacle(#[from] BinlogObstacle),
    /// An event that cannot be followed.
    #[error(transparent)]
    Lost(#[from] LogStreamError),
    /// The server's log stream cannot be parsed; a retry would fail again.
    #[error("the server's log cannot be read: {0}")]
    UnreadableLog(AccountError),
    /// Neither events nor heartbeats came for too long.
    #[error("the server's log was silent for {0} ms, without a sign of life")]
    HeartbeatTimeout(u128),
    /// A timeline was added; its stream starts from the beginning of one.
    #[error("another timeline is listened to from now on")]
    TimelineAdded,
    /// The server's history is not the one that memory was built from.
    #[error("memory is filled anew: {0}")]
    HistoryDiverged(#[from] HistoryMismatch),
    #[error("memory is to be filled anew")]
    RefillRequested,
    /// Another server is the primary; its log is followed from now on.
    #[error("another server is the primary now: its log is followed")]
    PrimaryChanged,
    /// As by RESET MASTER: the stream may continue in a file that is no longer the log.
    #[error("the server's log ends before what it has told already: it was begun anew")]
    LogReset,
    /// The cluster that may hold up the server's reads has changed.
    #[error("the server has joined a cluster, or left one, or can join one now")]
    ClusterChanged,
    /// Rows, or what memory has of them, contradict the log.
    #[error(
        "the rows and the server's log contradict each other ({0}): memory is emptied. Somebody changes rows without logging them \
         (sql_log_bin = 0, for example), or the server does"
    )]
    Contradiction(String),
    #[error("the server ended the stream of its log")]
    StreamEnded,
    /// The server ended the stream because another replica has its id.
    #[error("another replica has the number of Headwater's stream: {0}")]
    DuplicateReplicaId(AccountError),
    /// A connection led to another server than the stream's.
    #[error("the address leads to several servers (one is {one}, another is {other})")]
    UnexpectedServer { one: String, other: String },
}

/// The reason before the first stream.
pub const STARTING: &str = "starting";

/// Every reason for which memory is not used, with its meaning.
pub const REASONS: [(&str, &str); 20] = [
    (
        STARTING,
        "Headwater has just started, or has not reached the server yet",
    ),
    (
        "server",
        "the server is unreachable, refuses the service account, or closed a connection",
    ),
    (
        "setting",
        "a server setting keeps row changes out of the log, or reports them too late",
    ),
    ("right", "the service account lacks a grant"),
    ("filtered", "the binary log omits databases"),
    (
        "replica",
        "the server is a replica that does not log what it applies",
    ),
    ("foreign_key", "a foreign key changes rows by itself"),
    ("file_name", "binary log files have no numbers"),
    (
        "tables_changed",
        "a table was altered, renamed or dropped; memory is refilled",
    ),
    (
        "unreadable",
        "a logged statement was unreadable, or replaced row changes",
    ),
    (
        "transaction",
        "a transaction exceeded `binlog.transaction_rows`, or used XA",
    ),
    ("log", "the log has an unknown or overlong event, or a gap"),
    ("silent", "neither events nor heartbeats arrive"),
    (
        "anew",
        "the log was reset (`RESET MASTER`), the server joined a cluster, or memory is refilled",
    ),
    (
        "contradiction",
        "rows contradict the log: somebody makes unlogged changes",
    ),
    (
        "history",
        "the new server lacks transactions that memory has, or has others before them; memory is refilled",
    ),
    ("ended", "the server closed the log stream"),
    ("other_server", "the address leads to several servers"),
    (
        "moved",
        "another server in `upstream` has just become the primary",
    ),
    (
        "same_number",
        "another replica uses Headwater's server id; Headwater draws another",
    ),
];

impl BinlogError {
    /// True if the service account's connections for this purpose are all in use.
    pub(super) fn is_connection_limit(&self) -> bool {
        matches!(
            self,
            Self::Server {
                source: AccountError::Waiting(_),
                ..
            }
        )
    }

    /// One of [`REASONS`].
    pub(super) fn reason(&self) -> &'static str {
        match self {
            BinlogError::Server { .. } => "server",
            BinlogError::Obstacle(obstacle) => match obstacle {
                BinlogObstacle::Variable { .. } => "setting",
                BinlogObstacle::Right(_) => "right",
                BinlogObstacle::Filter { .. } => "filtered",
                BinlogObstacle::Replica { .. } => "replica",
                BinlogObstacle::Cascade { .. } => "foreign_key",
                BinlogObstacle::FileName(_) => "file_name",
            },
            BinlogError::Lost(lost) => match lost {
                LogStreamError::Schema(_) | LogStreamError::Columns { .. } => "tables_changed",
                LogStreamError::Statement(_) | LogStreamError::Unreadable(_) => "unreadable",
                LogStreamError::Xa | LogStreamError::TooLarge(_) => "transaction",
                LogStreamError::UnknownEvent(_)
                | LogStreamError::Malformed(_)
                | LogStreamError::UnexpectedFile(_)
                | LogStreamError::UnpackedTooLarge(_)
                | LogStreamError::Incident => "log",
            },
            BinlogError::UnreadableLog(_) => "log",
            BinlogError::HeartbeatTimeout(_) => "silent",
            BinlogError::TimelineAdded
            | BinlogError::RefillRequested
            | BinlogError::LogReset
            | BinlogError::ClusterChanged => "anew",
            BinlogError::Contradiction(_) => "contradiction",
            BinlogError::HistoryDiverged(_) => "history",
            BinlogError::StreamEnded => "ended",
            BinlogError::DuplicateReplicaId(_) => "same_number",
            BinlogError::UnexpectedServer { .. } => "other_server",
            BinlogError::PrimaryChanged => "moved",
        }
    }

    pub(super) fn cure(&self, user: &str) -> Option<String> {
        match self {
            BinlogError::Obstacle(obstacle) => obstacle.cure(user),
            _ => None,
        }
    }

    pub(super) fn suspension(&self, user: &str) -> MemorySuspension {
        MemorySuspension {
            reason: self.reason(),
            text: self.to_string(),
            cure: self.cure(user),
        }
    }

    /// True if it blocks the rows of these tables until an operator fixes it.
    pub(super) fn blocks_tables(&self) -> bool {
        match self {
            BinlogError::Obstacle(_) => true,
            BinlogError::Server { source, .. } => is_denial(source),
            _ => false,
        }
    }

    /// True if memory may be resumed with the next stream: nothing was received that it lacks.
    pub(super) fn suspends_memory(&self) -> bool {
        match self {
            BinlogError::Server { source, .. } => source.code() != Some(NO_SUCH_LOG),
            BinlogError::HeartbeatTimeout(_)
            | BinlogError::StreamEnded
            | BinlogError::PrimaryChanged
            | BinlogError::DuplicateReplicaId(_)
            | BinlogError::UnexpectedServer { .. } => true,
            _ => false,
        }
    }

    /// True if it was logged when it happened.
    pub(super) fn was_logged(&self) -> bool {
        match self {
            BinlogError::Server { source, .. } => source.is_refusal(),
            BinlogError::DuplicateReplicaId(_) => true,
            _ => false,
        }
    }

    pub(super) fn while_doing(doing: &'static str) -> impl Fn(AccountError) -> BinlogError {
        move |source| BinlogError::Server { doing, source }
    }
}
