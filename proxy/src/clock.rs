//! The clock. All code reads time through it, so that Headwater follows a runtime whose time is paused.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The current time.
#[must_use]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time elapsed since `then`; 0 if it is in the future.
#[must_use]
pub fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

#[cfg(feature = "simulation")]
thread_local! {
    /// Start of this thread's simulation.
    static BEGINNING: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// Makes `coarse_ms` on this thread follow the runtime's time, which may be simulated.
#[cfg(feature = "simulation")]
pub fn simulate() {
    BEGINNING.set(Some(now()));
}

/// Milliseconds since boot, a few too late. Costs a tenth of [`now`]; used once per command.
pub(crate) fn coarse_ms() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(beginning) = BEGINNING.get() {
        return u64::try_from(since(beginning).as_millis()).unwrap_or(u64::MAX);
    }
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    part(now.tv_sec) * 1_000 + part(now.tv_nsec) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_where_time_is_paused() {
        let begun = now();
        let hour = Duration::from_secs(3600);
        tokio::time::sleep(hour).await;
        assert_eq!(since(begun), hour);
    }
}
