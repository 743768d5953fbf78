//! Proves that logged transactions are readable where row probes cannot: those before the stream began, and those that may have left all
//! rows unchanged.
//!
//! A transaction between its log entry and its commit in the storage engine is listed in `information_schema.INNODB_TRX`. Once each
//! transaction listed after the position was taken has left the list, everything up to the position is readable. The list may come from a
//! cache: one that contains this connection's own transaction was made after that had begun. So each wait has a new connection: an older
//! list may contain an earlier transaction of the same one.
//!
//! A transaction whose session is idle, or which waits for a row lock, is not between the two: it is committed, or its entry is still to be
//! written. So the wait skips transactions that are left open or blocked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::error::BinlogError;
use super::random::random;
use super::row_decoding::{all_numbers, first_text};
use super::{Binlog, control_connection};
use crate::account::{AccountConnection, AccountError, ConnectionPurpose};
use crate::clock;
use headwater_log::queue::CommitWatermark;
use headwater_log::replication_state::{ReplicationState, StreamGeneration};
use headwater_sql::quoted;
use headwater_timeline::index::BinlogPosition;

/// The server renews the list only when it was not read for a tenth of a second: clients that poll it together must poll less often.
const POLL_INTERVAL: Duration = Duration::from_millis(125);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Lists open transactions with their threads, except those that wait for a row lock.
pub(super) const OPEN_TRANSACTIONS: &str = "SELECT trx_id, trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_state <> 'LOCK WAIT'";
/// Ids from here on belong to transactions that have written nothing.
const FIRST_UNNUMBERED_ID: u64 = 1 << 48;
/// From this pause on, idle sessions are queried too: most transactions end sooner.
const SESSION_QUERY_DELAY: Duration = Duration::from_millis(250);
const SESSIONS_PER_QUERY: usize = 1_000;

