//! Locks of what threads share: the standard library's, or, with the feature `interleavings`, those of a checker that draws in which order
//! threads take them.

#[cfg(feature = "interleavings")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "interleavings"))]
pub(crate) use std::sync::{Mutex, MutexGuard};
