//! What is reported of readers and writers together.

use serde::Serialize;

use super::INSERTS_PER_SECOND;
use crate::lab::bench::figures::LatencyFigures;

/// The share of the pace that has to be kept for figures at this pace.
const MIN_PACE_SHARE: f64 = 0.95;

/// Readers and writers together, on both routes.
#[derive(Clone, Debug, Serialize)]
pub struct WriteFigures {
    /// The database whose table `message` was written to.
    pub database: String,
    /// Connections that read.
    pub readers: usize,
    /// Connections that write.
    pub writers: usize,
    /// Time for each figure, in seconds; less than asked for when there were rows enough.
    pub seconds: f64,
    /// CALL + tail, while messages are inserted as fast as it goes.
    pub unpaced: RouteComparison,
    /// CALL alone, while messages are inserted at a pace.
    pub paced: RouteComparison,
    /// Rows that were written, and removed again.
    pub removed: u64,
    /// Timelines that were compared with the procedure's while the rows were there, and when they were gone.
    pub compared: usize,
}

/// The same on both routes, in turn.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RouteComparison {
    /// Directly: the procedure.
    pub direct: RouteLoad,
    /// Both readers and writers through Headwater.
    pub headwater: RouteLoad,
}

/// What a route bore.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RouteLoad {
    /// Messages inserted.
    pub inserts: LatencyFigures,
    /// Timelines read.
    pub timelines: LatencyFigures,
}

impl WriteFigures {
    /// Whether inserts through Headwater kept their pace.
    #[must_use]
    pub fn kept_pace(&self) -> bool {
        self.paced.headwater.inserts.rate >= MIN_PACE_SHARE * f64::from(INSERTS_PER_SECOND)
    }
}

impl RouteComparison {
    /// Inserts through Headwater by inserts directly.
    #[must_use]
    pub fn insert_ratio(&self) -> Option<f64> {
        let direct = Some(self.direct.inserts.rate).filter(|rate| *rate > 0.0)?;
        Some(self.headwater.inserts.rate / direct)
    }
}
