//! The figures of readers and writers in parallel.

use serde::Serialize;

use super::INSERTS_PER_SECOND;
use crate::bench::figures::LatencyFigures;

/// The share of the pace that has to be reached for the figures to count.
const MIN_PACE_SHARE: f64 = 0.95;

/// Readers and writers in parallel, on both routes.
#[derive(Clone, Debug, Serialize)]
pub struct WriteFigures {
    /// The database whose table `message` received the rows.
    pub database: String,
    /// Connections that read.
    pub readers: usize,
    /// Connections that write.
    pub writers: usize,
    /// Time for each figure, in seconds; less than requested when the limit of rows was reached.
    pub seconds: f64,
    /// CALL + follow-up during inserts at full speed.
    pub unpaced: RouteComparison,
    /// CALL alone during paced inserts.
    pub paced: RouteComparison,
    /// Rows that were written, and removed again.
    pub removed: u64,
    /// Timelines that were compared with the procedure's while the rows were there, and after their removal.
    pub compared: usize,
}

/// The same on both routes, in alternating slices.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RouteComparison {
    /// Direct connections: the procedure.
    pub direct: RouteLoad,
    /// Both readers and writers through Headwater.
    pub headwater: RouteLoad,
}

/// The load of one route.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RouteLoad {
    /// Messages inserted.
    pub inserts: LatencyFigures,
    /// Timelines read.
    pub timelines: LatencyFigures,
}

impl WriteFigures {
    /// Whether the inserts through Headwater kept the pace.
    #[must_use]
    pub fn kept_pace(&self) -> bool {
        self.paced.headwater.inserts.rate >= MIN_PACE_SHARE * f64::from(INSERTS_PER_SECOND)
    }
}

impl RouteComparison {
    /// Inserts through Headwater, divided by direct inserts.
    #[must_use]
    pub fn insert_ratio(&self) -> Option<f64> {
        let direct = Some(self.direct.inserts.rate).filter(|rate| *rate > 0.0)?;
        Some(self.headwater.inserts.rate / direct)
    }
}
