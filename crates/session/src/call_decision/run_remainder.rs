//! A run of the procedure on the server, and what to do with its results.

use std::time::Instant;

use headwater_wire::resultset::QueryReply;

use crate::result_table::TableRowCount as Count;

#[derive(Debug)]
pub(super) struct ProcedureRun {
    pub(super) sent: Instant,
    /// Row counts of the two tables before it.
    pub(super) before: [Count; 2],
}

/// What to do once the tables are restored.
#[derive(Debug)]
pub(super) enum RunRemainder {
    /// Relay the call: the run was interrupted.
    Interrupted,
    /// Read what the run left.
    ReaderRun(Vec<QueryReply>),
    /// The run was for a reader without follows: whether it proved the definer's rights.
    ProbeRun(bool),
}
