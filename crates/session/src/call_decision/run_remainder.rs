//! A run of the procedure on the server, and what is to be done with what it leaves.

use std::time::Instant;

use headwater_wire::resultset::QueryReply;

use crate::result_table::TableRowCount as Count;

/// A run that was sent.
#[derive(Debug)]
pub(super) struct ProcedureRun {
    pub(super) sent: Instant,
    /// Rows in the two tables before it.
    pub(super) before: [Count; 2],
}

/// What is to be done once the tables are put back.
#[derive(Debug)]
pub(super) enum RunRemainder {
    /// The call goes on to the server: the run was interrupted.
    Interrupted,
    /// What the run left is read.
    ReaderRun(Vec<QueryReply>),
    /// It was a run for nobody: whether that proved the definer's rights.
    ProbeRun(bool),
}
