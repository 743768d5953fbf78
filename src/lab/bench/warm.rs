//! Statements that are asked beforehand: Headwater learns what both ways cost, and fills its memory.

use std::time::{Duration, Instant};

use super::crew::Crew;
use super::way::{Form, Route};
use super::work::Work;
use super::{BenchError, Stop};

/// Each statement is asked so often, as long as there is time.
const BEFORE: usize = 6;

/// Asks through Headwater for so long at most, and tells how long that took.
///
/// # Errors
/// When a statement fails, and when the bench is asked to stop.
pub fn warm(
    crew: &mut Crew,
    works: &[Work],
    most: Duration,
    stop: &Stop,
) -> Result<Duration, BenchError> {
    let begun = Instant::now();
    let at = BenchError::at(crew.address(Route::Headwater));
    let (clients, _) = crew.clients(Route::Headwater, 1);
    let mut rows = Vec::new();
    for work in (0..BEFORE).flat_map(|_| works) {
        let Some(client) = clients.first_mut().filter(|_| begun.elapsed() < most) else {
            break;
        };
        if stop.asked() {
            return Err(BenchError::Stopped);
        }
        work.ask(Form::Own, client, &mut rows).map_err(&at)?;
    }
    Ok(begun.elapsed())
}
