//! The state of a template whose rows are cached: its cache keys by literals and settings, and its result-set envelopes.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::CacheKey;

/// The result-set envelope: the packets before and after the rows of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultEnvelope {
    /// The number of columns.
    pub columns: usize,
    /// All packets before the rows.
    pub head_packets: Vec<u8>,
    /// The sequence id of the packet after those.
    pub sequence: u8,
    /// The payload of the packet after the rows.
    pub last_payload: Vec<u8>,
    /// The status flags in that payload.
    pub status: u16,
}

/// Statements of a template that show messages alike.
#[derive(Debug)]
struct CacheKeyEntry {
    cache_key: CacheKey,
    /// By kind of envelope.
    envelopes: [Option<Arc<ResultEnvelope>>; ENVELOPE_KINDS],
}

/// The server's plan may give replies of one template different envelopes; the caller defines these kinds.
pub const ENVELOPE_KINDS: usize = 8;

const MAX_KEYS: usize = 1_000;
/// Total number of cache keys from which each template is limited to `REDUCED_MAX_KEYS`.
const MAX_KEYS_OF_ALL: usize = 20_000;
const REDUCED_MAX_KEYS: usize = 4;
/// How many recent envelopes of a template are searched for an equal one.
const MAX_SHARED_ENVELOPES: usize = 8;
/// One statement in this many is relayed in any case, so that its column metadata is sampled again.
const RELAY_INTERVAL: u64 = 1_000;
/// After this many misses in a row, one page in `RETRY_INTERVAL` is tried: a filter that nothing passes has thousands of messages checked.
const MISS_LIMIT: u32 = 16;
const RETRY_INTERVAL: u64 = 16;

/// The state of one template: see the module.
#[derive(Debug)]
pub struct CacheKeyTable {
    /// The template's own number.
    pub template: u64,
    entries: Mutex<LruCache<Box<[u8]>, CacheKeyEntry>>,
    /// The most recent envelopes: cache keys share equal ones.
    shared_envelopes: Mutex<VecDeque<Arc<ResultEnvelope>>>,
    statements: AtomicU64,
    /// Pages in a row that could not be built from cached rows.
    consecutive_misses: AtomicU32,
}

impl Default for CacheKeyTable {
    fn default() -> Self {
        // Limited here, since `LruCache::new` allocates its full capacity at once.
        CacheKeyTable {
            template: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            entries: Mutex::new(LruCache::unbounded()),
            shared_envelopes: Mutex::default(),
            statements: AtomicU64::new(0),
            consecutive_misses: AtomicU32::new(0),
        }
    }
}