/// Runs until the start of the stream is proved readable, here or elsewhere.
pub(super) async fn run(binlog: Arc<Binlog>, generation: StreamGeneration, start: BinlogPosition) {
    let (mut warned, mut waited) = (false, false);
    let open = |replication: &ReplicationState| replication.is_unproven(generation);
    loop {
        match wait_for_commits(&binlog, open).await {
            Ok(()) => break,
            Err(error @ BinlogError::UnexpectedServer { .. }) => {
                tracing::debug!("the list of open transactions is not asked for: {error}");
            }
            // The previous stream's connection may be about to end.
            Err(error) if error.is_connection_limit() && !waited => {
                waited = true;
                tracing::debug!("the list of open transactions is not asked for yet: {error}");
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            Err(error) => {
                if !warned {
                    warned = true;
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
    if state.replication.confirm_start(generation) {
        tracing::debug!(?start, "what was committed before the stream is readable");
        binlog.catch_up(&mut state);
    }
    drop(state);
    binlog.progress.notify_waiters();
}

/// Proves in the background that all pending transactions are readable; one batch at a time.
pub(super) fn release(binlog: &Arc<Binlog>, generation: StreamGeneration) {
    let Some(end) = binlog.state().replication.begin_release(generation) else {
        return;
    };
    let binlog = Arc::clone(binlog);
    tokio::spawn(async move {
        let open = |replication: &ReplicationState| replication.has_pending_below(generation, end);
        match wait_for_commits(&binlog, open).await {
            Ok(()) => binlog.receive_watermark(generation, CommitWatermark::readable(end)),
            Err(error) => {
                tracing::debug!("the list of open transactions cannot be read: {error}");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
        binlog.state().replication.end_release(generation);
    });
}

/// How long row edits that nobody reads wait for a proof by later transactions.
const EDIT_PROOF_DELAY: Duration = Duration::from_millis(500);
/// The shortest pause between two proofs of row edits.
const MIN_EDIT_PROOF_PAUSE: Duration = Duration::from_millis(250);

/// Proves that row edits which change no index entry are readable: no row in memory proves it for them. Until then, what is read of these
/// rows is not cached. Where somebody reads them, the proof begins at once.
///
/// Between two proofs is as long a pause as the last one took: where many clients poll the list, it is seldom renewed.
pub(super) async fn prove_edits_readable(binlog: Arc<Binlog>) {
    let mut pause = MIN_EDIT_PROOF_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        let unread_for = EDIT_PROOF_DELAY.saturating_sub(pause);
        let _ = tokio::time::timeout(unread_for, binlog.edits_wanted.notified()).await;
        pause = MIN_EDIT_PROOF_PAUSE;
        let (generation, unread) = {
            let state = binlog.state();
            let generation = state.replication.generation();
            (generation, state.replication.unread_edits(generation))
        };
        let Some(tick) = unread else {
            continue;
        };
        let open = |replication: &ReplicationState| replication.unread_edits(generation).is_some();
        let begun = clock::now();
        match wait_for_commits(&binlog, open).await {
            Ok(()) => {
                tracing::debug!(tick, "changes of rows are readable");
                binlog
                    .state()
                    .replication
                    .mark_edits_readable(generation, tick);
                pause = pause.max(clock::since(begun));
            }
            Err(error) => {
                tracing::debug!("the list of open transactions cannot be read: {error}");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// The remaining transactions of the first list, with their threads; `None`: not listed yet.
pub(super) type OpenTransactionSet = Option<BTreeMap<u64, u64>>;

/// A long wait lets other users of the list in between.
const WAIT_SLICE: Duration = Duration::from_secs(1);

/// Waits up to [`WAIT_SLICE`] until everything in the log at the first list is readable. True once it is.
pub(super) async fn wait_for_all(
    binlog: &Binlog,
    waiting: &mut OpenTransactionSet,
) -> Result<bool, BinlogError> {
    let begun = clock::now();
    wait_for_transactions(binlog, |_| clock::since(begun) < WAIT_SLICE, waiting).await?;
    Ok(waiting.as_ref().is_some_and(BTreeMap::is_empty))
}

/// Ends early once `open` returns false.
///
/// Only the server that the log comes from knows its open transactions: a connection to another one proves nothing.
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
    // If another stream has begun meanwhile, `open` is false.
    let mut conn =
        control_connection::connect(binlog, &server, ConnectionPurpose::Transactions).await?;
    let list = poll_open_transactions(binlog, &mut conn, open, waiting).await;
    list.map_err(BinlogError::while_doing("they cannot be listed"))
}

/// Polls the list until all transactions of the first list have left it, except those of idle sessions.
async fn poll_open_transactions(
    binlog: &Binlog,
    conn: &mut AccountConnection,
    open: impl Fn(&ReplicationState) -> bool,
    waiting: &mut OpenTransactionSet,
) -> Result<(), AccountError> {
    conn.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        .await?;
    let own_thread = first_text(conn, "SELECT CONNECTION_ID()").await?;
    let own_thread: u64 = own_thread.parse().unwrap_or_default();
    let mut pause = POLL_INTERVAL;
    while open(&binlog.state().replication) {
        let rows = conn.rows(OPEN_TRANSACTIONS).await?;
        // An unreadable list proves nothing.
        let listed: Vec<[u64; 2]> = all_numbers(&rows).unwrap_or_default();
        if listed.iter().any(|[_, thread]| *thread == own_thread) {
            let now: BTreeMap<u64, u64> = listed
                .iter()
                .filter(|[id, thread]| {
                    *thread != own_thread && (1..FIRST_UNNUMBERED_ID).contains(id)
                })
                .map(|[id, thread]| (*id, *thread))
                .collect();
            let mut remaining = waiting.take().unwrap_or_else(|| now.clone());
            remaining.retain(|id, _| now.contains_key(id));
            if pause >= SESSION_QUERY_DELAY && !remaining.is_empty() {
                let idle = idle_sessions(conn, remaining.values()).await?;
                remaining.retain(|_, thread| !idle.contains(thread));
            }
            let is_done = remaining.is_empty();
            *waiting = Some(remaining);
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

/// Which of these sessions wait for their clients' next statement; none if the server refuses the query.
///
/// Threads that apply another server's transactions may be listed as asleep while they commit: their user is `system user`.
async fn idle_sessions(
    conn: &mut AccountConnection,
    threads: impl Iterator<Item = &u64>,
) -> Result<BTreeSet<u64>, AccountError> {
    let threads: Vec<String> = threads
        .take(SESSIONS_PER_QUERY)
        .map(u64::to_string)
        .collect();
    let query = format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Sleep' AND USER <> 'system user' AND ID IN ({})",
        threads.join(",")
    );
    match conn.rows(&query).await {
        Ok(rows) => Ok(all_numbers(&rows)
            .unwrap_or_default()
            .into_iter()
            .map(|[id]| id)
            .collect()),
        Err(AccountError::Server { .. }) => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}
