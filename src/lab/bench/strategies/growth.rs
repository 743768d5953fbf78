//! How each strategy's reads, writes and room grow with follows, messages and users.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::charts;
use super::figures::{EngineDataset, SizeComparison, StaticText, StrategyFigures, known};
use crate::lab::bench::table::thousands;
use crate::lab::demo::dataset::DatasetSize;

/// More rows of a mailbox are not made: disk and time would not do.
pub const MOST_PUSHED: f64 = 72e6;

/// Those that are measured, if none are named.
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
    /// All of them.
    pub const ALL: [GrowthAxis; 3] = [GrowthAxis::Follows, GrowthAxis::Messages, GrowthAxis::Users];

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GrowthAxis::Follows => "follows of a reader",
            GrowthAxis::Messages => "messages",
            GrowthAxis::Users => "users",
        }
    }

    /// Its name in names of files.
    fn file(self) -> &'static str {
        match self {
            GrowthAxis::Follows => "follows",
            GrowthAxis::Messages => "messages",
            GrowthAxis::Users => "users",
        }
    }

    /// The sizes along it, and how much of it each has.
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
                // So many users that an author does not write a share of all messages that nobody has seen.
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

    /// The smallest size along it, where a page is to cost the same at each: every author followed costs something.
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

/// All sizes along these axes, from the one with the fewest rows to the one with the most.
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
    /// What grows.
    pub axis: GrowthAxis,
    /// How much of it there is.
    pub at: f64,
    /// All there is.
    pub size: DatasetSize,
}

/// All that is known of growth.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GrowthReport {
    /// What was measured.
    pub points: Vec<GrowthPoint>,
    /// Sizes that were not.
    pub left_out: Vec<OmittedSize>,
}

impl GrowthReport {
    /// What was measured there before; nothing where there is no such file. What was left out is not kept: it may do now.
    ///
    /// # Errors
    /// When the file cannot be read, or has something else.
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

    /// In which time this server was filled for a size, in seconds, where that was measured.
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
    /// What would have grown.
    pub axis: GrowthAxis,
    /// To how much.
    pub at: f64,
    /// The server.
    #[serde(deserialize_with = "known")]
    pub engine: StaticText,
    /// What it would have taken.
    pub why: String,
}

/// A strategy at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrowthPoint {
    /// What grew.
    pub axis: GrowthAxis,
    /// How much there was of it.
    pub at: f64,
    /// The data.
    pub engine: EngineDataset,
    /// The strategy.
    pub measured: StrategyFigures,
}

/// How `y` grows with `x`, by least squares: so much for each one more.
fn regression_slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), (one, other)| {
        (x + one / count, y + other / count)
    });
    let (both, own) = points.iter().fold((0.0, 0.0), |(both, own), (one, other)| {
        (both + (one - x) * (other - y), own + (one - x).powi(2))
    });
    (own > 0.0).then_some(both / own)
}

/// The exponent by which a figure grows: 0, it is flat; 1, it grows as what it depends on; -1, it falls so.
#[must_use]
pub fn growth_exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .filter(|(x, y)| *x > 0.0 && *y > 0.0)
        .map(|(x, y)| (x.ln(), y.ln()))
        .collect();
    regression_slope(&logs)
}

/// One strategy on one server along an axis, from the smallest size to the greatest.
pub struct GrowthSeries<'a> {
    /// The server.
    pub engine: &'a EngineDataset,
    /// The strategy's name.
    pub name: &'static str,
    points: Vec<&'a GrowthPoint>,
}

impl GrowthSeries<'_> {
    /// A figure at each size.
    #[must_use]
    pub fn figure_points(&self, figure: fn(&StrategyFigures) -> f64) -> Vec<(f64, f64)> {
        let points = self.points.iter();
        points
            .map(|point| (point.at, figure(&point.measured)))
            .collect()
    }

    /// Time of the machine for a page by how many authors its reader follows, in microseconds.
    fn page_costs(&self) -> Vec<(f64, f64)> {
        let points = self.points.iter();
        points
            .map(|point| (point.engine.follows_per_reader, page_us(&point.measured)))
            .collect()
    }
}

/// Time of the machine for a page, in microseconds: all processors together give so many a second.
fn page_us(it: &StrategyFigures) -> f64 {
    1e6 / it.pages_per_s
}

/// Every strategy on every server along this axis.
#[must_use]
pub fn growth_series(points: &[GrowthPoint], axis: GrowthAxis) -> Vec<GrowthSeries<'_>> {
    let mut courses: Vec<GrowthSeries<'_>> = Vec::new();
    for point in points.iter().filter(|point| point.axis == axis) {
        let (engine, name) = (&point.engine, point.measured.name);
        let own = courses
            .iter_mut()
            .find(|it| it.engine.engine == engine.engine && it.name == name);
        match own {
            Some(course) => course.points.push(point),
            None => courses.push(GrowthSeries {
                engine,
                name,
                points: vec![point],
            }),
        }
    }
    for course in &mut courses {
        // A smaller one may have been measured later.
        course
            .points
            .sort_by(|one, other| one.at.total_cmp(&other.at));
    }
    courses
}

