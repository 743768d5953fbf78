//! One process after the other on the same listening sockets (`headwater serve --takeover`).
//!
//! The old process listens on `takeover.socket`. What is said there, a line at a time:
//!
//! | who | says | then |
//! |---|---|---|
//! | new | `headwater takeover 1` | |
//! | old | `sockets` and their names, with one file descriptor each; or `refused` and why | |
//! | new | `take_over`, once its memory is warm | the new one takes clients, the old one takes no more and drains |
//!
//! Until `go` nothing has changed for the old process: if the connection ends before, it goes on. Both ends look which user the other
//! one runs as. The sockets are the same ones in both processes, so a client that waits to be accepted is accepted by either.

mod channel;
mod offer;
mod predecessor;

use std::io;
use std::path::PathBuf;

use self::channel::ANSWERS;
pub(crate) use self::offer::SocketCopies;
pub use self::offer::TakeoverOffer;
pub use self::predecessor::PredecessorProcess;

/// Why the sockets of another process cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeoverError {
    /// Nobody can be reached there.
    #[error(
        "cannot ask the process at {path} for its sockets (--takeover-socket, HEADWATER_TAKEOVER_SOCKET, takeover.socket): start this one as \
         the user that the other one runs as"
    )]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another user's process is there.
    #[error(
        "the process at {path} runs as user {theirs}, and this one as user {ours}: only the same user may take over"
    )]
    OtherUser {
        /// The socket.
        path: PathBuf,
        /// Whom it runs as.
        theirs: u32,
        /// Whom this one runs as.
        ours: u32,
    },
    /// It will not.
    #[error("the process at {path} does not hand its sockets over: {reason}")]
    Refused {
        /// The socket.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
    /// It says something else.
    #[error(
        "what answers at {path} (takeover.socket) does not hand sockets over as this Headwater knows it; stop it, and start this one without \
         --takeover"
    )]
    UnknownReply {
        /// The socket.
        path: PathBuf,
    },
    /// It is there, and does not answer.
    #[error("the process at {path} (takeover.socket) does not answer within {} seconds", ANSWERS.as_secs())]
    TimedOut {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be opened for the next one.
    #[error(
        "cannot open the socket {path} (--takeover-socket, HEADWATER_TAKEOVER_SOCKET, takeover.socket); if another Headwater is there, start \
         this one with --takeover"
    )]
    Open {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The user that this process runs as.
fn process_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}
