//! Takeover of the listening sockets by a new process (`headwater serve --takeover`).
//!
//! The old process listens on `takeover.socket`. The protocol has one message a line:
//!
//! | who | sends | then |
//! |---|---|---|
//! | new | `headwater takeover 1` | |
//! | old | `sockets` and their names, with one file descriptor each; or `refused` and why | |
//! | new | `go`, once its memory is warm | the new one takes clients, the old one takes no more and drains |
//!
//! Until `go`, nothing changes for the old process; it continues if the connection ends before. Both ends check the other's user.
//! The sockets are the same in both processes, so either one accepts a waiting client.

mod channel;
mod offer;
mod predecessor;

use std::io;
use std::path::PathBuf;

use self::channel::ANSWERS;
pub(crate) use self::offer::SocketCopies;
pub use self::offer::TakeoverOffer;
pub use self::predecessor::PredecessorProcess;

/// Why another process's sockets cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeoverError {
    /// The control socket cannot be connected to.
    #[error(
        "cannot ask the process at {path} for its sockets (--takeover-socket, HEADWATER_TAKEOVER_SOCKET, takeover.socket): start this one as \
         the user that the other one runs as"
    )]
    Connect {
        /// The control socket.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The process runs as another user.
    #[error(
        "the process at {path} runs as user {theirs}, and this one as user {ours}: only the same user may take over"
    )]
    OtherUser {
        /// The control socket.
        path: PathBuf,
        /// The other process's user.
        theirs: u32,
        /// This process's user.
        ours: u32,
    },
    /// The process refuses.
    #[error("the process at {path} does not hand its sockets over: {reason}")]
    Refused {
        /// The control socket.
        path: PathBuf,
        /// Its answer.
        reason: String,
    },
    /// The answer is not of this protocol.
    #[error(
        "what answers at {path} (takeover.socket) does not hand sockets over as this Headwater knows it; stop it, and start this one without \
         --takeover"
    )]
    UnknownReply {
        /// The control socket.
        path: PathBuf,
    },
    /// The process does not answer in time.
    #[error("the process at {path} (takeover.socket) does not answer within {} seconds", ANSWERS.as_secs())]
    TimedOut {
        /// The control socket.
        path: PathBuf,
    },
    /// The control socket for the next process cannot be opened.
    #[error(
        "cannot open the socket {path} (--takeover-socket, HEADWATER_TAKEOVER_SOCKET, takeover.socket); if another Headwater is there, start \
         this one with --takeover"
    )]
    Open {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The user that this process runs as.
fn process_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}
