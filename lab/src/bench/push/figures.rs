//! The figures of push and pull.

use serde::Serialize;

use crate::bench::figures::LatencyFigures;

/// Push and pull on one data set.
#[derive(Clone, Debug, Serialize)]
pub struct PushFigures {
    /// The temporary database.
    pub database: &'static str,
    /// Users in the data set.
    pub users: u32,
    /// Rows of `follower`.
    pub follows: u64,
    /// Rows of `message` before the submissions.
    pub messages: u64,
    /// Rows of `mailbox` before the submissions: one for each message and follower.
    pub mailbox_rows: u64,
    /// Connections that read, and as many that submit.
    pub connections: usize,
    /// Time for each figure, in seconds.
    pub seconds: f64,
    /// The mailbox table.
    pub push: ModelFigures,
    /// The procedure, asked directly.
    pub procedure: ModelFigures,
    /// The calls through Headwater.
    pub headwater: ModelFigures,
    /// Newest pages through Headwater by a plain join, served as a feed.
    pub join: LatencyFigures,
    /// The counters of that Headwater.
    pub counts: Option<String>,
}

/// The three figures of a model.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelFigures {
    /// Newest pages read.
    pub timelines: LatencyFigures,
    /// Messages submitted.
    pub submissions: LatencyFigures,
    /// Data and indexes of its tables before the submissions, in bytes.
    pub bytes: u64,
}
