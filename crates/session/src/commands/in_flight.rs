//! Commands on their way: what is still to be passed on of them, and what is still to come in reply.

use headwater_wire::command::Command;
use headwater_wire::renumber::Renumber;
use headwater_wire::reply::{LocalData, Reply};

use super::numbers::Answers;
use super::timing::Timing;
use super::watch::Noted;
use crate::dump::Dump;
use crate::narrowing::Lesson;
use crate::prepared::{PreparedCall, PreparedFeed, Text};
use headwater_statement::Effects;

/// A command whose reply has not ended.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) command: Command,
    pub(super) reply: Reply,
    /// It continues what the client was told of the same command, or the client counts otherwise than the server.
    pub(super) renumber: Option<Renumber>,
    /// It is known by how much the server's numbers are shifted, since it has begun to speak.
    pub(super) begun: bool,
    /// Something of the reply has come.
    pub(super) spoken: bool,
    pub(super) shifted: u8,
    /// It continues what the client was told.
    pub(super) continues: bool,
    pub(super) after: After,
    pub(super) client_data: Option<LocalData>,
    /// What the client says within the reply, where its numbers or the server's are made here.
    pub(super) answers: Option<Answers>,
    /// What is noted of it, where somebody wants to know.
    pub(super) noted: Option<Box<Noted>>,
    /// How long it takes, where somebody wants to know.
    pub(super) timing: Option<Box<Timing>>,
}

impl InFlight {
    /// COM_CHANGE_USER: what the client sends meanwhile belongs to its dialogue.
    pub(super) fn authenticates(&self) -> bool {
        self.command == Command::ChangeUser
    }
}

/// What becomes of the bytes that wait from the server.
#[derive(Debug)]
pub(crate) enum Served {
    /// So many go to the client.
    Pass(usize),
    /// The client is told this in their place, and no more.
    Refuse(Vec<u8>),
    /// The client gets these in place of the first so many.
    Replace(usize, Vec<u8>),
    /// They cannot be followed any more.
    Unfollowable,
    /// From here on they are a binary log.
    Dump(Box<Dump>),
}

/// What the end of a reply means beyond its flags.
#[derive(Debug)]
pub(super) enum After {
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
    Prepared(Box<Text>),
    /// COM_STMT_EXECUTE of a feed's SELECT
    Executed(u32, Option<Box<Lesson>>),
    /// PREPARE name FROM a call
    Named(String, Box<PreparedCall>),
    /// PREPARE name FROM a feed's SELECT
    NamedFeed(String, Box<(PreparedFeed, Effects)>),
    /// COM_SET_OPTION
    MultiStatements(Option<bool>),
}

/// A client packet that is passed on in parts.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) left: usize,
    /// The packet was of the greatest size, so another one continues it.
    pub(super) continued: bool,
    /// The command has a reply.
    pub(super) answered: bool,
    /// Numbers the parts for the server, where the client may count otherwise.
    pub(super) renumber: Option<Renumber>,
}
