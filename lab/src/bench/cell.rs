//! The figures of one query path for one page and one number of connections.

use serde::Serialize;

use super::depth::PageDepth;
use super::figures::LatencyFigures;
use crate::query_path::QueryPath;

/// One query path at one page and number of connections.
#[derive(Clone, Debug, Serialize)]
pub struct BenchCell {
    /// The requested page.
    pub page: PageDepth,
    /// Connections that query at the same time.
    pub connections: usize,
    /// The query path.
    #[serde(flatten)]
    pub way: QueryPath,
    /// The rate divided by that of the procedure, queried directly in the same form; `None` if that was not measured.
    pub ratio: Option<f64>,
    /// The number of timelines, and their latencies.
    #[serde(flatten)]
    pub figures: LatencyFigures,
}

/// A query path's rate divided by that of the procedure in the same form, page and connections.
#[must_use]
pub fn ratio(
    cells: &[BenchCell],
    page: PageDepth,
    connections: usize,
    path: QueryPath,
) -> Option<f64> {
    rate_ratio(cells, page, connections, path, path.baseline()?)
}

/// A query path's rate divided by that of another one, at the same page and number of connections.
#[must_use]
pub fn rate_ratio(
    cells: &[BenchCell],
    page: PageDepth,
    connections: usize,
    path: QueryPath,
    by: QueryPath,
) -> Option<f64> {
    let rate = |path| {
        let is = |cell: &&BenchCell| {
            (cell.page, cell.connections, cell.way) == (page, connections, path)
        };
        cells.iter().find(is).map(|cell| cell.figures.rate)
    };
    let by = rate(by).filter(|rate| *rate > 0.0)?;
    Some(rate(path)? / by)
}
