//! What may stand in the way of memory: each by its name, with the way out.

use super::privilege::RequiredPrivilege;
use crate::sql::quoted;

/// A setting or a right without which the log does not tell everything, or not in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinlogObstacle {
    /// A variable of the server has a value under which the log is not enough.
    #[error("{variable} = {value:?} on the server: {why}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// What it is set to.
        value: String,
        /// What that means, and what it should be.
        why: &'static str,
    },
    /// The service account lacks a right.
    #[error("the service account may not {}; a right that is missing: {}", .0.purpose(), .0.grant_target())]
    Right(RequiredPrivilege),
    /// The log leaves databases out.
    #[error("the server's log is filtered ({variable} = {value:?}): start it without that option")]
    Filter {
        /// The server's option.
        variable: &'static str,
        /// The databases.
        value: String,
    },
    /// The server applies changes of another one without logging them.
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
    /// A log whose files cannot be told apart by number.
    #[error("the server's log file is named {0:?}, which has no number")]
    FileName(String),
}

impl BinlogObstacle {
    /// The statement that cures it, or the line of the server's options file, where one does. `HOST` stands for what only `headwater check`
    /// asks the server.
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
