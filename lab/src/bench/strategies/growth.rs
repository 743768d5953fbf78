//! How each strategy's reads, writes and size grow with follows, messages and users.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::charts;
use super::figures::{EngineDataset, SizeComparison, StaticText, StrategyFigures, known};
use crate::bench::table::thousands;
use crate::demo::dataset::DatasetSize;

/// Limit of a mailbox's rows: more would take too much disk and time.
pub const MOST_PUSHED: f64 = 72e6;

/// The strategies of a growth run without `--only`.
pub const DEFAULT_STRATEGIES: [&str; 5] = [
    "sql-list",
    "procedure",
    "headwater-kept",
    "push-mailbox",
    "redis-push",
];

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum GrowthAxis {
    /// Authors that a reader follows.
    Follows,
    /// Messages.
    Messages,
    /// Users, with as many messages each.
    Users,
}

impl GrowthAxis {
    /// All axes.
    pub const ALL: [GrowthAxis; 3] = [GrowthAxis::Follows, GrowthAxis::Messages, GrowthAxis::Users];

    /// The label.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GrowthAxis::Follows => "follows of a reader",
            GrowthAxis::Messages => "messages",
            GrowthAxis::Users => "users",
        }
    }

    /// The name in file names.
    fn file(self) -> &'static str {
        match self {
            GrowthAxis::Follows => "follows",
            GrowthAxis::Messages => "messages",
            GrowthAxis::Users => "users",
        }
    }

    /// The sizes along the axis: the axis's value, and the data set.
    #[must_use]
    pub fn sizes(self, quick: bool) -> Vec<(f64, DatasetSize)> {
        let size = |users: u32, messages: u64, mean_follows: f64| DatasetSize {
            users,
            messages,
            mean_follows,
            ..DatasetSize::CLASSIC
        };
        match self {
            GrowthAxis::Follows => {
                let all: &[f64] = if quick {
                    &[10.0, 40.0, 160.0]
                } else {
                    &[10.0, 50.0, 500.0, 5_000.0]
                };
                // Few messages: at 5,000 followers each is pushed as often.
                let (users, each) = if quick { (400, 10) } else { (6_000, 2) };
                all.iter()
                    .map(|follows| (*follows, size(users, u64::from(users) * each, *follows)))
                    .collect()
            }
            GrowthAxis::Messages => {
                // So many users that no single author writes a large share of the messages.
                let (users, all): (_, &[u64]) = if quick {
                    (400, &[4_000, 16_000, 64_000])
                } else {
                    (100_000, &[100_000, 1_000_000, 10_000_000, 100_000_000])
                };
                all.iter()
                    .map(|messages| (*messages as f64, size(users, *messages, 42.9)))
                    .collect()
            }
            GrowthAxis::Users => {
                let (each, all): (_, &[u32]) = if quick {
                    (10, &[200, 800, 3_200])
                } else {
                    (2, &[10_000, 100_000, 1_000_000])
                };
                all.iter()
                    .map(|users| {
                        (
                            f64::from(*users),
                            size(*users, u64::from(*users) * each, 42.9),
                        )
                    })
                    .collect()
            }
        }
    }

    /// The smallest size along the axis, if a page should cost the same at each size. None by follows: each followed author costs.
    #[must_use]
    pub fn smallest(self, quick: bool) -> Option<DatasetSize> {
        match self {
            GrowthAxis::Follows => None,
            GrowthAxis::Messages | GrowthAxis::Users => {
                self.sizes(quick).first().map(|(_, size)| *size)
            }
        }
    }
}

/// All sizes along these axes, from the fewest rows to the most.
#[must_use]
pub fn steps(axes: &[GrowthAxis], quick: bool) -> Vec<GrowthStep> {
    let mut steps: Vec<GrowthStep> = Vec::new();
    for axis in axes {
        for (at, size) in axis.sizes(quick) {
            let axis = *axis;
            steps.push(GrowthStep { axis, at, size });
        }
    }
    steps.sort_by_key(|step| step.size.rows());
    steps
}

