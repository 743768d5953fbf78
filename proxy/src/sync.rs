//! Locks for threads: the standard library's, or with the feature `interleavings` those of a checker that tries random interleavings.

#[cfg(feature = "interleavings")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(feature = "interleavings"))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
