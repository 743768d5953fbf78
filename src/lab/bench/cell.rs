//! What one way came to, at one page with one number of connections.

use serde::Serialize;

use super::depth::PageDepth;
use super::figures::LatencyFigures;
use super::query_path::QueryPath;

/// One way at one page and number of connections.
#[derive(Clone, Debug, Serialize)]
pub struct BenchCell {
    /// Which page was asked for.
    pub page: PageDepth,
    /// Connections that asked at the same time.
    pub connections: usize,
    /// How was asked.
    #[serde(flatten)]
    pub way: QueryPath,
    /// By the rate of the procedure, asked directly in the same form; `None` where that was not measured.
    pub ratio: Option<f64>,
    /// Timelines, and how long each took.
    #[serde(flatten)]
    pub figures: LatencyFigures,
}

/// A way's rate by that of the procedure asked in the same form, page and connections.
#[must_use]
pub fn ratio(
    cells: &[BenchCell],
    page: PageDepth,
    connections: usize,
    way: QueryPath,
) -> Option<f64> {
    rate_ratio(cells, page, connections, way, way.baseline()?)
}

/// A way's rate by that of another, at the same page and number of connections.
#[must_use]
pub fn rate_ratio(
    cells: &[BenchCell],
    page: PageDepth,
    connections: usize,
    way: QueryPath,
    by: QueryPath,
) -> Option<f64> {
    let rate = |way| {
        let is =
            |cell: &&BenchCell| (cell.page, cell.connections, cell.way) == (page, connections, way);
        cells.iter().find(is).map(|cell| cell.figures.rate)
    };
    let by = rate(by).filter(|rate| *rate > 0.0)?;
    Some(rate(way)? / by)
}
