//! What on a server stands in the way of an index that is never stale: settings and rights, each by name.

use std::collections::HashMap;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::control::first_text;
use super::error::FeedError;
use super::rows::{text, texts};
use crate::session::probe::server_identity;

/// A setting or a right without which the log does not tell everything, or not in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
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
    #[error("the service account may not {what}; a right that is missing: {right}")]
    Right {
        /// What it may not do.
        what: &'static str,
        /// The right's name in GRANT.
        right: &'static str,
    },
    /// The log leaves databases out.
    #[error("the server's log is filtered ({variable} = {value:?})")]
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
    /// A foreign key changes rows of the tables without telling the log.
    #[error(
        "the foreign key `{constraint}` of `{table}` changes its rows by {rule}, of which the log does not tell"
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

/// What is known of the server that the feed follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerFacts {
    pub(super) mariadb: bool,
    /// Which server it is: see [`server_identity`].
    pub(super) identity: String,
    pub(super) caseless: bool,
    /// The statement that tells the position.
    pub(super) status: &'static str,
}

/// Variables, the values under which the log tells everything, and what is wrong with others. A variable that a server
/// does not have stands in nobody's way.
const NEEDED: [(&str, &[&str], &str); 5] = [
    (
        "log_bin",
        &["1", "ON"],
        "there is no log to follow; start it with log_bin",
    ),
    (
        "binlog_format",
        &["ROW"],
        "changes are logged as statements; it has to be ROW",
    ),
    (
        "binlog_order_commits",
        &["1", "ON"],
        "transactions become readable out of the log's order; it has to be ON",
    ),
    (
        "wsrep_on",
        &["0", "OFF"],
        "a Galera node commits out of its log's order",
    ),
    (
        "log_bin_compress",
        &["0", "OFF"],
        "compressed events of MariaDB are not read; it has to be OFF",
    ),
];

const ACCESS_DENIED: [u16; 3] = [1044, 1045, 1227];
const SYNTAX: u16 = 1064;

/// Asks the server for everything that could stand in the way of following its log, but for single tables.
pub(super) async fn server(conn: &mut Conn) -> Result<ServerFacts, FeedError> {
    let failed = FeedError::while_doing("the server's settings cannot be read");
    let version = first_text(conn, "SELECT VERSION()")
        .await
        .map_err(&failed)?;
    let mariadb = version.contains("MariaDB");
    let names: Vec<String> = NEEDED
        .iter()
        .map(|(name, ..)| *name)
        .chain([
            "lower_case_table_names",
            "log_slave_updates",
            "log_replica_updates",
        ])
        .map(|name| format!("'{name}'"))
        .collect();
    let rows: Vec<Row> = conn
        .query(format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})",
            names.join(",")
        ))
        .await
        .map_err(&failed)?;
    let variables: HashMap<String, String> = rows
        .iter()
        .filter_map(texts)
        .map(|[name, value]| (name, value))
        .collect();
    judge(&variables)?;
    let running: Option<Row> = conn
        .query_first("SHOW GLOBAL STATUS LIKE 'Slaves_running'")
        .await
        .map_err(&failed)?;
    let running = running.and_then(|row| text(&row, 1));
    let replicates = running.is_some_and(|count| count != "0");
    let off = |variable| variables.get(variable).is_some_and(|value| value == "OFF");
    for (variable, unlogged) in [
        ("log_slave_updates", replicates && off("log_slave_updates")),
        ("log_replica_updates", off("log_replica_updates")),
    ] {
        if unlogged {
            return Err(Obstacle::Replica { variable }.into());
        }
    }
    let identity = identity(conn, mariadb).await.map_err(&failed)?;
    let status = status_statement(conn).await?;
    Ok(ServerFacts {
        mariadb,
        identity,
        caseless: variables
            .get("lower_case_table_names")
            .is_some_and(|value| value != "0"),
        status,
    })
}

/// Which server a connection leads to.
pub(super) async fn identity(conn: &mut Conn, mariadb: bool) -> Result<String, mysql_async::Error> {
    first_text(conn, &format!("SELECT {}", server_identity(mariadb))).await
}

fn judge(variables: &HashMap<String, String>) -> Result<(), Obstacle> {
    for (variable, good, why) in NEEDED {
        if let Some(value) = variables.get(variable)
            && !good.iter().any(|good| good.eq_ignore_ascii_case(value))
        {
            return Err(Obstacle::Variable {
                variable,
                value: value.clone(),
                why,
            });
        }
    }
    Ok(())
}

/// Since MySQL 8.2 the statement has another name.
async fn status_statement(conn: &mut Conn) -> Result<&'static str, FeedError> {
    for statement in ["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"] {
        match conn.query_first::<Row, _>(statement).await {
            Ok(row) => {
                let filter = |at| row.as_ref().and_then(|row| text(row, at));
                for (at, variable) in [(2, "binlog_do_db"), (3, "binlog_ignore_db")] {
                    if let Some(value) = filter(at).filter(|value| !value.is_empty()) {
                        return Err(Obstacle::Filter { variable, value }.into());
                    }
                }
                return Ok(statement);
            }
            Err(mysql_async::Error::Server(error)) if error.code == SYNTAX => {}
            Err(mysql_async::Error::Server(error)) if ACCESS_DENIED.contains(&error.code) => {
                return Err(Obstacle::Right {
                    what: "ask for the position of the log",
                    right: "REPLICATION CLIENT (BINLOG MONITOR on MariaDB)",
                }
                .into());
            }
            Err(error) => {
                return Err(FeedError::Server {
                    doing: "the position of the log cannot be read",
                    source: error,
                });
            }
        }
    }
    Ok("SHOW MASTER STATUS")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_logs_statements_is_named() {
        let variables = HashMap::from([
            ("log_bin".to_owned(), "ON".to_owned()),
            ("binlog_format".to_owned(), "MIXED".to_owned()),
        ]);
        let said = judge(&variables).unwrap_err().to_string();
        assert!(
            said.contains("binlog_format") && said.contains("MIXED") && said.contains("ROW"),
            "{said}"
        );
    }

    #[test]
    fn a_variable_that_is_not_there_is_no_obstacle() {
        judge(&HashMap::from([("log_bin".to_owned(), "1".to_owned())])).unwrap();
    }
}
