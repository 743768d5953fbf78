//! Everything that is counted, as Prometheus reads it: put together when somebody asks. `names` says what each means.

mod names;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

pub use self::names::{ALL, Kind, Measure, Metric};
use self::names::{
    BEGUN, BINLOG, BUILD, CALL_SECONDS, CALLS_TOTAL, CHANGES, COMPARED, CONFIRMED, CONTRADICTIONS,
    CPU, DATA_NODES, EVICTED, FAILOVERS, FILES, FILES_LIMIT, INDEX, INDEX_ENTRIES, INDEX_LIMIT,
    LAG, LOG_MESSAGES, LOG_SUPPRESSED, LOGIN_ERRORS, LOGINS_CUT, PROOF_SECONDS, REDONE,
    RELAYED_BYTES, RESIDENT, RESUMED, ROWS, ROWS_EVICTED, ROWS_LIMIT, ROWS_MESSAGES, SERVER_ROLE,
    SERVER_UP, SESSIONS, SESSIONS_LIMIT, SESSIONS_OPENED, SESSIONS_STATE, SILENT, STALLED,
    STATEMENT_SECONDS, STATEMENTS_TOTAL, TABLES, TAILS_RETRIED, TAILS_TOTAL, THREADS, UNREADABLE,
    UP, VIRTUAL, WAITING,
};
use super::process::Process;
use crate::binlog::REASONS;
use crate::clock;
use crate::cluster::{Role, Seen};
use crate::latency::Measured;
use crate::session::calls::{Answer, RELAYED};
use crate::session::counts::Event;
use crate::session::machine::Doing;
use crate::session::narrowing::Why;
use crate::session::shared::Shared;
use crate::session::table::Cell;
use crate::session::watched::STATEMENTS;
use crate::sql::shown;
use crate::version;

