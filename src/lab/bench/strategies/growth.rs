//! How each strategy's reads, writes and room grow with follows, messages and users.

use serde::Serialize;

use super::figures::{Engine, Measured};
use crate::lab::demo::dataset::Size;

/// More rows of a mailbox are not made: disk and time would not do.
pub const MOST_PUSHED: f64 = 20e6;

/// Those that are measured, if none are named.
pub const ONLY: [&str; 5] = [
    "sql-list",
    "procedure",
    "headwater-kept",
    "push-mailbox",
    "redis-push",
];

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Authors that a reader follows.
    Follows,
    /// Messages.
    Messages,
    /// Users, with as many messages each.
    Users,
}

impl Axis {
    /// All of them.
    pub const ALL: [Axis; 3] = [Axis::Follows, Axis::Messages, Axis::Users];

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Axis::Follows => "follows of a reader",
            Axis::Messages => "messages",
            Axis::Users => "users",
        }
    }

    /// The sizes along it, and how much of it each has.
    #[must_use]
    pub fn sizes(self, quick: bool) -> Vec<(f64, Size)> {
        let size = |users: u32, messages: u64, mean_follows: f64| Size {
            users,
            messages,
            mean_follows,
            ..Size::CLASSIC
        };
        match self {
            Axis::Follows => {
                let all: &[f64] = if quick {
                    &[10.0, 40.0, 160.0]
                } else {
                    &[10.0, 50.0, 500.0, 5_000.0]
                };
                let users = if quick { 400 } else { 10_000 };
                all.iter()
                    .map(|follows| (*follows, size(users, u64::from(users) * 10, *follows)))
                    .collect()
            }
            Axis::Messages => {
                let all: &[u64] = if quick {
                    &[4_000, 16_000, 64_000]
                } else {
                    &[10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
                };
                all.iter()
                    .map(|messages| (*messages as f64, size(400, *messages, 42.9)))
                    .collect()
            }
            Axis::Users => {
                let all: &[u32] = if quick {
                    &[200, 800, 3_200]
                } else {
                    &[10_000, 100_000, 1_000_000]
                };
                all.iter()
                    .map(|users| {
                        (
                            f64::from(*users),
                            size(*users, u64::from(*users) * 10, 42.9),
                        )
                    })
                    .collect()
            }
        }
    }
}

/// A strategy at one size.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// What grew.
    pub axis: Axis,
    /// How much there was of it.
    pub at: f64,
    /// The data.
    pub engine: Engine,
    /// The strategy.
    pub measured: Measured,
}

/// The exponent by which a figure grows: 0, it is flat; 1, it grows as what it depends on; -1, it falls so. By least squares of the
/// logarithms.
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .filter(|(x, y)| *x > 0.0 && *y > 0.0)
        .map(|(x, y)| (x.ln(), y.ln()))
        .collect();
    if logs.len() < 2 {
        return None;
    }
    let count = logs.len() as f64;
    let (x, y) = logs.iter().fold((0.0, 0.0), |(x, y), (one, other)| {
        (x + one / count, y + other / count)
    });
    let (both, own) = logs.iter().fold((0.0, 0.0), |(both, own), (one, other)| {
        (both + (one - x) * (other - y), own + (one - x).powi(2))
    });
    (own > 0.0).then_some(both / own)
}

/// Slopes as a table, one for each axis: how pages a second, messages a second and bytes grow.
#[must_use]
pub fn table(points: &[Point]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for axis in Axis::ALL {
        let of: Vec<&Point> = points.iter().filter(|point| point.axis == axis).collect();
        let mut rows: Vec<(&'static str, &'static str)> = Vec::new();
        for point in &of {
            let row = (point.measured.engine, point.measured.name);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n{}: exponent of growth (0 is flat, 1 grows as much, -1 falls as much)\n\n\
             | engine | strategy | sizes | pages/s | messages/s | bytes |\n|---|---|---|--:|--:|--:|",
            axis.name()
        );
        for (engine, name) in rows {
            let own: Vec<&&Point> = of
                .iter()
                .filter(|point| point.measured.engine == engine && point.measured.name == name)
                .collect();
            let grows = |figure: fn(&Measured) -> f64| {
                let points: Vec<_> = own
                    .iter()
                    .map(|point| (point.at, figure(&point.measured)))
                    .collect();
                slope(&points).map_or_else(|| "-".to_owned(), |slope| format!("{slope:.2}"))
            };
            let sizes: Vec<String> = own.iter().map(|point| point.at.to_string()).collect();
            let _ = writeln!(
                text,
                "| {engine} | {name} | {} | {} | {} | {} |",
                sizes.join(", "),
                grows(|it| it.pages_per_s),
                grows(|it| it.messages_per_s),
                grows(|it| it.bytes as f64),
            );
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_the_exponent() {
        let of = |exponent: f64| {
            let points: Vec<_> = [1.0_f64, 10.0, 300.0]
                .iter()
                .map(|x| (*x, 7.0 * x.powf(exponent)))
                .collect();
            slope(&points).unwrap()
        };
        for exponent in [-1.0, 0.0, 0.5, 1.0] {
            assert!((of(exponent) - exponent).abs() < 1e-9);
        }
        assert_eq!(slope(&[(1.0, 2.0)]), None);
        assert_eq!(slope(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
