//! Counters of the last fifteen minutes, one sample every five seconds, for the page's charts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::{AdminContext, AdminState};
use crate::overview::metrics;
use crate::overview::process::ProcessStats;
use headwater_proxy::clock;
use headwater_proxy::latency::HistogramSnapshot;
use headwater_proxy::session::call_counters::{CallAnswer, RELAYED};
use headwater_proxy::session::measurements::STATEMENTS;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Fifteen minutes.
const MAX_SAMPLES: usize = 180;

#[derive(Debug, Default)]
pub(super) struct SampleHistory(Mutex<VecDeque<HistorySample>>);

/// Values per second, by answer; `None`: unknown.
type AnswerMap<T> = BTreeMap<&'static str, Option<T>>;

/// The rates of one sample interval.
#[derive(Clone, Debug, Serialize)]
struct HistorySample {
    /// Seconds since 1970, at the end of the interval.
    at: u64,
    calls: AnswerMap<f64>,
    statements: AnswerMap<f64>,
    /// Median and 99th percentile of the answer times, in milliseconds.
    p50_ms: AnswerMap<f64>,
    p99_ms: AnswerMap<f64>,
    lag_bytes: Option<u64>,
    lag_seconds: Option<f64>,
    index_bytes: Option<u64>,
    rows_bytes: Option<u64>,
    process_bytes: Option<u64>,
}

/// The response of `/api/history`.
#[derive(Debug, Serialize)]
pub(super) struct HistoryReport {
    each_seconds: u64,
    samples: Vec<HistorySample>,
}

impl SampleHistory {
    pub(super) fn report(&self) -> HistoryReport {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        HistoryReport {
            each_seconds: SAMPLE_INTERVAL.as_secs(),
            samples: samples.iter().cloned().collect(),
        }
    }

    fn add(&self, sample: HistorySample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

/// Adds samples until the process ends.
pub(super) async fn record_samples(state: Arc<AdminState>) {
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut before: Option<(Instant, CounterSnapshot)> = None;
    loop {
        ticks.tick().await;
        let counted = CounterSnapshot::now(&state.context);
        if let Some((at, before)) = before {
            state
                .history
                .add(sample(&state.context, clock::since(at), &before, &counted));
        }
        before = Some((clock::now(), counted));
    }
}

/// All counters from which rates are computed.
#[derive(Debug)]
struct CounterSnapshot {
    calls: BTreeMap<&'static str, u64>,
    statements: BTreeMap<&'static str, u64>,
    times: Vec<(&'static str, HistogramSnapshot)>,
}

impl CounterSnapshot {
    fn now(context: &AdminContext) -> CounterSnapshot {
        let shared = context.shared();
        let watched = &shared.measurements;
        let mut calls: BTreeMap<_, u64> = CallAnswer::ALL.map(|(_, name)| (name, 0)).into();
        calls.insert(RELAYED, 0);
        for became in shared
            .counters
            .calls()
            .outcome_counts(shared.catalogue.definitions())
        {
            *calls.entry(became.answer).or_default() += became.calls;
        }
        let names = STATEMENTS.into_iter().chain([RELAYED]);
        let mut statements: BTreeMap<_, u64> = names.map(|name| (name, 0)).collect();
        for (answer, count) in metrics::statements_by_answer(&shared) {
            *statements.entry(answer).or_default() += count;
        }
        let of_calls = CallAnswer::ALL
            .iter()
            .map(|(_, name)| *name)
            .zip(&watched.call_times);
        let of_statements = STATEMENTS.into_iter().zip(&watched.statement_times);
        let times = of_calls.chain(of_statements);
        CounterSnapshot {
            calls,
            statements,
            times: times
                .map(|(name, times)| (name, times.snapshot()))
                .collect(),
        }
    }
}

fn sample(
    context: &AdminContext,
    time: Duration,
    before: &CounterSnapshot,
    now: &CounterSnapshot,
) -> HistorySample {
    let rates = |before: &BTreeMap<&'static str, u64>, now: &BTreeMap<&'static str, u64>| {
        let each = now.iter().map(|(name, count)| {
            let since = count.saturating_sub(before.get(name).copied().unwrap_or_default());
            #[allow(clippy::cast_precision_loss, reason = "so many in five seconds")]
            let rate = since as f64 / time.as_secs_f64();
            (*name, rate.is_finite().then_some(round_to_tenths(rate)))
        });
        each.collect::<AnswerMap<f64>>()
    };
    let took = |share: f64| {
        let each = before.times.iter().zip(&now.times);
        each.map(|((name, before), (_, now))| (*name, quantile(before, now, share)))
            .collect::<AnswerMap<f64>>()
    };
    let shared = context.shared();
    let binlog = shared.binlog.as_ref();
    let lag = binlog.and_then(|binlog| binlog.lag());
    HistorySample {
        at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        calls: rates(&before.calls, &now.calls),
        statements: rates(&before.statements, &now.statements),
        p50_ms: took(0.5),
        p99_ms: took(0.99),
        lag_bytes: lag.map(|lag| lag.bytes),
        lag_seconds: lag.map(|lag| lag.waiting_for.as_secs_f64()),
        index_bytes: binlog.map(|binlog| {
            let [bytes, ..] = binlog.sizes();
            bytes as u64
        }),
        rows_bytes: binlog
            .and_then(|binlog| binlog.row_cache())
            .map(|rows| rows.memory_bytes() as u64),
        process_bytes: ProcessStats::now(0.0).resident_bytes,
    }
}

fn round_to_tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Quantile of the times recorded between two snapshots, in milliseconds; interpolates within a bucket. `None`: nothing was recorded, or
/// the quantile is above the last bound.
fn quantile(before: &HistogramSnapshot, now: &HistogramSnapshot, share: f64) -> Option<f64> {
    let counts = before.buckets.iter().zip(&now.buckets);
    let counts = counts.map(|((_, before), (bound, now))| (*bound, now.saturating_sub(*before)));
    let all: u64 = counts.clone().map(|(_, count)| count).sum();
    #[allow(clippy::cast_precision_loss, reason = "so many in five seconds")]
    let mut remaining = (all > 0).then_some(all as f64 * share)?;
    let mut lower = 0.0;
    for (bound, count) in counts {
        #[allow(clippy::cast_precision_loss, reason = "so many in five seconds")]
        let held = count as f64;
        if held >= remaining && held > 0.0 {
            let within = lower + (bound - lower) * remaining / held;
            let ms = (within * 1e6).round() / 1e3;
            return ms.is_finite().then_some(ms);
        }
        remaining -= held;
        lower = bound;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_proxy::latency::LatencyHistogram;

    #[test]
    fn a_quantile_is_of_what_happened_between_two_moments() {
        let histogram = LatencyHistogram::default();
        histogram.record(Duration::from_secs(5));
        let before = histogram.snapshot();
        assert_eq!(quantile(&before, &before, 0.5), None);
        for microseconds in [60, 70, 80, 900] {
            histogram.record(Duration::from_micros(microseconds));
        }
        let now = histogram.snapshot();
        // Two of the three between 50 and 100 microseconds.
        assert_eq!(quantile(&before, &now, 0.5), Some(0.083));
        let p99 = quantile(&before, &now, 0.99);
        assert!(p99.is_some_and(|ms| (0.9..=1.0).contains(&ms)), "{p99:?}");
        histogram.record(Duration::from_secs(60));
        assert_eq!(quantile(&now, &histogram.snapshot(), 0.5), None);
    }
}
