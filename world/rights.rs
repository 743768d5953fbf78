//! Rights of the service account, which are taken from it for a while and given back.

use crate::answers::Reply;

/// A right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// SELECT.
    Rows,
    /// PROCESS.
    Transactions,
    /// BINLOG MONITOR.
    LogEnd,
    /// REPLICATION SLAVE.
    Stream,
}

impl Right {
    pub(crate) const ALL: [Right; 4] = [
        Right::Rows,
        Right::Transactions,
        Right::LogEnd,
        Right::Stream,
    ];

    /// As the server lists it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Rows => "SELECT",
            Right::Transactions => "PROCESS",
            Right::LogEnd => "BINLOG MONITOR",
            Right::Stream => "REPLICATION SLAVE",
        }
    }

    /// The one that a question takes which is not about rows of tables.
    pub(crate) fn of(words: &[&str]) -> Option<Right> {
        match words {
            ["SELECT", "trx_id,", ..] => Some(Right::Transactions),
            ["SHOW", "MASTER", "STATUS"] | ["SHOW", "BINARY", "LOGS"] => Some(Right::LogEnd),
            _ => None,
        }
    }

    /// What is told to who lacks it.
    pub(crate) fn denial(self) -> Reply {
        match self {
            Right::Rows => {
                let message =
                    "SELECT command denied to user 'headwater'@'app' for table `world`.`message`";
                Reply::Error(1142, "42000", message.to_owned())
            }
            _ => {
                let name = self.name();
                let message = format!(
                    "Access denied; you need (at least one of) the {name} privilege(s) for this operation"
                );
                Reply::Error(1227, "42000", message)
            }
        }
    }
}
