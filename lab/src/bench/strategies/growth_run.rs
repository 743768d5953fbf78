//! Measures one size after another along the axes of growth, as far as disk and time allow.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::flags::StrategiesFlags;
use super::growth::{self, GrowthPoint, GrowthReport, GrowthStep, OmittedSize};
use super::servers::StrategyData;
use super::{GROWTH_FILE, MeasurementEffort, StrategyError, measure_engine};
use crate::bench::{BenchError, StopSignal};
use headwater_server::report::with_causes;

/// Readers whose pages are compared and measured at each size, by default.
const READERS: usize = 200;
/// A larger size takes longer than its number of rows suggests, by this factor: its indexes exceed the server's memory.
const GROWTH_MARGIN: f64 = 1.3;

/// The times of the largest measured size along an axis on a server.
#[derive(Clone, Copy, Debug, Default)]
struct GrowthPace {
    rows: u64,
    /// To fill the tables, in seconds.
    fill_s: f64,
    /// For everything after the fill, in seconds.
    measure_s: f64,
}

impl GrowthPace {
    /// The estimated time for so many rows, in seconds.
    fn estimate_s(self, rows: u64) -> f64 {
        self.fill_s * rows as f64 / self.rows.max(1) as f64 * GROWTH_MARGIN + self.measure_s
    }
}

/// Measures along every requested axis, without changes and staleness, which do not depend on the size. `save` receives all results after
/// each size, because a later one takes long.
///
/// # Errors
/// Fails if it is stopped, or the results cannot be saved. A size that fails is recorded as left out.
pub fn measure_growth(
    flags: &StrategiesFlags,
    stop: &StopSignal,
    save: &dyn Fn(&GrowthReport) -> Result<(), BenchError>,
) -> Result<GrowthReport, BenchError> {
    let effort = MeasurementEffort {
        changes: 0,
        staleness: Duration::ZERO,
        compared: flags.readers.unwrap_or(READERS),
        readers: flags.readers.unwrap_or(READERS),
        deep: false,
        most_pushed: growth::MOST_PUSHED,
        ..flags.effort()
    };
    let until = Instant::now() + Duration::from_secs(60 * u64::from(flags.minutes));
    let mut growth = match flags.report.as_deref().filter(|_| flags.resume) {
        Some(folder) => {
            let path = folder.join(GROWTH_FILE);
            let read = GrowthReport::read(&path);
            read.map_err(|source| StrategyError::EarlierResults { path, source })?
        }
        None => GrowthReport::default(),
    };
    let mut paces: HashMap<(&'static str, &'static str), GrowthPace> = HashMap::new();
    for step in growth::steps(&flags.growth, flags.quick) {
        let GrowthStep { axis, at, size } = step;
        for kind in flags.kinds() {
            let name = kind.name();
            let pace = paces.entry((name, axis.name())).or_default();
            if let Some(filled) = growth.filled_s(&step, name) {
                eprintln!("{}: {at} on {name}: measured before", axis.name());
                *pace = GrowthPace {
                    rows: size.rows(),
                    fill_s: filled,
                    ..*pace
                };
                continue;
            }
            let expected = Duration::from_secs_f64(pace.estimate_s(size.rows()));
            let remaining = until.saturating_duration_since(Instant::now());
            let mut leave_out = |why: String| {
                eprintln!("{}: {at} on {name}: left out: {why}", axis.name());
                let engine = name;
                growth.left_out.push(OmittedSize {
                    axis,
                    at,
                    engine,
                    why,
                });
            };
            if expected > remaining {
                let minutes = |time: Duration| time.as_secs().div_ceil(60);
                leave_out(format!(
                    "about {} minutes more, of {} that are left (`--minutes`)",
                    minutes(expected),
                    minutes(remaining)
                ));
                continue;
            }
            eprintln!("{}: {at}", axis.name());
            let begun = Instant::now();
            let smallest = axis.smallest(flags.quick);
            let (engine, measured) = match measure_engine(
                kind,
                StrategyData::Generated(size, 0),
                smallest,
                flags,
                &effort,
                stop,
            ) {
                Ok(both) => both,
                // It failed because its servers were killed.
                Err(_) if stop.is_requested() => return Err(StrategyError::Stopped.into()),
                // The other sizes are useful without it.
                Err(failure) => {
                    leave_out(with_causes(&failure));
                    continue;
                }
            };
            *pace = GrowthPace {
                rows: size.rows(),
                fill_s: engine.filled_s,
                measure_s: begun.elapsed().as_secs_f64() - engine.filled_s,
            };
            growth
                .points
                .extend(measured.into_iter().map(|measured| GrowthPoint {
                    axis,
                    at,
                    engine: engine.clone(),
                    measured,
                }));
            save(&growth)?;
        }
    }
    save(&growth)?;
    Ok(growth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_follows_from_earlier_sizes() {
        let pace = GrowthPace {
            rows: 1_000,
            fill_s: 10.0,
            measure_s: 5.0,
        };
        assert!((pace.estimate_s(10_000) - 135.0).abs() < 1e-9);
        assert!(GrowthPace::default().estimate_s(100_000_000).abs() < 1e-9);
    }
}
