//! What was counted in the last fifteen minutes, a sample each five seconds, so that a page that is opened now can draw it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::{Seen, State};
use crate::clock;
use crate::latency::Measured;
use crate::overview::metrics;
use crate::overview::process::Process;
use crate::session::calls::{Answer, RELAYED};
use crate::session::watched::STATEMENTS;

const EACH: Duration = Duration::from_secs(5);
/// Fifteen minutes.
const MOST: usize = 180;

/// The samples.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<VecDeque<Sample>>);

/// A second's worth by answer; `None` where nothing is known.
type By<T> = BTreeMap<&'static str, Option<T>>;

/// What five seconds were like.
#[derive(Clone, Debug, Serialize)]
struct Sample {
    /// Seconds since 1970 at its end.
    at: u64,
    calls: By<f64>,
    statements: By<f64>,
    /// How long half of the answers took at most, in milliseconds, and how long 99 of a hundred.
    p50_ms: By<f64>,
    p99_ms: By<f64>,
    lag_bytes: Option<u64>,
    lag_seconds: Option<f64>,
    index_bytes: Option<u64>,
    rows_bytes: Option<u64>,
    process_bytes: Option<u64>,
}

/// All that is told.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    each_seconds: u64,
    samples: Vec<Sample>,
}

impl History {
    pub(super) fn told(&self) -> Told {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Told {
            each_seconds: EACH.as_secs(),
            samples: samples.iter().cloned().collect(),
        }
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == MOST {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

/// Samples for good.
pub(super) async fn keep(state: Arc<State>) {
    let mut ticks = tokio::time::interval(EACH);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut before: Option<(Instant, Counted)> = None;
    loop {
        ticks.tick().await;
        let counted = Counted::now(&state.seen);
        if let Some((at, before)) = before {
            state
                .history
                .add(sample(&state.seen, clock::since(at), &before, &counted));
        }
        before = Some((clock::now(), counted));
    }
}

/// All counters that rates are made of.
#[derive(Debug)]
struct Counted {
    calls: BTreeMap<&'static str, u64>,
    statements: BTreeMap<&'static str, u64>,
    times: Vec<(&'static str, Measured)>,
}

impl Counted {
    fn now(seen: &Seen) -> Counted {
        let shared = seen.shared();
        let watched = &shared.watched;
        let mut calls: BTreeMap<_, u64> = Answer::ALL.map(|(_, name)| (name, 0)).into();
        calls.insert(RELAYED, 0);
        for became in shared.counts.calls().became(shared.catalogue.definitions()) {
            *calls.entry(became.answer).or_default() += became.calls;
        }
        let names = STATEMENTS.into_iter().chain([RELAYED]);
        let mut statements: BTreeMap<_, u64> = names.map(|name| (name, 0)).collect();
        for (answer, count) in metrics::statements_by_answer(&shared) {
            *statements.entry(answer).or_default() += count;
        }
        let of_calls = Answer::ALL
            .iter()
            .map(|(_, name)| *name)
            .zip(&watched.call_times);
        let of_statements = STATEMENTS.into_iter().zip(&watched.statement_times);
        let times = of_calls.chain(of_statements);
        Counted {
            calls,
            statements,
            times: times
                .map(|(name, times)| (name, times.measured()))
                .collect(),
        }
    }
}

fn sample(seen: &Seen, time: Duration, before: &Counted, now: &Counted) -> Sample {
    let rates = |before: &BTreeMap<&'static str, u64>, now: &BTreeMap<&'static str, u64>| {
        let each = now.iter().map(|(name, count)| {
            let since = count.saturating_sub(before.get(name).copied().unwrap_or_default());
            #[allow(clippy::cast_precision_loss, reason = "so many in five seconds")]
            let rate = since as f64 / time.as_secs_f64();
            (*name, rate.is_finite().then_some(tenths(rate)))
        });
        each.collect::<By<f64>>()
    };
    let took = |share: f64| {
        let each = before.times.iter().zip(&now.times);
        each.map(|((name, before), (_, now))| (*name, quantile(before, now, share)))
            .collect::<By<f64>>()
    };
    let shared = seen.shared();
    let binlog = shared.binlog.as_ref();
    let lag = binlog.and_then(|binlog| binlog.lag());
    Sample {
        at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        calls: rates(&before.calls, &now.calls),
        statements: rates(&before.statements, &now.statements),
        p50_ms: took(0.5),
        p99_ms: took(0.99),
        lag_bytes: lag.map(|lag| lag.bytes),
        lag_seconds: lag.map(|lag| lag.waits.as_secs_f64()),
        index_bytes: binlog.map(|binlog| {
            let [bytes, ..] = binlog.sizes();
            bytes as u64
        }),
        rows_bytes: binlog
            .and_then(|binlog| binlog.rows())
            .map(|rows| rows.bytes() as u64),
        process_bytes: Process::now(0.0).resident_bytes,
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Within which time this share of what happened between two moments was done, in milliseconds: as exactly as the buckets tell, even
/// between their bounds. `None`: nothing happened, or it took longer than the last bound.
fn quantile(before: &Measured, now: &Measured, share: f64) -> Option<f64> {
    let counts = before.buckets.iter().zip(&now.buckets);
    let counts = counts.map(|((_, before), (bound, now))| (*bound, now.saturating_sub(*before)));
    let all: u64 = counts.clone().map(|(_, count)| count).sum();
    #[allow(clippy::cast_precision_loss, reason = "so many in five seconds")]
    let mut wanted = (all > 0).then_some(all as f64 * share)?;
    let mut lower = 0.0;
    for (bound, count) in counts {
        #[allow(clippy::cast_precision_loss, reason = "so many in five seconds")]
        let held = count as f64;
        if held >= wanted && held > 0.0 {
            let within = lower + (bound - lower) * wanted / held;
            let ms = (within * 1e6).round() / 1e3;
            return ms.is_finite().then_some(ms);
        }
        wanted -= held;
        lower = bound;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Histogram;

    #[test]
    fn a_quantile_is_of_what_happened_between_two_moments() {
        let histogram = Histogram::default();
        histogram.took(Duration::from_secs(5));
        let before = histogram.measured();
        assert_eq!(quantile(&before, &before, 0.5), None);
        for microseconds in [60, 70, 80, 900] {
            histogram.took(Duration::from_micros(microseconds));
        }
        let now = histogram.measured();
        // Two of the three between 50 and 100 microseconds.
        assert_eq!(quantile(&before, &now, 0.5), Some(0.083));
        let p99 = quantile(&before, &now, 0.99);
        assert!(p99.is_some_and(|ms| (0.9..=1.0).contains(&ms)), "{p99:?}");
        histogram.took(Duration::from_secs(60));
        assert_eq!(quantile(&now, &histogram.measured(), 0.5), None);
    }
}