/// A size along an axis.
#[derive(Clone, Copy, Debug)]
pub struct GrowthStep {
    /// The axis.
    pub axis: GrowthAxis,
    /// The value on the axis.
    pub at: f64,
    /// The data set.
    pub size: DatasetSize,
}

/// The results of growth runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GrowthReport {
    /// The measured points.
    pub points: Vec<GrowthPoint>,
    /// The sizes that were left out.
    pub left_out: Vec<OmittedSize>,
}

impl GrowthReport {
    /// Reads the results of earlier runs; empty if the file does not exist. Omitted sizes are not read: they may fit now.
    ///
    /// # Errors
    /// Fails if the file cannot be read or parsed.
    pub fn read(path: &Path) -> io::Result<GrowthReport> {
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(GrowthReport::default());
            }
            text => text?,
        };
        let before: GrowthReport = serde_json::from_slice(&text)?;
        Ok(GrowthReport {
            left_out: Vec::new(),
            ..before
        })
    }

    /// The time in which this server was filled for a size, in seconds, if it was measured.
    #[must_use]
    pub fn filled_s(&self, step: &GrowthStep, engine: &str) -> Option<f64> {
        let GrowthStep { axis, at, size } = *step;
        let mut points = self.points.iter();
        let point = points.find(|point| {
            let filled = &point.engine;
            (point.axis, filled.users, filled.messages) == (axis, size.users, size.messages)
                && point.at.total_cmp(&at).is_eq()
                && filled.engine == engine
        });
        point.map(|point| point.engine.filled_s)
    }
}

/// A size that was left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OmittedSize {
    /// The axis.
    pub axis: GrowthAxis,
    /// The value on the axis.
    pub at: f64,
    /// The server.
    #[serde(deserialize_with = "known")]
    pub engine: StaticText,
    /// The reason.
    pub why: String,
}

/// A strategy at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrowthPoint {
    /// The axis.
    pub axis: GrowthAxis,
    /// The value on the axis.
    pub at: f64,
    /// The server and its data.
    pub engine: EngineDataset,
    /// The strategy's figures.
    pub measured: StrategyFigures,
}

/// The slope of `y` over `x`, by least squares.
fn regression_slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), (one, other)| {
        (x + one / count, y + other / count)
    });
    let (both, squares) = points.iter().fold((0.0, 0.0), |(both, own), (one, other)| {
        (both + (one - x) * (other - y), own + (one - x).powi(2))
    });
    (squares > 0.0).then_some(both / squares)
}

/// The exponent of growth: 0 is constant; 1 is proportional; -1 is inversely proportional.
#[must_use]
pub fn growth_exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .filter(|(x, y)| *x > 0.0 && *y > 0.0)
        .map(|(x, y)| (x.ln(), y.ln()))
        .collect();
    regression_slope(&logs)
}

/// One strategy on one server along an axis, from the smallest size to the largest.
pub struct GrowthSeries<'a> {
    /// The server.
    pub engine: &'a EngineDataset,
    /// The strategy's name.
    pub name: &'static str,
    points: Vec<&'a GrowthPoint>,
}

impl GrowthSeries<'_> {
    /// The figure at each size.
    #[must_use]
    pub fn figure_points(&self, figure: fn(&StrategyFigures) -> f64) -> Vec<(f64, f64)> {
        let points = self.points.iter();
        points
            .map(|point| (point.at, figure(&point.measured)))
            .collect()
    }

    /// Machine time for a page by the number of followed authors, in microseconds.
    fn page_costs(&self) -> Vec<(f64, f64)> {
        let points = self.points.iter();
        points
            .map(|point| (point.engine.follows_per_reader, page_us(&point.measured)))
            .collect()
    }
}

/// Machine time for a page, in microseconds: all processors together give so many a second.
fn page_us(it: &StrategyFigures) -> f64 {
    1e6 / it.pages_per_s
}

