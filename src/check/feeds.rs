//! Each feed in each database: whether its SELECTs will be narrowed, and what is in the way.

use std::time::Duration;

use super::{CheckError, Server, databases};
use crate::account::{Account, AccountError, Conn, Purpose};
use crate::binlog::obstacles::Obstacle;
use crate::binlog::survey;
use crate::catalogue::{ServiceError, ask};
use crate::config::Settings;
use crate::feed::FeedDefinition;
use crate::feed::check::{check, tables};
use crate::feed::facts::{self, Tables, Told};
use crate::feeds;

/// What ends a line on what the report has said of the server.
pub(crate) const ABOVE: &str = "see above";

/// A feed in a database, or in none.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    /// `None` where no database was found that has its messages.
    pub(super) database: Option<String>,
    /// Why it is not served: a line each, with what mends it.
    pub(super) in_the_way: Vec<String>,
}

/// Every feed, in every database where the account sees its messages.
pub(super) async fn all(
    conn: &mut Conn,
    settings: &Settings,
    account: &Account,
    server: &Server,
) -> Result<Vec<Found>, CheckError> {
    let patience = Duration::from_millis(settings.limits.check_ms);
    let mut all = Vec::new();
    for definition in &settings.feeds {
        let query = feeds::databases_query(definition, settings.limits.databases);
        let databases = databases(conn, definition.database.as_ref(), query).await?;
        if databases.is_empty() {
            let table = &definition.message.table;
            all.push(Found {
                name: definition.name.clone(),
                database: None,
                in_the_way: vec![format!(
                    "no database that the account may see has the table {table}"
                )],
            });
        }
        for database in databases {
            let in_the_way = in_the_way(account, definition, &database, server, patience).await;
            all.push(Found {
                name: definition.name.clone(),
                database: Some(database),
                in_the_way,
            });
        }
    }
    Ok(all)
}

/// What is in the way of a feed in a database: a line each.
pub(super) async fn in_the_way(
    account: &Account,
    definition: &FeedDefinition,
    database: &str,
    server: &Server,
    patience: Duration,
) -> Vec<String> {
    let looked = look(account, definition, database, server);
    let looked = match tokio::time::timeout(patience, looked).await {
        Ok(looked) => looked.map_err(ServiceError::from),
        Err(_) => Err(ServiceError::Slow(patience)),
    };
    looked.unwrap_or_else(|error| vec![error.to_string()])
}

/// What is in the way, asked on a connection of its own: one that is held up holds up no other.
async fn look(
    account: &Account,
    definition: &FeedDefinition,
    database: &str,
    server: &Server,
) -> Result<Vec<String>, AccountError> {
    let mut found = Vec::new();
    if server.hides_the_log() {
        found.push(format!("the server's log cannot be followed: {ABOVE}"));
    }
    if !server.sessions.is_empty() {
        found.push(format!("settings with which sessions start: {ABOVE}"));
    }
    let mut conn = Conn::open(account, Purpose::Loads).await?;
    let answers = ask(&mut conn, &facts::queries(database, &tables(definition))).await?;
    let told: Result<Vec<Told>, _> = answers.into_iter().collect();
    let told = match told.map(<[Told; 3]>::try_from) {
        Ok(Ok(told)) => told,
        Ok(Err(_)) => return Ok(found),
        Err(error) => {
            found.push(error.to_string());
            return Ok(found);
        }
    };
    match check(definition, &Tables::read(database, &told)) {
        Ok(types) => {
            let tables = feeds::rows_of(definition, types, database);
            for obstacle in survey::tables_of(&mut conn, tables).await? {
                found.push(match obstacle {
                    Obstacle::Right(right) => right.statement(&server.account),
                    obstacle => obstacle.to_string(),
                });
            }
        }
        Err(obstacles) => found.extend(obstacles.iter().map(ToString::to_string)),
    }
    Ok(found)
}
