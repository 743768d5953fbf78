//! Rights of the service account, revoked for a while and granted again.

use crate::answers::ModelReply;

/// A right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccountRight {
    /// SELECT.
    Rows,
    /// PROCESS.
    Transactions,
    /// BINLOG MONITOR.
    LogEnd,
    /// REPLICATION SLAVE.
    Stream,
}

impl AccountRight {
    pub(crate) const ALL: [AccountRight; 4] = [
        AccountRight::Rows,
        AccountRight::Transactions,
        AccountRight::LogEnd,
        AccountRight::Stream,
    ];

    /// As the server lists it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AccountRight::Rows => "SELECT",
            AccountRight::Transactions => "PROCESS",
            AccountRight::LogEnd => "BINLOG MONITOR",
            AccountRight::Stream => "REPLICATION SLAVE",
        }
    }

    /// The right that a query needs which does not read rows of tables.
    pub(crate) fn of(words: &[&str]) -> Option<AccountRight> {
        match words {
            ["SELECT", "trx_id,", ..] => Some(AccountRight::Transactions),
            ["SHOW", "MASTER", "STATUS"] | ["SHOW", "BINARY", "LOGS"] => Some(AccountRight::LogEnd),
            _ => None,
        }
    }

    /// The error without the right.
    pub(crate) fn denial(self) -> ModelReply {
        match self {
            AccountRight::Rows => {
                let message =
                    "SELECT command denied to user 'headwater'@'app' for table `world`.`message`";
                ModelReply::Error(1142, "42000", message.to_owned())
            }
            _ => {
                let name = self.name();
                let message = format!(
                    "Access denied; you need (at least one of) the {name} privilege(s) for this operation"
                );
                ModelReply::Error(1227, "42000", message)
            }
        }
    }
}
