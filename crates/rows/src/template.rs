//! What is known of a template whose rows are kept: under which literals and settings, and what stands around the rows of a reply.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::CacheKey;

/// What stands around the rows of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultEnvelope {
    /// How many columns there are.
    pub columns: usize,
    /// All packets in front of the rows.
    pub head_packets: Vec<u8>,
    /// The number of the packet behind those.
    pub sequence: u8,
    /// The payload of the packet behind the rows.
    pub last_payload: Vec<u8>,
    /// Its status flags.
    pub status: u16,
}

/// Statements of a template that show messages alike.
#[derive(Debug)]
struct CacheKeyEntry {
    cache_key: CacheKey,
    /// By their kind.
    envelopes: [Option<Arc<ResultEnvelope>>; ENVELOPE_KINDS],
}

/// Replies to statements of one template may be framed in so many ways, by the server's plan: whoever keeps rows tells these kinds apart.
pub const ENVELOPE_KINDS: usize = 8;

/// Under so many literals and settings rows of a template are kept.
const MAX_KEYS: usize = 1_000;
/// Where there are so many of all templates, each of them has no more than that.
const MAX_KEYS_OF_ALL: usize = 20_000;
const REDUCED_MAX_KEYS: usize = 4;
/// So many frames of a template are looked through for one that is equal.
const MAX_SHARED_ENVELOPES: usize = 8;
/// One statement in so many is answered by the server in any case: what it says of columns is looked at again.
const RELAY_INTERVAL: u64 = 1_000;
/// Where so many pages were not there, one in so many is looked for: a filter that nothing passes has thousands of messages looked at.
const MISS_LIMIT: u32 = 16;
const RETRY_INTERVAL: u64 = 16;

/// See the module.
#[derive(Debug)]
pub struct TemplateCache {
    /// The template's own number.
    pub template: u64,
    entries: Mutex<LruCache<Box<[u8]>, CacheKeyEntry>>,
    /// Those that came last: variants share what is equal.
    shared_envelopes: Mutex<VecDeque<Arc<ResultEnvelope>>>,
    statements: AtomicU64,
    /// So many pages, one behind the other, could not be made of kept rows.
    consecutive_misses: AtomicU32,
}

impl Default for TemplateCache {
    fn default() -> Self {
        // Bounded here: one that is made with a bound takes room for all of it at once.
        TemplateCache {
            template: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            entries: Mutex::new(LruCache::unbounded()),
            shared_envelopes: Mutex::default(),
            statements: AtomicU64::new(0),
            consecutive_misses: AtomicU32::new(0),
        }
    }
}

impl Drop for TemplateCache {
    fn drop(&mut self) {
        let own = lock(&self.entries).len();
        TOTAL_KEYS.fetch_sub(own, Ordering::Relaxed);
    }
}

/// Numbers of variants and templates: none is given twice.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
/// How many variants all templates have.
static TOTAL_KEYS: AtomicUsize = AtomicUsize::new(0);

impl TemplateCache {
    /// The variant of statements with these literals and settings, and what stands around the rows of this kind's replies, if that is
    /// known.
    #[must_use]
    pub fn lookup(&self, key: &[u8], kind: usize) -> Option<(CacheKey, Arc<ResultEnvelope>)> {
        let mut variants = lock(&self.entries);
        let variant = variants.get(key)?;
        let frame = variant.envelopes.get(kind)?.as_ref()?;
        Some((variant.cache_key, Arc::clone(frame)))
    }

    /// The server has answered such a statement so; tells the number of the variant.
    pub fn record_envelope(&self, key: &[u8], kind: usize, frame: ResultEnvelope) -> CacheKey {
        let frame = self.share_envelope(frame);
        self.update_entry(key, |variant| {
            if let Some(own) = variant.envelopes.get_mut(kind)
                && own.as_ref() != Some(&frame)
            {
                *own = Some(frame);
            }
        })
    }

    /// The number of a variant, whatever stands around its rows.
    #[must_use]
    pub fn cache_key(&self, key: &[u8]) -> CacheKey {
        self.update_entry(key, |_| ())
    }