/// The series of every strategy on every server along this axis.
#[must_use]
pub fn growth_series(points: &[GrowthPoint], axis: GrowthAxis) -> Vec<GrowthSeries<'_>> {
    let mut all_series: Vec<GrowthSeries<'_>> = Vec::new();
    for point in points.iter().filter(|point| point.axis == axis) {
        let (engine, name) = (&point.engine, point.measured.name);
        let existing = all_series
            .iter_mut()
            .find(|it| it.engine.engine == engine.engine && it.name == name);
        match existing {
            Some(series) => series.points.push(point),
            None => all_series.push(GrowthSeries {
                engine,
                name,
                points: vec![point],
            }),
        }
    }
    for series in &mut all_series {
        // A smaller size may have been measured later.
        series
            .points
            .sort_by(|one, other| one.at.total_cmp(&other.at));
    }
    all_series
}

type GrowthFigure = (&'static str, fn(&StrategyFigures) -> f64);
const FIGURES: [GrowthFigure; 3] = [
    ("pages/s", |it| it.pages_per_s),
    ("messages/s", |it| it.messages_per_s),
    ("MB", |it| it.bytes as f64 / 1e6),
];

/// For each axis: how pages a second, messages a second and size grow, and the cost of a page.
#[must_use]
pub fn table(points: &[GrowthPoint]) -> String {
    let mut text = String::new();
    for axis in GrowthAxis::ALL {
        let all_series = growth_series(points, axis);
        if all_series.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n{}: exponent of growth (0 is flat, 1 grows as much, -1 falls as much), and what it makes of a page{}\n\n\
             | server | strategy | pages/s | messages/s | MB | a page |\n|---|---|--:|--:|--:|--:|",
            axis.name(),
            match axis {
                GrowthAxis::Follows => " (the slope of a straight line through what pages cost)",
                GrowthAxis::Messages | GrowthAxis::Users =>
                    " (at the greatest size, as a multiple of the smallest)",
            }
        );
        for series in all_series {
            let exponents = FIGURES.map(|(_, figure)| {
                let slope = growth_exponent(&series.figure_points(figure));
                slope.map_or_else(|| "-".to_owned(), |slope| format!("{slope:.2}"))
            });
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                series.engine.engine,
                series.name,
                exponents.join(" | "),
                page_cost_text(axis, &series)
            );
        }
    }
    text
}

/// The cost of one more author on a page; or the cost of a page at the largest size as a multiple of the smallest, read in alternation if
/// that was measured.
fn page_cost_text(axis: GrowthAxis, series: &GrowthSeries<'_>) -> String {
    if axis == GrowthAxis::Follows {
        return regression_slope(&series.page_costs())
            .map_or_else(|| "-".to_owned(), |us| format!("{us:.3} us an author"));
    }
    match series.points.as_slice() {
        [first, .., last] => match last.measured.beside {
            Some(comparison) => format!("{:.2} times, in turn", comparison.cost_multiple()),
            None => format!(
                "{:.2} times",
                page_us(&last.measured) / page_us(&first.measured)
            ),
        },
        _ => "-".to_owned(),
    }
}

