//! The figures of the feed shapes.

use serde::Serialize;

use crate::bench::cell::BenchCell;
use crate::bench::figures::LatencyFigures;
use crate::query_path::ConnectionRoute;

/// The feed SELECTs in every shape.
#[derive(Clone, Debug, Serialize)]
pub struct ShapesReport {
    /// The temporary database.
    pub database: &'static str,
    /// Users in the data set.
    pub users: u32,
    /// Messages in it.
    pub messages: u32,
    /// Time for each figure, in seconds.
    pub seconds: f64,
    /// The figures of each shape.
    pub shapes: Vec<ShapeFigures>,
    /// The join through Headwater while messages are inserted.
    pub beside: MixedLoadFigures,
    /// The count through Headwater while messages are inserted.
    pub counts_beside: MixedLoadFigures,
    /// The median latency of the join, queried directly without inserts.
    pub direct_p50_us: u64,
    /// The counters of that Headwater.
    pub counts: Option<String>,
}

/// One shape.
#[derive(Clone, Debug, Serialize)]
pub struct ShapeFigures {
    /// Its name.
    pub name: String,
    /// Connections that query at the same time.
    pub connections: usize,
    /// The direct queries.
    pub direct: LatencyFigures,
    /// Through Headwater.
    pub headwater: LatencyFigures,
    /// The least ratio that is required; 0: no requirement.
    pub target: f64,
    /// Through a Headwater without feeds; `None` if not measured.
    pub without: Option<LatencyFigures>,
}

impl ShapeFigures {
    /// The figures of these query paths with one number of connections.
    #[must_use]
    pub fn from_cells(name: String, cells: &[BenchCell]) -> ShapeFigures {
        let figures = |route| {
            let cell = cells.iter().find(|cell| cell.way.route == route);
            cell.map(|cell| cell.figures)
        };
        ShapeFigures {
            name,
            connections: cells.first().map_or(0, |cell| cell.connections),
            direct: figures(ConnectionRoute::Direct).unwrap_or_default(),
            headwater: figures(ConnectionRoute::Headwater).unwrap_or_default(),
            target: 0.0,
            without: figures(ConnectionRoute::NoFeeds),
        }
    }

    /// Headwater's rate divided by the other's: the server's, or that of a Headwater without feeds.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let by = self.without.unwrap_or(self.direct).rate;
        (by > 0.0).then(|| self.headwater.rate / by)
    }
}

/// Reads during inserts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct MixedLoadFigures {
    /// Feeds read.
    pub feeds: LatencyFigures,
    /// Messages inserted.
    pub inserts: LatencyFigures,
}
