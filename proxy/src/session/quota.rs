//! Limits the sessions of one account or address.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of permits taken, by key.
#[derive(Debug)]
pub struct SessionQuota<K: Eq + Hash>(Mutex<HashMap<K, usize>>);

/// A permit, returned when dropped.
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
    /// Takes a permit of this key. `None`: it has as many as it may.
    pub fn acquire(self: &Arc<Self>, whose: K, most: usize) -> Option<QuotaPermit<K>> {
        let mut taken = self.lock();
        let count = taken.entry(whose.clone()).or_default();
        if *count >= most {
            // Only keys with permits have an entry.
            if *count == 0 {
                taken.remove(&whose);
            }
            return None;
        }
        *count += 1;
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
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
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
    fn each_key_has_its_own_permits_and_returns_them() {
        let quota = Arc::new(SessionQuota::default());
        let first = quota.acquire("a", 2).unwrap();
        let second = quota.acquire("a", 2).unwrap();
        assert!(quota.acquire("a", 2).is_none());
        let other = quota.acquire("b", 1).unwrap();
        drop(first);
        let third = quota.acquire("a", 2).unwrap();
        // A lowered limit ends no session.
        assert!(quota.acquire("a", 1).is_none());
        drop((second, third, other));
        assert!(quota.acquire("c", 0).is_none());
        assert!(quota.lock().is_empty());
    }
}
