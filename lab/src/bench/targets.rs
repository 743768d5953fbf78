//! The target figures: each figure, its target, and whether it was reached.

use serde::Serialize;

use super::cell::{BenchCell, rate_ratio};
use super::data::BenchPage;
use super::depth::PageDepth;
use super::memory::{FullIndexMemory, IdleSessionMemory};
use super::push::PushFigures;
use super::scrape_bench::ScrapeFigures;
use super::target_ratios::{
    CONNECTIONS, IDLE_KIB, INDEX_BYTES, ProxyAnswerSource, RELAY_RATIO, SCRAPED_RATIO, TargetRatios,
};
use super::writes::{INSERTS_PER_SECOND, READERS, WriteFigures};
use crate::query_path::{ConnectionRoute, QueryForm, QueryPath};

/// A figure, with its target if it has one.
#[derive(Clone, Debug, Serialize)]
pub struct TargetFigure {
    /// The name.
    pub figure: String,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// The measured value; `None` if not measured.
    pub measured: Option<f64>,
    /// The target; `None` for a figure that is only shown.
    #[serde(flatten)]
    pub aim: Option<TargetBound>,
}

/// A target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TargetBound {
    /// The side of `target` on which the figure has to be.
    pub bound: BoundSide,
    /// The limit.
    pub target: f64,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundSide {
    /// The target or more.
    AtLeast,
    /// The target or less.
    AtMost,
    /// Less than the target.
    Below,
}

/// The measurements from which the targets are computed.
#[derive(Clone, Copy, Debug)]
pub struct TargetInputs<'a> {
    /// Every query path at every page.
    pub cells: &'a [BenchCell],
    /// The pages.
    pub pages: &'a [BenchPage],
    /// The memory of idle sessions.
    pub idle: Option<&'a IdleSessionMemory>,
    /// The memory of a full index.
    pub full: Option<&'a FullIndexMemory>,
    /// Readers and writers in parallel.
    pub writes: Option<&'a WriteFigures>,
    /// The cost of scrapes.
    pub scraped: Option<&'a ScrapeFigures>,
    /// The push model and the pull model.
    pub push: Option<&'a PushFigures>,
}

impl TargetFigure {
    /// Whether the target was reached; `None` without a measurement or a target.
    #[must_use]
    pub fn is_reached(&self) -> Option<bool> {
        let (measured, TargetBound { bound, target }) = (self.measured?, self.aim?);
        Some(match bound {
            BoundSide::AtLeast => measured >= target,
            BoundSide::AtMost => measured <= target,
            BoundSide::Below => measured < target,
        })
    }
}

/// Every target, for each page. Figures with neither a measurement nor a target are left out.
#[must_use]
pub fn targets(
    measured: &TargetInputs<'_>,
    source: ProxyAnswerSource,
    mariadb: bool,
) -> Vec<TargetFigure> {
    let aims = TargetRatios::for_source(source, mariadb);
    let mut targets = ratio_targets(measured, &aims);
    targets.extend(push_target(measured.push, &aims));
    targets.extend(server_targets(measured.cells, &aims));
    targets.extend(write_targets(measured.writes, &aims));
    targets.extend(measured.scraped.map(scrape_target));
    targets.extend(idle_targets(measured.idle));
    if source == ProxyAnswerSource::Index {
        targets.push(full_index_target(measured.full));
    }
    targets.retain(|target| target.measured.is_some() || target.aim.is_some());
    targets
}

