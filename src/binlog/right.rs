//! The rights that the service account needs, each with its statement: the one list of them.

use crate::sql::quoted;
use crate::timeline::check::Product;

/// A right of the service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    /// To be sent the log, as a replica is.
    FollowLog,
    /// To ask where the log ends.
    LogPosition,
    /// To list open transactions: without it, memory waits for the next change of the tables.
    OpenTransactions,
    /// To see the bodies of procedures that another account defined: each product has its own.
    Bodies(Product),
    /// To see the members of a replication group (MySQL), where there are several servers.
    GroupMembers,
    /// To see whom a server replicates, where there are several: each product has its own.
    Sources(Product),
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

impl Right {
    /// What the account may not do without it.
    #[must_use]
    pub fn purpose(&self) -> &'static str {
        match self {
            Right::FollowLog => "follow the log",
            Right::LogPosition => "ask for the position of the log",
            Right::OpenTransactions => "list open transactions",
            Right::Bodies(_) => "see the bodies of procedures",
            Right::GroupMembers => "see whether the server has lost its replication group",
            Right::Sources(_) => "see whom the server replicates",
            Right::Read { .. } => "read the table",
            Right::Execute { .. } => "run the procedure, to compare answers (shadow.rate)",
        }
    }

    /// What a GRANT of it names: `SELECT ON ...`. Both servers take `REPLICATION CLIENT`; MariaDB lists it
    /// as `BINLOG MONITOR`.
    #[must_use]
    pub fn named(&self) -> String {
        match self {
            Right::FollowLog => "REPLICATION SLAVE ON *.*".into(),
            Right::LogPosition => "REPLICATION CLIENT ON *.*".into(),
            Right::OpenTransactions => "PROCESS ON *.*".into(),
            Right::Bodies(Product::Mysql) => "SHOW_ROUTINE ON *.*".into(),
            Right::Bodies(Product::Mariadb) => "SELECT ON mysql.proc".into(),
            Right::GroupMembers => "SELECT ON performance_schema.replication_group_members".into(),
            Right::Sources(Product::Mysql) => "REPLICATION CLIENT ON *.*".into(),
            Right::Sources(Product::Mariadb) => "REPLICA MONITOR ON *.*".into(),
            Right::Read { database, table } => {
                format!("SELECT ON {}.{}", quoted(database), quoted(table))
            }
            Right::Execute {
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
    pub fn statement(&self, account: &str) -> String {
        format!("GRANT {} TO {account};", self.named())
    }

    /// The same, and what the account may not do so long as it lacks it.
    #[must_use]
    pub fn missing(&self, account: &str) -> String {
        let (statement, purpose) = (self.statement(account), self.purpose());
        format!("{statement}  -- missing: it may not {purpose}")
    }
}
