//! Inserts at an even pace, shared by several connections.

use std::thread;
use std::time::{Duration, Instant};

use crate::lab::bench::Stop;
use crate::lab::bench::client::ClientError;
use crate::lab::bench::measure::{Lane, SLICE};

/// So many a second, in turn by so many hands.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// By all hands together.
    pub per_second: u32,
    /// Connections that share it.
    pub hands: u32,
}

impl Pace {
    /// Does a hand's share of a slice, each time at the next of so many places in a list. Who is late goes on at once; what is still due
    /// when the slice ends is left out.
    ///
    /// # Errors
    /// When it fails.
    pub fn keep(
        self,
        hand: u32,
        places: usize,
        lane: &mut Lane,
        stop: &Stop,
        mut once: impl FnMut(usize) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let start = Instant::now();
        for due in self.due(hand, SLICE) {
            thread::sleep(due.saturating_sub(start.elapsed()));
            if start.elapsed() >= SLICE || stop.asked() {
                break;
            }
            let place = lane.next(places);
            let begun = Instant::now();
            once(place)?;
            lane.record(begun.elapsed());
        }
        lane.busy += SLICE.max(start.elapsed());
        Ok(())
    }

    /// When a hand's next turns are due, counted from the start of a slice, until the slice ends.
    pub fn due(self, hand: u32, slice: Duration) -> impl Iterator<Item = Duration> {
        let each = Duration::from_secs(1) / self.per_second.max(1);
        (0..)
            .map_while(move |turn: u32| {
                let place = turn.checked_mul(self.hands.max(1))?.checked_add(hand)?;
                each.checked_mul(place)
            })
            .take_while(move |due| *due < slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hands_take_turns_evenly_and_all_together_keep_the_pace() {
        let pace = Pace {
            per_second: 1_000,
            hands: 4,
        };
        let slice = Duration::from_millis(250);
        let mut all: Vec<_> = (0..4).flat_map(|hand| pace.due(hand, slice)).collect();
        all.sort_unstable();
        let expected: Vec<_> = (0..250).map(Duration::from_millis).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_slice_of_no_length_has_no_turns_and_no_numbers_overflow() {
        let pace = Pace {
            per_second: 0,
            hands: u32::MAX,
        };
        assert_eq!(pace.due(0, Duration::ZERO).count(), 0);
        assert_eq!(pace.due(u32::MAX, Duration::MAX).count(), 1);
    }
}
