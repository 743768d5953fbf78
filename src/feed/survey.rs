//! Everything at once that keeps the feed from answering from memory. The feed itself stops at the first.

use futures_util::StreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{BinlogStreamRequest, Conn, Opts, OptsBuilder, Row};

use super::cascades;
use super::obstacles::{self, Obstacle, is_denial};
use super::place::Place;
use super::right::Right;
use super::rows::text;
use super::stream::replica_id;
use crate::timeline::definition::Definition;

/// Where a log's first event stands.
const FIRST_OFFSET: u64 = 4;

/// What is in the way on the server itself, and the rights for the whole server that the account lacks.
///
/// # Errors
/// When the server cannot be asked.
pub async fn server(account: OptsBuilder) -> Result<Vec<Obstacle>, mysql_async::Error> {
    let options: Opts = account.into();
    let mut conn = Conn::new(options.clone()).await?;
    let (facts, mut found) = obstacles::survey(&mut conn).await?;
    match conn.query_drop(super::fence::OPEN_TRANSACTIONS).await {
        Ok(()) => {}
        Err(error) if is_denial(&error) => found.push(Obstacle::Right(Right::OpenTransactions)),
        Err(error) => return Err(error),
    }
    let position: Option<Row> = conn.query_first(facts.status).await.unwrap_or_default();
    let file = position.as_ref().and_then(|row| text(row, 0));
    let offset = position.and_then(|row| row.get_opt::<u64, usize>(1)?.ok());
    if is_denied_the_log(conn, &file.unwrap_or_default(), offset).await {
        found.push(Obstacle::Right(Right::FollowLog));
    }
    Ok(found)
}

/// What is in the way of one timeline in one database: foreign keys that act, and tables that the account may not read.
///
/// # Errors
/// When the server cannot be asked.
pub async fn timeline(
    conn: &mut Conn,
    definition: &Definition,
    database: &str,
) -> Result<Vec<Obstacle>, mysql_async::Error> {
    let place = Place::new(0, 0, definition, database, 0);
    let mut found = Vec::new();
    for (table, query) in [
        (&definition.follower.table, place.follow_query(0, 1)),
        (&definition.message.table, place.newest_query(0, None, 1)),
    ] {
        match conn.query_drop(query).await {
            Err(error) if is_denial(&error) => found.push(Obstacle::Right(Right::Read {
                database: database.to_owned(),
                table: table.clone(),
            })),
            // What else is wrong with the table, the definition's check says.
            Ok(()) | Err(mysql_async::Error::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    match cascades::of(&place, conn).await {
        Ok(keys) => found.extend(keys),
        Err(error) if is_denial(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(found)
}

/// Asks to be sent the log, as the feed does. Rights are looked at first: whatever else fails, they are there.
async fn is_denied_the_log(conn: Conn, file: &str, offset: Option<u64>) -> bool {
    let request = BinlogStreamRequest::new(replica_id())
        .with_non_blocking()
        .with_filename(file.as_bytes())
        .with_pos(offset.unwrap_or(FIRST_OFFSET));
    match conn.get_binlog_stream(request).await {
        Ok(mut stream) => matches!(stream.next().await, Some(Err(error)) if is_denial(&error)),
        Err(error) => is_denial(&error),
    }
}
