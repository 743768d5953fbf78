//! Each feed in each database: whether its SELECTs will be narrowed, and the obstacles.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CheckError, CheckedServer, databases};
use headwater_feed::FeedDefinition;
use headwater_feed::catalogue::{self, CatalogueRows, DatabaseCatalogue};
use headwater_feed::feed_proposal::{TableStatistics, statistics_query};
use headwater_feed::table_check::{FeedObstacle, check, tables};
use headwater_proxy::account::{
    AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount,
};
use headwater_proxy::binlog::obstacle_survey;
use headwater_proxy::binlog::server_facts::BinlogObstacle;
use headwater_proxy::catalogue::{ServiceError, query_all};
use headwater_proxy::feeds;
use headwater_server::config::ServeSettings;

/// Refers to what the report has already shown of the server.
pub const ABOVE: &str = "see above";

#[derive(Debug)]
pub(super) struct FeedFinding {
    pub(super) name: String,
    /// `None`: no database was found that has its messages.
    pub(super) database: Option<String>,
    /// Why it is not served: a line each, with the remedy.
    pub(super) obstacles: Vec<String>,
}

/// Every feed, in every database where the account sees its messages.
pub(super) async fn find_feeds(
    conn: &mut AccountConnection,
    settings: &ServeSettings,
    account: &UpstreamAccount,
    server: &CheckedServer,
) -> Result<Vec<FeedFinding>, CheckError> {
    let patience = Duration::from_millis(settings.limits.check_ms);
    let mut all = Vec::new();
    for definition in &settings.feeds {
        let query = feeds::databases_query(definition, settings.limits.databases);
        let databases = databases(conn, definition.database.as_ref(), query).await?;
        if databases.is_empty() {
            let table = &definition.message.table;
            all.push(FeedFinding {
                name: definition.name.clone(),
                database: None,
                obstacles: vec![format!(
                    "no database that the account may see has the table {table}"
                )],
            });
        }
        for database in databases {
            let in_the_way = feed_obstacles(account, definition, &database, server, patience).await;
            all.push(FeedFinding {
                name: definition.name.clone(),
                database: Some(database),
                obstacles: in_the_way,
            });
        }
    }
    Ok(all)
}

pub(super) async fn feed_obstacles(
    account: &UpstreamAccount,
    definition: &FeedDefinition,
    database: &str,
    server: &CheckedServer,
    patience: Duration,
) -> Vec<String> {
    let survey = survey_feed(account, definition, database, server);
    let survey = match tokio::time::timeout(patience, survey).await {
        Ok(survey) => survey.map_err(ServiceError::from),
        Err(_) => Err(ServiceError::TimedOut(patience)),
    };
    survey.unwrap_or_else(|error| vec![error.to_string()])
}

/// The obstacles, queried on a separate connection: one that hangs blocks no other.
async fn survey_feed(
    account: &UpstreamAccount,
    definition: &FeedDefinition,
    database: &str,
    server: &CheckedServer,
) -> Result<Vec<String>, AccountError> {
    let mut found = Vec::new();
    if server.is_log_unavailable() {
        found.push(format!("the server's log cannot be followed: {ABOVE}"));
    }
    if !server.session_variables.is_empty() {
        found.push(format!("settings with which sessions start: {ABOVE}"));
    }
    let mut conn = AccountConnection::open(account, ConnectionPurpose::Loads).await?;
    let answers = query_all(
        &mut conn,
        &catalogue::catalogue_queries(database, &tables(definition)),
    )
    .await?;
    let replies: Result<Vec<CatalogueRows>, _> = answers.into_iter().collect();
    let replies = match replies.map(<[CatalogueRows; 3]>::try_from) {
        Ok(Ok(replies)) => replies,
        Ok(Err(_)) => return Ok(found),
        Err(error) => {
            found.push(error.to_string());
            return Ok(found);
        }
    };
    match check(definition, &DatabaseCatalogue::read(database, &replies)) {
        Ok(types) => {
            let tables = feeds::row_source(definition, types, database);
            for obstacle in obstacle_survey::table_obstacles(&mut conn, tables).await? {
                found.push(match obstacle {
                    BinlogObstacle::Right(right) => right.grant_statement(&server.account),
                    obstacle => obstacle.to_string(),
                });
            }
        }
        Err(obstacles) => {
            let lacks_index = |one: &FeedObstacle| matches!(one, FeedObstacle::NoIndex { .. });
            let query = statistics_query(database, &tables(definition));
            let query = obstacles.iter().any(lacks_index).then_some(query);
            let statistics = query_all(&mut conn, query.as_slice()).await?;
            let statistics = statistics.into_iter().next().and_then(Result::ok);
            let rows = TableStatistics::read(&statistics.unwrap_or_default()).rows;
            found.extend(obstacles.iter().map(|obstacle| with_cost(obstacle, &rows)));
        }
    }
    Ok(found)
}

/// An obstacle, and how large an index would be that removes it.
fn with_cost(obstacle: &FeedObstacle, rows: &BTreeMap<String, u64>) -> String {
    let rows = match obstacle {
        FeedObstacle::NoIndex { table, .. } => rows.get(table).copied().unwrap_or_default(),
        _ => 0,
    };
    match rows {
        0 => obstacle.to_string(),
        rows => format!("{obstacle} (an index of about {rows} rows)"),
    }
}