impl Drop for CacheKeyTable {
    fn drop(&mut self) {
        let count = lock(&self.entries).len();
        TOTAL_KEYS.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Numbers of cache keys and templates: none is reused.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
static TOTAL_KEYS: AtomicUsize = AtomicUsize::new(0);

impl CacheKeyTable {
    /// The cache key for these literals and settings, and the result-set envelope of this kind, if known.
    #[must_use]
    pub fn lookup(&self, key: &[u8], kind: usize) -> Option<(CacheKey, Arc<ResultEnvelope>)> {
        let mut entries = lock(&self.entries);
        let entry = entries.get(key)?;
        let envelope = entry.envelopes.get(kind)?.as_ref()?;
        Some((entry.cache_key, Arc::clone(envelope)))
    }

    /// Records the envelope of a reply from the server; returns the cache key.
    pub fn record_envelope(&self, key: &[u8], kind: usize, envelope: ResultEnvelope) -> CacheKey {
        let shared = self.share_envelope(envelope);
        self.update_entry(key, |entry| {
            if let Some(slot) = entry.envelopes.get_mut(kind)
                && slot.as_ref() != Some(&shared)
            {
                *slot = Some(shared);
            }
        })
    }

    /// The cache key for these literals and settings, whatever its envelopes.
    #[must_use]
    pub fn cache_key(&self, key: &[u8]) -> CacheKey {
        self.update_entry(key, |_| ())
    }

    fn update_entry(&self, key: &[u8], change: impl FnOnce(&mut CacheKeyEntry)) -> CacheKey {
        let mut entries = lock(&self.entries);
        if !entries.contains(key) {
            let new_entry = CacheKeyEntry {
                cache_key: CacheKey(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)),
                envelopes: Default::default(),
            };
            entries.put(key.into(), new_entry);
            let of_all = TOTAL_KEYS.fetch_add(1, Ordering::Relaxed);
            let most = match of_all < MAX_KEYS_OF_ALL {
                true => MAX_KEYS,
                false => REDUCED_MAX_KEYS,
            };
            while entries.len() > most && entries.pop_lru().is_some() {
                TOTAL_KEYS.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let Some(entry) = entries.get_mut(key) else {
            return CacheKey(u64::MAX);
        };
        change(entry);
        entry.cache_key
    }

    fn share_envelope(&self, envelope: ResultEnvelope) -> Arc<ResultEnvelope> {
        let mut envelopes = lock(&self.shared_envelopes);
        if let Some(equal) = envelopes.iter().find(|candidate| ***candidate == envelope) {
            return Arc::clone(equal);
        }
        let shared = Arc::new(envelope);
        if envelopes.len() == MAX_SHARED_ENVELOPES {
            envelopes.pop_front();
        }
        envelopes.push_back(Arc::clone(&shared));
        shared
    }

    /// True if a page for the next statement should be looked for in the cache.
    pub fn should_try(&self) -> bool {
        let count = self.statements.fetch_add(1, Ordering::Relaxed);
        let missing = self.consecutive_misses.load(Ordering::Relaxed) >= MISS_LIMIT;
        count % RELAY_INTERVAL != RELAY_INTERVAL - 1
            && (!missing || count.is_multiple_of(RETRY_INTERVAL))
    }

    /// True if an internal query to cache the next statement's page is worthwhile: recent pages were cached, or it is time for a retry.
    pub fn should_query(&self) -> bool {
        let missing = self.consecutive_misses.load(Ordering::Relaxed) >= MISS_LIMIT;
        !missing
            || self
                .statements
                .load(Ordering::Relaxed)
                .is_multiple_of(RETRY_INTERVAL)
    }

    /// Records whether a page could be built from cached rows.
    pub fn record_attempt(&self, made: bool) {
        match made {
            true => self.consecutive_misses.store(0, Ordering::Relaxed),
            false => drop(self.consecutive_misses.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// Templates by their text: the most recently used ones.
#[derive(Debug)]
pub struct CacheKeyTables {
    caches: Mutex<LruCache<Box<[u8]>, Arc<CacheKeyTable>>>,
}

impl CacheKeyTables {
    /// Holds at most this many templates.
    #[must_use]
    pub fn new(most: NonZeroUsize) -> CacheKeyTables {
        CacheKeyTables {
            caches: Mutex::new(LruCache::new(most)),
        }
    }

    /// The state of the template with this text.
    pub fn cache_for(&self, text: &[u8]) -> Arc<CacheKeyTable> {
        let mut caches = lock(&self.caches);
        if let Some(known) = caches.get(text) {
            return Arc::clone(known);
        }
        let new = Arc::new(CacheKeyTable::default());
        caches.put(text.into(), Arc::clone(&new));
        new
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn envelope(last: u8) -> ResultEnvelope {
        ResultEnvelope {
            columns: 1,
            head_packets: vec![1, 2, 3],
            sequence: 4,
            last_payload: vec![last],
            status: 2,
        }
    }

    #[test]
    fn an_envelope_is_known_once_a_reply_of_its_kind_was_recorded() {
        let cache = CacheKeyTable::default();
        let (few, many) = (3, 4);
        assert_eq!(cache.lookup(b"a", few), None);
        let number = cache.record_envelope(b"a", few, envelope(1));
        assert_eq!(
            cache.lookup(b"a", few),
            Some((number, Arc::new(envelope(1))))
        );
        assert_eq!(cache.lookup(b"a", many), None);
        assert_eq!(cache.record_envelope(b"a", many, envelope(2)), number);
        assert_ne!(cache.record_envelope(b"b", few, envelope(1)), number);
        let of = |key| cache.lookup(key, few).unwrap().1;
        assert!(Arc::ptr_eq(&of(b"a"), &of(b"b")));
        // Another template's cache key.
        assert_ne!(
            CacheKeyTable::default().record_envelope(b"a", few, envelope(1)),
            number
        );
        assert_eq!(cache.record_envelope(b"a", few, envelope(9)), number);
        assert_eq!(cache.lookup(b"a", few).unwrap().1.last_payload, [9]);
    }

    #[test]
    fn cache_keys_evict_each_other() {
        let cache = CacheKeyTable::default();
        let few = 3;
        for number in 0..MAX_KEYS as u64 + 10 {
            cache.record_envelope(&number.to_le_bytes(), few, envelope(1));
        }
        assert_eq!(lock(&cache.entries).len(), MAX_KEYS);
        assert_eq!(cache.lookup(&0_u64.to_le_bytes(), few), None);
        let before = TOTAL_KEYS.load(Ordering::Relaxed);
        drop(cache);
        assert!(TOTAL_KEYS.load(Ordering::Relaxed) < before);
    }

    #[test]
    fn one_in_a_thousand_is_relayed_and_all_but_one_in_sixteen_after_misses() {
        let cache = CacheKeyTable::default();
        let tried = |cache: &CacheKeyTable| (0..5_000).filter(|_| cache.should_try()).count();
        assert_eq!(tried(&cache), 4_995);
        (0..MISS_LIMIT).for_each(|_| cache.record_attempt(false));
        assert!(tried(&cache) < 5_000 / 15);
        let asking = (0..160).filter(|_| {
            cache.should_try();
            cache.should_query()
        });
        assert_eq!(asking.count(), 10);
        cache.record_attempt(true);
        assert!(cache.should_query());
        assert_eq!(tried(&cache), 4_995);
    }
}
