//! A client's command: its byte, the kind of its reply, and where the SQL text of a query is.

mod execute_packet;
mod execute_parameters;
mod query_packet;

pub use execute_packet::{
    ExecutePacket, LAST_PREPARED, parse_digits, statement_id, types_flag_offset,
};
pub use execute_parameters::{
    BoundParameter, BoundValue, DOUBLE_PRECISION_DIGITS, execute_payload,
};
pub use query_packet::{query_payload, query_text_range, with_query_text};

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// A command, by the first byte of its payload. Total: a byte without a name is [`Command::Other`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Command {
            $($(#[$doc])* $name,)*
            /// A byte that has no name here.
            Other(u8),
        }

        impl Command {
            /// The command of a first byte.
            #[must_use]
            pub const fn from_byte(byte: u8) -> Self {
                match byte {
                    $($byte => Self::$name,)*
                    other => Self::Other(other),
                }
            }

            /// The first byte of a command.
            #[must_use]
            pub const fn byte(self) -> u8 {
                match self {
                    $(Self::$name => $byte,)*
                    Self::Other(other) => other,
                }
            }
        }
    };
}

commands! {
    /// COM_QUIT: the client leaves.
    Quit = 0x01,
    /// COM_INIT_DB: followed by a database name.
    InitDb = 0x02,
    /// COM_QUERY: SQL text, after query attributes where they were negotiated.
    Query = 0x03,
    /// COM_FIELD_LIST: the columns of a table.
    FieldList = 0x04,
    /// COM_REFRESH: FLUSH by bits.
    Refresh = 0x07,
    /// COM_SHUTDOWN.
    Shutdown = 0x08,
    /// COM_STATISTICS: a line of text.
    Statistics = 0x09,
    /// COM_PROCESS_INFO: SHOW PROCESSLIST.
    ProcessInfo = 0x0A,
    /// COM_PROCESS_KILL: KILL.
    ProcessKill = 0x0C,
    /// COM_DEBUG: the server writes to its log.
    Debug = 0x0D,
    /// COM_PING.
    Ping = 0x0E,
    /// COM_CHANGE_USER: a new login on this connection.
    ChangeUser = 0x11,
    /// COM_BINLOG_DUMP: an endless stream of events.
    BinlogDump = 0x12,
    /// COM_REGISTER_SLAVE: a replica names itself.
    RegisterReplica = 0x15,
    /// COM_STMT_PREPARE: followed by SQL text.
    StmtPrepare = 0x16,
    /// COM_STMT_EXECUTE.
    StmtExecute = 0x17,
    /// COM_STMT_SEND_LONG_DATA: a piece of a parameter.
    StmtSendLongData = 0x18,
    /// COM_STMT_CLOSE.
    StmtClose = 0x19,
    /// COM_STMT_RESET.
    StmtReset = 0x1A,
    /// COM_SET_OPTION: turns MULTI_STATEMENTS on or off.
    SetOption = 0x1B,
    /// COM_STMT_FETCH: rows from a cursor.
    StmtFetch = 0x1C,
    /// COM_BINLOG_DUMP_GTID (MySQL): an endless stream of events.
    BinlogDumpGtid = 0x1E,
    /// COM_RESET_CONNECTION: resets the session.
    ResetConnection = 0x1F,
    /// COM_CLONE (MySQL): a protocol of its own when the plugin is there.
    Clone = 0x20,
    /// COM_SUBSCRIBE_GROUP_REPLICATION_STREAM (MySQL): a stream.
    SubscribeGroup = 0x21,
    /// COM_STMT_BULK_EXECUTE (MariaDB).
    StmtBulkExecute = 0xFA,
}

/// The kind of reply to a command. Source: the manual's chapter of each command, checked against MySQL 9.7, MariaDB 10.11
/// and 11.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// No reply.
    Silent,
    /// One packet: OK, ERR or, for some, an EOF.
    OnePacket,
    /// One packet of text without a header byte.
    Text,
    /// One or more of OK, ERR, LOCAL INFILE request and result set.
    Results,
    /// Column definitions up to an EOF, without a count.
    Fields,
    /// A statement id with counts, then as many column definitions.
    Prepared,
    /// Rows up to an EOF, without column definitions.
    Rows,
    /// The authentication dialogue.
    Login,
    /// A stream that ends only with the connection.
    Stream,
}

impl Command {
    /// The kind of reply to this command. An unknown command is expected to be refused: [`ReplyKind::OnePacket`].
    #[must_use]
    pub const fn reply_kind(self) -> ReplyKind {
        match self {
            Self::Quit | Self::StmtSendLongData | Self::StmtClose => ReplyKind::Silent,
            Self::Statistics => ReplyKind::Text,
            Self::Query | Self::ProcessInfo | Self::StmtExecute | Self::StmtBulkExecute => {
                ReplyKind::Results
            }
            Self::FieldList => ReplyKind::Fields,
            Self::StmtPrepare => ReplyKind::Prepared,
            Self::StmtFetch => ReplyKind::Rows,
            Self::ChangeUser => ReplyKind::Login,
            Self::BinlogDump | Self::BinlogDumpGtid | Self::Clone | Self::SubscribeGroup => {
                ReplyKind::Stream
            }
            Self::InitDb
            | Self::Refresh
            | Self::Shutdown
            | Self::ProcessKill
            | Self::Debug
            | Self::Ping
            | Self::RegisterReplica
            | Self::StmtReset
            | Self::SetOption
            | Self::ResetConnection
            | Self::Other(_) => ReplyKind::OnePacket,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_command_and_every_command_its_byte() {
        for byte in 0..=u8::MAX {
            assert_eq!(Command::from_byte(byte).byte(), byte);
        }
        assert_eq!(Command::from_byte(0x03), Command::Query);
        assert_eq!(Command::from_byte(0x99).reply_kind(), ReplyKind::OnePacket);
    }
}
