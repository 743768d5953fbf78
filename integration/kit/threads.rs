//! Threads of a story: some read until they have seen enough, others write until they are told to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

/// Waits for those who read, however they end, then has the others stop; fails as the first of the readers has.
#[track_caller]
pub(crate) fn wait_for(readers: Vec<ScopedJoinHandle<'_, ()>>, stop: &AtomicBool) {
    let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
    stop.store(true, Ordering::Relaxed);
    if let Some(failed) = ended.into_iter().find_map(Result::err) {
        std::panic::resume_unwind(failed);
    }
}
