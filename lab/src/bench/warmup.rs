//! Runs the statements before the measurement: Headwater samples the cost of both strategies, and fills its memory.

use std::time::{Duration, Instant};

use super::client_pool::ClientPool;
use super::prepared_task::PreparedTask;
use super::{BenchError, StopSignal};
use crate::query_path::{ConnectionRoute, QueryForm};

/// How often each statement runs, while there is time.
const REPETITIONS: usize = 6;

/// Queries through Headwater within this time limit, and prints how long it took.
///
/// # Errors
/// Fails if a statement fails, or the bench is stopped.
pub fn warm_up(
    pool: &mut ClientPool,
    prepared_tasks: &[PreparedTask],
    most: Duration,
    stop: &StopSignal,
) -> Result<Duration, BenchError> {
    let begun = Instant::now();
    let at = BenchError::for_address(pool.address(ConnectionRoute::Headwater));
    let (clients, _) = pool.clients(ConnectionRoute::Headwater, 1);
    let mut rows = Vec::new();
    for prepared in (0..REPETITIONS).flat_map(|_| prepared_tasks) {
        let Some(client) = clients.first_mut().filter(|_| begun.elapsed() < most) else {
            break;
        };
        if stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        prepared
            .query(QueryForm::Own, client, &mut rows)
            .map_err(&at)?;
    }
    Ok(begun.elapsed())
}
