//! Every metric, as Prometheus reads it; collected on request. `metric_definitions` explains each.

mod metric_definitions;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

pub use self::metric_definitions::{ALL, MetricDefinition, MetricKind, MetricUnit};
use self::metric_definitions::{
    BINLOG_LAG, BINLOG_SILENCE, BINLOG_STATE, BINLOG_WAITING, BUILD, CALL_SECONDS, CALLS_TOTAL,
    CLIENTS_STALLED, CPU, DATA_NODES, FAILOVERS, FILES, FILES_LIMIT, FOLLOW_UPS_RETRIED,
    FOLLOW_UPS_TOTAL, INDEX_BYTES, INDEX_ENTRIES, INDEX_EVICTED, INDEX_LIMIT, LOG_MESSAGES,
    LOG_SUPPRESSED, LOGIN_ERRORS, LOGINS_CUT, MEMORY_CONFIRMED, MEMORY_CONTRADICTIONS,
    MEMORY_RESUMED, PROCEDURES_REDONE, PROCESS_START_TIME, PROOF_SECONDS, RELAYED_BYTES, RESIDENT,
    ROWS_BYTES, ROWS_EVICTED, ROWS_LIMIT, ROWS_MESSAGES, SERVER_ROLE, SERVER_UP, SESSIONS,
    SESSIONS_LIMIT, SESSIONS_OPENED, SESSIONS_STATE, SHADOW_COMPARED, STATEMENT_SECONDS,
    STATEMENTS_TOTAL, TABLES_WRITTEN, THREADS, UNREADABLE_STATEMENTS, UPSTREAM_UP, VIRTUAL,
    WAITING_CHANGES,
};
use super::process::ProcessStats;
use crate::version;
use headwater_cluster::{ServerObservation, ServerRole};
use headwater_proxy::binlog::REASONS;
use headwater_proxy::clock;
use headwater_proxy::latency::HistogramSnapshot;
use headwater_proxy::session::call_counters::{CallAnswer, RELAYED};
use headwater_proxy::session::measurements::STATEMENTS;
use headwater_proxy::session::overview_table::OverviewCell;
use headwater_proxy::session::session_counters::SessionEvent;
use headwater_proxy::session::shared_state::SharedState;
use headwater_session::feed_decision::FeedRelayReason;
use headwater_session::machine::SessionActivity;
use headwater_sql::escape_hidden;

