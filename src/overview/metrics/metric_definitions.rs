//! What is told: names, types, units, labels and meanings.
//!
//! [`ALL`] is the one place of them; `docs/metrics.md` says the same.

use self::MetricKind::{Counter, Gauge, Info};
use self::MetricUnit::{Bytes, Seconds};

/// One metric, as it is told and explained.
#[derive(Clone, Copy, Debug)]
pub struct MetricDefinition {
    /// Its name, without the unit, and without `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// What it is told in, where that is part of the name.
    pub unit: Option<MetricUnit>,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
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
    /// The name under which it is found.
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
    "The version that runs, the commit it was built from, and how: as `headwater --version` says it",
);
pub(super) const CALLS_TOTAL: MetricDefinition = metric(
    "headwater_calls",
    Counter,
    &["definition", "answer", "reason"],
    "Calls by who answered: memory, lookups, procedure (run by Headwater, to prove its definer's rights), interrupted, or relayed to the server for a reason",
);
pub(super) const STATEMENTS_TOTAL: MetricDefinition = metric(
    "headwater_statements",
    Counter,
    &["feed", "answer", "reason"],
    "SELECTs of feeds by answer: kept (from memory), narrowed (candidates from memory), learned, or relayed for a reason. Without a feed: those of forms that were not looked at yet",
);
pub(super) const FOLLOW_UPS_TOTAL: MetricDefinition = metric(
    "headwater_tails",
    Counter,
    &["answer"],
    "SELECTs behind a call by answer: kept (from memory), virtual (ids in the statement), written (the result table)",
);
pub(super) const FOLLOW_UPS_RETRIED: MetricDefinition = metric(
    "headwater_tails_retried",
    Counter,
    &[],
    "SELECTs behind a call whose first answer was put aside",
);
pub(super) const TABLES_WRITTEN: MetricDefinition = metric(
    "headwater_tables_written",
    Counter,
    &[],
    "Result tables written before another statement",
);
pub(super) const PROCEDURES_REDONE: MetricDefinition = metric(
    "headwater_procedures_redone",
    Counter,
    &[],
    "Runs of the real procedure because the result table could not be written",
);
pub(super) const CALL_SECONDS: MetricDefinition = metric_with_unit(
    "headwater_call",
    MetricKind::Histogram,
    Seconds,
    &["answer"],
    "How long calls took that Headwater answered, from the packet to the answer",
);
pub(super) const STATEMENT_SECONDS: MetricDefinition = metric_with_unit(
    "headwater_statement",
    MetricKind::Histogram,
    Seconds,
    &["answer"],
    "How long SELECTs of feeds took that Headwater answered, from the packet to the answer",
);
pub(super) const PROOF_SECONDS: MetricDefinition = metric_with_unit(
    "headwater_proof",
    MetricKind::Histogram,
    Seconds,
    &[],
    "How long proofs of freshness took. One serves all calls that wait for it",
);
pub(super) const BINLOG_STATE: MetricDefinition = metric(
    "headwater_binlog_state",
    Gauge,
    &["reason"],
    "1 for the one state that holds: followed, or the reason why the server's log is not followed and nothing is answered from memory",
);
pub(super) const BINLOG_LAG: MetricDefinition = metric_with_unit(
    "headwater_binlog_lag",
    Gauge,
    Bytes,
    &[],
    "Bytes of the server's log that are not applied to memory yet, up to the end that the server told last",
);
pub(super) const BINLOG_WAITING: MetricDefinition = metric_with_unit(
    "headwater_binlog_waiting",
    Gauge,
    Seconds,
    &[],
    "How long row changes have waited without a break until it is proved that they can be read; 0: none wait",
);
pub(super) const WAITING_CHANGES: MetricDefinition = metric(
    "headwater_binlog_waiting_changes",
    Gauge,
    &[],
    "How many row changes wait",
);
pub(super) const BINLOG_SILENCE: MetricDefinition = metric_with_unit(
    "headwater_binlog_silent",
    Gauge,
    Seconds,
    &[],
    "Since when nothing was heard of the server's log. It gives a sign of life every half second",
);
pub(super) const UNREADABLE_STATEMENTS: MetricDefinition = metric(
    "headwater_binlog_unreadable",
    Counter,
    &[],
    "Statements of the server's log that could not be read for certain, or stand in place of row changes. Each emptied memory",
);
pub(super) const MEMORY_RESUMED: MetricDefinition = metric(
    "headwater_memory_resumed",
    Counter,
    &[],
    "Times memory went on where the connection to the server was lost, or with another server, in place of being filled anew",
);
pub(super) const MEMORY_CONFIRMED: MetricDefinition = metric(
    "headwater_memory_confirmed",
    Counter,
    &["result"],
    "Entries of memory from another server, or from before a restart, that were compared with the rows there before their first use: \
     equal, or different. Different ones were filled anew: the two servers have other rows under the same log",
);
pub(super) const MEMORY_CONTRADICTIONS: MetricDefinition = metric(
    "headwater_memory_contradictions",
    Counter,
    &[],
    "Times rows and log contradicted each other. Each emptied memory: somebody changes rows without logging them",
);
pub(super) const DATA_NODES: MetricDefinition = metric(
    "headwater_data_node_followed",
    Gauge,
    &["server"],
    "Of the data nodes of a Spider node: 1 if its log is followed",
);
pub(super) const INDEX_BYTES: MetricDefinition = metric_with_unit(
    "headwater_index",
    Gauge,
    Bytes,
    &[],
    "Memory of all timelines and feeds: who follows whom, and ids",
);
pub(super) const INDEX_LIMIT: MetricDefinition = metric_with_unit(
    "headwater_index_limit",
    Gauge,
    Bytes,
    &[],
    "What it may grow to with as many timelines as there are now (index.memory_bytes each, within memory.limit)",
);
pub(super) const INDEX_ENTRIES: MetricDefinition = metric(
    "headwater_index_entries",
    Gauge,
    &["kind"],
    "What is in it: timelines, follows, authors, messages",
);
pub(super) const INDEX_EVICTED: MetricDefinition = metric(
    "headwater_index_evicted",
    Counter,
    &[],
    "Authors and readers that made room for others in memory, and have to be loaded anew",
);
pub(super) const ROWS_BYTES: MetricDefinition =
    metric_with_unit("headwater_rows", Gauge, Bytes, &[], "Memory of kept rows");
