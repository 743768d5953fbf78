//! Follows the server's log as a replica does, and restarts after failures.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::error::BinlogError;
use super::privilege::RequiredPrivilege;
use super::resume_filter::ResumeFilter;
use super::resumption::{self, ResumePlan, StreamStart};
use super::row_decoding::{log_end, text};
use super::server_facts::{self, BinlogObstacle, ServerFacts};
use super::{Binlog, commit_fence, history, lag, replica_id};
use crate::account::binlog_stream::BinlogDumpRequest;
use crate::account::{AccountConnection, AccountError, ConnectionPurpose};
use crate::binlog::load::LoadRequest;
use crate::clock;
use headwater_log::assembler::{EventOutcome, LogStreamError, TransactionAssembler};
use headwater_log::replication_state::StreamGeneration;
use headwater_log::routes::{TableRoute, TableRoutes};
use headwater_timeline::index::TableId;

/// Interval of the server's heartbeats while it sends nothing else.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// After this long without anything the connection is given up.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between attempts doubles from the first to the last.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LAST_WAIT: Duration = Duration::from_secs(10);
/// After a stream that lasted this long, the pause starts again at the first.
const STABLE_AFTER: Duration = Duration::from_secs(10);

pub(super) async fn run(binlog: Arc<Binlog>) {
    let mut news = StreamStatusLog::default();
    let mut wait = FIRST_WAIT;
    loop {
        let begun = clock::now();
        let Err(error) = tokio::select! {
            biased;
            () = binlog.primary_changed.notified() => Err(BinlogError::PrimaryChanged),
            error = follow(&binlog, &mut news) => error,
        };
        if matches!(error, BinlogError::TimelineAdded) {
            binlog.record_stream_end();
        }
        match error.suspends_memory() {
            true => binlog.suspend(),
            false => binlog.discard_memory(),
        }
        let suspension = error.suspension(binlog.account.user());
        binlog.suspension.send_replace(Some(suspension));
        if matches!(
            error,
            BinlogError::TimelineAdded | BinlogError::RefillRequested | BinlogError::PrimaryChanged
        ) {
            continue;
        }
        if let BinlogError::HistoryDiverged(why) = &error {
            resumption::log_refill(why);
            continue;
        }
        if let BinlogError::Lost(lost) = &error {
            if matches!(
                lost,
                LogStreamError::Unreadable(_) | LogStreamError::Statement(_)
            ) {
                binlog.unreadable.fetch_add(1, Ordering::Relaxed);
            }
            if lost.may_redefine() {
                binlog.record_redefinition();
            }
        }
        if matches!(error, BinlogError::DuplicateReplicaId(_)) {
            let [old, new] = binlog.replica_id.redraw();
            tracing::info!(
                old,
                new,
                "another replica of the server has come with the number of Headwater's: another number is drawn"
            );
            // If another replica takes each id in turn, the pause applies as after any other failure.
            if clock::since(begun) > FIRST_WAIT {
                continue;
            }
        }
        news.log_trouble(&error);
        wait = if clock::since(begun) > STABLE_AFTER {
            FIRST_WAIT
        } else {
            (wait * 2).min(LAST_WAIT)
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            () = binlog.primary_changed.notified() => wait = FIRST_WAIT,
        }
    }
}

#[derive(Default)]
struct StreamStatusLog {
    trouble: Option<String>,
    followed_before: bool,
}

impl StreamStatusLog {
    fn log_trouble(&mut self, error: &BinlogError) {
        let text = error.to_string();
        if matches!(error, BinlogError::Contradiction(_)) {
            tracing::error!("nothing is answered from memory: {text}");
            self.trouble = Some(text);
        } else if self.trouble.as_ref() != Some(&text) {
            if !error.was_logged() {
                tracing::warn!("nothing is answered from memory: {text}");
            }
            self.trouble = Some(text);
        }
    }

    fn log_followed(&mut self) {
        let before = std::mem::replace(&mut self.followed_before, true);
        match self.trouble.take() {
            Some(_) if before => tracing::info!("the server's log is followed again"),
            _ if before => {}
            _ => tracing::info!("the server's log is followed"),
        }
    }
}

