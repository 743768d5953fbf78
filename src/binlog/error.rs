//! Why the index stands aside.

use super::MemorySuspension;
use super::obstacle::BinlogObstacle;
use super::server_facts::is_denial;
use crate::account::AccountError;
use crate::log::assembler::LogStreamError;
use crate::log::resume_search::HistoryMismatch;

/// ER_MASTER_FATAL_ERROR_READING_BINLOG: the log cannot be sent from there.
const NO_SUCH_LOG: u16 = 1236;

/// Why the server's log is not followed now. While it does not, calls are answered by lookups.
#[derive(Debug, thiserror::Error)]
pub(super) enum BinlogError {
    /// The server cannot be reached, refuses the account, or dropped a connection.
    #[error("{doing}: {source}")]
    Server {
        doing: &'static str,
        source: AccountError,
    },
    /// A setting of the server, or a missing right.
    #[error(transparent)]
    Obstacle(#[from] BinlogObstacle),
    /// What the log tells cannot be followed.
    #[error(transparent)]
    Lost(#[from] LogStreamError),
    /// What the server sent of its log cannot be read: it would come again.
    #[error("the server's log cannot be read: {0}")]
    UnreadableLog(AccountError),
    /// Nothing came for too long, not even a sign of life.
    #[error("the server's log was silent for {0} ms, without a sign of life")]
    HeartbeatTimeout(u128),
    /// One more timeline is listened to: from the beginning of a stream.
    #[error("another timeline is listened to from now on")]
    TimelineAdded,
    /// The server's history is not the one that memory is of.
    #[error("memory is filled anew: {0}")]
    HistoryDiverged(#[from] HistoryMismatch),
    /// The operator wants memory to be filled anew.
    #[error("memory is to be filled anew")]
    RefillRequested,
    /// Another server is the primary, and its log is followed from now on.
    #[error("another server is the primary now: its log is followed")]
    PrimaryChanged,
    /// As by RESET MASTER: a stream can go on in the file that is not the log any more.
    #[error("the server's log ends before what it has told already: it was begun anew")]
    LogReset,
    /// What holds reads of the server up has changed.
    #[error("the server has joined a cluster, or left one, or can join one now")]
    ClusterChanged,
    /// The rows of a table, or what was known of them, and the log do not go together.
    #[error(
        "the rows and the server's log contradict each other ({0}): memory is emptied. Somebody changes rows without logging them \
         (sql_log_bin = 0, for example), or the server does"
    )]
    Contradiction(String),
    /// The server ended the stream.
    #[error("the server ended the stream of its log")]
    StreamEnded,
    /// The server ended the stream for another one with its number.
    #[error("another replica has the number of Headwater's stream: {0}")]
    DuplicateReplicaId(AccountError),
    /// A connection led to another server than the stream's.
    #[error("the address leads to several servers (one is {one}, another is {other})")]
    UnexpectedServer { one: String, other: String },
}

/// The reason while no log was followed yet.
pub const STARTING: &str = "starting";

/// Every name of a reason for which memory is not used, and what it means.
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
    /// True where the service account has all connections that there are for this.
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

    /// The statement that cures it, for the service account of that name.
    pub(super) fn cure(&self, user: &str) -> Option<String> {
        match self {
            BinlogError::Obstacle(obstacle) => obstacle.cure(user),
            _ => None,
        }
    }

    /// Why memory stands aside, for the service account of that name.
    pub(super) fn suspension(&self, user: &str) -> MemorySuspension {
        MemorySuspension {
            reason: self.reason(),
            text: self.to_string(),
            cure: self.cure(user),
        }
    }

    /// True where it keeps the rows of these tables out of memory until somebody mends it.
    pub(super) fn blocks_tables(&self) -> bool {
        match self {
            BinlogError::Obstacle(_) => true,
            BinlogError::Server { source, .. } => is_denial(source),
            _ => false,
        }
    }

    /// True where memory may go on once there is a server again: nothing was told that it does not hold.
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

    /// True where the log was told of it when it happened.
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
