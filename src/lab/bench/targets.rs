//! The figures that matter, what is aimed at, and whether it was reached.

use serde::Serialize;

use super::aims::{Aims, CONNECTIONS, IDLE_KIB, INDEX_BYTES, RELAY, SCRAPED, Source};
use super::cell::{Cell, quotient};
use super::data::Page;
use super::depth::Depth;
use super::memory::{Full, Idle};
use super::push::Push;
use super::scraped::Scraped;
use super::way::{Form, Route, Way};
use super::writes::{PER_SECOND, READERS, Writes};

/// A figure that matters.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// What it is.
    pub figure: String,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// What was measured; `None` where it was not.
    pub measured: Option<f64>,
    /// What is aimed at; `None` for a figure that is only shown.
    #[serde(flatten)]
    pub aim: Option<Aim>,
}

/// What is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aim {
    /// On which side of `target` the figure should be.
    pub bound: Bound,
    /// The limit.
    pub target: f64,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The target or more.
    AtLeast,
    /// The target or less.
    AtMost,
    /// Less than the target.
    Below,
}

/// What the targets are taken from.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// Every way at every page.
    pub cells: &'a [Cell],
    /// The pages.
    pub pages: &'a [Page],
    /// What idle sessions cost.
    pub idle: Option<&'a Idle>,
    /// What everything in memory costs.
    pub full: Option<&'a Full>,
    /// Readers and writers together.
    pub writes: Option<&'a Writes>,
    /// What it costs that somebody looks in.
    pub scraped: Option<&'a Scraped>,
    /// The push model beside the pull model.
    pub push: Option<&'a Push>,
}

impl Target {
    /// Whether it was reached; `None` where it was not measured, or nothing is aimed at.
    #[must_use]
    pub fn reached(&self) -> Option<bool> {
        let (measured, Aim { bound, target }) = (self.measured?, self.aim?);
        Some(match bound {
            Bound::AtLeast => measured >= target,
            Bound::AtMost => measured <= target,
            Bound::Below => measured < target,
        })
    }
}

/// Every target, each page apart. What was neither measured nor is aimed at is left out.
#[must_use]
pub fn targets(measured: &Measured<'_>, source: Source, mariadb: bool) -> Vec<Target> {
    let aims = Aims::of(source, mariadb);
    let mut targets = ratios(measured, &aims);
    targets.extend(push(measured.push, &aims));
    targets.extend(server(measured.cells, &aims));
    targets.extend(writes(measured.writes, &aims));
    targets.extend(measured.scraped.map(scraped));
    targets.extend(idle(measured.idle));
    if source == Source::Index {
        targets.push(full(measured.full));
    }
    targets.retain(|target| target.measured.is_some() || target.aim.is_some());
    targets
}

/// Ratios of rates of two ways in the same cell.
fn ratios(measured: &Measured<'_>, aims: &Aims) -> Vec<Target> {
    let direct = |form| Way::new(Route::Direct, form);
    let own = |form| Way::new(Route::Headwater, form);
    let relay = Way::new(Route::Relay, Form::CallAndTail);
    let tail = Some(aims.call_and_tail);
    let rows = [
        (
            "CALL alone, Headwater / procedure",
            own(Form::Call),
            direct(Form::Call),
            aims.call,
            aims.connections,
        ),
        (
            "CALL + tail, Headwater / procedure",
            own(Form::CallAndTail),
            direct(Form::CallAndTail),
            tail,
            aims.connections,
        ),
        (
            "both in one command, Headwater / the same directly",
            own(Form::AtOnce),
            direct(Form::AtOnce),
            aims.at_once,
            aims.connections,
        ),
        (
            "CALL + tail, Headwater / its own page 1",
            own(Form::CallAndTail),
            own(Form::Newest),
            aims.random,
            aims.connections,
        ),
        (
            "CALL + tail, Headwater / floor",
            own(Form::CallAndTail),
            direct(Form::Bodies),
            None,
            aims.connections,
        ),
        (
            "CALL + tail, relaying everything / procedure",
            relay,
            direct(Form::CallAndTail),
            Some(RELAY),
            CONNECTIONS,
        ),
    ];
    let mut targets = Vec::new();
    for (what, way, by, aim, connections) in rows {
        let pages = measured.pages.iter().map(|page| page.depth);
        let pages = pages.filter(|depth| by.form != Form::Newest || *depth == Depth::Random);
        targets.extend(pages.map(|depth| {
            Target {
                figure: format!("{what}, {depth}, {connections} connections"),
                unit: "",
                measured: quotient(measured.cells, depth, connections, way, by),
                // Pages that begin anywhere are aimed at by page 1, not by the procedure.
                aim: aim
                    .filter(|_| depth != Depth::Random || way == relay || by.form == Form::Newest)
                    .map(|target| Aim {
                        bound: Bound::AtLeast,
                        target,
                    }),
            }
        }));
    }
    targets
}

