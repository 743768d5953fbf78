//! Commands on their way: what is still to be passed on of them, and what is still to come in reply.

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

/// A command whose reply has not ended.
#[derive(Debug)]
pub(super) struct InFlightCommand {
    pub(super) command: Command,
    pub(super) reply: ReplyFollower,
    /// It continues what the client was told of the same command, or the client counts otherwise than the server.
    pub(super) renumber: Option<SequenceRewriter>,
    /// It is known by how much the server's numbers are shifted, since it has begun to speak.
    pub(super) shift_known: bool,
    /// Something of the reply has come.
    pub(super) reply_started: bool,
    pub(super) sequence_shift: u8,
    /// It continues what the client was told.
    pub(super) continues: bool,
    pub(super) completion: ReplyCompletion,
    pub(super) client_data: Option<LocalInfileFollower>,
    /// What the client says within the reply, where its numbers or the server's are made here.
    pub(super) client_answers: Option<ClientAnswers>,
    /// What is noted of it, where somebody wants to know.
    pub(super) watched: Option<Box<WatchedCommand>>,
    /// How long it takes, where somebody wants to know.
    pub(super) timing: Option<Box<CommandTiming>>,
}

impl InFlightCommand {
    /// COM_CHANGE_USER: what the client sends meanwhile belongs to its dialogue.
    pub(super) fn authenticates(&self) -> bool {
        self.command == Command::ChangeUser
    }
}

/// What becomes of the bytes that wait from the server.
#[derive(Debug)]
pub(crate) enum ReplyStep {
    /// So many go to the client.
    Pass(usize),
    /// The client is told this in their place, and no more.
    Refuse(Vec<u8>),
    /// The client gets these in place of the first so many.
    Replace(usize, Vec<u8>),
    /// They cannot be followed any more.
    Unfollowable,
    /// From here on they are a binary log.
    Dump(Box<BinlogDump>),
}

/// What the end of a reply means beyond its flags.
#[derive(Debug)]
pub(super) enum ReplyCompletion {
    Nothing,
    /// Of this statement, where it was prepared
    ProcedureCall(Option<u32>),
    /// COMMIT or ROLLBACK
    TransactionEnded,
    InitDb(Vec<u8>),
    Login {
        database: Option<Vec<u8>>,
        /// `None`: the same as before.
        account: Option<Vec<u8>>,
        /// Nothing before could have chosen another database.
        certain: bool,
    },
    /// COM_STMT_PREPARE
    Prepared(Box<PreparedText>),
    /// COM_STMT_EXECUTE of a feed's SELECT
    Executed(u32, Option<Box<MetadataSample>>),
    /// PREPARE name FROM a call
    NamedCall(String, Box<PreparedCall>),
    /// PREPARE name FROM a feed's SELECT
    NamedFeed(String, Box<(PreparedFeed, StatementEffects)>),
    /// COM_SET_OPTION
    MultiStatements(Option<bool>),
}

/// A client packet that is passed on in parts.
#[derive(Debug)]
pub(super) struct PartialPacket {
    pub(super) remaining: usize,
    /// The packet was of the greatest size, so another one continues it.
    pub(super) continued: bool,
    /// The command has a reply.
    pub(super) has_reply: bool,
    /// Numbers the parts for the server, where the client may count otherwise.
    pub(super) renumber: Option<SequenceRewriter>,
}
