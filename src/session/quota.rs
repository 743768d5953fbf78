//! How many sessions somebody has, where that is limited.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many places each has taken.
#[derive(Debug)]
pub struct SessionQuota<K: Eq + Hash>(Mutex<HashMap<K, usize>>);

/// A place, until it is dropped.
#[derive(Debug)]
pub struct QuotaPermit<K: Eq + Hash> {
    quota: Arc<SessionQuota<K>>,
    key: K,
}

impl<K: Eq + Hash> Default for SessionQuota<K> {
    fn default() -> Self {
        SessionQuota(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone> SessionQuota<K> {
    /// Another place of theirs. `None`: they have as many as they may.
    pub fn acquire(self: &Arc<Self>, whose: K, most: usize) -> Option<QuotaPermit<K>> {
        let mut taken = self.lock();
        let own = taken.entry(whose.clone()).or_default();
        if *own >= most {
            // An entry is there for who has places only.
            if *own == 0 {
                taken.remove(&whose);
            }
            return None;
        }
        *own += 1;
        drop(taken);
        Some(QuotaPermit {
            quota: Arc::clone(self),
            key: whose,
        })
    }
}

impl<K: Eq + Hash> SessionQuota<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for QuotaPermit<K> {
    fn drop(&mut self) {
        let mut taken = self.quota.lock();
        if let Some(own) = taken.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_has_places_of_their_own_and_gives_them_back() {
        let quota = Arc::new(SessionQuota::default());
        let first = quota.acquire("a", 2).unwrap();
        let second = quota.acquire("a", 2).unwrap();
        assert!(quota.acquire("a", 2).is_none());
        let other = quota.acquire("b", 1).unwrap();
        drop(first);
        let third = quota.acquire("a", 2).unwrap();
        // A limit that was lowered ends nobody.
        assert!(quota.acquire("a", 1).is_none());
        drop((second, third, other));
        assert!(quota.acquire("c", 0).is_none());
        assert!(quota.lock().is_empty());
    }
}
