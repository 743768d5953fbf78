//! How many sessions somebody has, where that is limited.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many places each has taken.
#[derive(Debug)]
pub struct Quota<K: Eq + Hash>(Mutex<HashMap<K, usize>>);

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Taken<K: Eq + Hash> {
    quota: Arc<Quota<K>>,
    whose: K,
}

impl<K: Eq + Hash> Default for Quota<K> {
    fn default() -> Self {
        Quota(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone> Quota<K> {
    /// Another place of theirs. `None`: they have as many as they may.
    pub fn take(self: &Arc<Self>, whose: K, most: usize) -> Option<Taken<K>> {
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
        Some(Taken {
            quota: Arc::clone(self),
            whose,
        })
    }
}

impl<K: Eq + Hash> Quota<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Taken<K> {
    fn drop(&mut self) {
        let mut taken = self.quota.lock();
        if let Some(own) = taken.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.whose);
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
        let quota = Arc::new(Quota::default());
        let first = quota.take("a", 2).unwrap();
        let second = quota.take("a", 2).unwrap();
        assert!(quota.take("a", 2).is_none());
        let other = quota.take("b", 1).unwrap();
        drop(first);
        let third = quota.take("a", 2).unwrap();
        // A limit that was lowered ends nobody.
        assert!(quota.take("a", 1).is_none());
        drop((second, third, other));
        assert!(quota.take("c", 0).is_none());
        assert!(quota.lock().is_empty());
    }
}
