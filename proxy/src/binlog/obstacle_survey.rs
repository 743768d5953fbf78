//! Surveys everything that keeps calls from being served from memory. The stream itself stops at the first obstacle.

use super::foreign_keys;
use super::history::FIRST_OFFSET;
use super::privilege::RequiredPrivilege;
use super::replica_id;
use super::row_decoding::text;
use super::server_facts::{self, BinlogObstacle, is_denial};
use crate::account::binlog_stream::BinlogDumpRequest;
use crate::account::{AccountConnection, AccountError, ConnectionPurpose, UpstreamAccount};
use headwater_log::event_reader::BodyRetention;
use headwater_log::timeline_tables::{TimelineSchema, TimelineTables};
use headwater_timeline::definition::TimelineDefinition;
use headwater_timeline::index::TimelineId;

/// The first event describes the log itself.
const MOST_BYTES: usize = 1024 * 1024;

/// Obstacles on the server itself, and the global privileges that the account lacks.
///
/// # Errors
/// When the server cannot be queried.
pub async fn server_obstacles(
    account: &UpstreamAccount,
) -> Result<Vec<BinlogObstacle>, AccountError> {
    let mut conn = AccountConnection::open(account, ConnectionPurpose::Log).await?;
    let (facts, mut obstacles) = server_facts::survey_server(&mut conn).await?;
    match conn.run(super::commit_fence::OPEN_TRANSACTIONS).await {
        Ok(()) => {}
        Err(error) if is_denial(&error) => {
            obstacles.push(BinlogObstacle::Right(RequiredPrivilege::OpenTransactions))
        }
        Err(error) => return Err(error),
    }
    let position = conn.rows(facts.status).await.ok();
    let row = position.as_ref().and_then(|rows| rows.row(0));
    let file = row.and_then(|row| text(row, 0));
    let offset = row.and_then(|row| row.u64(1));
    if is_denied_the_log(conn, facts.mariadb, &file.unwrap_or_default(), offset).await {
        obstacles.push(BinlogObstacle::Right(RequiredPrivilege::FollowLog));
    }
    Ok(obstacles)
}

/// Obstacles of one timeline in one database: cascading foreign keys, and tables that the account may not read.
///
/// # Errors
/// When the server cannot be queried.
pub async fn timeline_obstacles(
    conn: &mut AccountConnection,
    definition: &TimelineDefinition,
    database: &str,
) -> Result<Vec<BinlogObstacle>, AccountError> {
    let tables = TimelineTables::of(TimelineId(0), definition, database);
    table_obstacles(conn, tables).await
}

/// The same for tables that belong to no definition.
///
/// # Errors
/// When the server cannot be queried.
pub async fn table_obstacles(
    conn: &mut AccountConnection,
    tables: TimelineTables,
) -> Result<Vec<BinlogObstacle>, AccountError> {
    let TimelineSchema {
        message, follower, ..
    } = &tables.schema;
    let follows = follower.as_ref().map(|follower| &follower.table);
    let mut obstacles = Vec::new();
    for (table, query) in [
        (follows, tables.reader_follows_query(0, 1)),
        (
            Some(&message.table),
            Some(tables.newest_messages_query(0, None, 1)),
        ),
    ] {
        let (Some(table), Some(query)) = (table, query) else {
            continue;
        };
        match conn.run(&query).await {
            Err(error) if is_denial(&error) => {
                obstacles.push(BinlogObstacle::Right(RequiredPrivilege::Read {
                    database: tables.database.clone(),
                    table: table.clone(),
                }))
            }
            // The definition's check reports other faults of the table.
            Ok(()) | Err(AccountError::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    match foreign_keys::load_table_definitions(tables.show_create_queries(), conn).await {
        Ok(created) => obstacles.extend(foreign_keys::cascading_keys(&created)),
        Err(error) if is_denial(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(obstacles)
}

/// Requests the log, as `stream` does. The server checks privileges first, so any other error means that they are there.
async fn is_denied_the_log(
    mut conn: AccountConnection,
    mariadb: bool,
    file: &str,
    offset: Option<u64>,
) -> bool {
    let request = BinlogDumpRequest {
        replica: replica_id::draw_unused(&mut conn, mariadb).await,
        file,
        offset: offset.unwrap_or(FIRST_OFFSET),
        to_the_end: true,
        max_event_bytes: MOST_BYTES,
    };
    let refused = match conn.follow(&request).await {
        Ok(mut log) => log.next(|_, _: &[u8]| BodyRetention::First(0)).await.err(),
        Err(error) => Some(error),
    };
    refused.is_some_and(|error| is_denial(&error))
}
