//! Limits comparisons of pages that the settings do not ask for: the client waits for the server's reply.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A statement that takes the server longer is not compared by default: its client would wait for that, instead of microseconds.
const MAX_SERVER_TIME: Duration = Duration::from_secs(1);
/// Pause after a comparison, in multiples of the server's time: comparisons take a hundredth of one client's time at most.
const PAUSE_FACTOR: u32 = 100;

/// The end of the pause.
#[derive(Debug, Default)]
pub(super) struct PageComparisonPacing(Mutex<Option<Instant>>);

impl PageComparisonPacing {
    /// True if a comparison may begin; `takes`: the server's expected time.
    pub(super) fn allows(&self, takes: Option<Duration>, now: Instant) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        takes.is_none_or(|takes| takes < MAX_SERVER_TIME) && until.is_none_or(|until| now >= until)
    }

    /// Starts the pause after a comparison that took the server this long.
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
