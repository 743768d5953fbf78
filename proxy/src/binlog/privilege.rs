//! The privileges that the service account needs, each with its statement: the only list of them.

use headwater_sql::quoted;
use headwater_timeline::check::ServerProduct;

/// A privilege of the service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequiredPrivilege {
    /// To receive the log, as a replica does.
    FollowLog,
    /// To query the end of the log.
    LogPosition,
    /// To list open transactions: without it, memory waits for the next change of the tables.
    OpenTransactions,
    /// To see the bodies of procedures that another account defined; the grant differs by product.
    Bodies(ServerProduct),
    /// To see the members of a replication group (MySQL), where there are several servers.
    GroupMembers,
    /// To see which servers a server replicates from, where there are several; the grant differs by product.
    Sources(ServerProduct),
    /// To read a table.
    Read {
        /// Its database.
        database: String,
        /// Its name.
        table: String,
    },
    /// To run a procedure, to compare answers with its own (`shadow.rate`).
    Execute {
        /// Its database.
        database: String,
        /// Its name.
        procedure: String,
    },
}

impl RequiredPrivilege {
    /// What the account cannot do without it.
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

    /// The GRANT's target: `SELECT ON ...`. Both servers accept `REPLICATION CLIENT`; MariaDB lists it as `BINLOG MONITOR`.
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

    /// The GRANT statement for an account, which is given in the server's notation.
    #[must_use]
    pub fn grant_statement(&self, account: &str) -> String {
        format!("GRANT {} TO {account};", self.grant_target())
    }

    /// The same statement, with what the account cannot do meanwhile.
    #[must_use]
    pub fn missing_line(&self, account: &str) -> String {
        let (statement, purpose) = (self.grant_statement(account), self.purpose());
        format!("{statement}  -- missing: it may not {purpose}")
    }
}
