//! Runs a slice of `--reconnect`: each page has a connection of its own.
//!
//! Connecting waits several times, so each connection has a thread.

use std::time::Duration;

use super::StopSignal;
use super::check::UnexpectedAnswer;
use super::client::{BenchClient, BenchClientError};
use super::measure::{ConnectionTally, SliceJob, repeat_for, run_parallel};
use super::prepared_task::PreparedTask;
use crate::query_path::{QueryForm, QueryPath};

/// Runs one slice; returns the answers that differ from the expected ones.
///
/// # Errors
/// Fails if a connection fails or a statement is refused.
pub fn run_reconnecting_slice(
    path: QueryPath,
    length: Duration,
    clients: &mut [BenchClient],
    tallies: &mut [ConnectionTally],
    prepared_tasks: &[PreparedTask],
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let pairs = clients.iter_mut().zip(tallies);
    let jobs = pairs.map(|(client, tally)| -> SliceJob<'_, Vec<UnexpectedAnswer>> {
        Box::new(move || run_connection(path.form, length, client, tally, prepared_tasks, stop))
    });
    Ok(run_parallel(jobs.collect())?
        .into_iter()
        .flatten()
        .collect())
}

fn run_connection(
    form: QueryForm,
    length: Duration,
    client: &mut BenchClient,
    tally: &mut ConnectionTally,
    prepared_tasks: &[PreparedTask],
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    repeat_for(length, prepared_tasks.len(), tally, stop, |index| {
        let Some(prepared) = prepared_tasks.get(index) else {
            return Err(BenchClientError::UnexpectedReply);
        };
        client.reconnect()?;
        prepared.query(form, client, &mut rows)?;
        // A CALL alone has no rows.
        if form != QueryForm::Call && rows != prepared.expected(form) {
            UnexpectedAnswer::record(&mut wrong, index, &rows);
        }
        Ok(())
    })?;
    Ok(wrong)
}
