//! The steps that a driver carries out with the bytes that wait on either side.

use std::num::NonZeroUsize;
use std::sync::Arc;

use headwater_statement::{FirstStatement, FollowUpSelect, ShowHeadwater, StatementEffects};

use super::call_request::CallRequest;
use super::prepared_statements::{FeedExecution, NamedExecution};

/// A session's server, from its greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFlavor {
    /// True for MariaDB, false for MySQL.
    pub mariadb: bool,
}

/// A machine's limits.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Longest statement (bytes of packet payload) that is read; longer ones are relayed unread.
    pub statement_bytes: usize,
    /// Commands that a client may have in flight; later ones wait.
    pub in_flight: usize,
    /// How many prepared statements are remembered per session, by id and by name each.
    pub prepared_statements: usize,
}

/// The step for the bytes that wait from the client.
///
/// Each step is returned once: the machine continues as if it had been carried out, so the driver carries it out before it requests the
/// next. `Need` and `Hold` mean that there is none yet, and leave the machine unchanged.
#[derive(Debug)]
pub enum ClientStep {
    /// The bytes do not suffice: wait for more.
    Need,
    /// Nothing is relayed until replies in flight have ended.
    Hold,
    /// Relay this many bytes to the server.
    Pass(NonZeroUsize),
    /// Relay these bytes in place of the first ones.
    Replace(NonZeroUsize, Vec<u8>),
    /// Set the waiting packet's number to that of a command, 0, and call again.
    Renumber,
    /// Set this statement id in the waiting packet, and call again.
    ReplaceStatementId(u32),
    /// Begin TLS, and drop this many bytes.
    BeginTls {
        /// The client's request for TLS, if it sent one. What waits after it belongs to TLS.
        length: usize,
        /// On the client's leg.
        client: bool,
        /// On the server's leg, which this packet requests.
        server: Option<Vec<u8>>,
    },
    /// Send this to the client, and end the session.
    Refuse(Vec<u8>),
    /// A complete packet with a call that may be served.
    Call(Box<CallRequest>),
    /// A complete packet of this many bytes: a follow-up SELECT whose result table is pending.
    FollowUp(usize, Arc<FollowUpSelect>),
    /// A complete packet of this many bytes: a SELECT that may be a feed's, and its effects where it is relayed.
    Feed(usize, StatementEffects),
    /// A complete packet with several statements, one of which may be a feed's.
    Batch(Box<BatchPart>),
    /// A complete packet of this many bytes: an execution of such a SELECT, and its effects where it is relayed.
    Execution(usize, StatementEffects, FeedExecution),
    /// The same, by name.
    Named(usize, StatementEffects, NamedExecution),
    /// A complete packet of this many bytes: a `SHOW HEADWATER` statement.
    HeadwaterStatement(usize, ShowHeadwater),
    /// Flush the pending ids before the next packet is relayed.
    Flush {
        /// The command asks for what the real call leaves besides its tables (warnings, counts).
        diagnostics: bool,
    },
}

/// The first of several statements in a waiting packet.
#[derive(Clone, Copy, Debug)]
pub struct BatchPart {
    /// Bytes of the packet, header included.
    pub length: usize,
    /// The class of the first statement.
    pub first: FirstStatement,
    /// Where it ends in the payload.
    pub end: usize,
    /// Where the other statements begin.
    pub remainder: usize,
    /// What all of them may do.
    pub effects: StatementEffects,
}

/// The step for the bytes that wait from the server, returned once like a [`ClientStep`].
#[derive(Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// The bytes do not suffice: wait for more.
    Need,
    /// Relay this many bytes to the client.
    Pass(NonZeroUsize),
    /// Relay these bytes in place of the first ones.
    Replace(NonZeroUsize, Vec<u8>),
    /// Send this to the client, and end the session.
    Refuse(Vec<u8>),
}

impl ClientStep {
    /// Needs more bytes where the length is 0.
    pub(super) fn pass(length: usize) -> ClientStep {
        NonZeroUsize::new(length).map_or(ClientStep::Need, ClientStep::Pass)
    }

    /// As [`ClientStep::pass`].
    pub(super) fn replace(length: usize, replacement: Vec<u8>) -> ClientStep {
        NonZeroUsize::new(length)
            .map_or(ClientStep::Need, |it| ClientStep::Replace(it, replacement))
    }
}

impl ServerStep {
    /// Needs more bytes where the length is 0.
    pub(super) fn pass(length: usize) -> ServerStep {
        NonZeroUsize::new(length).map_or(ServerStep::Need, ServerStep::Pass)
    }

    /// As [`ServerStep::pass`].
    pub(super) fn replace(length: usize, replacement: Vec<u8>) -> ServerStep {
        NonZeroUsize::new(length)
            .map_or(ServerStep::Need, |it| ServerStep::Replace(it, replacement))
    }
}