/// Ratios of the rates of two query paths in the same cell.
fn ratio_targets(measured: &TargetInputs<'_>, aims: &TargetRatios) -> Vec<TargetFigure> {
    let direct = |form| QueryPath::new(ConnectionRoute::Direct, form);
    let accelerated = |form| QueryPath::new(ConnectionRoute::Headwater, form);
    let relay = QueryPath::new(ConnectionRoute::Relay, QueryForm::CallAndTail);
    let with_follow_up = Some(aims.call_and_follow_up);
    let rows = [
        (
            "CALL alone, Headwater / procedure",
            accelerated(QueryForm::Call),
            direct(QueryForm::Call),
            aims.call,
            aims.connections,
        ),
        (
            "CALL + tail, Headwater / procedure",
            accelerated(QueryForm::CallAndTail),
            direct(QueryForm::CallAndTail),
            with_follow_up,
            aims.connections,
        ),
        (
            "both in one command, Headwater / the same directly",
            accelerated(QueryForm::AtOnce),
            direct(QueryForm::AtOnce),
            aims.at_once,
            aims.connections,
        ),
        (
            "CALL + tail, Headwater / its own page 1",
            accelerated(QueryForm::CallAndTail),
            accelerated(QueryForm::Newest),
            aims.random,
            aims.connections,
        ),
        (
            "CALL + tail, Headwater / floor",
            accelerated(QueryForm::CallAndTail),
            direct(QueryForm::Bodies),
            None,
            aims.connections,
        ),
        (
            "CALL + tail, relaying everything / procedure",
            relay,
            direct(QueryForm::CallAndTail),
            Some(RELAY_RATIO),
            CONNECTIONS,
        ),
    ];
    let mut targets = Vec::new();
    for (what, path, by, aim, connections) in rows {
        let pages = measured.pages.iter().map(|page| page.depth);
        let pages =
            pages.filter(|depth| by.form != QueryForm::Newest || *depth == PageDepth::Random);
        targets.extend(pages.map(|depth| {
            TargetFigure {
                figure: format!("{what}, {depth}, {connections} connections"),
                unit: "",
                measured: rate_ratio(measured.cells, depth, connections, path, by),
                // The target of random pages refers to page 1, not to the procedure.
                aim: aim
                    .filter(|_| {
                        depth != PageDepth::Random || path == relay || by.form == QueryForm::Newest
                    })
                    .map(|target| TargetBound {
                        bound: BoundSide::AtLeast,
                        target,
                    }),
            }
        }));
    }
    targets
}

/// Pages by a join from memory, divided by pages from a mailbox.
fn push_target(push: Option<&PushFigures>, aims: &TargetRatios) -> Option<TargetFigure> {
    let push = push?;
    let mailbox = push.push.timelines.rate;
    Some(TargetFigure {
        figure: format!(
            "a feed's join, Headwater / push, from the mailbox, {} connections",
            push.connections
        ),
        unit: "",
        measured: (mailbox > 0.0).then(|| push.join.rate / mailbox),
        aim: aims.mailbox.map(|target| TargetBound {
            bound: BoundSide::AtLeast,
            target,
        }),
    })
}

/// The server's processor time for a page from memory, if measured.
fn server_targets(cells: &[BenchCell], aims: &TargetRatios) -> Vec<TargetFigure> {
    let forms = [
        ("a CALL", QueryForm::Call),
        ("a CALL and its tail in one command", QueryForm::AtOnce),
        ("a feed's join", QueryForm::Join),
    ];
    let targets = forms.into_iter().filter_map(|(what, form)| {
        let path = QueryPath::new(ConnectionRoute::Headwater, form);
        let is = |cell: &&BenchCell| {
            (cell.page, cell.connections, cell.way) == (PageDepth::NEWEST, aims.connections, path)
        };
        let cell = cells.iter().find(is)?;
        Some(TargetFigure {
            figure: format!("the server's processor time of {what} from memory"),
            unit: "us",
            measured: Some(cell.figures.server_us?),
            aim: aims.server_us.map(|target| TargetBound {
                bound: BoundSide::AtMost,
                target,
            }),
        })
    });
    targets.collect()
}

fn write_targets(writes: Option<&WriteFigures>, aims: &TargetRatios) -> Vec<TargetFigure> {
    let inserts = TargetFigure {
        figure: format!("inserts beside {READERS} readers, Headwater / procedure"),
        unit: "",
        measured: writes.and_then(|writes| writes.unpaced.insert_ratio()),
        aim: aims.inserts.map(|target| TargetBound {
            bound: BoundSide::AtLeast,
            target,
        }),
    };
    // Too few inserts prove nothing.
    let kept_pace = writes.filter(|writes| writes.kept_pace());
    let p50 = writes.map(|writes| writes.paced.direct.timelines.p50_us as f64);
    let late = TargetFigure {
        figure: format!("p99 of CALL at {INSERTS_PER_SECOND} inserts/s, to the procedure's p50"),
        unit: "us",
        measured: kept_pace.map(|writes| writes.paced.headwater.timelines.p99_us as f64),
        aim: p50
            .filter(|_| aims.p99_below_p50)
            .map(|target| TargetBound {
                bound: BoundSide::Below,
                target,
            }),
    };
    vec![inserts, late]
}

fn scrape_target(scraped: &ScrapeFigures) -> TargetFigure {
    TargetFigure {
        figure: "CALL + tail, while the admin port is asked / while not".to_owned(),
        unit: "",
        measured: Some(scraped.ratio()),
        aim: Some(TargetBound {
            bound: BoundSide::AtLeast,
            target: SCRAPED_RATIO,
        }),
    }
}

