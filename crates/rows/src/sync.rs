//! Locks between threads: the standard library's, or, with the feature `interleavings`, those of a checker that picks the order in which
//! threads take them.

#[cfg(feature = "interleavings")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "interleavings"))]
pub(crate) use std::sync::{Mutex, MutexGuard};