type GrowthFigure = (&'static str, fn(&StrategyFigures) -> f64);
const FIGURES: [GrowthFigure; 3] = [
    ("pages/s", |it| it.pages_per_s),
    ("messages/s", |it| it.messages_per_s),
    ("MB", |it| it.bytes as f64 / 1e6),
];

/// For each axis: how pages a second, messages a second and room grow, and what a page costs by it.
#[must_use]
pub fn table(points: &[GrowthPoint]) -> String {
    let mut text = String::new();
    for axis in GrowthAxis::ALL {
        let courses = growth_series(points, axis);
        if courses.is_empty() {
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
        for course in courses {
            let exponents = FIGURES.map(|(_, figure)| {
                let slope = growth_exponent(&course.figure_points(figure));
                slope.map_or_else(|| "-".to_owned(), |slope| format!("{slope:.2}"))
            });
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                course.engine.engine,
                course.name,
                exponents.join(" | "),
                page_cost_text(axis, &course)
            );
        }
    }
    text
}

/// What an author more costs on a page; or what a page costs at the greatest size, as a multiple of the smallest: read in turn with it where
/// that was done.
fn page_cost_text(axis: GrowthAxis, course: &GrowthSeries<'_>) -> String {
    if axis == GrowthAxis::Follows {
        return regression_slope(&course.page_costs())
            .map_or_else(|| "-".to_owned(), |us| format!("{us:.3} us an author"));
    }
    match course.points.as_slice() {
        [first, .., last] => match last.measured.beside {
            Some(beside) => format!("{:.2} times, in turn", beside.cost_multiple()),
            None => format!(
                "{:.2} times",
                page_us(&last.measured) / page_us(&first.measured)
            ),
        },
        _ => "-".to_owned(),
    }
}

/// The files of a report, by their names.
///
/// # Errors
/// When a chart cannot be drawn.
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
    for (place, beyond) in growth.left_out.iter().enumerate() {
        let head = if place == 0 { "\nLeft out:\n\n" } else { "" };
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
            let own: Vec<&GrowthSeries<'_>> =
                all.iter().filter(|it| it.engine.engine == engine).collect();
            let name = format!("growth-{}-{engine}.svg", axis.file());
            let _ = writeln!(
                text,
                "\n![Lines: pages a second by {}, on {engine}]({name})",
                axis.name()
            );
            let server = own.first().map(|it| charts::engine_label(it.engine));
            let lines = own
                .iter()
                .map(|it| (it.name, it.figure_points(|of| of.pages_per_s)));
            let lines: Vec<charts::ChartLine<'_>> = lines.collect();
            let title = format!(
                "Newest pages read, a second, {}",
                server.unwrap_or_default()
            );
            files.push((name, charts::line_chart(&title, axis.name(), &lines)?));
            for (what, figure) in FIGURES {
                figure_table(&own, what, figure, &mut text);
            }
            comparison_table(&own, &mut text);
        }
    }
    let _ = writeln!(text, "\n## Slopes\n{}", table(points));
    files.push(("growth.md".to_owned(), text));
    Ok(files)
}

/// What is the same at all sizes of an axis.
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

/// What a page costs at each size, as a multiple of one at the smallest size that it was read in turn with.
fn comparison_table(all: &[&GrowthSeries<'_>], text: &mut String) {
    for course in all {
        let points = course.points.iter();
        let both = points.filter_map(|point| Some((point.at, point.measured.beside?)));
        for (place, (at, beside)) in both.enumerate() {
            if place == 0 {
                let _ = writeln!(
                    text,
                    "\n| {}, read in turn | pages/s | smallest size: pages/s | a page costs | p50, us | smallest size: p50, us |\n|--:|--:|--:|--:|--:|--:|",
                    course.name
                );
            }
            let SizeComparison {
                pages_per_s,
                page_p50_us,
                smallest_pages_per_s,
                smallest_page_p50_us,
            } = beside;
            let [own, least] = [pages_per_s, smallest_pages_per_s].map(thousands);
            let _ = writeln!(
                text,
                "| {} | {own} | {least} | {:.2} times | {page_p50_us:.0} | {smallest_page_p50_us:.0} |",
                thousands(at),
                beside.cost_multiple()
            );
        }
    }
}

/// A figure of each strategy at each size.
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
    for course in all {
        let of = course.figure_points(figure);
        let cells: Vec<String> = sizes
            .iter()
            .map(|size| {
                let found = of.iter().find(|(at, _)| at.total_cmp(size).is_eq());
                found.map_or_else(|| "-".to_owned(), |(_, value)| thousands(*value))
            })
            .collect();
        let _ = writeln!(text, "| {} | {} |", course.name, cells.join(" | "));
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
        // 20 us, and a tenth of one for each author.
        let follows = [10.0, 100.0, 1_000.0]
            .map(|at| point(GrowthAxis::Follows, at, 1e6 / (20.0 + at / 10.0)));
        let messages = [1e4, 1e6].map(|at| point(GrowthAxis::Messages, at, 1e6 / at.log10()));
        // The machine was twice as fast when the greater one was measured.
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
