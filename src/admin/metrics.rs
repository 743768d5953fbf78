//! Everything that is counted, as Prometheus reads it: put together when somebody asks.
//!
//! [`ALL`] is the one place of names and meanings; `docs/metrics.md` says the same.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use self::Kind::{Counter, Gauge, Info};
use self::Measure::{Bytes, Seconds};
use super::process::Process;
use super::{Seen, State};
use crate::binlog::REASONS;
use crate::latency::Measured;
use crate::session::calls::RELAYED;
use crate::session::counts::Event;
use crate::session::narrowing::Why;
use crate::session::watched::{CALLS, STATEMENTS};

/// One metric, as it is told and explained.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, without the unit, and without `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it is told in, where that is part of the name.
    pub unit: Option<Measure>,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// Types of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// Units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Measure {
    Bytes,
    Seconds,
}

impl Metric {
    /// The name under which it is found.
    #[must_use]
    pub fn full_name(&self) -> String {
        let unit = match self.unit {
            Some(Measure::Bytes) => "_bytes",
            Some(Measure::Seconds) => "_seconds",
            None => "",
        };
        let end = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{unit}{end}", self.name)
    }
}

const fn metric(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        unit: None,
        labels,
        help,
    }
}

const fn measured(
    name: &'static str,
    kind: Kind,
    unit: Measure,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        unit: Some(unit),
        ..metric(name, kind, labels, help)
    }
}

