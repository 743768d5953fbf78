//! Inserts at an even pace, shared by several connections.

use std::thread;
use std::time::{Duration, Instant};

use crate::bench::StopSignal;
use crate::bench::client::BenchClientError;
use crate::bench::measure::{ConnectionTally, SLICE_TIME};

/// Inserts a second, divided among several connections.
#[derive(Clone, Copy, Debug)]
pub struct InsertPace {
    /// By all connections together.
    pub per_second: u32,
    /// The connections.
    pub connections: u32,
}

impl InsertPace {
    /// Runs one connection's share of a slice, each time at the next position of a list. A late insert starts at once; what is still due
    /// when the slice ends is left out.
    ///
    /// # Errors
    /// Fails if an insert fails.
    pub fn run_slice(
        self,
        connection: u32,
        length: usize,
        tally: &mut ConnectionTally,
        stop: &StopSignal,
        mut once: impl FnMut(usize) -> Result<(), BenchClientError>,
    ) -> Result<(), BenchClientError> {
        let start = Instant::now();
        for due in self.due_times(connection, SLICE_TIME) {
            thread::sleep(due.saturating_sub(start.elapsed()));
            if start.elapsed() >= SLICE_TIME || stop.is_requested() {
                break;
            }
            let index = tally.next_index(length);
            let begun = Instant::now();
            once(index)?;
            tally.record(begun.elapsed());
        }
        tally.busy += SLICE_TIME.max(start.elapsed());
        Ok(())
    }

    /// The due times of a connection's inserts, counted from the start of a slice, until the slice ends.
    pub fn due_times(self, connection: u32, slice: Duration) -> impl Iterator<Item = Duration> {
        let each = Duration::from_secs(1) / self.per_second.max(1);
        (0..)
            .map_while(move |number: u32| {
                let insert_number = number
                    .checked_mul(self.connections.max(1))?
                    .checked_add(connection)?;
                each.checked_mul(insert_number)
            })
            .take_while(move |due| *due < slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hands_take_turns_evenly_and_all_together_keep_the_pace() {
        let pace = InsertPace {
            per_second: 1_000,
            connections: 4,
        };
        let slice = Duration::from_millis(250);
        let mut all: Vec<_> = (0..4)
            .flat_map(|connection| pace.due_times(connection, slice))
            .collect();
        all.sort_unstable();
        let expected: Vec<_> = (0..250).map(Duration::from_millis).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_slice_of_no_length_has_no_turns_and_no_numbers_overflow() {
        let pace = InsertPace {
            per_second: 0,
            connections: u32::MAX,
        };
        assert_eq!(pace.due_times(0, Duration::ZERO).count(), 0);
        assert_eq!(pace.due_times(u32::MAX, Duration::MAX).count(), 1);
    }
}
