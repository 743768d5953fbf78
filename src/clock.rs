//! The clock: every look at it goes through here, so that whoever runs Headwater on a runtime whose time is paused has it follow that time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What time it is.
#[must_use]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// How long ago this was.
#[must_use]
pub(crate) fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

#[cfg(feature = "lab")]
thread_local! {
    /// When this thread's simulation began.
    static BEGINNING: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// From now on all of this thread's times are those of its runtime: where that is simulated, so is this.
#[cfg(feature = "lab")]
pub fn simulate() {
    BEGINNING.set(Some(now()));
}

/// Milliseconds since the machine began, a few too late: this clock costs a tenth of what the other does, for what is asked with each command.
pub(crate) fn coarse_ms() -> u64 {
    #[cfg(feature = "lab")]
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
