//! Proves that what is in the log can be read where no row tells: what was there before the stream began, and what left all
//! rows as they may have been before.
//!
//! A transaction between its entry in the log and its commit in the storage engine is listed in
//! `information_schema.INNODB_TRX`. So once each transaction that was listed after the position was taken has left the
//! list, everything up to the position can be read. The list may come from a cache: one in which this connection's own
//! transaction stands was made after it had begun.
//!
//! A transaction whose session waits for its client's next statement is not between the two: it has been committed, or its entry is
//! still to be written. So nobody waits for one that is left open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::error::BinlogError;
use super::random::random;
use super::row_decoding::{all_numbers, first_text};
use super::{Binlog, control_connection};
use crate::account::{AccountConnection, AccountError, ConnectionPurpose};
use crate::clock;
use crate::index::BinlogPosition;
use crate::log::queue::CommitWatermark;
use crate::log::replication_state::{ReplicationState, StreamGeneration};
use crate::sql::quoted;

/// The server renews the list when nobody has looked at it for a tenth of a second: who looks that often together with others
/// has to look less often.
const POLL_INTERVAL: Duration = Duration::from_millis(125);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Lists transactions that are open, and whose they are.
pub(super) const OPEN_TRANSACTIONS: &str =
    "SELECT trx_id, trx_mysql_thread_id FROM information_schema.INNODB_TRX";
/// Numbers from here on are given to transactions that have written nothing.
const FIRST_UNNUMBERED_ID: u64 = 1 << 48;
/// Whose sessions are asked for, from this pause between two looks on: most transactions end sooner.
const SESSION_QUERY_DELAY: Duration = Duration::from_millis(250);
/// Sessions that are asked for at a time.
const SESSIONS_PER_QUERY: usize = 1_000;

