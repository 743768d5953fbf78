//! Why the index stands aside.

use super::obstacle::Obstacle;
use crate::account::AccountError;
use crate::log::events::Lost;

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
    Obstacle(#[from] Obstacle),
    /// What the log tells cannot be followed.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// Nothing came for too long, not even a sign of life.
    #[error("the server's log was silent for {0} ms, without a sign of life")]
    Silent(u128),
    /// One more timeline is listened to: from the beginning of a stream.
    #[error("another timeline is listened to from now on")]
    Late,
    /// The operator wants memory to be filled anew.
    #[error("memory is to be filled anew")]
    Asked,
    /// As by RESET MASTER: a stream can go on in the file that is not the log any more.
    #[error("the server's log ends before what it has told already: it was begun anew")]
    Reset,
    /// The rows of a table, or what was known of them, and the log do not go together.
    #[error(
        "the rows and the server's log contradict each other ({0}): memory is emptied. Somebody changes rows without logging them \
         (sql_log_bin = 0, for example), or the server does"
    )]
    Contradiction(String),
    /// The server ended the stream.
    #[error("the server ended the stream of its log")]
    Ended,
    /// A connection led to another server than the stream's.
    #[error("the address leads to several servers (one is {one}, another is {other})")]
    OtherServer { one: String, other: String },
}

impl BinlogError {
    /// True where the log was told of it when it happened.
    pub(super) fn was_said(&self) -> bool {
        matches!(self, BinlogError::Server { source, .. } if source.is_refusal())
    }

    pub(super) fn while_doing(doing: &'static str) -> impl Fn(AccountError) -> BinlogError {
        move |source| BinlogError::Server { doing, source }
    }
}
