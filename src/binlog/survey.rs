//! Everything at once that keeps calls from being answered from memory. What follows the log stops at the first.

use super::cascades;
use super::history::FIRST_OFFSET;
use super::obstacles::{self, Obstacle, is_denial};
use super::replica;
use super::right::Right;
use super::rows::text;
use crate::account::log::Request;
use crate::account::{Account, AccountError, Conn, Purpose};
use crate::index::PlaceId;
use crate::log::event::Keep;
use crate::log::tables::{Names, Tables};
use crate::timeline::definition::Definition;

/// The first event tells of the log itself.
const MOST_BYTES: usize = 1024 * 1024;

/// What is in the way on the server itself, and the rights for the whole server that the account lacks.
///
/// # Errors
/// When the server cannot be asked.
pub async fn server(account: &Account) -> Result<Vec<Obstacle>, AccountError> {
    let mut conn = Conn::open(account, Purpose::Log).await?;
    let (facts, mut found) = obstacles::survey(&mut conn).await?;
    match conn.run(super::fence::OPEN_TRANSACTIONS).await {
        Ok(()) => {}
        Err(error) if is_denial(&error) => found.push(Obstacle::Right(Right::OpenTransactions)),
        Err(error) => return Err(error),
    }
    let position = conn.rows(facts.status).await.ok();
    let row = position.as_ref().and_then(|rows| rows.row(0));
    let file = row.and_then(|row| text(row, 0));
    let offset = row.and_then(|row| row.u64(1));
    if is_denied_the_log(conn, facts.mariadb, &file.unwrap_or_default(), offset).await {
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
) -> Result<Vec<Obstacle>, AccountError> {
    let tables = Tables::of(PlaceId(0), definition, database);
    tables_of(conn, tables).await
}

/// The same of tables that belong to no definition.
///
/// # Errors
/// When the server cannot be asked.
pub async fn tables_of(conn: &mut Conn, tables: Tables) -> Result<Vec<Obstacle>, AccountError> {
    let Names {
        message, follower, ..
    } = &tables.names;
    let follows = follower.as_ref().map(|follower| &follower.table);
    let mut found = Vec::new();
    for (table, query) in [
        (follows, tables.follow_query(0, 1)),
        (Some(&message.table), Some(tables.newest_query(0, None, 1))),
    ] {
        let (Some(table), Some(query)) = (table, query) else {
            continue;
        };
        match conn.run(&query).await {
            Err(error) if is_denial(&error) => found.push(Obstacle::Right(Right::Read {
                database: tables.database.clone(),
                table: table.clone(),
            })),
            // What else is wrong with the table, the definition's check says.
            Ok(()) | Err(AccountError::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    match cascades::created(tables.show_create_queries(), conn).await {
        Ok(created) => found.extend(cascades::of(&created)),
        Err(error) if is_denial(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(found)
}

/// Asks to be sent the log, as `stream` does. Rights are looked at first: whatever else fails, they are there.
async fn is_denied_the_log(mut conn: Conn, mariadb: bool, file: &str, offset: Option<u64>) -> bool {
    let request = Request {
        replica: replica::another(&mut conn, mariadb).await,
        file,
        offset: offset.unwrap_or(FIRST_OFFSET),
        to_the_end: true,
        most: MOST_BYTES,
    };
    let refused = match conn.follow(&request).await {
        Ok(mut log) => log.next(|_, _: &[u8]| Keep::First(0)).await.err(),
        Err(error) => Some(error),
    };
    refused.is_some_and(|error| is_denial(&error))
}
