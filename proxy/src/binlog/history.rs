//! Which transactions a server's log holds, as far as memory needs it: those before a file, and those before a stream.

use std::sync::Arc;
use std::time::Duration;

use super::error::BinlogError;
use super::row_decoding::text;
use super::{Binlog, replica_id, stream};
use crate::account::binlog_stream::BinlogDumpRequest;
use crate::account::{AccountConnection, AccountError, ConnectionPurpose};
use headwater_log::assembler::transaction_start;
use headwater_log::event_reader::{BodyRetention, TRANSACTION_PAYLOAD};
use headwater_log::gtid::{CommittedGtid, GtidSet};
use headwater_log::replication_state::StreamGeneration;
use headwater_timeline::index::BinlogPosition;

/// One of a file's first events lists the transactions in the files before it.
const FIRST_EVENTS: usize = 8;
/// Pause between attempts, and their number.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
const TRIES: usize = 30;
/// The most files read back for the last transaction.
const MOST_FILES: usize = 4;
/// Offset of a file's first event.
pub(super) const FIRST_OFFSET: u64 = 4;
/// Bytes retained of an event: a transaction's GTID lies within them.
const EVENT_BYTES: usize = 64;

/// The transactions in all files before this one; `None` if the file does not list them.
pub(super) async fn previous_gtids(
    conn: &mut AccountConnection,
    file: &str,
) -> Result<Option<GtidSet>, AccountError> {
    let name = file.replace('\'', "''");
    let query = format!("SHOW BINLOG EVENTS IN '{name}' LIMIT {FIRST_EVENTS}");
    let rows = conn.rows(&query).await?;
    let mut events = rows
        .iter()
        .filter_map(|row| Some((text(row, 2)?, text(row, 5)?)));
    let list = events.find(|(kind, _)| matches!(kind.as_str(), "Previous_gtids" | "Gtid_list"));
    Ok(list.and_then(|(_, list)| GtidSet::parse(&list)))
}

/// Reads in the background what the log held before a stream that begins at `start`: its file is read up to there, once.
pub(super) async fn load_base_gtids(
    binlog: Arc<Binlog>,
    generation: StreamGeneration,
    base: String,
    start: BinlogPosition,
) {
    for _ in 0..TRIES {
        match read_base_gtids(&binlog, &base, start).await {
            Ok(Some(held)) => {
                tracing::debug!("the log held these before the stream: {}", held.0);
                binlog.state().replication.set_base(generation, held);
                return;
            }
            Ok(None) => {
                tracing::debug!("the log does not say which transactions it holds");
                return;
            }
            Err(error) => tracing::debug!("what the log held before cannot be read: {error}"),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// All transactions up to `start`, and the last of them, which may be in an older file.
async fn read_base_gtids(
    binlog: &Binlog,
    base: &str,
    start: BinlogPosition,
) -> Result<Option<(GtidSet, CommittedGtid)>, BinlogError> {
    let mut all: Option<GtidSet> = None;
    let mut end = start;
    for _ in 0..MOST_FILES {
        let file = end.file_name(base);
        let Some((held, last)) = scan_file(binlog, &file, end.offset).await? else {
            return Ok(None);
        };
        let held = all.get_or_insert(held);
        if let Some(last) = last {
            return Ok(Some((std::mem::take(held), last)));
        }
        end = BinlogPosition {
            file: end.file.saturating_sub(1),
            offset: u64::MAX,
        };
    }
    Ok(None)
}

/// All transactions up to an offset of a file, or to its end, and the last one in it.
async fn scan_file(
    binlog: &Binlog,
    file: &str,
    upto: u64,
) -> Result<Option<(GtidSet, Option<CommittedGtid>)>, BinlogError> {
    let failed = BinlogError::while_doing("the log cannot be read");
    let mut conn = AccountConnection::open(&binlog.account, ConnectionPurpose::History)
        .await
        .map_err(&failed)?;
    // One address may lead to several servers.
    if !binlog
        .leads_to_followed_server(&mut conn)
        .await
        .map_err(&failed)?
    {
        return Ok(None);
    }
    let Some(mut held) = previous_gtids(&mut conn, file).await.map_err(&failed)? else {
        return Ok(None);
    };
    let mariadb = binlog.is_mariadb();
    for statement in stream::session_statements(mariadb) {
        conn.run(&statement).await.map_err(&failed)?;
    }
    let request = BinlogDumpRequest {
        replica: replica_id::draw_unused(&mut conn, mariadb).await,
        file,
        offset: FIRST_OFFSET,
        to_the_end: true,
        max_event_bytes: EVENT_BYTES,
    };
    let mut log = conn.follow(&request).await.map_err(&failed)?;
    let (mut at, mut last, mut unpacks) = (0, None, false);
    while at < upto {
        let retention = |_, _: &[u8]| BodyRetention::First(EVENT_BYTES);
        let Some(event) = log.next(retention).await.map_err(&failed)? else {
            break;
        };
        let begun = transaction_start(&event);
        unpacks &= begun.is_none();
        // The events within a compressed transaction have no positions of their own.
        if event.is_artificial() || unpacks {
            continue;
        }
        unpacks = event.event_type == TRANSACTION_PAYLOAD;
        // Offsets have 32 bits and wrap. The next file starts at the beginning.
        if u64::from(event.log_pos) < at {
            break;
        }
        at = u64::from(event.log_pos);
        match begun {
            Some(Some(gtid)) if at < upto => {
                held.add(&gtid.gtid);
                last = Some(gtid);
            }
            Some(_) => return Ok(None),
            None => {}
        }
    }
    // A file that is followed by another is read to its end; the newest one must reach `upto`.
    Ok((at >= upto || upto == u64::MAX).then_some((held, last)))
}
