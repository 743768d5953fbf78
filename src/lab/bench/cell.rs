//! What one way came to, at one page with one number of connections.

use serde::Serialize;

use super::depth::Depth;
use super::figures::Figures;
use super::way::Way;

/// One way at one page and number of connections.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Which page was asked for.
    pub page: Depth,
    /// Connections that asked at the same time.
    pub connections: usize,
    /// How was asked.
    #[serde(flatten)]
    pub way: Way,
    /// By the rate of the procedure, asked directly in the same form; `None` where that was not measured.
    pub ratio: Option<f64>,
    /// Timelines, and how long each took.
    #[serde(flatten)]
    pub figures: Figures,
}

/// A way's rate by that of the procedure asked in the same form, page and connections.
#[must_use]
pub fn ratio(cells: &[Cell], page: Depth, connections: usize, way: Way) -> Option<f64> {
    quotient(cells, page, connections, way, way.measure()?)
}

/// A way's rate by that of another, at the same page and number of connections.
#[must_use]
pub fn quotient(cells: &[Cell], page: Depth, connections: usize, way: Way, by: Way) -> Option<f64> {
    let rate = |way| {
        let is = |cell: &&Cell| (cell.page, cell.connections, cell.way) == (page, connections, way);
        cells.iter().find(is).map(|cell| cell.figures.rate)
    };
    let by = rate(by).filter(|rate| *rate > 0.0)?;
    Some(rate(way)? / by)
}