    fn update_entry(&self, key: &[u8], change: impl FnOnce(&mut CacheKeyEntry)) -> CacheKey {
        let mut variants = lock(&self.entries);
        if !variants.contains(key) {
            let variant = CacheKeyEntry {
                cache_key: CacheKey(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)),
                envelopes: Default::default(),
            };
            variants.put(key.into(), variant);
            let of_all = TOTAL_KEYS.fetch_add(1, Ordering::Relaxed);
            let most = match of_all < MAX_KEYS_OF_ALL {
                true => MAX_KEYS,
                false => REDUCED_MAX_KEYS,
            };
            while variants.len() > most && variants.pop_lru().is_some() {
                TOTAL_KEYS.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let Some(variant) = variants.get_mut(key) else {
            return CacheKey(u64::MAX);
        };
        change(variant);
        variant.cache_key
    }

    fn share_envelope(&self, frame: ResultEnvelope) -> Arc<ResultEnvelope> {
        let mut frames = lock(&self.shared_envelopes);
        if let Some(equal) = frames.iter().find(|own| ***own == frame) {
            return Arc::clone(equal);
        }
        let frame = Arc::new(frame);
        if frames.len() == MAX_SHARED_ENVELOPES {
            frames.pop_front();
        }
        frames.push_back(Arc::clone(&frame));
        frame
    }

    /// True where it is worth a look whether the next statement's page is kept.
    pub fn should_try(&self) -> bool {
        let count = self.statements.fetch_add(1, Ordering::Relaxed);
        let missing = self.consecutive_misses.load(Ordering::Relaxed) >= MISS_LIMIT;
        count % RELAY_INTERVAL != RELAY_INTERVAL - 1
            && (!missing || count.is_multiple_of(RETRY_INTERVAL))
    }

    /// True where it is worth a question of its own to have the next statement's page kept: most were there of late, or it is the turn of
    /// one that looks.
    pub fn should_query(&self) -> bool {
        let missing = self.consecutive_misses.load(Ordering::Relaxed) >= MISS_LIMIT;
        !missing
            || self
                .statements
                .load(Ordering::Relaxed)
                .is_multiple_of(RETRY_INTERVAL)
    }

    /// A page was made of kept rows, or could not be.
    pub fn record_attempt(&self, made: bool) {
        match made {
            true => self.consecutive_misses.store(0, Ordering::Relaxed),
            false => drop(self.consecutive_misses.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// Templates by their texts: those that were used last.
#[derive(Debug)]
pub struct TemplateCaches {
    caches: Mutex<LruCache<Box<[u8]>, Arc<TemplateCache>>>,
}

impl TemplateCaches {
    /// So many at most.
    #[must_use]
    pub fn new(most: NonZeroUsize) -> TemplateCaches {
        TemplateCaches {
            caches: Mutex::new(LruCache::new(most)),
        }
    }

    /// What is kept for this text.
    pub fn cache_for(&self, text: &[u8]) -> Arc<TemplateCache> {
        let mut own = lock(&self.caches);
        if let Some(known) = own.get(text) {
            return Arc::clone(known);
        }
        let new = Arc::new(TemplateCache::default());
        own.put(text.into(), Arc::clone(&new));
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

    fn frame(last: u8) -> ResultEnvelope {
        ResultEnvelope {
            columns: 1,
            head_packets: vec![1, 2, 3],
            sequence: 4,
            last_payload: vec![last],
            status: 2,
        }
    }

    #[test]
    fn a_variant_is_known_once_one_of_its_kind_was_answered() {
        let kept = TemplateCache::default();
        let (few, many) = (3, 4);
        assert_eq!(kept.lookup(b"a", few), None);
        let number = kept.record_envelope(b"a", few, frame(1));
        assert_eq!(kept.lookup(b"a", few), Some((number, Arc::new(frame(1)))));
        assert_eq!(kept.lookup(b"a", many), None);
        assert_eq!(kept.record_envelope(b"a", many, frame(2)), number);
        assert_ne!(kept.record_envelope(b"b", few, frame(1)), number);
        let of = |key| kept.lookup(key, few).unwrap().1;
        assert!(Arc::ptr_eq(&of(b"a"), &of(b"b")));
        // Another template's.
        assert_ne!(
            TemplateCache::default().record_envelope(b"a", few, frame(1)),
            number
        );
        assert_eq!(kept.record_envelope(b"a", few, frame(9)), number);
        assert_eq!(kept.lookup(b"a", few).unwrap().1.last_payload, [9]);
    }

    #[test]
    fn variants_make_room_for_each_other() {
        let kept = TemplateCache::default();
        let few = 3;
        for number in 0..MAX_KEYS as u64 + 10 {
            kept.record_envelope(&number.to_le_bytes(), few, frame(1));
        }
        assert_eq!(lock(&kept.entries).len(), MAX_KEYS);
        assert_eq!(kept.lookup(&0_u64.to_le_bytes(), few), None);
        let before = TOTAL_KEYS.load(Ordering::Relaxed);
        drop(kept);
        assert!(TOTAL_KEYS.load(Ordering::Relaxed) < before);
    }

    #[test]
    fn one_in_a_thousand_is_the_servers_and_all_but_one_in_sixteen_where_none_is_there() {
        let kept = TemplateCache::default();
        let tried = |kept: &TemplateCache| (0..5_000).filter(|_| kept.should_try()).count();
        assert_eq!(tried(&kept), 4_995);
        (0..MISS_LIMIT).for_each(|_| kept.record_attempt(false));
        assert!(tried(&kept) < 5_000 / 15);
        let asking = (0..160).filter(|_| {
            kept.should_try();
            kept.should_query()
        });
        assert_eq!(asking.count(), 10);
        kept.record_attempt(true);
        assert!(kept.should_query());
        assert_eq!(tried(&kept), 4_995);
    }
}
