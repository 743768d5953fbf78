//! What is aimed at, and whether it was reached.

use serde::Serialize;

use super::data::Page;
use super::memory::Idle;
use super::report::{Cell, ratio};
use super::way::{Form, Route, Way};

/// Connections at which the targets hold.
pub const CONNECTIONS: usize = 4;
/// CALL + tail by Headwater's pull source over the procedure's, on MySQL 9.7.
const PULL_MYSQL: f64 = 1.8;
/// The same on MariaDB 10.11, whose procedures are faster.
const PULL_MARIADB: f64 = 1.2;
/// CALL + tail with everything relayed over the procedure's asked directly.
const RELAY: f64 = 0.8;
/// Resident memory of an idle session, in KiB.
const IDLE_KIB: f64 = 24.0;

/// A figure that is aimed at.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// What it is.
    pub figure: String,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// On which side of `target` it should be.
    pub bound: Bound,
    /// What is aimed at.
    pub target: f64,
    /// What was measured; `None` where it was not.
    pub measured: Option<f64>,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The target or more.
    AtLeast,
    /// The target or less.
    AtMost,
}

impl Target {
    /// Whether it was reached; `None` where it was not measured.
    #[must_use]
    pub fn reached(&self) -> Option<bool> {
        self.measured.map(|measured| match self.bound {
            Bound::AtLeast => measured >= self.target,
            Bound::AtMost => measured <= self.target,
        })
    }
}

/// Every target, each page apart.
#[must_use]
pub fn targets(cells: &[Cell], pages: &[Page], idle: Option<&Idle>, mariadb: bool) -> Vec<Target> {
    let pull = if mariadb { PULL_MARIADB } else { PULL_MYSQL };
    let mut targets = Vec::new();
    for (what, route, target) in [
        (
            "CALL + tail through Headwater / directly",
            Route::Headwater,
            pull,
        ),
        (
            "CALL + tail relaying everything / directly",
            Route::Relay,
            RELAY,
        ),
    ] {
        let way = Way::new(route, Form::CallAndTail);
        targets.extend(pages.iter().map(|page| Target {
            figure: format!("{what}, page {}", page.number),
            unit: "",
            bound: Bound::AtLeast,
            target,
            measured: ratio(cells, page.number, CONNECTIONS, way),
        }));
    }
    for (what, bytes) in [
        (
            "idle session, logged in",
            idle.map(|idle| idle.logged_in_bytes),
        ),
        (
            "idle session, after a timeline",
            idle.map(|idle| idle.after_a_timeline_bytes),
        ),
    ] {
        targets.push(Target {
            figure: what.to_owned(),
            unit: "KiB",
            bound: Bound::AtMost,
            target: IDLE_KIB,
            measured: bytes.map(|bytes| bytes / 1024.0),
        });
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(route: Route, rate: f64) -> Cell {
        Cell {
            page: 1,
            connections: CONNECTIONS,
            way: Way::new(route, Form::CallAndTail),
            answers: 1,
            rate,
            ratio: None,
            p50_us: 0,
            p99_us: 0,
            max_us: 0,
        }
    }

    #[test]
    fn a_target_is_reached_missed_or_not_measured() {
        let page = Page {
            number: 1,
            asked: 0,
            eligible: 0,
            readers: 0,
            tasks: Vec::new(),
        };
        let cells = [
            cell(Route::Direct, 1_000.0),
            cell(Route::Headwater, 1_500.0),
        ];
        let idle = Idle {
            sessions: 9,
            logged_in_bytes: 24_576.0,
            after_a_timeline_bytes: 24_577.0,
        };
        let reached = |mariadb| -> Vec<_> {
            targets(&cells, std::slice::from_ref(&page), Some(&idle), mariadb)
                .iter()
                .map(Target::reached)
                .collect()
        };
        assert_eq!(reached(true), [Some(true), None, Some(true), Some(false)]);
        assert_eq!(reached(false), [Some(false), None, Some(true), Some(false)]);
    }
}