const BUILD: Metric = metric(
    "headwater_build",
    Info,
    &["version"],
    "The version that runs",
);
const CALLS_TOTAL: Metric = metric(
    "headwater_calls",
    Counter,
    &["definition", "answer", "reason"],
    "Calls by who answered: memory, lookups, procedure (run by Headwater, to prove its definer's rights), interrupted, or relayed to the server for a reason",
);
const STATEMENTS_TOTAL: Metric = metric(
    "headwater_statements",
    Counter,
    &["feed", "answer", "reason"],
    "SELECTs of feeds by answer: kept (from memory), narrowed (candidates from memory), learned, or relayed for a reason. Without a feed: those of forms that were not looked at yet",
);
const TAILS_TOTAL: Metric = metric(
    "headwater_tails",
    Counter,
    &["answer"],
    "SELECTs behind a call by answer: kept (from memory), virtual (ids in the statement), written (the result table)",
);
const TAILS_RETRIED: Metric = metric(
    "headwater_tails_retried",
    Counter,
    &[],
    "SELECTs behind a call whose first answer was put aside",
);
const TABLES: Metric = metric(
    "headwater_tables_written",
    Counter,
    &[],
    "Result tables written before another statement",
);
const REDONE: Metric = metric(
    "headwater_procedures_redone",
    Counter,
    &[],
    "Runs of the real procedure because the result table could not be written",
);
const CALL_SECONDS: Metric = measured(
    "headwater_call",
    Kind::Histogram,
    Seconds,
    &["answer"],
    "How long calls took that Headwater answered, from the packet to the answer",
);
const STATEMENT_SECONDS: Metric = measured(
    "headwater_statement",
    Kind::Histogram,
    Seconds,
    &["answer"],
    "How long SELECTs of feeds took that Headwater answered, from the packet to the answer",
);
const PROOF_SECONDS: Metric = measured(
    "headwater_proof",
    Kind::Histogram,
    Seconds,
    &[],
    "How long proofs of freshness took. One serves all calls that wait for it",
);
const BINLOG: Metric = metric(
    "headwater_binlog_state",
    Gauge,
    &["reason"],
    "1 for the one state that holds: followed, or the reason why the server's log is not followed and nothing is answered from memory",
);
const LAG: Metric = measured(
    "headwater_binlog_lag",
    Gauge,
    Bytes,
    &[],
    "Bytes of the server's log that are not applied to memory yet, up to the end that the server told last",
);
const WAITING: Metric = measured(
    "headwater_binlog_waiting",
    Gauge,
    Seconds,
    &[],
    "How long row changes have waited without a break until it is proved that they can be read; 0: none wait",
);
const CHANGES: Metric = metric(
    "headwater_binlog_waiting_changes",
    Gauge,
    &[],
    "How many row changes wait",
);
const SILENT: Metric = measured(
    "headwater_binlog_silent",
    Gauge,
    Seconds,
    &[],
    "Since when nothing was heard of the server's log. It gives a sign of life every half second",
);
const UNREADABLE: Metric = metric(
    "headwater_binlog_unreadable",
    Counter,
    &[],
    "Statements of the server's log that could not be read for certain, or stand in place of row changes. Each emptied memory",
);
const CONTRADICTIONS: Metric = metric(
    "headwater_memory_contradictions",
    Counter,
    &[],
    "Times rows and log contradicted each other. Each emptied memory: somebody changes rows without logging them",
);
const INDEX: Metric = measured(
    "headwater_index",
    Gauge,
    Bytes,
    &[],
    "Memory of all timelines and feeds: who follows whom, and ids",
);
const INDEX_LIMIT: Metric = measured(
    "headwater_index_limit",
    Gauge,
    Bytes,
    &[],
    "What it may grow to with as many timelines as there are now (index.memory_bytes each)",
);
const INDEX_ENTRIES: Metric = metric(
    "headwater_index_entries",
    Gauge,
    &["kind"],
    "What is in it: timelines, follows, authors, messages",
);
const EVICTED: Metric = metric(
    "headwater_index_evicted",
    Counter,
    &[],
    "Authors and readers that made room for others in memory, and have to be loaded anew",
);
const ROWS: Metric = measured("headwater_rows", Gauge, Bytes, &[], "Memory of kept rows");
const ROWS_LIMIT: Metric = measured(
    "headwater_rows_limit",
    Gauge,
    Bytes,
    &[],
    "What it may grow to (rows.memory_bytes)",
);
const ROWS_MESSAGES: Metric = metric(
    "headwater_rows_messages",
    Gauge,
    &[],
    "Messages of which rows are kept, and rows beside them",
);
const ROWS_EVICTED: Metric = metric(
    "headwater_rows_evicted",
    Counter,
    &[],
    "Kept rows that made room for others",
);
const SESSIONS: Metric = metric(
    "headwater_sessions",
    Gauge,
    &[],
    "Clients that are connected",
);
const SESSIONS_LIMIT: Metric = metric(
    "headwater_sessions_limit",
    Gauge,
    &[],
    "How many may be (limits.sessions, or what open files allow)",
);
const SESSIONS_OPENED: Metric = metric(
    "headwater_sessions_opened",
    Counter,
    &[],
    "Clients that connected",
);
const LOGINS_CUT: Metric = metric(
    "headwater_logins_cut",
    Counter,
    &[],
    "Logins that did not come to an end: the client left, or was refused",
);
const LOGIN_ERRORS: Metric = metric(
    "headwater_login_errors",
    Counter,
    &[],
    "Of these, logins that the server counts towards max_connect_errors",
);
const STALLED: Metric = metric(
    "headwater_clients_stalled",
    Counter,
    &[],
    "Sessions that ended because their client did not take what waited for it",
);
const UP: Metric = metric(
    "headwater_upstream_up",
    Gauge,
    &[],
    "1 if the server greets who connects, as was tried just now",
);
const COMPARED: Metric = metric(
    "headwater_shadow_compared",
    Counter,
    &["result"],
    "Calls and pages that were compared with the server's (shadow.rate): same, different, unsure",
);
const CPU: Metric = measured(
    "process_cpu",
    Counter,
    Seconds,
    &[],
    "Processor time of the process",
);
const RESIDENT: Metric = measured(
    "process_resident_memory",
    Gauge,
    Bytes,
    &[],
    "Memory of the process that is in use",
);
const VIRTUAL: Metric = measured(
    "process_virtual_memory",
    Gauge,
    Bytes,
    &[],
    "Addresses of the process",
);
const FILES: Metric = metric("process_open_fds", Gauge, &[], "Open files and sockets");
const FILES_LIMIT: Metric = metric("process_max_fds", Gauge, &[], "How many there may be");
const THREADS: Metric = metric("process_threads", Gauge, &[], "Threads");
const BEGUN: Metric = measured(
    "process_start_time",
    Gauge,
    Seconds,
    &[],
    "When the process began, in seconds since 1970",
);

