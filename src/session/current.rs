//! The generation of [`Shared`] that is in force: what is made when settings are read again takes the place of what was before.
//!
//! A generation never changes. A session takes the newer one between two commands, so a command has one from its first byte to the last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::shared::Shared;

/// What is in force.
#[derive(Debug)]
pub struct Current {
    shared: RwLock<Arc<Shared>>,
    generation: AtomicU64,
}

impl Current {
    /// The first generation.
    #[must_use]
    pub fn new(shared: Shared) -> Current {
        Current {
            shared: RwLock::new(Arc::new(shared)),
            generation: AtomicU64::new(0),
        }
    }

    /// What is in force now.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        self.with_generation().0
    }

    /// The same, and which one it is.
    #[must_use]
    pub fn with_generation(&self) -> (Arc<Shared>, u64) {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&shared), self.generation())
    }

    /// Which one is in force.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Puts another one in force, and returns the one before.
    pub fn replace(&self, shared: Arc<Shared>) -> Arc<Shared> {
        let mut now = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *now, shared);
        self.generation.fetch_add(1, Ordering::Release);
        before
    }
}