/// Pages pulled by a join, from memory, by pages read from a mailbox.
fn push(push: Option<&Push>, aims: &Aims) -> Option<Target> {
    let push = push?;
    let mailbox = push.push.timelines.rate;
    Some(Target {
        figure: format!(
            "a feed's join, Headwater / push, from the mailbox, {} connections",
            push.connections
        ),
        unit: "",
        measured: (mailbox > 0.0).then(|| push.join.rate / mailbox),
        aim: aims.mailbox.map(|target| Aim {
            bound: Bound::AtLeast,
            target,
        }),
    })
}

/// What the server spends on a page from memory, where that was measured.
fn server(cells: &[Cell], aims: &Aims) -> Vec<Target> {
    let forms = [
        ("a CALL", Form::Call),
        ("a CALL and its tail in one command", Form::AtOnce),
        ("a feed's join", Form::Join),
    ];
    let targets = forms.into_iter().filter_map(|(what, form)| {
        let way = Way::new(Route::Headwater, form);
        let is = |cell: &&Cell| {
            (cell.page, cell.connections, cell.way) == (Depth::NEWEST, aims.connections, way)
        };
        let cell = cells.iter().find(is)?;
        Some(Target {
            figure: format!("the server's processor time of {what} from memory"),
            unit: "us",
            measured: Some(cell.figures.server_us?),
            aim: aims.server_us.map(|target| Aim {
                bound: Bound::AtMost,
                target,
            }),
        })
    });
    targets.collect()
}

fn writes(writes: Option<&Writes>, aims: &Aims) -> Vec<Target> {
    let inserts = Target {
        figure: format!("inserts beside {READERS} readers, Headwater / procedure"),
        unit: "",
        measured: writes.and_then(|writes| writes.unpaced.inserts()),
        aim: aims.inserts.map(|target| Aim {
            bound: Bound::AtLeast,
            target,
        }),
    };
    // Too few inserts prove nothing.
    let kept_pace = writes.filter(|writes| writes.kept_pace());
    let p50 = writes.map(|writes| writes.paced.direct.timelines.p50_us as f64);
    let late = Target {
        figure: format!("p99 of CALL at {PER_SECOND} inserts/s, to the procedure's p50"),
        unit: "us",
        measured: kept_pace.map(|writes| writes.paced.headwater.timelines.p99_us as f64),
        aim: p50.filter(|_| aims.p99_below_p50).map(|target| Aim {
            bound: Bound::Below,
            target,
        }),
    };
    vec![inserts, late]
}

fn scraped(scraped: &Scraped) -> Target {
    Target {
        figure: "CALL + tail, while the admin port is asked / while not".to_owned(),
        unit: "",
        measured: Some(scraped.ratio()),
        aim: Some(Aim {
            bound: Bound::AtLeast,
            target: SCRAPED,
        }),
    }
}

