//! Measures size after size along the axes of growth, as far as the disk and the time allow.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::flags::StrategiesFlags;
use super::growth::{self, GrowthPoint, GrowthReport, GrowthStep, OmittedSize};
use super::servers::StrategyData;
use super::{GROWTH_FILE, MeasurementEffort, StrategyError, measure_engine};
use crate::lab::bench::{BenchError, StopSignal};
use crate::report::with_causes;

/// Readers whose pages are compared and measured at each size, if nothing else is said.
const READERS: usize = 200;
/// How much longer a greater size takes than its number of rows says: indexes outgrow the server's memory.
const GROWTH_MARGIN: f64 = 1.3;

/// What the greatest size so far along an axis has taken on a server.
#[derive(Clone, Copy, Debug, Default)]
struct GrowthPace {
    rows: u64,
    /// To fill the tables, in seconds.
    fill_s: f64,
    /// For all that came behind.
    measure_s: f64,
}

impl GrowthPace {
    /// What so many rows will take, in seconds, about.
    fn estimate_s(self, rows: u64) -> f64 {
        self.fill_s * rows as f64 / self.rows.max(1) as f64 * GROWTH_MARGIN + self.measure_s
    }
}

/// Measures along every axis that is asked for; neither changes nor staleness, which do not depend on how much there is. `save` has all
/// that is known behind each size: a later one takes long.
///
/// # Errors
/// When it is asked to stop, or what is known cannot be saved. A size that fails is left out, and named.
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
            let left = until.saturating_duration_since(Instant::now());
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
            if expected > left {
                let minutes = |time: Duration| time.as_secs().div_ceil(60);
                leave_out(format!(
                    "about {} minutes more, of {} that are left (`--minutes`)",
                    minutes(expected),
                    minutes(left)
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
                // It failed as its servers were killed.
                Err(_) if stop.is_requested() => return Err(StrategyError::Stopped.into()),
                // The other sizes are of use without it.
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
    fn what_is_to_come_is_told_by_what_was() {
        let pace = GrowthPace {
            rows: 1_000,
            fill_s: 10.0,
            measure_s: 5.0,
        };
        assert!((pace.estimate_s(10_000) - 135.0).abs() < 1e-9);
        assert!(GrowthPace::default().estimate_s(100_000_000).abs() < 1e-9);
    }
}