/// How metrics are told in one of the forms that Prometheus reads: the form's name, and the page. `up`: the server answers.
#[must_use]
pub fn page(shared: &Shared, up: bool, openmetrics: bool) -> (&'static str, String) {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page::of(shared, up)));
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

/// Each value by its name as Prometheus shows it, labels in braces. Of times their number and their sum are told.
pub(super) fn flat(shared: &Shared, up: bool) -> Vec<(String, Cell)> {
    let mut flat = Vec::new();
    for (metric, samples) in Page::of(shared, up).0 {
        for sample in samples {
            let labels: Vec<String> = sample
                .labels
                .iter()
                .map(|(label, value)| {
                    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                    format!("{label}=\"{value}\"")
                })
                .collect();
            let mut add = |ending: &str, value: Cell| {
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
                Value::Whole(value) => add("", value.into()),
                Value::Fraction(value) => add("", value.into()),
                Value::Measured(measured) => {
                    add("_count", measured.count.into());
                    add("_sum", measured.sum.into());
                }
            }
        }
    }
    flat
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
    fn of(shared: &Shared, up: bool) -> Page {
        let mut page = Page(Vec::with_capacity(ALL.len()));
        let version = labels([
            ("version", version::NUMBER),
            ("commit", version::COMMIT),
            ("build", version::BUILD),
        ]);
        page.add(BUILD, [(version, 1)]);
        page.calls(shared);
        page.memory(shared);
        page.sessions(shared);
        page.one(UP, u64::from(up));
        page.servers(shared);
        let shadow = shared.shadow.as_ref().map(|shadow| shadow.compared());
        page.add(
            COMPARED,
            shadow
                .into_iter()
                .flatten()
                .map(|(result, count)| (labels([("result", result)]), count)),
        );
        page.log(shared);
        page.process(shared);
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

    fn calls(&mut self, shared: &Shared) {
        let definitions = shared.catalogue.definitions();
        let became = shared.counts.calls().became(definitions);
        let became = became.into_iter().map(|it| {
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
        self.times(
            CALL_SECONDS,
            of(
                &Answer::ALL.map(|(_, name)| name),
                &shared.watched.call_times,
            ),
        );
        self.add(STATEMENTS_TOTAL, statements(shared));
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

    fn memory(&mut self, shared: &Shared) {
        let binlog = shared.binlog.as_ref();
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
        self.one(RESUMED, binlog.map(|binlog| binlog.resumed()));
        let confirmed = binlog.map(|binlog| binlog.confirmed());
        let confirmed = confirmed.into_iter().flat_map(|[equal, different]| {
            [("equal", equal), ("different", different)]
                .map(|(result, count)| (labels([("result", result)]), count))
        });
        self.add(CONFIRMED, confirmed);
        self.one(CONTRADICTIONS, binlog.map(|binlog| binlog.contradictions()));
        let nodes = shared.spread.as_ref().map(|spread| spread.nodes());
        self.add(
            DATA_NODES,
            nodes
                .into_iter()
                .flatten()
                .map(|(server, followed)| (labels([("server", &*server)]), u64::from(followed))),
        );
        let held = shared.held();
        self.one(INDEX, held.map(|held| held.sizes[0] as u64));
        self.one(INDEX_LIMIT, held.map(|held| held.most_bytes as u64));
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
        self.one(EVICTED, held.map(|held| held.evicted));
        let rows = binlog.and_then(|binlog| binlog.rows());
        self.one(ROWS, rows.map(|rows| rows.bytes() as u64));
        let limit = binlog.map(|binlog| binlog.limits().rows_bytes as u64);
        self.one(ROWS_LIMIT, limit.filter(|_| rows.is_some()));
        self.one(ROWS_MESSAGES, rows.map(|rows| rows.messages() as u64));
        self.one(ROWS_EVICTED, rows.map(|rows| rows.evicted()));
    }

    fn sessions(&mut self, shared: &Shared) {
        let (room, most) = (&shared.room.0, shared.room.1);
        let now = most.saturating_sub(room.available_permits());
        self.one(SESSIONS, now as u64);
        let all = shared.sessions.all();
        let states = Doing::ALL.map(|state| {
            let sessions = all.iter().filter(|listed| listed.doing() == state).count();
            (labels([("state", state.name())]), sessions as u64)
        });
        self.add(SESSIONS_STATE, states);
        self.one(SESSIONS_LIMIT, most as u64);
        let count = |event| shared.counts.of(event);
        self.one(SESSIONS_OPENED, count(Event::Session));
        let [to_server, to_client] = shared.sessions.bytes();
        let bytes = [("to_server", to_server), ("to_client", to_client)];
        let bytes = bytes.map(|(direction, bytes)| (labels([("direction", direction)]), bytes));
        self.add(RELAYED_BYTES, bytes);
        self.one(LOGINS_CUT, count(Event::LoginCut));
        self.one(LOGIN_ERRORS, count(Event::LoginError));
        self.one(STALLED, count(Event::ClientStalled));
    }

    fn servers(&mut self, shared: &Shared) {
        let mut up = Vec::new();
        let mut roles = Vec::new();
        for (server, status) in shared.upstreams.statuses() {
            let Some(status) = status else { continue };
            let answers = matches!(status.seen, Seen::Told(_) | Seen::Refuses(_));
            up.push((labels([("server", server)]), u64::from(answers)));
            for role in Role::NAMES {
                let is = u64::from(role == status.role.name());
                roles.push((labels([("server", server), ("role", role)]), is));
            }
        }
        self.add(SERVER_UP, up);
        self.add(SERVER_ROLE, roles);
        self.one(FAILOVERS, shared.upstreams.failovers());
    }

    fn log(&mut self, shared: &Shared) {
        let messages = shared.messages.get();
        let counted = messages.into_iter().flat_map(|messages| messages.counted());
        let counted = counted.map(|(level, count)| (labels([("level", level)]), count));
        self.add(LOG_MESSAGES, counted);
        let suppressed = messages.map(|messages| messages.suppressed());
        self.one(LOG_SUPPRESSED, suppressed);
    }

    fn process(&mut self, shared: &Shared) {
        let process = Process::now(clock::since(shared.begun).as_secs_f64());
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
pub(crate) fn statements_by_answer(shared: &Shared) -> impl Iterator<Item = (&'static str, u64)> {
    let answers = || STATEMENTS.into_iter().chain([RELAYED]);
    statements(shared)
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
fn statements(shared: &Shared) -> Vec<(Labels, u64)> {
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
        .map(|(label, value)| (label, shown(value).into_owned()))
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