fn idle(idle: Option<&Idle>) -> Vec<Target> {
    [
        (
            "idle session, logged in",
            idle.map(|idle| idle.logged_in_bytes),
        ),
        (
            "idle session, after a timeline",
            idle.map(|idle| idle.after_a_timeline_bytes),
        ),
    ]
    .into_iter()
    .map(|(what, bytes)| Target {
        figure: what.to_owned(),
        unit: "KiB",
        measured: bytes.map(|bytes| bytes / 1024.0),
        aim: Some(Aim {
            bound: Bound::AtMost,
            target: IDLE_KIB,
        }),
    })
    .collect()
}

fn full(full: Option<&Full>) -> Target {
    Target {
        figure: "everything in memory, for each id and each follow".to_owned(),
        unit: "bytes",
        measured: full.map(|full| full.bytes_each),
        aim: Some(Aim {
            bound: Bound::AtMost,
            target: INDEX_BYTES,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench::figures::Figures;

    fn cell(page: Depth, connections: usize, way: Way, rate: f64) -> Cell {
        Cell {
            page,
            connections,
            way,
            ratio: None,
            figures: Figures {
                rate,
                ..Figures::default()
            },
        }
    }

    fn page(depth: Depth) -> Page {
        Page {
            depth,
            asked: 0,
            eligible: 0,
            readers: 0,
            tasks: Vec::new(),
        }
    }

    fn reached(measured: &Measured<'_>, source: Source, mariadb: bool) -> Vec<Option<bool>> {
        let targets = targets(measured, source, mariadb);
        targets.iter().map(Target::reached).collect()
    }

    #[test]
    fn a_target_is_reached_missed_or_not_measured() {
        let tail = |route| Way::new(route, Form::CallAndTail);
        let cells = [
            cell(Depth::NEWEST, 4, tail(Route::Direct), 1_000.0),
            cell(Depth::NEWEST, 4, tail(Route::Headwater), 1_500.0),
        ];
        let idle = Idle {
            sessions: 9,
            logged_in_bytes: 24_576.0,
            after_a_timeline_bytes: 24_577.0,
        };
        let measured = Measured {
            cells: &cells,
            pages: &[page(Depth::NEWEST)],
            idle: Some(&idle),
            full: Some(&Full {
                ids: 900,
                follows: 100,
                bytes: 16_000,
                bytes_each: 16.0,
            }),
            writes: None,
            scraped: None,
            push: None,
        };
        let rest = [None, Some(true), Some(false)];
        let expected = |first| [&[first], &rest[..]].concat();
        assert_eq!(reached(&measured, Source::Pull, true), expected(Some(true)));
        assert_eq!(
            reached(&measured, Source::Pull, false),
            expected(Some(false))
        );
        // At 8 connections nothing was measured: CALL alone, CALL + tail, both at once, relaying, inserts, and the memory.
        let all = reached(&measured, Source::Index, true);
        let memory = [Some(true), Some(false), Some(true)];
        assert_eq!(all, [&[None; 5], &memory[..]].concat());
    }

    #[test]
    fn random_pages_are_held_against_page_1_of_the_same_readers_and_the_rest_is_only_shown() {
        let own = |form| Way::new(Route::Headwater, form);
        let floor = Way::new(Route::Direct, Form::Bodies);
        let cells = [
            cell(Depth::Random, 8, own(Form::CallAndTail), 700.0),
            cell(Depth::Random, 8, own(Form::Newest), 1_000.0),
            cell(Depth::Random, 8, floor, 1_400.0),
            cell(
                Depth::Random,
                8,
                Way::new(Route::Direct, Form::CallAndTail),
                100.0,
            ),
        ];
        let measured = Measured {
            cells: &cells,
            pages: &[page(Depth::Random)],
            idle: None,
            full: None,
            writes: None,
            scraped: None,
            push: None,
        };
        let shown: Vec<_> = targets(&measured, Source::Index, false)
            .into_iter()
            .filter_map(|target| Some((target.measured?, target.reached())))
            .collect();
        assert_eq!(shown, [(7.0, None), (0.7, Some(false)), (0.5, None)]);
    }
}
