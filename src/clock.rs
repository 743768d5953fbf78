//! The clock: every look at it goes through here, so that whoever runs Headwater on a runtime whose time is paused has it follow that time.

use std::time::{Duration, Instant};

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