pub(super) const ROWS_LIMIT: MetricDefinition = metric_with_unit(
    "headwater_rows_limit",
    Gauge,
    Bytes,
    &[],
    "What it may grow to (rows.memory_bytes, within memory.limit)",
);
pub(super) const ROWS_MESSAGES: MetricDefinition = metric(
    "headwater_rows_messages",
    Gauge,
    &[],
    "Messages of which rows are kept, and rows beside them",
);
pub(super) const ROWS_EVICTED: MetricDefinition = metric(
    "headwater_rows_evicted",
    Counter,
    &[],
    "Kept rows that made room for others",
);
pub(super) const SESSIONS: MetricDefinition = metric(
    "headwater_sessions",
    Gauge,
    &[],
    "Clients that are connected",
);
pub(super) const SESSIONS_STATE: MetricDefinition = metric(
    "headwater_sessions_by_state",
    Gauge,
    &["state"],
    "What clients' sessions do: they log in, wait for a command (in a transaction or not), or for its end; or it is not followed",
);
pub(super) const RELAYED_BYTES: MetricDefinition = metric_with_unit(
    "headwater_relayed",
    Counter,
    Bytes,
    &["direction"],
    "Bytes that went to servers and to clients",
);
pub(super) const SESSIONS_LIMIT: MetricDefinition = metric(
    "headwater_sessions_limit",
    Gauge,
    &[],
    "How many may be (limits.sessions, or what open files allow)",
);
pub(super) const SESSIONS_OPENED: MetricDefinition = metric(
    "headwater_sessions_opened",
    Counter,
    &[],
    "Clients that connected",
);
pub(super) const LOGINS_CUT: MetricDefinition = metric(
    "headwater_logins_cut",
    Counter,
    &[],
    "Logins that did not come to an end: the client left, or was refused",
);
pub(super) const LOGIN_ERRORS: MetricDefinition = metric(
    "headwater_login_errors",
    Counter,
    &[],
    "Of these, logins that the server counts towards max_connect_errors",
);
pub(super) const CLIENTS_STALLED: MetricDefinition = metric(
    "headwater_clients_stalled",
    Counter,
    &[],
    "Sessions that ended because their client did not take what waited for it",
);
pub(super) const UPSTREAM_UP: MetricDefinition = metric(
    "headwater_upstream_up",
    Gauge,
    &[],
    "1 if the server greets who connects, as was tried just now",
);
pub(super) const SERVER_UP: MetricDefinition = metric(
    "headwater_upstream_server_up",
    Gauge,
    &["server"],
    "Of several servers: 1 if it answered when it was asked last",
);
pub(super) const SERVER_ROLE: MetricDefinition = metric(
    "headwater_upstream_role",
    Gauge,
    &["server", "role"],
    "Of several servers: 1 for what each is, 0 for what it is not",
);
pub(super) const FAILOVERS: MetricDefinition = metric(
    "headwater_failovers",
    Counter,
    &[],
    "How often another server became the primary",
);
pub(super) const SHADOW_COMPARED: MetricDefinition = metric(
    "headwater_shadow_compared",
    Counter,
    &["result"],
    "Calls and pages that were compared with the server's (shadow.rate): same, different, unsure",
);
pub(super) const LOG_MESSAGES: MetricDefinition = metric(
    "headwater_log_messages",
    Counter,
    &["level"],
    "Warnings and errors of Headwater's own log (warn, error), those left out of it too",
);
pub(super) const LOG_SUPPRESSED: MetricDefinition = metric(
    "headwater_log_suppressed",
    Counter,
    &[],
    "Lines of any level that were left out of the log, since many like them had been written within a minute; it says how many",
);
pub(super) const CPU: MetricDefinition = metric_with_unit(
    "process_cpu",
    Counter,
    Seconds,
    &[],
    "Processor time of the process",
);
pub(super) const RESIDENT: MetricDefinition = metric_with_unit(
    "process_resident_memory",
    Gauge,
    Bytes,
    &[],
    "Memory of the process that is in use",
);
pub(super) const VIRTUAL: MetricDefinition = metric_with_unit(
    "process_virtual_memory",
    Gauge,
    Bytes,
    &[],
    "Addresses of the process",
);
pub(super) const FILES: MetricDefinition =
    metric("process_open_fds", Gauge, &[], "Open files and sockets");
pub(super) const FILES_LIMIT: MetricDefinition =
    metric("process_max_fds", Gauge, &[], "How many there may be");
pub(super) const THREADS: MetricDefinition = metric("process_threads", Gauge, &[], "Threads");
pub(super) const PROCESS_START_TIME: MetricDefinition = metric_with_unit(
    "process_start_time",
    Gauge,
    Seconds,
    &[],
    "When the process began, in seconds since 1970",
);

/// Every metric, in the order in which they are told.
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
