//! What is reported of push and pull.

use serde::Serialize;

use crate::lab::bench::figures::LatencyFigures;

/// Push beside pull, on one data set.
#[derive(Clone, Debug, Serialize)]
pub struct PushFigures {
    /// Database that was made for it, and dropped.
    pub database: &'static str,
    /// Users in the data set.
    pub users: u32,
    /// Rows of `follower`.
    pub follows: u64,
    /// Rows of `message` before anything was submitted.
    pub messages: u64,
    /// Rows of `mailbox` then: one for each message and follower.
    pub mailbox_rows: u64,
    /// Connections that read, and that submit.
    pub connections: usize,
    /// Time for each figure, in seconds.
    pub seconds: f64,
    /// The mailbox table.
    pub push: ModelFigures,
    /// The procedure, asked directly.
    pub procedure: ModelFigures,
    /// The calls through Headwater.
    pub headwater: ModelFigures,
    /// Newest pages read by a plain join through Headwater, which is a feed's.
    pub join: LatencyFigures,
    /// What that Headwater counted.
    pub counts: Option<String>,
}

/// The three figures of a model.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelFigures {
    /// Newest pages read.
    pub timelines: LatencyFigures,
    /// Messages submitted.
    pub submissions: LatencyFigures,
    /// Data and indexes of its tables, in bytes, before anything was submitted.
    pub bytes: u64,
}
