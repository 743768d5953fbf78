//! Work for all processors.

use std::sync::atomic::{AtomicU64, Ordering};

/// Does each of these by number, so many at a time, in their order. `work` says whether more is wanted.
pub(crate) fn share_out(count: u64, at_a_time: usize, work: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || !work(number) {
                        return;
                    }
                }
            });
        }
    });
}

/// How many processors there are.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
