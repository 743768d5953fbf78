//! Distributes work to all processors.

use std::sync::atomic::{AtomicU64, Ordering};

/// Runs `work` for each number in order, so many in parallel. `work` returns whether to continue.
pub(crate) fn share_out(count: u64, at_a_time: usize, prepared: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || !prepared(number) {
                        return;
                    }
                }
            });
        }
    });
}

/// The number of processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
