//! Commands in flight: what remains to be relayed of them, and of their replies.

use headwater_wire::command::Command;
use headwater_wire::reply::{LocalInfileFollower, ReplyFollower};
use headwater_wire::sequence_rewriter::SequenceRewriter;

use super::sequence_numbers::ClientAnswers;
use super::statement_watch::WatchedCommand;
use super::timing::CommandTiming;
use crate::binlog_dump::BinlogDump;
use crate::feed_decision::MetadataSample;
use crate::prepared_statements::{PreparedCall, PreparedFeed, PreparedText};
use headwater_statement::StatementEffects;

#[derive(Debug)]
pub(super) struct InFlightCommand {
    pub(super) command: Command,
    pub(super) reply: ReplyFollower,
    /// It continues a reply that the client has partly received, or the client counts differently from the server.
    pub(super) renumber: Option<SequenceRewriter>,
    /// The shift of the server's numbers is known, since its reply has begun.
    pub(super) shift_known: bool,
    pub(super) reply_started: bool,
    pub(super) sequence_shift: u8,
    /// It continues a reply that the client has partly received.
    pub(super) continues: bool,
    pub(super) completion: ReplyCompletion,
    pub(super) client_data: Option<LocalInfileFollower>,
    /// What the client sends within the reply, where its numbers or the server's are rewritten.
    pub(super) client_answers: Option<ClientAnswers>,
    /// The watched statement, if any consumer wants it.
    pub(super) watched: Option<Box<WatchedCommand>>,
    /// The timing, if any consumer wants it.
    pub(super) timing: Option<Box<CommandTiming>>,
}

impl InFlightCommand {
    /// True for COM_CHANGE_USER: what the client sends meanwhile belongs to its dialogue.
    pub(super) fn authenticates(&self) -> bool {
        self.command == Command::ChangeUser
    }
}

/// The step for the bytes that wait from the server.
#[derive(Debug)]
pub(crate) enum ReplyStep {
    /// Relay this many bytes.
    Pass(usize),
    /// Send this to the client instead, and end.
    Refuse(Vec<u8>),
    /// Send these in place of the first bytes.
    Replace(usize, Vec<u8>),
    /// The reply cannot be followed any more.
    Unfollowable,
    /// A binary log begins here.
    Dump(Box<BinlogDump>),
}

/// What the end of a reply means, beyond its flags.
#[derive(Debug)]
pub(super) enum ReplyCompletion {
    Nothing,
    /// Of this statement, if it was prepared
    ProcedureCall(Option<u32>),
    TransactionEnded,
    InitDb(Vec<u8>),
    Login {
        database: Option<Vec<u8>>,
        /// `None`: the same as before.
        account: Option<Vec<u8>>,
        /// No earlier command could have chosen another database.
        certain: bool,
    },
    Prepared(Box<PreparedText>),
    /// COM_STMT_EXECUTE of a feed's SELECT
    Executed(u32, Option<Box<MetadataSample>>),
    /// PREPARE name FROM a call
    NamedCall(String, Box<PreparedCall>),
    /// PREPARE name FROM a feed's SELECT
    NamedFeed(String, Box<(PreparedFeed, StatementEffects)>),
    MultiStatements(Option<bool>),
}

/// A client packet that is relayed in parts.
#[derive(Debug)]
pub(super) struct PartialPacket {
    pub(super) remaining: usize,
    /// The packet had the maximum size, so another one continues it.
    pub(super) continued: bool,
    pub(super) has_reply: bool,
    /// Numbers the parts for the server, where the client may count differently.
    pub(super) renumber: Option<SequenceRewriter>,
}
