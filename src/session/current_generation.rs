//! The generation of [`SharedState`] that is in force: what is made when settings are read again takes the place of what was before.
//!
//! A generation never changes. A session takes the newer one between two commands, so a command has one from its first byte to the last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::shared_state::SharedState;

/// What is in force.
#[derive(Debug)]
pub struct CurrentGeneration {
    shared: RwLock<Arc<SharedState>>,
    generation: AtomicU64,
}

impl CurrentGeneration {
    /// The first generation.
    #[must_use]
    pub fn new(shared: SharedState) -> CurrentGeneration {
        CurrentGeneration {
            shared: RwLock::new(Arc::new(shared)),
            generation: AtomicU64::new(0),
        }
    }

    /// What is in force now.
    #[must_use]
    pub fn shared(&self) -> Arc<SharedState> {
        self.with_generation().0
    }

    /// The same, and which one it is.
    #[must_use]
    pub fn with_generation(&self) -> (Arc<SharedState>, u64) {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&shared), self.generation())
    }

    /// Which one is in force.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Puts another one in force, and returns the one before.
    pub fn replace(&self, shared: Arc<SharedState>) -> Arc<SharedState> {
        let mut now = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *now, shared);
        self.generation.fetch_add(1, Ordering::Release);
        before
    }
}
