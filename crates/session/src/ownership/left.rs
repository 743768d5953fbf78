//! A run of the procedure on the server, and what is to be done with what it leaves.

use std::time::Instant;

use headwater_wire::resultset::Answer;

use crate::result_table::Rows as Count;

/// A run that was sent.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) sent: Instant,
    /// Rows in the two tables before it.
    pub(super) before: [Count; 2],
}

/// What is to be done once the tables are put back.
#[derive(Debug)]
pub(super) enum Left {
    /// The call goes on to the server: the run was interrupted.
    Interrupted,
    /// What the run left is read.
    Own(Vec<Answer>),
    /// It was a run for nobody: whether that proved the definer's rights.
    Nobodys(bool),
}
