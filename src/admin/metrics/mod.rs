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
    BEGUN, BINLOG, BUILD, CALL_SECONDS, CALLS_TOTAL, CHANGES, COMPARED, CONTRADICTIONS, CPU,
    EVICTED, FILES, FILES_LIMIT, INDEX, INDEX_ENTRIES, INDEX_LIMIT, LAG, LOGIN_ERRORS, LOGINS_CUT,
    PROOF_SECONDS, REDONE, RESIDENT, ROWS, ROWS_EVICTED, ROWS_LIMIT, ROWS_MESSAGES, SESSIONS,
    SESSIONS_LIMIT, SESSIONS_OPENED, SILENT, STALLED, STATEMENT_SECONDS, STATEMENTS_TOTAL, TABLES,
    TAILS_RETRIED, TAILS_TOTAL, THREADS, UNREADABLE, UP, VIRTUAL, WAITING,
};
use super::process::Process;
use super::{Seen, State};
use crate::binlog::REASONS;
use crate::latency::Measured;
use crate::session::calls::{Answer, RELAYED};
use crate::session::counts::Event;
use crate::session::narrowing::Why;
use crate::session::watched::STATEMENTS;

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
        let became = shared.counts.calls().became().into_iter().map(|it| {
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