/// The files of a report, by name.
///
/// # Errors
/// Fails if a chart cannot be drawn.
pub fn files(growth: &GrowthReport) -> Result<Vec<(String, String)>, Box<dyn std::error::Error>> {
    let mut text = "# Strategies for timelines, as data grows\n\n\
        Written by `headwater bench strategies --growth --report FOLDER`; every figure is in `growth.json`. Each size is loaded anew. A page's \
        cost is time of the whole machine: a second by pages a second. Sizes are measured one after the other, and machines are not as fast \
        all the time."
        .to_owned();
    let in_turn = |point: &GrowthPoint| point.measured.beside.is_some();
    text.push_str(match growth.points.iter().any(in_turn) {
        true => {
            " So by messages and by users pages of Headwater are also read in turn with those of the smallest size, on servers of its own; those \
             of that size with themselves as well, which tells by how much such a multiple errs."
        }
        false => " So a difference between sizes may be the machine's.",
    });
    text.push_str(
        " Where a strategy is missing at a size, it would have had too many messages at followers to keep.\n",
    );
    for (number, beyond) in growth.left_out.iter().enumerate() {
        let head = if number == 0 { "\nLeft out:\n\n" } else { "" };
        let OmittedSize {
            axis,
            at,
            engine,
            why,
        } = beyond;
        let _ = writeln!(
            text,
            "{head}- {} {} on {engine}: {why}",
            thousands(*at),
            axis.name()
        );
    }
    let points = &growth.points;
    let mut files = Vec::new();
    for axis in GrowthAxis::ALL {
        let all = growth_series(points, axis);
        if all.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n## By {}\n\n{}",
            axis.name(),
            constants_text(axis, &all)
        );
        let mut engines: Vec<&'static str> = all.iter().map(|it| it.engine.engine).collect();
        engines.sort_unstable();
        engines.dedup();
        for engine in engines {
            let of_engine: Vec<&GrowthSeries<'_>> =
                all.iter().filter(|it| it.engine.engine == engine).collect();
            let name = format!("growth-{}-{engine}.svg", axis.file());
            let _ = writeln!(
                text,
                "\n![Lines: pages a second by {}, on {engine}]({name})",
                axis.name()
            );
            let server = of_engine.first().map(|it| charts::engine_label(it.engine));
            let lines = of_engine
                .iter()
                .map(|it| (it.name, it.figure_points(|of| of.pages_per_s)));
            let lines: Vec<charts::ChartLine<'_>> = lines.collect();
            let title = format!(
                "Newest pages read, a second, {}",
                server.unwrap_or_default()
            );
            files.push((name, charts::line_chart(&title, axis.name(), &lines)?));
            for (what, figure) in FIGURES {
                figure_table(&of_engine, what, figure, &mut text);
            }
            comparison_table(&of_engine, &mut text);
        }
    }
    let _ = writeln!(text, "\n## Slopes\n{}", table(points));
    files.push(("growth.md".to_owned(), text));
    Ok(files)
}