fn idle_targets(idle: Option<&IdleSessionMemory>) -> Vec<TargetFigure> {
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
    .map(|(what, bytes)| TargetFigure {
        figure: what.to_owned(),
        unit: "KiB",
        measured: bytes.map(|bytes| bytes / 1024.0),
        aim: Some(TargetBound {
            bound: BoundSide::AtMost,
            target: IDLE_KIB,
        }),
    })
    .collect()
}

fn full_index_target(full: Option<&FullIndexMemory>) -> TargetFigure {
    TargetFigure {
        figure: "everything in memory, for each id and each follow".to_owned(),
        unit: "bytes",
        measured: full.map(|full| full.bytes_each),
        aim: Some(TargetBound {
            bound: BoundSide::AtMost,
            target: INDEX_BYTES,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::LatencyFigures;

    fn cell(page: PageDepth, connections: usize, path: QueryPath, rate: f64) -> BenchCell {
        BenchCell {
            page,
            connections,
            way: path,
            ratio: None,
            figures: LatencyFigures {
                rate,
                ..LatencyFigures::default()
            },
        }
    }

    fn page(depth: PageDepth) -> BenchPage {
        BenchPage {
            depth,
            asked: 0,
            eligible: 0,
            readers: 0,
            tasks: Vec::new(),
        }
    }

    fn reached(
        measured: &TargetInputs<'_>,
        source: ProxyAnswerSource,
        mariadb: bool,
    ) -> Vec<Option<bool>> {
        let targets = targets(measured, source, mariadb);
        targets.iter().map(TargetFigure::is_reached).collect()
    }

    #[test]
    fn a_target_is_reached_missed_or_not_measured() {
        let with_follow_up = |route| QueryPath::new(route, QueryForm::CallAndTail);
        let cells = [
            cell(
                PageDepth::NEWEST,
                4,
                with_follow_up(ConnectionRoute::Direct),
                1_000.0,
            ),
            cell(
                PageDepth::NEWEST,
                4,
                with_follow_up(ConnectionRoute::Headwater),
                1_500.0,
            ),
        ];
        let idle = IdleSessionMemory {
            sessions: 9,
            logged_in_bytes: 24_576.0,
            after_a_timeline_bytes: 24_577.0,
        };
        let measured = TargetInputs {
            cells: &cells,
            pages: &[page(PageDepth::NEWEST)],
            idle: Some(&idle),
            full: Some(&FullIndexMemory {
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
        assert_eq!(
            reached(&measured, ProxyAnswerSource::Pull, true),
            expected(Some(true))
        );
        assert_eq!(
            reached(&measured, ProxyAnswerSource::Pull, false),
            expected(Some(false))
        );
        // At 8 connections these were not measured: CALL alone, CALL + follow-up, both at once, relaying, inserts, and the memory.
        let all = reached(&measured, ProxyAnswerSource::Index, true);
        let memory = [Some(true), Some(false), Some(true)];
        assert_eq!(all, [&[None; 5], &memory[..]].concat());
    }

    #[test]
    fn random_pages_are_held_against_page_1_of_the_same_readers_and_the_rest_is_only_shown() {
        let accelerated = |form| QueryPath::new(ConnectionRoute::Headwater, form);
        let floor = QueryPath::new(ConnectionRoute::Direct, QueryForm::Bodies);
        let cells = [
            cell(
                PageDepth::Random,
                8,
                accelerated(QueryForm::CallAndTail),
                700.0,
            ),
            cell(
                PageDepth::Random,
                8,
                accelerated(QueryForm::Newest),
                1_000.0,
            ),
            cell(PageDepth::Random, 8, floor, 1_400.0),
            cell(
                PageDepth::Random,
                8,
                QueryPath::new(ConnectionRoute::Direct, QueryForm::CallAndTail),
                100.0,
            ),
        ];
        let measured = TargetInputs {
            cells: &cells,
            pages: &[page(PageDepth::Random)],
            idle: None,
            full: None,
            writes: None,
            scraped: None,
            push: None,
        };
        let shown: Vec<_> = targets(&measured, ProxyAnswerSource::Index, false)
            .into_iter()
            .filter_map(|target| Some((target.measured?, target.is_reached())))
            .collect();
        assert_eq!(shown, [(7.0, None), (0.7, Some(false)), (0.5, None)]);
    }
}
