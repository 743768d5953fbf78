//! Gives a way its turn where each page has a connection of its own: `--reconnect`.
//!
//! Connecting waits several times, so each connection has a thread.

use std::time::Duration;

use super::Stop;
use super::check::Wrong;
use super::client::{Client, ClientError};
use super::measure::{Job, Lane, repeat, together};
use super::way::{Form, Way};
use super::work::Work;

/// Gives a way its turn; returns the answers that are not the expected ones.
///
/// # Errors
/// When a connection fails or a statement is refused.
pub fn anew(
    way: Way,
    length: Duration,
    clients: &mut [Client],
    lanes: &mut [Lane],
    works: &[Work],
    stop: &Stop,
) -> Result<Vec<Wrong>, ClientError> {
    let askers = clients.iter_mut().zip(lanes);
    let jobs = askers.map(|(client, lane)| -> Job<'_, Vec<Wrong>> {
        Box::new(move || turn(way.form, length, client, lane, works, stop))
    });
    Ok(together(jobs.collect())?.into_iter().flatten().collect())
}

fn turn(
    form: Form,
    length: Duration,
    client: &mut Client,
    lane: &mut Lane,
    works: &[Work],
    stop: &Stop,
) -> Result<Vec<Wrong>, ClientError> {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    repeat(length, works.len(), lane, stop, |index| {
        let Some(work) = works.get(index) else {
            return Err(ClientError::Reply);
        };
        client.again()?;
        work.ask(form, client, &mut rows)?;
        // A CALL alone has no rows.
        if form != Form::Call && rows != work.expected(form) {
            Wrong::note(&mut wrong, index, &rows);
        }
        Ok(())
    })?;
    Ok(wrong)
}
