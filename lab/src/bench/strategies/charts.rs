//! The figures as charts.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figures::{EngineDataset, StrategiesReport, StrategyFigures};
use super::push_rule;
use crate::bench::table::thousands;

const WIDTH: u32 = 860;
const LEFT: i32 = 180;
const RIGHT: i32 = 90;
const TOP: i32 = 76;
const BAR: i32 = 13;
const GAP: i32 = 12;
/// The height of a name, and the width of the names right of the lines.
const LINE: i32 = 15;
const NAMES: i32 = 150;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(31, 35, 40);
const PALE: RGBColor = RGBColor(89, 99, 110);
/// One colour for each server.
const COLOURS: [RGBColor; 2] = [RGBColor(9, 105, 218), RGBColor(191, 108, 20)];
/// The strategies with a line in the ratio chart, and their colours.
const LINE_COLOURS: [(&str, RGBColor); 8] = [
    ("sql-list", RGBColor(212, 167, 44)),
    ("procedure", RGBColor(140, 149, 159)),
    ("sql-join", RGBColor(190, 190, 190)),
    ("headwater-kept", RGBColor(9, 105, 218)),
    ("push-mailbox", RGBColor(207, 34, 46)),
    ("push-buckets-size", RGBColor(191, 108, 20)),
    ("redis-push", RGBColor(130, 80, 223)),
    ("redis-pull", RGBColor(26, 127, 55)),
];

type DrawResult = Result<(), Box<dyn std::error::Error>>;

/// A bar chart: one figure of each strategy, on each server.
///
/// # Errors
/// Never fails: it draws into memory.
pub fn bar_chart(
    figures: &StrategiesReport,
    title: &str,
    of: fn(&StrategyFigures) -> f64,
) -> Result<String, Box<dyn std::error::Error>> {
    let names = figures.strategy_names();
    let servers = i32::try_from(figures.engines.len()).unwrap_or(1);
    let step = BAR * servers + GAP;
    let rows = i32::try_from(names.len()).unwrap_or(0);
    let height = u32::try_from(TOP + step * rows + 44).unwrap_or(0);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)?;
        let text = |size: i32, colour: RGBColor| (FONT, size).into_font().color(&colour);
        area.draw(&Text::new(title.to_owned(), (20, 16), text(19, INK)))?;
        let mut x = 20;
        for (engine, colour) in figures.engines.iter().zip(COLOURS) {
            area.draw(&Rectangle::new([(x, 48), (x + 12, 60)], colour.filled()))?;
            let server_name = engine_label(engine);
            let width = i32::try_from(server_name.len()).unwrap_or(0) * 7 + 40;
            area.draw(&Text::new(server_name, (x + 18, 47), text(13, PALE)))?;
            x += width;
        }
        let most = figures.strategies.iter().map(of).fold(1.0, f64::max);
        for (row, name) in (0..).zip(&names) {
            let y = TOP + step * row;
            let right = text(13, INK).pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(
                (*name).to_owned(),
                (LEFT - 10, y + BAR * servers / 2),
                right,
            ))?;
            for (index, (engine, colour)) in (0..).zip(figures.engines.iter().zip(COLOURS)) {
                let measured = figures
                    .strategies
                    .iter()
                    .find(|it| it.engine == engine.engine && it.name == *name);
                let Some(it) = measured else { continue };
                let top = y + BAR * index;
                let width = f64::from(i32::try_from(WIDTH)? - LEFT - RIGHT) * of(it) / most;
                // At most the width of the picture.
                #[allow(clippy::cast_possible_truncation)]
                let end = LEFT + (width as i32).max(2);
                let bar = [(LEFT, top), (end, top + BAR - 1)];
                area.draw(&Rectangle::new(bar, colour.filled()))?;
                let at = (end + 6, top + BAR / 2);
                let left_aligned = text(12, PALE).pos(Pos::new(HPos::Left, VPos::Center));
                area.draw(&Text::new(thousands(of(it)), at, left_aligned))?;
            }
        }
        let bottom = TOP + step * rows + 12;
        area.draw(&Text::new(
            chart_caption(figures),
            (20, bottom),
            text(12, PALE),
        ))?;
        area.present()?;
    }
    Ok(svg)
}