/// Every metric, in the order in which they are told.
pub const ALL: [Metric; 40] = [
    BUILD,
    CALLS_TOTAL,
    CALL_SECONDS,
    STATEMENTS_TOTAL,
    STATEMENT_SECONDS,
    TAILS_TOTAL,
    TAILS_RETRIED,
    TABLES,
    REDONE,
    PROOF_SECONDS,
    BINLOG,
    LAG,
    WAITING,
    CHANGES,
    SILENT,
    UNREADABLE,
    CONTRADICTIONS,
    INDEX,
    INDEX_LIMIT,
    INDEX_ENTRIES,
    EVICTED,
    ROWS,
    ROWS_LIMIT,
    ROWS_MESSAGES,
    ROWS_EVICTED,
    SESSIONS,
    SESSIONS_LIMIT,
    SESSIONS_OPENED,
    LOGINS_CUT,
    LOGIN_ERRORS,
    STALLED,
    UP,
    COMPARED,
    CPU,
    RESIDENT,
    VIRTUAL,
    FILES,
    FILES_LIMIT,
    THREADS,
    BEGUN,
];

/// How a metric is told in one of the forms that Prometheus reads: the form's name, and the page.
pub(super) async fn page(state: &State, openmetrics: bool) -> (&'static str, String) {
    let up = state.reachable.fault(&state.seen).await.is_none();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page::of(&state.seen, up)));
    let mut page = String::new();
    // Writing into a text does not fail.
    let (kind, written) = match openmetrics {
        true => (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            text::encode(&mut page, &registry),
        ),
        false => (
            prometheus_text::CONTENT_TYPE,
            prometheus_text::encode(&mut page, &registry),
        ),
    };
    if written.is_err() {
        page.clear();
    }
    (kind, page)
}

/// What is told at a moment.
#[derive(Debug)]
struct Page(Vec<(Metric, Vec<Sample>)>);

#[derive(Debug)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Whole(u64),
    Fraction(f64),
    Measured(Measured),
}

impl Page {
    fn of(seen: &Seen, up: bool) -> Page {
        let mut page = Page(Vec::with_capacity(ALL.len()));
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        page.add(BUILD, [(version, 1)]);
        page.calls(seen);
        page.memory(seen);
        page.sessions(seen);
        page.one(UP, u64::from(up));
        let shadow = seen.shared.shadow.as_ref().map(|shadow| shadow.compared());
        page.add(
            COMPARED,
            shadow
                .into_iter()
                .flatten()
                .map(|(result, count)| (labels([("result", result)]), count)),
        );
        page.process(seen);
        page
    }

    fn add(&mut self, metric: Metric, samples: impl IntoIterator<Item = (Labels, u64)>) {
        let samples = samples.into_iter().map(|(labels, value)| Sample {
            labels,
            value: Value::Whole(value),
        });
        self.0.push((metric, samples.collect()));
    }

    fn one(&mut self, metric: Metric, value: impl Into<Option<u64>>) {
        self.add(metric, value.into().map(|value| (Vec::new(), value)));
    }

    fn fraction(&mut self, metric: Metric, value: Option<f64>) {
        let samples = value.map(|value| Sample {
            labels: Vec::new(),
            value: Value::Fraction(value),
        });
        self.0.push((metric, samples.into_iter().collect()));
    }

    fn times(&mut self, metric: Metric, times: impl IntoIterator<Item = (Labels, Measured)>) {
        let samples = times.into_iter().map(|(labels, measured)| Sample {
            labels,
            value: Value::Measured(measured),
        });
        self.0.push((metric, samples.collect()));
    }

