//! Statements that are asked beforehand: Headwater learns what both ways cost, and fills its memory.

use std::time::{Duration, Instant};

use super::client_pool::ClientPool;
use super::prepared_task::PreparedTask;
use super::query_path::{ConnectionRoute, QueryForm};
use super::{BenchError, StopSignal};

/// Each statement is asked so often, as long as there is time.
const REPETITIONS: usize = 6;

/// Asks through Headwater for so long at most, and tells how long that took.
///
/// # Errors
/// When a statement fails, and when the bench is asked to stop.
pub fn warm_up(
    crew: &mut ClientPool,
    works: &[PreparedTask],
    most: Duration,
    stop: &StopSignal,
) -> Result<Duration, BenchError> {
    let begun = Instant::now();
    let at = BenchError::for_address(crew.address(ConnectionRoute::Headwater));
    let (clients, _) = crew.clients(ConnectionRoute::Headwater, 1);
    let mut rows = Vec::new();
    for work in (0..REPETITIONS).flat_map(|_| works) {
        let Some(client) = clients.first_mut().filter(|_| begun.elapsed() < most) else {
            break;
        };
        if stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        work.query(QueryForm::Own, client, &mut rows).map_err(&at)?;
    }
    Ok(begun.elapsed())
}