/// Works until there is proof; that may also come by another way.
pub(super) async fn run(binlog: Arc<Binlog>, generation: StreamGeneration, start: BinlogPosition) {
    let (mut said, mut waited) = (false, false);
    let open = |following: &ReplicationState| following.is_unproven(generation);
    loop {
        match wait_for_commits(&binlog, open).await {
            Ok(()) => break,
            Err(error @ BinlogError::UnexpectedServer { .. }) => {
                tracing::debug!("the list of open transactions is not asked for: {error}");
            }
            // The connection of the stream before may be about to end.
            Err(error) if error.is_connection_limit() && !waited => {
                waited = true;
                tracing::debug!("the list of open transactions is not asked for yet: {error}");
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            Err(error) => {
                if !said {
                    said = true;
                    let user = quoted(binlog.account.user());
                    tracing::warn!(
                        "nothing is answered from memory before the next change of the tables: the list of open transactions cannot be \
                         read: {error}. Where the right is missing: GRANT PROCESS ON *.* TO {user}@`HOST`"
                    );
                }
            }
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    let mut state = binlog.state();
    if state.following.confirm_start(generation) {
        tracing::debug!(?start, "what was committed before the stream is readable");
        binlog.catch_up(&mut state);
    }
    drop(state);
    binlog.progress.notify_waiters();
}

/// Proves it of all that waits now, in the background; of one such lot at a time.
pub(super) fn release(binlog: &Arc<Binlog>, generation: StreamGeneration) {
    let Some(end) = binlog.state().following.begin_release(generation) else {
        return;
    };
    let binlog = Arc::clone(binlog);
    tokio::spawn(async move {
        let open = |following: &ReplicationState| following.has_pending_below(generation, end);
        match wait_for_commits(&binlog, open).await {
            Ok(()) => binlog.receive_watermark(generation, CommitWatermark::readable(end)),
            Err(error) => {
                tracing::debug!("the list of open transactions cannot be read: {error}");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
        binlog.state().following.end_release(generation);
    });
}

/// Waits so long for changes of rows to be told readable by others that come behind them.
const EDIT_PROOF_DELAY: Duration = Duration::from_millis(500);

/// Proves it of changes that leave what memory is made of as it is: no row in memory tells of them. Until then what is read of these rows
/// is not kept.
pub(super) async fn prove_edits_readable(binlog: Arc<Binlog>) {
    loop {
        tokio::time::sleep(EDIT_PROOF_DELAY).await;
        let (generation, unread) = {
            let state = binlog.state();
            let generation = state.following.generation();
            (generation, state.following.unread_edits(generation))
        };
        let Some(tick) = unread else {
            continue;
        };
        let open = |following: &ReplicationState| following.unread_edits(generation).is_some();
        match wait_for_commits(&binlog, open).await {
            Ok(()) => binlog
                .state()
                .following
                .mark_edits_readable(generation, tick),
            Err(error) => {
                tracing::debug!("the list of open transactions cannot be read: {error}");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// What is left of the transactions that were on the list at first, and the sessions whose they are: `None`, nobody has looked yet.
pub(super) type OpenTransactionSet = Option<BTreeMap<u64, u64>>;

/// Who waits for all of them lets others look in between.
const WAIT_SLICE: Duration = Duration::from_secs(1);

/// Waits for a while until all can be read that was in the log at the first look. True once it can.
pub(super) async fn wait_for_all(
    binlog: &Binlog,
    waiting: &mut OpenTransactionSet,
) -> Result<bool, BinlogError> {
    let begun = clock::now();
    wait_for_transactions(binlog, |_| clock::since(begun) < WAIT_SLICE, waiting).await?;
    Ok(waiting.as_ref().is_some_and(BTreeMap::is_empty))
}

/// Ends early when the question is not `open` any more.
///
/// Only the server that the log comes from can say what is under way there: a connection to another one proves nothing.
async fn wait_for_commits(
    binlog: &Binlog,
    open: impl Fn(&ReplicationState) -> bool,
) -> Result<(), BinlogError> {
    wait_for_transactions(binlog, open, &mut None).await
}

async fn wait_for_transactions(
    binlog: &Binlog,
    open: impl Fn(&ReplicationState) -> bool,
    waiting: &mut OpenTransactionSet,
) -> Result<(), BinlogError> {
    let _alone = binlog.listing.lock().await;
    let server = binlog
        .state()
        .server
        .clone()
        .ok_or(BinlogError::StreamEnded)?;
    // Where another stream has begun meanwhile, nothing of this one is open.
    let mut conn =
        control_connection::connect(binlog, &server, ConnectionPurpose::Transactions).await?;
    let list = poll_open_transactions(binlog, &mut conn, open, waiting).await;
    list.map_err(BinlogError::while_doing("they cannot be listed"))
}

/// Looks at the list until nothing is left on it that was there at first, but for what is left open.
async fn poll_open_transactions(
    binlog: &Binlog,
    conn: &mut AccountConnection,
    open: impl Fn(&ReplicationState) -> bool,
    waiting: &mut OpenTransactionSet,
) -> Result<(), AccountError> {
    conn.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        .await?;
    let own = first_text(conn, "SELECT CONNECTION_ID()").await?;
    let own: u64 = own.parse().unwrap_or_default();
    let mut pause = POLL_INTERVAL;
    while open(&binlog.state().following) {
        let rows = conn.rows(OPEN_TRANSACTIONS).await?;
        // A list that cannot be read proves nothing.
        let listed: Vec<[u64; 2]> = all_numbers(&rows).unwrap_or_default();
        if listed.iter().any(|[_, thread]| *thread == own) {
            let now: BTreeMap<u64, u64> = listed
                .iter()
                .filter(|[id, thread]| *thread != own && (1..FIRST_UNNUMBERED_ID).contains(id))
                .map(|[id, thread]| (*id, *thread))
                .collect();
            let mut left = waiting.take().unwrap_or_else(|| now.clone());
            left.retain(|id, _| now.contains_key(id));
            if pause >= SESSION_QUERY_DELAY && !left.is_empty() {
                let idle = idle_sessions(conn, left.values()).await?;
                left.retain(|_, thread| !idle.contains(thread));
            }
            let is_done = left.is_empty();
            *waiting = Some(left);
            if is_done {
                break;
            }
        }
        let longer = f64::from(random()) / f64::from(u32::MAX);
        tokio::time::sleep(pause + pause.mul_f64(longer)).await;
        pause = MAX_POLL_INTERVAL.min(pause * 3 / 2);
    }
    conn.run("COMMIT").await
}

/// Which of these sessions wait for their clients' next statement. A server that does not tell names none.
///
/// Threads that apply another server's transactions may be listed as asleep while they commit: they are `system user`'s.
async fn idle_sessions(
    conn: &mut AccountConnection,
    threads: impl Iterator<Item = &u64>,
) -> Result<BTreeSet<u64>, AccountError> {
    let threads: Vec<String> = threads
        .take(SESSIONS_PER_QUERY)
        .map(u64::to_string)
        .collect();
    let question = format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Sleep' AND USER <> 'system user' AND ID IN ({})",
        threads.join(",")
    );
    match conn.rows(&question).await {
        Ok(rows) => Ok(all_numbers(&rows)
            .unwrap_or_default()
            .into_iter()
            .map(|[id]| id)
            .collect()),
        Err(AccountError::Server { .. }) => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}
