//! Which transactions a server's log holds, as far as memory has to know it: where a file begins, and what the log held before a stream.

use std::sync::Arc;

use super::error::BinlogError;
use super::random::replica_id;
use super::rows::text;
use super::{Binlog, stream};
use crate::account::log::Request;
use crate::account::{AccountError, Conn, Purpose};
use crate::index::Position;
use crate::log::event::Keep;
use crate::log::events::begun;
use crate::log::following::Generation;
use crate::log::gtid::Gtids;

/// A file says in one of its first events which transactions are in the files before it.
const FIRST_EVENTS: usize = 8;
/// Where a file's events begin.
pub(super) const FIRST_OFFSET: u64 = 4;
/// Of an event so many bytes are read: a transaction's number stands among them.
const EVENT_BYTES: usize = 64;

/// The transactions in all files before this one; `None` where the file does not say.
pub(super) async fn before(conn: &mut Conn, file: &str) -> Result<Option<Gtids>, AccountError> {
    let name = file.replace('\'', "''");
    let query = format!("SHOW BINLOG EVENTS IN '{name}' LIMIT {FIRST_EVENTS}");
    let rows = conn.rows(&query).await?;
    let mut events = rows
        .iter()
        .filter_map(|row| Some((text(row, 2)?, text(row, 5)?)));
    let list = events.find(|(kind, _)| matches!(kind.as_str(), "Previous_gtids" | "Gtid_list"));
    Ok(list.and_then(|(_, list)| Gtids::parse(&list)))
}

/// Finds out what the log held before a stream that begins here, in the background: the file is read up to there, once.
pub(super) async fn learn(
    binlog: Arc<Binlog>,
    generation: Generation,
    file: String,
    start: Position,
) {
    match read(&binlog, &file, start).await {
        Ok(Some(base)) => {
            tracing::debug!("the log held these before the stream: {base}");
            binlog.state().following.learn_base(generation, base);
        }
        Ok(None) => tracing::debug!("{file} does not say which transactions came before it"),
        Err(error) => tracing::debug!(
            "memory will be filled anew when the server changes: what its log held before cannot be read ({error})"
        ),
    }
}

async fn read(binlog: &Binlog, file: &str, start: Position) -> Result<Option<Gtids>, BinlogError> {
    let failed = BinlogError::while_doing("the log cannot be read");
    let mut conn = Conn::open(&binlog.account, Purpose::History)
        .await
        .map_err(&failed)?;
    let Some(mut held) = before(&mut conn, file).await.map_err(&failed)? else {
        return Ok(None);
    };
    for statement in stream::session_statements(binlog.is_mariadb()) {
        conn.run(&statement).await.map_err(&failed)?;
    }
    let request = Request {
        replica: replica_id(),
        file,
        offset: FIRST_OFFSET,
        to_the_end: true,
        most: EVENT_BYTES,
    };
    let mut log = conn.follow(&request).await.map_err(&failed)?;
    let mut at = 0;
    while at < start.offset {
        let wants = |_, _: &[u8]| Keep::First(EVENT_BYTES);
        let Some(event) = log.next(wants).await.map_err(&failed)? else {
            return Ok(None);
        };
        // Offsets are told by 32 bits.
        if u64::from(event.log_pos) < at || event.is_artificial() {
            continue;
        }
        at = u64::from(event.log_pos);
        match begun(&event) {
            Some(Some(gtid)) if at < start.offset => held.add(&gtid),
            Some(_) => return Ok(None),
            None => {}
        }
    }
    Ok(Some(held))
}