/// What stays constant along an axis.
fn constants_text(axis: GrowthAxis, all: &[GrowthSeries<'_>]) -> String {
    let Some(engine) = all.first().map(|it| it.engine) else {
        return String::new();
    };
    let users = f64::from(engine.users);
    let follows = format!("{:.1} follows a user", engine.follows as f64 / users);
    let messages = engine.messages as f64;
    let data = match axis {
        GrowthAxis::Follows => format!(
            "{} users, {} messages",
            thousands(users),
            thousands(messages)
        ),
        GrowthAxis::Messages => format!("{} users, {follows}", thousands(users)),
        GrowthAxis::Users => format!("{follows}, {:.1} messages a user", messages / users),
    };
    format!(
        "At all sizes: {data}; servers have {} GB for pages of their tables.",
        engine.buffer_pool_gb
    )
}

/// The cost of a page at each size, as a multiple of the smallest size with which it alternated.
fn comparison_table(all: &[&GrowthSeries<'_>], text: &mut String) {
    for series in all {
        let points = series.points.iter();
        let both = points.filter_map(|point| Some((point.at, point.measured.beside?)));
        for (index, (at, comparison)) in both.enumerate() {
            if index == 0 {
                let _ = writeln!(
                    text,
                    "\n| {}, read in turn | pages/s | smallest size: pages/s | a page costs | p50, us | smallest size: p50, us |\n|--:|--:|--:|--:|--:|--:|",
                    series.name
                );
            }
            let SizeComparison {
                pages_per_s,
                page_p50_us,
                smallest_pages_per_s,
                smallest_page_p50_us,
            } = comparison;
            let [own, least] = [pages_per_s, smallest_pages_per_s].map(thousands);
            let _ = writeln!(
                text,
                "| {} | {own} | {least} | {:.2} times | {page_p50_us:.0} | {smallest_page_p50_us:.0} |",
                thousands(at),
                comparison.cost_multiple()
            );
        }
    }
}

/// One figure of each strategy at each size.
fn figure_table(
    all: &[&GrowthSeries<'_>],
    what: &str,
    figure: fn(&StrategyFigures) -> f64,
    text: &mut String,
) {
    let mut sizes: Vec<f64> = all
        .iter()
        .flat_map(|it| it.points.iter().map(|point| point.at))
        .collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.dedup_by(|one, other| one.total_cmp(other).is_eq());
    let heads: Vec<String> = sizes.iter().map(|size| thousands(*size)).collect();
    let _ = writeln!(
        text,
        "\n| {what} | {} |\n|---|{}",
        heads.join(" | "),
        "--:|".repeat(sizes.len())
    );
    for series in all {
        let of = series.figure_points(figure);
        let cells: Vec<String> = sizes
            .iter()
            .map(|size| {
                let measured = of.iter().find(|(at, _)| at.total_cmp(size).is_eq());
                measured.map_or_else(|| "-".to_owned(), |(_, value)| thousands(*value))
            })
            .collect();
        let _ = writeln!(text, "| {} | {} |", series.name, cells.join(" | "));
    }
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
            growth_exponent(&points).unwrap()
        };
        for exponent in [-1.0, 0.0, 0.5, 1.0] {
            assert!((of(exponent) - exponent).abs() < 1e-9);
        }
        assert_eq!(growth_exponent(&[]), None);
        assert_eq!(growth_exponent(&[(1.0, 2.0)]), None);
        assert_eq!(growth_exponent(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn a_report_says_what_an_author_more_costs_and_how_flat_a_price_is() {
        let point = |axis, at: f64, pages_per_s| GrowthPoint {
            axis,
            at,
            engine: EngineDataset {
                follows_per_reader: at,
                ..EngineDataset::empty()
            },
            measured: StrategyFigures {
                name: "kept",
                pages_per_s,
                ..StrategyFigures::empty()
            },
        };
        // 20 us, and 0.1 us for each author.
        let follows = [10.0, 100.0, 1_000.0]
            .map(|at| point(GrowthAxis::Follows, at, 1e6 / (20.0 + at / 10.0)));
        let messages = [1e4, 1e6].map(|at| point(GrowthAxis::Messages, at, 1e6 / at.log10()));
        // The machine was twice as fast when the larger size was measured.
        let mut users = [1e4, 1e5].map(|at| point(GrowthAxis::Users, at, at));
        users[1].measured.beside = Some(SizeComparison {
            pages_per_s: 20_000.0,
            page_p50_us: 250.0,
            smallest_pages_per_s: 22_000.0,
            smallest_page_p50_us: 230.0,
        });
        let points: Vec<GrowthPoint> = follows.into_iter().chain(messages).chain(users).collect();
        let left_out = vec![OmittedSize {
            axis: GrowthAxis::Messages,
            at: 1e8,
            engine: "mysql",
            why: "about 90 minutes more".to_owned(),
        }];
        let files = files(&GrowthReport { points, left_out }).unwrap();
        let (_, text) = files.iter().find(|(name, _)| name == "growth.md").unwrap();
        assert!(text.contains("| 0.100 us an author |"), "{text}");
        assert!(text.contains("| 1.50 times |"), "{text}");
        assert!(text.contains("| 1.10 times, in turn |"), "{text}");
        let beside = "| 100,000 | 20,000 | 22,000 | 1.10 times | 250 | 230 |";
        assert!(text.contains(beside), "{text}");
        let left_out = "- 100,000,000 messages on mysql: about 90 minutes more";
        assert!(text.contains(left_out), "{text}");
        assert!(text.contains("| pages/s | 10 | 100 | 1,000 |"), "{text}");
        for axis in ["follows", "messages", "users"] {
            let name = format!("growth-{axis}-mariadb.svg");
            assert!(text.contains(&format!("]({name})")), "{text}");
            assert!(
                files
                    .iter()
                    .any(|(file, svg)| *file == name && svg.contains("kept"))
            );
        }
        assert_eq!(files.len(), 4);
    }
}
