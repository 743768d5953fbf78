//! Threads of a test: readers run until they have seen enough, writers run until the test stops them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

/// Waits for all readers, then stops the writers. Panics as the first failed reader did.
#[track_caller]
pub(crate) fn wait_for(readers: Vec<ScopedJoinHandle<'_, ()>>, stop: &AtomicBool) {
    let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
    stop.store(true, Ordering::Relaxed);
    if let Some(failed) = ended.into_iter().find_map(Result::err) {
        std::panic::resume_unwind(failed);
    }
}
