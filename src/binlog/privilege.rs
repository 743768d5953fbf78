//! The rights that the service account needs, each with its statement: the one list of them.

use crate::sql::quoted;
use crate::timeline::check::ServerProduct;

/// A right of the service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequiredPrivilege {
    /// To be sent the log, as a replica is.
    FollowLog,
    /// To ask where the log ends.
    LogPosition,
    /// To list open transactions: without it, memory waits for the next change of the tables.
    OpenTransactions,
    /// To see the bodies of procedures that another account defined: each product has its own.
    Bodies(ServerProduct),
    /// To see the members of a replication group (MySQL), where there are several servers.
    GroupMembers,
    /// To see whom a server replicates, where there are several: each product has its own.
    Sources(ServerProduct),
    /// To read a table.
    Read {
        /// Its database.
        database: String,
        /// Its name.
        table: String,
    },
    /// To run a procedure, where answers are compared with its own (`shadow.rate`).
    Execute {
        /// Its database.
        database: String,
        /// Its name.
        procedure: String,
    },
}

impl RequiredPrivilege {
    /// What the account may not do without it.
    #[must_use]
    pub fn purpose(&self) -> &'static str {
        match self {
            RequiredPrivilege::FollowLog => "follow the log",
            RequiredPrivilege::LogPosition => "ask for the position of the log",
            RequiredPrivilege::OpenTransactions => "list open transactions",
            RequiredPrivilege::Bodies(_) => "see the bodies of procedures",
            RequiredPrivilege::GroupMembers => {
                "see whether the server has lost its replication group"
            }
            RequiredPrivilege::Sources(_) => "see whom the server replicates",
            RequiredPrivilege::Read { .. } => "read the table",
            RequiredPrivilege::Execute { .. } => {
                "run the procedure, to compare answers (shadow.rate)"
            }
        }
    }

    /// What a GRANT of it names: `SELECT ON ...`. Both servers take `REPLICATION CLIENT`; MariaDB lists it
    /// as `BINLOG MONITOR`.
    #[must_use]
    pub fn grant_target(&self) -> String {
        match self {
            RequiredPrivilege::FollowLog => "REPLICATION SLAVE ON *.*".into(),
            RequiredPrivilege::LogPosition => "REPLICATION CLIENT ON *.*".into(),
            RequiredPrivilege::OpenTransactions => "PROCESS ON *.*".into(),
            RequiredPrivilege::Bodies(ServerProduct::Mysql) => "SHOW_ROUTINE ON *.*".into(),
            RequiredPrivilege::Bodies(ServerProduct::Mariadb) => "SELECT ON mysql.proc".into(),
            RequiredPrivilege::GroupMembers => {
                "SELECT ON performance_schema.replication_group_members".into()
            }
            RequiredPrivilege::Sources(ServerProduct::Mysql) => "REPLICATION CLIENT ON *.*".into(),
            RequiredPrivilege::Sources(ServerProduct::Mariadb) => "REPLICA MONITOR ON *.*".into(),
            RequiredPrivilege::Read { database, table } => {
                format!("SELECT ON {}.{}", quoted(database), quoted(table))
            }
            RequiredPrivilege::Execute {
                database,
                procedure,
            } => format!(
                "EXECUTE ON PROCEDURE {}.{}",
                quoted(database),
                quoted(procedure)
            ),
        }
    }

    /// The statement that gives it to an account, which is written as the server writes it.
    #[must_use]
    pub fn grant_statement(&self, account: &str) -> String {
        format!("GRANT {} TO {account};", self.grant_target())
    }

    /// The same, and what the account may not do so long as it lacks it.
    #[must_use]
    pub fn missing_line(&self, account: &str) -> String {
        let (statement, purpose) = (self.grant_statement(account), self.purpose());
        format!("{statement}  -- missing: it may not {purpose}")
    }
}
