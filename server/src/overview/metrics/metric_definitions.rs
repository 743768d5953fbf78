//! The metrics: names, types, units, labels and meanings.
//!
//! [`ALL`] is their only list; `docs/metrics.md` repeats it.

use self::MetricKind::{Counter, Gauge, Info};
use self::MetricUnit::{Bytes, Seconds};

/// One metric, as it is exported and explained.
#[derive(Clone, Copy, Debug)]
pub struct MetricDefinition {
    /// Its name, without the unit and without `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// Its unit, if that is part of the name.
    pub unit: Option<MetricUnit>,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Its meaning.
    pub help: &'static str,
}

/// Types of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// Units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MetricUnit {
    Bytes,
    Seconds,
}

impl MetricDefinition {
    /// The name that Prometheus shows.
    #[must_use]
    pub fn full_name(&self) -> String {
        let unit = match self.unit {
            Some(MetricUnit::Bytes) => "_bytes",
            Some(MetricUnit::Seconds) => "_seconds",
            None => "",
        };
        let end = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        format!("{}{unit}{end}", self.name)
    }
}

const fn metric(
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricDefinition {
    MetricDefinition {
        name,
        kind,
        unit: None,
        labels,
        help,
    }
}

const fn metric_with_unit(
    name: &'static str,
    kind: MetricKind,
    unit: MetricUnit,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricDefinition {
    MetricDefinition {
        unit: Some(unit),
        ..metric(name, kind, labels, help)
    }
}

pub(super) const BUILD: MetricDefinition = metric(
    "headwater_build",
    Info,
    &["version", "commit", "build"],
    "The build, as in `headwater --version`",
);
pub(super) const CALLS_TOTAL: MetricDefinition = metric(
    "headwater_calls",
    Counter,
    &["definition", "answer", "reason"],
    "Calls by answer: memory, lookups, procedure (proves definer's rights), interrupted, or relayed",
);
pub(super) const STATEMENTS_TOTAL: MetricDefinition = metric(
    "headwater_statements",
    Counter,
    &["feed", "answer", "reason"],
    "SELECTs of feeds by answer: kept (cached rows), narrowed (candidates from memory), learned, or relayed. No feed: unexamined forms",
);
pub(super) const FOLLOW_UPS_TOTAL: MetricDefinition = metric(
    "headwater_tails",
    Counter,
    &["answer"],
    "Follow-up queries by answer: kept (cached rows), virtual (ids in the statement), written (result table)",
);
pub(super) const FOLLOW_UPS_RETRIED: MetricDefinition = metric(
    "headwater_tails_retried",
    Counter,
    &[],
    "Follow-up queries whose first answer was discarded",
);
pub(super) const TABLES_WRITTEN: MetricDefinition = metric(
    "headwater_tables_written",
    Counter,
    &[],
    "Result tables written before other statements",
);
pub(super) const PROCEDURES_REDONE: MetricDefinition = metric(
    "headwater_procedures_redone",
    Counter,
    &[],
    "Procedure runs because the result table was not writable",
);
pub(super) const CALL_SECONDS: MetricDefinition = metric_with_unit(
    "headwater_call",
    MetricKind::Histogram,
    Seconds,
    &["answer"],
    "Latency of calls that Headwater answered",
);
pub(super) const STATEMENT_SECONDS: MetricDefinition = metric_with_unit(
    "headwater_statement",
    MetricKind::Histogram,
    Seconds,
    &["answer"],
    "Latency of SELECTs of feeds that Headwater answered",
);
pub(super) const PROOF_SECONDS: MetricDefinition = metric_with_unit(
    "headwater_proof",
    MetricKind::Histogram,
    Seconds,
    &[],
    "Duration of freshness proofs; one serves all waiting calls",
);
pub(super) const BINLOG_STATE: MetricDefinition = metric(
    "headwater_binlog_state",
    Gauge,
    &["reason"],
    "1 for the current state: followed, or why memory is not used",
);
pub(super) const BINLOG_LAG: MetricDefinition = metric_with_unit(
    "headwater_binlog_lag",
    Gauge,
    Bytes,
    &[],
    "Binary log not applied to memory yet, up to its last known end",
);
pub(super) const BINLOG_WAITING: MetricDefinition = metric_with_unit(
    "headwater_binlog_waiting",
    Gauge,
    Seconds,
    &[],
    "How long row changes have waited for proof that they are readable",
);
pub(super) const WAITING_CHANGES: MetricDefinition = metric(
    "headwater_binlog_waiting_changes",
    Gauge,
    &[],
    "Row changes that wait for proof",
);
pub(super) const BINLOG_SILENCE: MetricDefinition = metric_with_unit(
    "headwater_binlog_silent",
    Gauge,
    Seconds,
    &[],
    "Time since the last event or heartbeat (every half second)",
);
pub(super) const UNREADABLE_STATEMENTS: MetricDefinition = metric(
    "headwater_binlog_unreadable",
    Counter,
    &[],
    "Logged statements that were unreadable or replaced row changes; each empties memory",
);
pub(super) const MEMORY_RESUMED: MetricDefinition = metric(
    "headwater_memory_resumed",
    Counter,
    &[],
    "Times memory survived a lost connection or a change of server",
);
pub(super) const MEMORY_CONFIRMED: MetricDefinition = metric(
    "headwater_memory_confirmed",
    Counter,
    &["result"],
    "Memory entries compared after the server changed or restarted: equal, or different (refilled; other rows under the same log)",
);
pub(super) const MEMORY_CONTRADICTIONS: MetricDefinition = metric(
    "headwater_memory_contradictions",
    Counter,
    &[],
    "Times rows contradicted the log (unlogged changes); each empties memory",
);
pub(super) const DATA_NODES: MetricDefinition = metric(
    "headwater_data_node_followed",
    Gauge,
    &["server"],
    "1 for each data node of a Spider node whose log is followed",
);
pub(super) const INDEX_BYTES: MetricDefinition = metric_with_unit(
    "headwater_index",
    Gauge,
    Bytes,
    &[],
    "Memory of timelines and feeds: follows and ids",
);
pub(super) const INDEX_LIMIT: MetricDefinition = metric_with_unit(
    "headwater_index_limit",
    Gauge,
    Bytes,
    &[],
    "Limit of headwater_index_bytes (index.memory_bytes per timeline, within memory.limit)",
);
pub(super) const INDEX_ENTRIES: MetricDefinition = metric(
    "headwater_index_entries",
    Gauge,
    &["kind"],
    "Entries in memory: timelines, follows, authors, messages",
);
pub(super) const INDEX_EVICTED: MetricDefinition = metric(
    "headwater_index_evicted",
    Counter,
    &[],
    "Authors and readers evicted",
);
pub(super) const ROWS_BYTES: MetricDefinition =
    metric_with_unit("headwater_rows", Gauge, Bytes, &[], "Memory of cached rows");
pub(super) const ROWS_LIMIT: MetricDefinition = metric_with_unit(
    "headwater_rows_limit",
    Gauge,
    Bytes,
    &[],
    "Limit of headwater_rows_bytes (rows.memory_bytes, within memory.limit)",
);
pub(super) const ROWS_MESSAGES: MetricDefinition = metric(
    "headwater_rows_messages",
    Gauge,
    &[],
    "Messages with cached rows, plus rows beside them",
);
pub(super) const ROWS_EVICTED: MetricDefinition = metric(
    "headwater_rows_evicted",
    Counter,
    &[],
    "Cached rows evicted",
);
pub(super) const SESSIONS: MetricDefinition =
    metric("headwater_sessions", Gauge, &[], "Connected clients");
pub(super) const SESSIONS_STATE: MetricDefinition = metric(
    "headwater_sessions_by_state",
    Gauge,
    &["state"],
    "Sessions: login, idle, in_transaction (idle), busy, unfollowed (only relayed)",
);
pub(super) const RELAYED_BYTES: MetricDefinition = metric_with_unit(
    "headwater_relayed",
    Counter,
    Bytes,
    &["direction"],
    "Bytes relayed to servers and to clients",
);
pub(super) const SESSIONS_LIMIT: MetricDefinition = metric(
    "headwater_sessions_limit",
    Gauge,
    &[],
    "Most sessions possible (limits.sessions, or open files)",
);
pub(super) const SESSIONS_OPENED: MetricDefinition = metric(
    "headwater_sessions_opened",
    Counter,
    &[],
    "Client connections",
);
pub(super) const LOGINS_CUT: MetricDefinition = metric(
    "headwater_logins_cut",
    Counter,
    &[],
    "Logins abandoned or refused",
);
pub(super) const LOGIN_ERRORS: MetricDefinition = metric(
    "headwater_login_errors",
    Counter,
    &[],
    "Of these, logins counted towards the server's max_connect_errors",
);
pub(super) const CLIENTS_STALLED: MetricDefinition = metric(
    "headwater_clients_stalled",
    Counter,
    &[],
    "Sessions closed because clients did not read",
);
pub(super) const UPSTREAM_UP: MetricDefinition = metric(
    "headwater_upstream_up",
    Gauge,
    &[],
    "1 if the server greets connections",
);
pub(super) const SERVER_UP: MetricDefinition = metric(
    "headwater_upstream_server_up",
    Gauge,
    &["server"],
    "Several servers: 1 if it answered last time",
);
pub(super) const SERVER_ROLE: MetricDefinition = metric(
    "headwater_upstream_role",
    Gauge,
    &["server", "role"],
    "Several servers: 1 for the current role of each",
);
pub(super) const FAILOVERS: MetricDefinition = metric(
    "headwater_failovers",
    Counter,
    &[],
    "Times another server became the primary",
);
pub(super) const SHADOW_COMPARED: MetricDefinition = metric(
    "headwater_shadow_compared",
    Counter,
    &["result"],
    "Calls and pages compared with the server's (shadow.rate): same, different, unsure",
);
pub(super) const LOG_MESSAGES: MetricDefinition = metric(
    "headwater_log_messages",
    Counter,
    &["level"],
    "Warnings and errors (warn, error), including suppressed ones",
);
pub(super) const LOG_SUPPRESSED: MetricDefinition = metric(
    "headwater_log_suppressed",
    Counter,
    &[],
    "Log lines suppressed by rate limits",
);
pub(super) const CPU: MetricDefinition =
    metric_with_unit("process_cpu", Counter, Seconds, &[], "Processor time");
pub(super) const RESIDENT: MetricDefinition = metric_with_unit(
    "process_resident_memory",
    Gauge,
    Bytes,
    &[],
    "Resident memory",
);
pub(super) const VIRTUAL: MetricDefinition = metric_with_unit(
    "process_virtual_memory",
    Gauge,
    Bytes,
    &[],
    "Virtual memory",
);
pub(super) const FILES: MetricDefinition =
    metric("process_open_fds", Gauge, &[], "Open files and sockets");
pub(super) const FILES_LIMIT: MetricDefinition =
    metric("process_max_fds", Gauge, &[], "Limit of open files");
pub(super) const THREADS: MetricDefinition = metric("process_threads", Gauge, &[], "Threads");
pub(super) const PROCESS_START_TIME: MetricDefinition = metric_with_unit(
    "process_start_time",
    Gauge,
    Seconds,
    &[],
    "Start time, in seconds since 1970",
);

/// Every metric, in the order of the output.
pub const ALL: [MetricDefinition; 50] = [
    BUILD,
    CALLS_TOTAL,
    CALL_SECONDS,
    STATEMENTS_TOTAL,
    STATEMENT_SECONDS,
    FOLLOW_UPS_TOTAL,
    FOLLOW_UPS_RETRIED,
    TABLES_WRITTEN,
    PROCEDURES_REDONE,
    PROOF_SECONDS,
    BINLOG_STATE,
    BINLOG_LAG,
    BINLOG_WAITING,
    WAITING_CHANGES,
    BINLOG_SILENCE,
    UNREADABLE_STATEMENTS,
    MEMORY_RESUMED,
    MEMORY_CONFIRMED,
    MEMORY_CONTRADICTIONS,
    DATA_NODES,
    INDEX_BYTES,
    INDEX_LIMIT,
    INDEX_ENTRIES,
    INDEX_EVICTED,
    ROWS_BYTES,
    ROWS_LIMIT,
    ROWS_MESSAGES,
    ROWS_EVICTED,
    SESSIONS,
    SESSIONS_STATE,
    SESSIONS_LIMIT,
    SESSIONS_OPENED,
    RELAYED_BYTES,
    LOGINS_CUT,
    LOGIN_ERRORS,
    CLIENTS_STALLED,
    UPSTREAM_UP,
    SERVER_UP,
    SERVER_ROLE,
    FAILOVERS,
    SHADOW_COMPARED,
    LOG_MESSAGES,
    LOG_SUPPRESSED,
    CPU,
    RESIDENT,
    VIRTUAL,
    FILES,
    FILES_LIMIT,
    THREADS,
    PROCESS_START_TIME,
];
