//! What is reported of shapes.

use serde::Serialize;

use crate::lab::bench::cell::Cell;
use crate::lab::bench::figures::Figures;
use crate::lab::bench::way::Route;

/// Feeds in every shape.
#[derive(Clone, Debug, Serialize)]
pub struct Shapes {
    /// Database that was made for it, and dropped.
    pub database: &'static str,
    /// Users in the data set.
    pub users: u32,
    /// Messages in it.
    pub messages: u32,
    /// Time for each figure, in seconds.
    pub seconds: f64,
    /// One by one.
    pub shapes: Vec<Shape>,
    /// The join through Headwater while messages are inserted.
    pub beside: Beside,
    /// The median latency of the join, asked directly while nobody inserts.
    pub direct_p50_us: u64,
    /// What that Headwater counted.
    pub counts: Option<String>,
}

/// One shape.
#[derive(Clone, Debug, Serialize)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// Connections that asked at the same time.
    pub connections: usize,
    /// Asked directly.
    pub direct: Figures,
    /// Through Headwater.
    pub headwater: Figures,
    /// What the ratio is to be at least; 0: anything.
    pub target: f64,
    /// Through one that has no feeds; `None` where that was not measured.
    pub without: Option<Figures>,
}

impl Shape {
    /// What these ways of asking came to, with one number of connections.
    #[must_use]
    pub fn of(name: String, cells: &[Cell]) -> Shape {
        let figures = |route| {
            let cell = cells.iter().find(|cell| cell.way.route == route);
            cell.map(|cell| cell.figures)
        };
        Shape {
            name,
            connections: cells.first().map_or(0, |cell| cell.connections),
            direct: figures(Route::Direct).unwrap_or_default(),
            headwater: figures(Route::Headwater).unwrap_or_default(),
            target: 0.0,
            without: figures(Route::NoFeeds),
        }
    }

    /// Headwater's rate by the other's: the server's own, or that of a Headwater without feeds.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let by = self.without.unwrap_or(self.direct).rate;
        (by > 0.0).then(|| self.headwater.rate / by)
    }
}

/// Reading beside inserts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Beside {
    /// Feeds read.
    pub feeds: Figures,
    /// Messages inserted.
    pub inserts: Figures,
}
