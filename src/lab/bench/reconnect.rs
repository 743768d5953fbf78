//! Gives a way its turn where each page has a connection of its own: `--reconnect`.
//!
//! Connecting waits several times, so each connection has a thread.

use std::time::Duration;

use super::StopSignal;
use super::check::UnexpectedAnswer;
use super::client::{BenchClient, BenchClientError};
use super::measure::{ConnectionTally, SliceJob, repeat_for, run_parallel};
use super::prepared_task::PreparedTask;
use super::query_path::{QueryForm, QueryPath};

/// Gives a way its turn; returns the answers that are not the expected ones.
///
/// # Errors
/// When a connection fails or a statement is refused.
pub fn run_reconnecting_slice(
    way: QueryPath,
    length: Duration,
    clients: &mut [BenchClient],
    lanes: &mut [ConnectionTally],
    works: &[PreparedTask],
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let askers = clients.iter_mut().zip(lanes);
    let jobs = askers.map(|(client, lane)| -> SliceJob<'_, Vec<UnexpectedAnswer>> {
        Box::new(move || run_connection(way.form, length, client, lane, works, stop))
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
    lane: &mut ConnectionTally,
    works: &[PreparedTask],
    stop: &StopSignal,
) -> Result<Vec<UnexpectedAnswer>, BenchClientError> {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    repeat_for(length, works.len(), lane, stop, |index| {
        let Some(work) = works.get(index) else {
            return Err(BenchClientError::UnexpectedReply);
        };
        client.reconnect()?;
        work.query(form, client, &mut rows)?;
        // A CALL alone has no rows.
        if form != QueryForm::Call && rows != work.expected(form) {
            UnexpectedAnswer::record(&mut wrong, index, &rows);
        }
        Ok(())
    })?;
    Ok(wrong)
}
