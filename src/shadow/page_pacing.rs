//! When a page of kept rows may be compared though nobody asked for it: whoever is compared waits for the server.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A statement for which the server takes longer is not compared unasked: its client would wait for that, in place of microseconds.
const MAX_SERVER_TIME: Duration = Duration::from_secs(1);
/// Behind a comparison there is none for so many times as long as the server took: all of them take a hundredth of one client's time at most.
const PAUSE_FACTOR: u32 = 100;

/// Until when there are no more.
#[derive(Debug, Default)]
pub(super) struct PageComparisonPacing(Mutex<Option<Instant>>);

impl PageComparisonPacing {
    /// True if one may begin for which the server takes so long, as far as is known.
    pub(super) fn allows(&self, takes: Option<Duration>, now: Instant) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        takes.is_none_or(|takes| takes < MAX_SERVER_TIME) && until.is_none_or(|until| now >= until)
    }

    /// One has ended, for which the server took so long.
    pub(super) fn record(&self, took: Duration, now: Instant) {
        let until = now.checked_add(took.saturating_mul(PAUSE_FACTOR));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_take_a_hundredth_of_the_time_and_nobody_long() {
        let (pace, now) = (PageComparisonPacing::default(), Instant::now());
        let ms = Duration::from_millis;
        assert!(pace.allows(None, now));
        assert!(pace.allows(Some(ms(999)), now));
        assert!(!pace.allows(Some(ms(1_000)), now));
        pace.record(ms(20), now);
        assert!(!pace.allows(Some(ms(20)), now + ms(1_999)));
        assert!(pace.allows(Some(ms(20)), now + ms(2_000)));
    }
}
