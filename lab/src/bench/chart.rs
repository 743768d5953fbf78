//! The newest page's rates as an SVG bar chart, readable on light and dark pages.

use std::fmt::{self, Write};

use super::cell::BenchCell;
use super::depth::PageDepth;
use super::report::BenchReport;
use super::table::thousands;
use super::target_ratios::CONNECTIONS;
use crate::query_path::{ConnectionRoute, QueryForm, QueryPath};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 216.0;
/// Room right of the longest bar, for its figure.
const RIGHT: f64 = 150.0;
const TOP: f64 = 84.0;
const BAR_STEP: f64 = 40.0;
const BAR_HEIGHT: f64 = 24.0;
const BOTTOM: f64 = 58.0;

/// The chart has its own background, and a darker one where the reader prefers a dark scheme.
const STYLE: &str = "\
.card{fill:#ffffff;stroke:#d0d7de}.title{fill:#1f2328;font-weight:600;font-size:17px}\
.text{fill:#1f2328;font-size:14px}.small{fill:#59636e;font-size:12px}\
.bar{fill:#8c959f}.own{fill:#0969da}.relay{fill:#80b3f0}\
@media (prefers-color-scheme:dark){.card{fill:#0d1117;stroke:#3d444d}.title,.text{fill:#f0f6fc}\
.small{fill:#9198a1}.bar{fill:#6e7681}.own{fill:#4493f8}.relay{fill:#2b5f9e}}";

const CHART_BARS: [(QueryPath, &str, &str); 5] = [
    (
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Join),
        "plain SQL join",
        "bar",
    ),
    (
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Lateral),
        "LATERAL",
        "bar",
    ),
    (
        QueryPath::new(ConnectionRoute::Relay, QueryForm::CallAndTail),
        "Headwater relaying",
        "relay",
    ),
    (
        QueryPath::new(ConnectionRoute::Direct, QueryForm::CallAndTail),
        "stored procedure",
        "bar",
    ),
    (
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail),
        "Headwater",
        "own",
    ),
];

/// Draws the chart; `None` if the newest page was not measured.
#[must_use]
pub fn chart(report: &BenchReport) -> Option<String> {
    let newest: Vec<&BenchCell> = report
        .cells
        .iter()
        .filter(|cell| cell.page == PageDepth::NEWEST)
        .collect();
    let usual = newest
        .iter()
        .map(|cell| cell.connections)
        .find(|count| *count == CONNECTIONS);
    let connections = usual.or_else(|| newest.iter().map(|cell| cell.connections).max())?;
    let cell = |path: QueryPath| {
        newest
            .iter()
            .find(|cell| cell.connections == connections && cell.way == path)
            .copied()
    };
    let bars: Vec<_> = CHART_BARS
        .iter()
        .filter_map(|(path, name, class)| Some((cell(*path)?, *name, *class)))
        .collect();
    let floor = cell(QueryPath::new(ConnectionRoute::Direct, QueryForm::Bodies));
    let mut svg = String::new();
    // Writing to a String does not fail.
    let _ = draw(report, connections, &bars, floor, &mut svg);
    Some(svg)
}

fn draw(
    report: &BenchReport,
    connections: usize,
    bars: &[(&BenchCell, &str, &str)],
    floor: Option<&BenchCell>,
    svg: &mut String,
) -> fmt::Result {
    let product = if report.server.mariadb {
        "MariaDB"
    } else {
        "MySQL"
    };
    let version = escape(report.server.version.split('-').next().unwrap_or_default());
    let height = TOP + BAR_STEP * bars.len() as f64 + BOTTOM;
    let most = bars
        .iter()
        .map(|(cell, ..)| cell.figures.rate)
        .fold(1.0, f64::max);
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui,'DejaVu Sans',sans-serif\" role=\"img\">\n\
         <title>Timelines a second by way of asking, {product} {version}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"24\" y=\"36\">Timelines a second, {product} {version}</text>\n\
         <text class=\"small\" x=\"24\" y=\"58\">the newest 20 messages with their bodies, {connections} \
         connections, {} cores shared by server, proxy and client</text>",
        WIDTH - 1.0,
        height - 1.0,
        report.machine.cores,
    )?;
    for (index, (cell, name, class)) in bars.iter().enumerate() {
        let y = TOP + BAR_STEP * index as f64;
        let width = ((WIDTH - LEFT - RIGHT) * cell.figures.rate / most).max(2.0);
        let ratio = cell
            .ratio
            .map_or(String::new(), |ratio| format!("({ratio:.2}x)"));
        writeln!(
            svg,
            "<text class=\"text\" x=\"{}\" y=\"{:.0}\" text-anchor=\"end\">{name}</text>\n\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" rx=\"3\"/>\n\
             <text class=\"text\" x=\"{:.1}\" y=\"{:.0}\">{}<tspan class=\"small\" dx=\"8\">{ratio}</tspan></text>",
            LEFT - 12.0,
            y + 17.0,
            LEFT + width + 10.0,
            y + 17.0,
            thousands(cell.figures.rate),
        )?;
    }
    let floor = floor.map_or(String::new(), |floor| {
        format!(
            "; the 20 bodies alone, by primary key: {}",
            thousands(floor.figures.rate)
        )
    });
    writeln!(
        svg,
        "<text class=\"small\" x=\"24\" y=\"{:.0}\">in brackets: by the rate of the stored procedure{floor}</text>\n\
         </svg>",
        height - 24.0
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