async fn follow(
    binlog: &Arc<Binlog>,
    status_log: &mut StreamStatusLog,
) -> Result<Infallible, BinlogError> {
    let mut conn = AccountConnection::open(&binlog.account, ConnectionPurpose::Log)
        .await
        .map_err(BinlogError::while_doing(
            "the service account cannot connect",
        ))?;
    let server = server_facts::load_server_facts(&mut conn).await?;
    for statement in session_statements(server.mariadb) {
        conn.run(&statement)
            .await
            .map_err(BinlogError::while_doing(
                "the log's stream cannot be set up",
            ))?;
    }
    let rows = conn
        .rows(server.status)
        .await
        .map_err(BinlogError::while_doing(
            "the position of the log cannot be read",
        ))?;
    let row = rows.row(0);
    let (base, end) = log_end(row)?;
    let file = row.and_then(|row| text(row, 0)).unwrap_or_default();
    let begins = resumption::start(binlog, &mut conn, &server, (file, base, end)).await?;
    let start = begins.position;
    let request = BinlogDumpRequest {
        replica: binlog.replica_id.for_server(&mut conn, &server).await,
        file: &begins.file,
        offset: start.offset,
        to_the_end: false,
        max_event_bytes: binlog.limits.event_bytes,
    };
    let mut log = conn.follow(&request).await.map_err(stream_error)?;
    let most = binlog.limits.transaction_rows;
    let mut events = TransactionAssembler::starting_at(start, &begins.base, most)
        .with_event_bytes(binlog.limits.event_bytes)
        .with_edits(binlog.row_cache.is_some());
    let seek = begins.plan.as_ref().and_then(|plan| plan.seek.clone());
    let mut passing = ResumeFilter::new(seek);
    let is_known = |plan: &ResumePlan| plan.applied_gtids.is_known();
    let needs_base = server.gtids && !begins.plan.as_ref().is_some_and(is_known);
    let base = begins.base.clone();
    if begins.has_gap() {
        // A function may have been made while the log was not followed.
        binlog.record_function_gap();
    }
    let (generation, mut routes, mut version) = begin_stream(binlog, server, begins);
    let fence = tokio::spawn(commit_fence::run(Arc::clone(binlog), generation, start));
    let _stop = TaskAbortGuard(fence);
    let _learning = needs_base.then(|| {
        let learning = history::load_base_gtids(Arc::clone(binlog), generation, base, start);
        TaskAbortGuard(tokio::spawn(learning))
    });
    let mut idle = true;
    let mut heard_something = true;
    let mut looks = tokio::time::interval(SILENCE_TIMEOUT);
    loop {
        let event = tokio::select! {
            biased;
            event = log.next(|kind, first: &[u8]| events.retention(kind, first, passing.routes(&routes))) => event,
            () = binlog.rerouted.notified() => {
                if let Some(why) = binlog.state().restart_reason.take() {
                    return Err(why);
                }
                if idle && !passing.is_active() {
                    (routes, version) = adopt_routes(binlog);
                }
                continue;
            }
            _ = looks.tick() => {
                if !std::mem::take(&mut heard_something) {
                    return Err(BinlogError::HeartbeatTimeout(SILENCE_TIMEOUT.as_millis()));
                }
                continue;
            }
        };
        heard_something = true;
        let event = event
            .map_err(stream_error)?
            .ok_or(BinlogError::StreamEnded)?;
        let outcome = loop {
            match events.process(&event, passing.routes(&routes))? {
                // Sessions share this thread.
                EventOutcome::Unfinished => tokio::task::yield_now().await,
                heard => break heard,
            }
        };
        passing.receive(&mut events)?;
        if events.take_redefined() {
            binlog.record_redefinition();
        }
        if events.take_made_function() {
            // Before a proof may cover this statement.
            binlog.record_function_change();
        }
        let Some(end) = outcome.end() else {
            idle = false;
            continue;
        };
        idle = true;
        status_log.log_followed();
        {
            let mut state = binlog.state();
            let now = clock::now();
            state.lag.receive(now);
            if let Some(gtid) = passing.take_ended(&events) {
                state.replication.record_end(end, gtid);
            }
            match outcome {
                EventOutcome::Transaction(end, changes, edits) => {
                    if passing.is_before(end) {
                        binlog.invalidate_rows(&edits);
                        state.replication.catch_up(end, &edits);
                        binlog.apply_unconfirmed(&changes, end);
                    } else {
                        binlog.receive(&mut state, end, changes, &edits);
                        state.note_waiting(now);
                    }
                    if state.replication.pending_changes() > most {
                        return Err(LogStreamError::TooLarge(most).into());
                    }
                }
                EventOutcome::Passed(to) => state.replication.advance_to(to),
                EventOutcome::Nothing | EventOutcome::Unfinished => {}
            }
            if passing.reach(end)? {
                state.seeking = false;
                binlog.catch_up(&mut state);
                tracing::info!(
                    "memory goes on with the log of this server: what is asked for is compared with its rows first"
                );
            }
        }
        binlog.progress.notify_waiters();
        // No routes apply to what is skipped: tables are followed after it.
        if !passing.is_active() && binlog.routes_version.load(Ordering::Acquire) != version {
            if let Some(why) = binlog.state().restart_reason.take() {
                return Err(why);
            }
            (routes, version) = adopt_routes(binlog);
        }
    }
}