/// A line chart: pages and messages a second by the number of pages read for each message, on one server.
///
/// # Errors
/// Never fails: it draws into memory.
pub fn ratio_chart(
    figures: &StrategiesReport,
    engine: &EngineDataset,
) -> Result<String, Box<dyn std::error::Error>> {
    let first = push_rule::RATIOS.first().copied().unwrap_or(0.01);
    let last = push_rule::RATIOS.last().copied().unwrap_or(1e4);
    let lines = LINE_COLOURS.iter().filter_map(|(name, _)| {
        let mut all = figures.strategies.iter();
        let it = all.find(|it| it.engine == engine.engine && it.name == *name)?;
        let steps = (0..=60).map(|step| first * (last / first).powf(f64::from(step) / 60.0));
        let points = steps.map(|ratio| (ratio, push_rule::combined_rate(ratio, it)));
        Some((it.name, points.collect()))
    });
    let lines: Vec<ChartLine<'_>> = lines.collect();
    line_chart(
        &format!("Pages and messages a second, {}", engine_label(engine)),
        "pages read for each message written",
        &lines,
    )
}

/// A strategy's name, and its points from left to right.
pub type ChartLine<'a> = (&'a str, Vec<(f64, f64)>);

/// A line chart with logarithmic axes.
///
/// # Errors
/// Never fails: it draws into memory.
pub fn line_chart(
    title: &str,
    below: &str,
    lines: &[ChartLine<'_>],
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    draw_lines(title, below, lines, &mut svg)?;
    Ok(svg)
}

fn draw_lines(title: &str, below: &str, lines: &[ChartLine<'_>], svg: &mut String) -> DrawResult {
    let all = || lines.iter().flat_map(|(_, points)| points);
    let span = |of: fn(&(f64, f64)) -> f64| {
        all().map(of).fold((f64::MAX, 0.0), |(least, most), value| {
            (value.min(least), value.max(most))
        })
    };
    let ((first, last), (least, most)) = (span(|point| point.0), span(|point| point.1));
    let area = SVGBackend::with_string(svg, (WIDTH, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, (FONT, 19).into_font().color(&INK))
        .margin(16)
        .margin_right(NAMES)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (first..last).log_scale(),
            (least * 0.8..most * 1.25).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc(below)
        .light_line_style(WHITE)
        .label_style((FONT, 12).into_font().color(&PALE))
        .x_label_formatter(&|x| match *x < 1.0 {
            true => x.to_string(),
            false => thousands(*x),
        })
        .y_label_formatter(&|rate| thousands(*rate))
        .draw()?;
    let mut ends = Vec::new();
    for (name, points) in lines {
        let colour = LINE_COLOURS.iter().find(|(named, _)| named == name);
        let colour = colour.map_or(INK, |(_, colour)| *colour);
        let points = points.iter().copied();
        if let Some(end) = points.clone().next_back() {
            let (x, y) = chart.backend_coord(&end);
            ends.push((y, x, *name, colour));
        }
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    // Each name is at the end of its line, below the names of the lines above.
    ends.sort_unstable_by_key(|end| end.0);
    let mut free = 0;
    for (y, x, name, colour) in ends {
        let y = y.max(free);
        free = y + LINE;
        let left_aligned = (FONT, 12).into_font().color(&colour);
        let left_aligned = left_aligned.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(name, (x + 8, y), left_aligned))?;
    }
    area.present()?;
    Ok(())
}

/// A server's usual name.
#[must_use]
pub fn engine_label(engine: &EngineDataset) -> String {
    let version = engine.version.split('-').next().unwrap_or_default();
    let product = match engine.engine {
        "mysql" => "MySQL",
        _ => "MariaDB",
    };
    format!("{product} {version}")
}

fn chart_caption(figures: &StrategiesReport) -> String {
    let engine = figures.engines.first();
    let (users, messages) = engine.map_or((0, 0), |it| (it.users, it.messages));
    format!(
        "{users} users, {messages} messages; {} connections; {} cores shared by servers, Headwater and clients",
        figures.connections, figures.cores
    )
}