    fn calls(&mut self, seen: &Seen) {
        let shared = &seen.shared;
        let definitions = shared.catalogue.definitions();
        let became = shared.watched.calls.became().into_iter().map(|it| {
            let definition = it.definition.and_then(|number| number.of(definitions));
            let definition = definition.map_or("", |definition| &definition.name);
            let labels = labels([
                ("definition", definition),
                ("answer", it.answer),
                ("reason", it.reason),
            ]);
            (labels, it.calls)
        });
        self.add(CALLS_TOTAL, became);
        let of = |names: &[&'static str], times: &[crate::latency::Histogram]| {
            let each = names.iter().zip(times);
            let told =
                each.map(|(answer, times)| (labels([("answer", *answer)]), times.measured()));
            told.collect::<Vec<_>>()
        };
        self.times(CALL_SECONDS, of(&CALLS, &shared.watched.call_times));
        self.add(STATEMENTS_TOTAL, statements(seen));
        self.times(
            STATEMENT_SECONDS,
            of(&STATEMENTS, &shared.watched.statement_times),
        );
        let count = |event| shared.counts.of(event);
        let tails = [
            ("kept", Event::TailKept),
            ("virtual", Event::TailVirtual),
            ("written", Event::TailWritten),
        ];
        self.add(
            TAILS_TOTAL,
            tails.map(|(answer, event)| (labels([("answer", answer)]), count(event))),
        );
        self.one(TAILS_RETRIED, count(Event::TailRetried));
        self.one(TABLES, count(Event::TableWritten));
        self.one(REDONE, count(Event::ProcedureRedone));
    }

    fn memory(&mut self, seen: &Seen) {
        let binlog = seen.shared.binlog.as_ref();
        let proofs = binlog.map(|binlog| (Vec::new(), binlog.proofs().measured()));
        self.times(PROOF_SECONDS, proofs);
        let state = binlog.map(|binlog| binlog.aside().map_or("followed", |aside| aside.reason));
        let states = state.into_iter().flat_map(|holds| {
            let all = ["followed"]
                .into_iter()
                .chain(REASONS.map(|(reason, _)| reason));
            all.map(move |reason| (labels([("reason", reason)]), u64::from(reason == holds)))
        });
        self.add(BINLOG, states);
        let lag = binlog.and_then(|binlog| binlog.lag());
        self.one(LAG, lag.map(|lag| lag.bytes));
        self.fraction(WAITING, lag.map(|lag| lag.waits.as_secs_f64()));
        self.one(CHANGES, lag.map(|lag| lag.changes as u64));
        self.fraction(SILENT, lag.map(|lag| lag.silent.as_secs_f64()));
        self.one(UNREADABLE, binlog.map(|binlog| binlog.unreadable()));
        self.one(CONTRADICTIONS, binlog.map(|binlog| binlog.contradictions()));
        let sizes = binlog.map(|binlog| (binlog.timelines(), binlog.sizes()));
        self.one(INDEX, sizes.map(|(_, [bytes, ..])| bytes as u64));
        let limit = binlog.zip(sizes).map(|(binlog, (timelines, _))| {
            (binlog.limits().memory_bytes as u64).saturating_mul(timelines as u64)
        });
        self.one(INDEX_LIMIT, limit);
        let entries = sizes
            .into_iter()
            .flat_map(|(timelines, [_, follows, authors, messages])| {
                [
                    ("timelines", timelines),
                    ("follows", follows),
                    ("authors", authors),
                    ("messages", messages),
                ]
            });
        self.add(
            INDEX_ENTRIES,
            entries.map(|(kind, count)| (labels([("kind", kind)]), count as u64)),
        );
        self.one(EVICTED, binlog.map(|binlog| binlog.evicted()));
        let rows = binlog.and_then(|binlog| binlog.rows());
        self.one(ROWS, rows.map(|rows| rows.bytes() as u64));
        let limit = binlog.map(|binlog| binlog.limits().rows_bytes as u64);
        self.one(ROWS_LIMIT, limit.filter(|_| rows.is_some()));
        self.one(ROWS_MESSAGES, rows.map(|rows| rows.messages() as u64));
        self.one(ROWS_EVICTED, rows.map(|rows| rows.evicted()));
    }

    fn sessions(&mut self, seen: &Seen) {
        let most = seen.most_sessions;
        let now = most.saturating_sub(seen.room.available_permits());
        self.one(SESSIONS, now as u64);
        self.one(SESSIONS_LIMIT, most as u64);
        let count = |event| seen.shared.counts.of(event);
        self.one(SESSIONS_OPENED, count(Event::Session));
        self.one(LOGINS_CUT, count(Event::LoginCut));
        self.one(LOGIN_ERRORS, count(Event::LoginError));
        self.one(STALLED, count(Event::ClientStalled));
    }

