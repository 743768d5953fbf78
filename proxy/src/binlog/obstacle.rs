//! What can keep memory from being used: each obstacle by name, with the remedy.

use super::privilege::RequiredPrivilege;
use headwater_sql::quoted;

/// A setting or a privilege without which the log does not contain everything, or not in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinlogObstacle {
    /// A server variable has a value under which the log is not enough.
    #[error("{variable} = {value:?} on the server: {why}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What that means, and the required value.
        why: &'static str,
    },
    /// The service account lacks a privilege.
    #[error("the service account may not {}; a right that is missing: {}", .0.purpose(), .0.grant_target())]
    Right(RequiredPrivilege),
    /// The log omits databases.
    #[error("the server's log is filtered ({variable} = {value:?}): start it without that option")]
    Filter {
        /// The server's option.
        variable: &'static str,
        /// The databases.
        value: String,
    },
    /// The server applies another one's changes without logging them.
    #[error("the server is a replica and does not log what it applies: set {variable} = ON on it")]
    Replica {
        /// The server's option.
        variable: &'static str,
    },
    /// A foreign key changes rows of the tables by itself: MariaDB, and MySQL before 9.6, do not log that.
    #[error(
        "the foreign key `{constraint}` of `{table}` changes its rows by {rule}, which not every server logs: \
         make it one that restricts, and have the app change the rows"
    )]
    Cascade {
        /// The constraint's name.
        constraint: String,
        /// The table that it changes.
        table: String,
        /// `ON DELETE CASCADE`, for example.
        rule: String,
    },
    /// A log whose files have no number.
    #[error("the server's log file is named {0:?}, which has no number")]
    FileName(String),
}

impl BinlogObstacle {
    /// The statement that cures it, or the line for the server's options file, if any. `HOST` stands for the host, which only `headwater
    /// check` queries.
    pub(super) fn cure(&self, user: &str) -> Option<String> {
        match self {
            BinlogObstacle::Variable { variable, .. } => match *variable {
                "log_bin" => Some(
                    "log_bin under [mysqld] in the server's options file, then start it anew"
                        .to_owned(),
                ),
                "binlog_format" => Some("SET GLOBAL binlog_format = ROW;".to_owned()),
                "binlog_order_commits" => Some("SET GLOBAL binlog_order_commits = ON;".to_owned()),
                _ => None,
            },
            BinlogObstacle::Right(right) => {
                Some(right.grant_statement(&format!("{}@`HOST`", quoted(user))))
            }
            _ => None,
        }
    }
}
