//! What a driver is to do with the bytes that wait on either side.

use std::num::NonZeroUsize;
use std::sync::Arc;

use headwater_statement::{FirstStatement, FollowUpSelect, ShowHeadwater, StatementEffects};

use super::call_request::CallRequest;
use super::prepared_statements::{FeedExecution, NamedExecution};

/// Which server a session talks to, as its greeting said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFlavor {
    /// MariaDB, or else MySQL.
    pub mariadb: bool,
}

/// Limits that a machine keeps to.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Longest statement (bytes of packet payload) that is looked at; longer ones are relayed unseen.
    pub statement_bytes: usize,
    /// Commands that a client may have in flight before its next ones are left waiting.
    pub in_flight: usize,
    /// Prepared statements of a session that are remembered, with an id or with a name.
    pub prepared_statements: usize,
}

/// What to do with the bytes that wait from the client.
///
/// Each step is given out once: the machine goes on as if it had been carried out, so whoever gets one carries it out before the
/// next is asked for. `FlushAction` and `Hold` say that there is none yet, and leave the machine as it was.
#[derive(Debug)]
pub enum ClientStep {
    /// The bytes do not suffice to decide: wait for more.
    Need,
    /// Nothing goes on until replies in flight have ended.
    Hold,
    /// Relay so many bytes to the server.
    Pass(NonZeroUsize),
    /// Relay these bytes in place of the first so many.
    Replace(NonZeroUsize, Vec<u8>),
    /// Give the packet that waits the number of one that begins a command, 0, and ask again.
    Renumber,
    /// Give the packet that waits this statement's id, and ask again.
    ReplaceStatementId(u32),
    /// Begin TLS, and forget so many bytes.
    BeginTls {
        /// The client's request, if it has made one. What waits behind it belongs to TLS.
        length: usize,
        /// On the client's leg.
        client: bool,
        /// On the server's, where this packet asks for it.
        server: Option<Vec<u8>>,
    },
    /// Tell the client this, and end the session.
    Refuse(Vec<u8>),
    /// A whole packet with a call that may be owned.
    Call(Box<CallRequest>),
    /// A whole packet of so many bytes: a tail, and its result table is pending.
    FollowUp(usize, Arc<FollowUpSelect>),
    /// A whole packet of so many bytes: a SELECT that may be a feed's, and what it may do where it is relayed.
    Feed(usize, StatementEffects),
    /// A whole packet with several statements, of which one may be a feed's.
    Batch(Box<BatchPart>),
    /// A whole packet of so many bytes: an execution of such a SELECT, and what it may do where it is relayed.
    Execution(usize, StatementEffects, FeedExecution),
    /// The same by its name.
    Named(usize, StatementEffects, NamedExecution),
    /// A whole packet of so many bytes: a question to Headwater.
    HeadwaterStatement(usize, ShowHeadwater),
    /// The pending ids must be on the server before the next packet may go on.
    Flush {
        /// The command asks for what the real call leaves behind besides its tables (warnings, counts).
        diagnostics: bool,
    },
}

/// The first of several statements, whose packet waits.
#[derive(Clone, Copy, Debug)]
pub struct BatchPart {
    /// Bytes of the packet, header included.
    pub length: usize,
    /// What the first statement is.
    pub first: FirstStatement,
    /// Where it ends in the payload.
    pub end: usize,
    /// Where the others begin.
    pub remainder: usize,
    /// What all of them may do.
    pub effects: StatementEffects,
}

/// What to do with the bytes that wait from the server: given out once, as a [`ClientStep`] is.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// The bytes do not suffice to decide: wait for more.
    Need,
    /// Relay so many bytes to the client.
    Pass(NonZeroUsize),
    /// Relay these bytes in place of the first so many.
    Replace(NonZeroUsize, Vec<u8>),
    /// Tell the client this, and end the session.
    Refuse(Vec<u8>),
}

impl ClientStep {
    /// Where nothing can go on yet, more is needed.
    pub(super) fn pass(length: usize) -> ClientStep {
        NonZeroUsize::new(length).map_or(ClientStep::Need, ClientStep::Pass)
    }

    /// As [`ClientStep::pass`].
    pub(super) fn replace(length: usize, own: Vec<u8>) -> ClientStep {
        NonZeroUsize::new(length).map_or(ClientStep::Need, |it| ClientStep::Replace(it, own))
    }
}

impl ServerStep {
    /// Where nothing can go on yet, more is needed.
    pub(super) fn pass(length: usize) -> ServerStep {
        NonZeroUsize::new(length).map_or(ServerStep::Need, ServerStep::Pass)
    }

    /// As [`ServerStep::pass`].
    pub(super) fn replace(length: usize, own: Vec<u8>) -> ServerStep {
        NonZeroUsize::new(length).map_or(ServerStep::Need, |it| ServerStep::Replace(it, own))
    }
}