/// Aborts a task when its stream ends.
struct TaskAbortGuard(tokio::task::JoinHandle<()>);

impl Drop for TaskAbortGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The statements that set up the stream's session: heartbeats, and on MariaDB its own event types.
pub(super) fn session_statements(mariadb: bool) -> Vec<String> {
    let heartbeat = HEARTBEAT.as_nanos();
    if mariadb {
        vec![
            format!("SET @master_heartbeat_period={heartbeat}"),
            "SET @mariadb_slave_capability=4".into(),
        ]
    } else {
        vec![format!(
            "SET @source_heartbeat_period={heartbeat},@master_heartbeat_period={heartbeat}"
        )]
    }
}

fn stream_error(error: AccountError) -> BinlogError {
    if replica_id::is_taken(&error) {
        return BinlogError::DuplicateReplicaId(error);
    }
    if server_facts::is_denial(&error) {
        return BinlogObstacle::Right(RequiredPrivilege::FollowLog).into();
    }
    if error.is_unreadable() {
        return BinlogError::UnreadableLog(error);
    }
    BinlogError::Server {
        doing: "the stream of the server's log failed",
        source: error,
    }
}

/// Starts at this position: from nothing, or from suspended memory.
fn begin_stream(
    binlog: &Binlog,
    server: ServerFacts,
    begins: StreamStart,
) -> (StreamGeneration, Arc<TableRoutes>, u64) {
    let mut state = binlog.state();
    let timelines = binlog.cached_timelines();
    let joined = binlog.joined_tables();
    binlog
        .case
        .send_if_modified(|case| std::mem::replace(case, server.case) != server.case);
    let start = begins.position;
    let plan = begins.plan.as_ref();
    let resumed: Vec<TableId> = plan.map_or_else(Vec::new, |warm| warm.tables.clone());
    let blind = timelines
        .iter()
        .flat_map(|timeline| timeline.tables.blind_routes());
    let blind = blind.chain(joined.iter().map(|table| table.blind_route()));
    let mut routes: Vec<TableRoute> = blind
        .filter(|route| !resumed.contains(&route.table_id))
        .collect();
    routes.extend(plan.iter().flat_map(|warm| warm.routes.iter().cloned()));
    let routes = TableRoutes {
        routes,
        caseless: server.caseless,
    };
    // Where the log of another run ended.
    let unconfirmed = plan.and_then(|warm| Some(warm.seek.as_ref()?.1));
    state.seeking = unconfirmed.is_some();
    let generation = match begins.plan {
        Some(ResumePlan {
            tables,
            applied_gtids: applied,
            ..
        }) => {
            binlog.resumed.fetch_add(1, Ordering::Relaxed);
            let told_from = unconfirmed.unwrap_or(start);
            let tables = (&*tables, told_from);
            state.replication.resume(start, routes, tables, applied)
        }
        None => {
            state.filled_since = clock::now();
            state.replication.begin(start, routes)
        }
    };
    state.log_base_name = begins.base;
    state.checkpoint = None;
    state.restart_reason = None;
    binlog.suspension.send_replace(None);
    state.lag = lag::LagRecord::default();
    state.lag.receive(clock::now());
    state.server = Some(Arc::new(server));
    // Rows cached beside another stream get no invalidations.
    binlog.row_cache.iter().for_each(|rows| rows.clear());
    for timeline in &timelines {
        let number = timeline.id();
        let mut index = timeline.index_mut();
        match (resumed.contains(&number.into()), unconfirmed) {
            (true, None) => index.resume(start),
            (true, Some(_)) => index.resume_unconfirmed(start),
            (false, _) => index.begin_anew(),
        }
        drop(index);
        let is_known =
            resumed.contains(&number.into()) && timeline.preloaded.load(Ordering::Relaxed);
        // The loader that would have retried a blocked timeline belonged to the previous stream.
        if !is_known || timeline.block_reason().is_some() {
            binlog.load(LoadRequest::Schema(number));
        }
    }
    for table in &joined {
        if !resumed.contains(&table.table_id) {
            binlog.load(LoadRequest::JoinedTable(table.table_id));
        }
    }
    let version = binlog.routes_version.load(Ordering::Acquire);
    // Definitions may have changed while the log was not followed.
    binlog.changed.notify_one();
    (generation, state.replication.routes(), version)
}

/// Called between two transactions: from here on, row events of tables with known columns are read.
fn adopt_routes(binlog: &Binlog) -> (Arc<TableRoutes>, u64) {
    let mut state = binlog.state();
    let version = binlog.routes_version.load(Ordering::Acquire);
    let routes = state.replication.adopt_routes();
    binlog.catch_up(&mut state);
    (routes, version)
}
