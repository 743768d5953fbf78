//! The generation of [`SharedState`] that is in force; a reload replaces it.
//!
//! A generation never changes. A session takes the newer one between two commands, so a command has one from its first byte to the last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::shared_state::SharedState;

/// Holds the generation in force.
#[derive(Debug)]
pub struct CurrentGeneration {
    shared: RwLock<Arc<SharedState>>,
    generation: AtomicU64,
}

impl CurrentGeneration {
    /// Starts with the first generation.
    #[must_use]
    pub fn new(shared: SharedState) -> CurrentGeneration {
        CurrentGeneration {
            shared: RwLock::new(Arc::new(shared)),
            generation: AtomicU64::new(0),
        }
    }

    /// The state in force.
    #[must_use]
    pub fn shared(&self) -> Arc<SharedState> {
        self.with_generation().0
    }

    /// The state in force, and its number.
    #[must_use]
    pub fn with_generation(&self) -> (Arc<SharedState>, u64) {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&shared), self.generation())
    }

    /// The number of the generation in force.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Puts another generation in force, and returns the previous one.
    pub fn replace(&self, shared: Arc<SharedState>) -> Arc<SharedState> {
        let mut now = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *now, shared);
        self.generation.fetch_add(1, Ordering::Release);
        before
    }
}