/// The metrics in a format that Prometheus reads: content type, and page. `up`: the server answers.
#[must_use]
pub fn render_page(shared: &SharedState, up: bool, openmetrics: bool) -> (&'static str, String) {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(MetricsPage::collect(shared, up)));
    let mut page = String::new();
    // Writing into a string does not fail.
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

/// Each value by the name that Prometheus shows, labels in braces. Histograms have their count and sum only.
pub(super) fn flat_values(shared: &SharedState, up: bool) -> Vec<(String, OverviewCell)> {
    let mut flat = Vec::new();
    for (metric, samples) in MetricsPage::collect(shared, up).0 {
        for sample in samples {
            let labels: Vec<String> = sample
                .labels
                .iter()
                .map(|(label, value)| {
                    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                    format!("{label}=\"{value}\"")
                })
                .collect();
            let mut add = |ending: &str, value: OverviewCell| {
                let name = metric.full_name();
                flat.push((
                    match labels.is_empty() {
                        true => format!("{name}{ending}"),
                        false => format!("{name}{ending}{{{}}}", labels.join(",")),
                    },
                    value,
                ));
            };
            match sample.value {
                SampleValue::Integer(value) => add("", value.into()),
                SampleValue::Fraction(value) => add("", value.into()),
                SampleValue::Histogram(measured) => {
                    add("_count", measured.count.into());
                    add("_sum", measured.sum.into());
                }
            }
        }
    }
    flat
}

/// The metrics at one moment.
#[derive(Debug)]
struct MetricsPage(Vec<(MetricDefinition, Vec<MetricSample>)>);

#[derive(Debug)]
struct MetricSample {
    labels: Vec<(&'static str, String)>,
    value: SampleValue,
}

#[derive(Debug)]
enum SampleValue {
    Integer(u64),
    Fraction(f64),
    Histogram(HistogramSnapshot),
}

impl MetricsPage {
    fn collect(shared: &SharedState, up: bool) -> MetricsPage {
        let mut page = MetricsPage(Vec::with_capacity(ALL.len()));
        let version = labels([
            ("version", version::NUMBER),
            ("commit", version::COMMIT),
            ("build", version::BUILD),
        ]);
        page.add(BUILD, [(version, 1)]);
        page.add_calls(shared);
        page.add_memory(shared);
        page.add_sessions(shared);
        page.add_optional(UPSTREAM_UP, u64::from(up));
        page.add_servers(shared);
        let shadow = shared.shadow.as_ref().map(|shadow| shadow.compared());
        page.add(
            SHADOW_COMPARED,
            shadow
                .into_iter()
                .flatten()
                .map(|(result, count)| (labels([("result", result)]), count)),
        );
        page.add_log(shared);
        page.add_process(shared);
        page
    }

    fn add(
        &mut self,
        metric: MetricDefinition,
        samples: impl IntoIterator<Item = (MetricLabels, u64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| MetricSample {
            labels,
            value: SampleValue::Integer(value),
        });
        self.0.push((metric, samples.collect()));
    }

    fn add_optional(&mut self, metric: MetricDefinition, value: impl Into<Option<u64>>) {
        self.add(metric, value.into().map(|value| (Vec::new(), value)));
    }

    fn add_fraction(&mut self, metric: MetricDefinition, value: Option<f64>) {
        let samples = value.map(|value| MetricSample {
            labels: Vec::new(),
            value: SampleValue::Fraction(value),
        });
        self.0.push((metric, samples.into_iter().collect()));
    }

    fn add_histograms(
        &mut self,
        metric: MetricDefinition,
        times: impl IntoIterator<Item = (MetricLabels, HistogramSnapshot)>,
    ) {
        let samples = times.into_iter().map(|(labels, measured)| MetricSample {
            labels,
            value: SampleValue::Histogram(measured),
        });
        self.0.push((metric, samples.collect()));
    }

    fn add_calls(&mut self, shared: &SharedState) {
        let definitions = shared.catalogue.definitions();
        let became = shared.counters.calls().outcome_counts(definitions);
        let became = became.into_iter().map(|it| {
            let definition = it.definition.and_then(|number| number.resolve(definitions));
            let definition = definition.map_or("", |definition| &definition.name);
            let labels = labels([
                ("definition", definition),
                ("answer", it.answer),
                ("reason", it.reason),
            ]);
            (labels, it.calls)
        });
        self.add(CALLS_TOTAL, became);
        let of = |names: &[&'static str], times: &[headwater_proxy::latency::LatencyHistogram]| {
            let each = names.iter().zip(times);
            let samples =
                each.map(|(answer, times)| (labels([("answer", *answer)]), times.snapshot()));
            samples.collect::<Vec<_>>()
        };
        self.add_histograms(
            CALL_SECONDS,
            of(
                &CallAnswer::ALL.map(|(_, name)| name),
                &shared.measurements.call_times,
            ),
        );
        self.add(STATEMENTS_TOTAL, statement_counts(shared));
        self.add_histograms(
            STATEMENT_SECONDS,
            of(&STATEMENTS, &shared.measurements.statement_times),
        );
        let count = |event| shared.counters.count_of(event);
        let tails = [
            ("kept", SessionEvent::FollowUpCached),
            ("virtual", SessionEvent::FollowUpVirtual),
            ("written", SessionEvent::FollowUpWritten),
        ];
        self.add(
            FOLLOW_UPS_TOTAL,
            tails.map(|(answer, event)| (labels([("answer", answer)]), count(event))),
        );
        self.add_optional(FOLLOW_UPS_RETRIED, count(SessionEvent::FollowUpRetried));
        self.add_optional(TABLES_WRITTEN, count(SessionEvent::TableWritten));
        self.add_optional(PROCEDURES_REDONE, count(SessionEvent::ProcedureRedone));
    }

    fn add_memory(&mut self, shared: &SharedState) {
        let binlog = shared.binlog.as_ref();
        let proofs = binlog.map(|binlog| (Vec::new(), binlog.proofs().snapshot()));
        self.add_histograms(PROOF_SECONDS, proofs);
        let state = binlog.map(|binlog| {
            binlog
                .suspension()
                .map_or("followed", |suspension| suspension.reason)
        });
        let states = state.into_iter().flat_map(|holds| {
            let all = ["followed"]
                .into_iter()
                .chain(REASONS.map(|(reason, _)| reason));
            all.map(move |reason| (labels([("reason", reason)]), u64::from(reason == holds)))
        });
        self.add(BINLOG_STATE, states);
        let lag = binlog.and_then(|binlog| binlog.lag());
        self.add_optional(BINLOG_LAG, lag.map(|lag| lag.bytes));
        self.add_fraction(BINLOG_WAITING, lag.map(|lag| lag.waiting_for.as_secs_f64()));
        self.add_optional(WAITING_CHANGES, lag.map(|lag| lag.changes as u64));
        self.add_fraction(BINLOG_SILENCE, lag.map(|lag| lag.silent.as_secs_f64()));
        self.add_optional(
            UNREADABLE_STATEMENTS,
            binlog.map(|binlog| binlog.unreadable()),
        );
        self.add_optional(MEMORY_RESUMED, binlog.map(|binlog| binlog.resumed()));
        let confirmed = binlog.map(|binlog| binlog.confirmed());
        let confirmed = confirmed.into_iter().flat_map(|[equal, different]| {
            [("equal", equal), ("different", different)]
                .map(|(result, count)| (labels([("result", result)]), count))
        });
        self.add(MEMORY_CONFIRMED, confirmed);
        self.add_optional(
            MEMORY_CONTRADICTIONS,
            binlog.map(|binlog| binlog.contradictions()),
        );
        let nodes = shared.spread.as_ref().map(|spread| spread.nodes());
        self.add(
            DATA_NODES,
            nodes
                .into_iter()
                .flatten()
                .map(|(server, followed)| (labels([("server", &*server)]), u64::from(followed))),
        );
        let held = shared.index_usage();
        self.add_optional(INDEX_BYTES, held.map(|held| held.sizes[0] as u64));
        self.add_optional(INDEX_LIMIT, held.map(|held| held.max_bytes as u64));
        let entries = held.into_iter().flat_map(|held| {
            let [_, follows, authors, messages] = held.sizes;
            [
                ("timelines", held.timelines),
                ("follows", follows),
                ("authors", authors),
                ("messages", messages),
            ]
        });
        self.add(
            INDEX_ENTRIES,
            entries.map(|(kind, count)| (labels([("kind", kind)]), count as u64)),
        );
        self.add_optional(INDEX_EVICTED, held.map(|held| held.evicted));
        let rows = binlog.and_then(|binlog| binlog.row_cache());
        self.add_optional(ROWS_BYTES, rows.map(|rows| rows.memory_bytes() as u64));
        let limit = binlog.map(|binlog| binlog.limits().rows_bytes as u64);
        self.add_optional(ROWS_LIMIT, limit.filter(|_| rows.is_some()));
        self.add_optional(
            ROWS_MESSAGES,
            rows.map(|rows| rows.cached_messages() as u64),
        );
        self.add_optional(ROWS_EVICTED, rows.map(|rows| rows.evicted_rows()));
    }

    fn add_sessions(&mut self, shared: &SharedState) {
        let (room, most) = (&shared.session_permits.0, shared.session_permits.1);
        let now = most.saturating_sub(room.available_permits());
        self.add_optional(SESSIONS, now as u64);
        let all = shared.sessions.all();
        let states = SessionActivity::ALL.map(|state| {
            let sessions = all
                .iter()
                .filter(|listed| listed.activity() == state)
                .count();
            (labels([("state", state.name())]), sessions as u64)
        });
        self.add(SESSIONS_STATE, states);
        self.add_optional(SESSIONS_LIMIT, most as u64);
        let count = |event| shared.counters.count_of(event);
        self.add_optional(SESSIONS_OPENED, count(SessionEvent::Session));
        let [to_server, to_client] = shared.sessions.bytes();
        let bytes = [("to_server", to_server), ("to_client", to_client)];
        let bytes = bytes.map(|(direction, bytes)| (labels([("direction", direction)]), bytes));
        self.add(RELAYED_BYTES, bytes);
        self.add_optional(LOGINS_CUT, count(SessionEvent::LoginCut));
        self.add_optional(LOGIN_ERRORS, count(SessionEvent::LoginError));
        self.add_optional(CLIENTS_STALLED, count(SessionEvent::ClientStalled));
    }

    fn add_servers(&mut self, shared: &SharedState) {
        let mut up = Vec::new();
        let mut roles = Vec::new();
        for (server, status) in shared.upstreams.statuses() {
            let Some(status) = status else { continue };
            let answers = matches!(
                status.observation,
                ServerObservation::Reported(_) | ServerObservation::Refused(_)
            );
            up.push((labels([("server", server)]), u64::from(answers)));
            for role in ServerRole::NAMES {
                let is = u64::from(role == status.role.name());
                roles.push((labels([("server", server), ("role", role)]), is));
            }
        }
        self.add(SERVER_UP, up);
        self.add(SERVER_ROLE, roles);
        self.add_optional(FAILOVERS, shared.upstreams.failovers());
    }

    fn add_log(&mut self, shared: &SharedState) {
        let messages = shared.log_state.get();
        let counted = messages
            .into_iter()
            .flat_map(|messages| messages.message_counts());
        let counted = counted.map(|(level, count)| (labels([("level", level)]), count));
        self.add(LOG_MESSAGES, counted);
        let suppressed = messages.map(|messages| messages.suppressed());
        self.add_optional(LOG_SUPPRESSED, suppressed);
    }

    fn add_process(&mut self, shared: &SharedState) {
        let process = ProcessStats::now(clock::since(shared.started_at).as_secs_f64());
        self.add_fraction(CPU, process.cpu_seconds);
        self.add_optional(RESIDENT, process.resident_bytes);
        self.add_optional(VIRTUAL, process.virtual_bytes);
        self.add_optional(FILES, process.open_files);
        self.add_optional(FILES_LIMIT, process.max_open_files);
        self.add_optional(THREADS, process.threads);
        self.add_fraction(PROCESS_START_TIME, process.start_time);
    }
}

/// Numbers of feeds' statements, by answer.
pub(crate) fn statements_by_answer(
    shared: &SharedState,
) -> impl Iterator<Item = (&'static str, u64)> {
    let answers = || STATEMENTS.into_iter().chain([RELAYED]);
    statement_counts(shared)
        .into_iter()
        .filter_map(move |(labels, count)| {
            let is_answer = |name: &&str| {
                labels
                    .iter()
                    .any(|(label, value)| *label == "answer" && value == name)
            };
            Some((answers().find(is_answer)?, count))
        })
}

/// Numbers of feeds' statements: by feed, and by reason for those whose feed is unknown.
fn statement_counts(shared: &SharedState) -> Vec<(MetricLabels, u64)> {
    let feeds = shared.feeds.as_ref().map(|feeds| feeds.counted());
    let mut counts = Vec::new();
    let mut of_feeds: Vec<(&str, u64)> = Vec::new();
    for (feed, counted) in feeds.into_iter().flatten() {
        let counted = counted.all();
        let times = |name: &str| {
            counted
                .iter()
                .find(|(counted_name, _)| *counted_name == name)
                .map_or(0, |(_, n)| *n)
        };
        for answer in STATEMENTS {
            counts.push((
                labels([("feed", &*feed), ("answer", answer), ("reason", "")]),
                times(answer),
            ));
        }
        for (reason, times) in counted
            .iter()
            .filter(|(name, _)| !STATEMENTS.contains(name))
        {
            counts.push((
                labels([("feed", &*feed), ("answer", RELAYED), ("reason", *reason)]),
                *times,
            ));
            of_feeds.push((*reason, *times));
        }
    }
    for (why, count) in FeedRelayReason::all().zip(shared.counters.feeds_relayed()) {
        let reason = why.label();
        let known = of_feeds
            .iter()
            .filter(|(feed_reason, _)| *feed_reason == reason)
            .map(|(_, n)| n)
            .sum();
        let others = count.saturating_sub(known);
        if others > 0 {
            counts.push((
                labels([("feed", ""), ("answer", RELAYED), ("reason", reason)]),
                others,
            ));
        }
    }
    counts
}

type MetricLabels = Vec<(&'static str, String)>;

fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> MetricLabels {
    labels
        .map(|(label, value)| (label, escape_hidden(value).into_owned()))
        .into()
}

impl Collector for MetricsPage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (metric, samples) in &self.0 {
            // A metric without samples is left out.
            if samples.is_empty() {
                continue;
            }
            let kind = match metric.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
                MetricKind::Info => MetricType::Info,
            };
            let unit = metric.unit.map(|unit| match unit {
                MetricUnit::Bytes => Unit::Bytes,
                MetricUnit::Seconds => Unit::Seconds,
            });
            let mut metric_encoder =
                encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            for sample in samples {
                if metric.kind == MetricKind::Info {
                    metric_encoder.encode_info(&sample.labels)?;
                } else if sample.labels.is_empty() {
                    encode_value(&mut metric_encoder, metric.kind, &sample.value)?;
                } else {
                    encode_value(
                        &mut metric_encoder.encode_family(&sample.labels)?,
                        metric.kind,
                        &sample.value,
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn encode_value(
    encoder: &mut MetricEncoder<'_>,
    kind: MetricKind,
    value: &SampleValue,
) -> Result<(), fmt::Error> {
    match (kind, value) {
        (MetricKind::Counter, SampleValue::Integer(value)) => {
            encoder.encode_counter::<NoLabelSet, _, f64>(value, None)
        }
        (MetricKind::Counter, SampleValue::Fraction(value)) => {
            encoder.encode_counter::<NoLabelSet, _, f64>(value, None)
        }
        (_, SampleValue::Integer(value)) => encoder.encode_gauge(value),
        (_, SampleValue::Fraction(value)) => encoder.encode_gauge(value),
        (_, SampleValue::Histogram(measured)) => {
            let HistogramSnapshot {
                buckets,
                count,
                sum,
            } = measured;
            encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
        }
    }
}