    fn process(&mut self, seen: &Seen) {
        let process = Process::now(seen.begun.elapsed().as_secs_f64());
        self.fraction(CPU, process.cpu);
        self.one(RESIDENT, process.resident_bytes);
        self.one(VIRTUAL, process.virtual_bytes);
        self.one(FILES, process.open_files);
        self.one(FILES_LIMIT, process.most_files);
        self.one(THREADS, process.threads);
        self.fraction(BEGUN, process.begun);
    }
}

/// How many of feeds' statements were answered how.
pub(super) fn statements_by_answer(seen: &Seen) -> impl Iterator<Item = (&'static str, u64)> {
    let answers = || STATEMENTS.into_iter().chain([RELAYED]);
    statements(seen)
        .into_iter()
        .filter_map(move |(labels, count)| {
            let told = |name: &&str| {
                labels
                    .iter()
                    .any(|(label, value)| *label == "answer" && value == name)
            };
            Some((answers().find(told)?, count))
        })
}

/// What became of feeds' statements: by feed, and of those whose feed is not known, by reason.
fn statements(seen: &Seen) -> Vec<(Labels, u64)> {
    let shared = &seen.shared;
    let feeds = shared.feeds.as_ref().map(|feeds| feeds.counted());
    let mut told = Vec::new();
    let mut of_feeds: Vec<(&str, u64)> = Vec::new();
    for (feed, counted) in feeds.into_iter().flatten() {
        let counted = counted.all();
        let times = |name: &str| {
            counted
                .iter()
                .find(|(own, _)| *own == name)
                .map_or(0, |(_, n)| *n)
        };
        for answer in STATEMENTS {
            told.push((
                labels([("feed", &*feed), ("answer", answer), ("reason", "")]),
                times(answer),
            ));
        }
        for (reason, times) in counted
            .iter()
            .filter(|(name, _)| !STATEMENTS.contains(name))
        {
            told.push((
                labels([("feed", &*feed), ("answer", RELAYED), ("reason", *reason)]),
                *times,
            ));
            of_feeds.push((*reason, *times));
        }
    }
    for (why, count) in Why::all().zip(shared.counts.feeds_relayed()) {
        let reason = why.label();
        let known = of_feeds
            .iter()
            .filter(|(own, _)| *own == reason)
            .map(|(_, n)| n)
            .sum();
        let others = count.saturating_sub(known);
        if others > 0 {
            told.push((
                labels([("feed", ""), ("answer", RELAYED), ("reason", reason)]),
                others,
            ));
        }
    }
    told
}

type Labels = Vec<(&'static str, String)>;

fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels
        .map(|(label, value)| (label, value.to_owned()))
        .into()
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (metric, samples) in &self.0 {
            // A metric of nothing is not told of.
            if samples.is_empty() {
                continue;
            }
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Info => MetricType::Info,
            };
            let unit = metric.unit.map(|unit| match unit {
                Measure::Bytes => Unit::Bytes,
                Measure::Seconds => Unit::Seconds,
            });
            let mut told =
                encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            for sample in samples {
                if metric.kind == Kind::Info {
                    told.encode_info(&sample.labels)?;
                } else if sample.labels.is_empty() {
                    tell(&mut told, metric.kind, &sample.value)?;
                } else {
                    tell(
                        &mut told.encode_family(&sample.labels)?,
                        metric.kind,
                        &sample.value,
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn tell(told: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> Result<(), fmt::Error> {
    match (kind, value) {
        (Kind::Counter, Value::Whole(value)) => {
            told.encode_counter::<NoLabelSet, _, f64>(value, None)
        }
        (Kind::Counter, Value::Fraction(value)) => {
            told.encode_counter::<NoLabelSet, _, f64>(value, None)
        }
        (_, Value::Whole(value)) => told.encode_gauge(value),
        (_, Value::Fraction(value)) => told.encode_gauge(value),
        (_, Value::Measured(measured)) => {
            let Measured {
                buckets,
                count,
                sum,
            } = measured;
            told.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
        }
    }
}
