//! What is known of a template whose rows are kept: under which literals and settings, and what stands around the rows of a reply.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::Variant;

/// What stands around the rows of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How many columns there are.
    pub columns: usize,
    /// All packets in front of the rows.
    pub head: Vec<u8>,
    /// The number of the packet behind those.
    pub sequence: u8,
    /// The payload of the packet behind the rows.
    pub last: Vec<u8>,
    /// Its status flags.
    pub status: u16,
}

/// Statements of a template that show messages alike.
#[derive(Debug)]
struct Alike {
    number: Variant,
    /// By their kind.
    frames: [Option<Arc<Frame>>; KINDS],
}

/// Replies to statements of one template may be framed in so many ways, by the server's plan: whoever keeps rows tells these kinds apart.
pub const KINDS: usize = 8;

/// Under so many literals and settings rows of a template are kept.
const VARIANTS: usize = 1_000;
/// Where there are so many of all templates, each of them has no more than that.
const VARIANTS_OF_ALL: usize = 20_000;
const VARIANTS_THEN: usize = 4;
/// So many frames of a template are looked through for one that is equal.
const FRAMES: usize = 8;
/// One statement in so many is answered by the server in any case: what it says of columns is looked at again.
const LOOKED_AT: u64 = 1_000;
/// Where so many pages were not there, one in so many is looked for: a filter that nothing passes has thousands of messages looked at.
const MISSED: u32 = 16;
const TRIED: u64 = 16;

/// See the module.
#[derive(Debug)]
pub struct KeptRows {
    /// The template's own number.
    pub template: u64,
    variants: Mutex<LruCache<Box<[u8]>, Alike>>,
    /// Those that came last: variants share what is equal.
    frames: Mutex<VecDeque<Arc<Frame>>>,
    count: AtomicU64,
    /// So many pages, one behind the other, could not be made of kept rows.
    missed: AtomicU32,
}

impl Default for KeptRows {
    fn default() -> Self {
        // Bounded here: one that is made with a bound takes room for all of it at once.
        KeptRows {
            template: NEXT.fetch_add(1, Ordering::Relaxed),
            variants: Mutex::new(LruCache::unbounded()),
            frames: Mutex::default(),
            count: AtomicU64::new(0),
            missed: AtomicU32::new(0),
        }
    }
}

impl Drop for KeptRows {
    fn drop(&mut self) {
        let own = lock(&self.variants).len();
        OF_ALL.fetch_sub(own, Ordering::Relaxed);
    }
}

/// Numbers of variants and templates: none is given twice.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// How many variants all templates have.
static OF_ALL: AtomicUsize = AtomicUsize::new(0);

impl KeptRows {
    /// The variant of statements with these literals and settings, and what stands around the rows of this kind's replies, if that is
    /// known.
    #[must_use]
    pub fn variant(&self, key: &[u8], kind: usize) -> Option<(Variant, Arc<Frame>)> {
        let mut variants = lock(&self.variants);
        let variant = variants.get(key)?;
        let frame = variant.frames.get(kind)?.as_ref()?;
        Some((variant.number, Arc::clone(frame)))
    }

    /// The server has answered such a statement so; tells the number of the variant.
    pub fn answered_so(&self, key: &[u8], kind: usize, frame: Frame) -> Variant {
        let frame = self.shared(frame);
        self.change(key, |variant| {
            if let Some(own) = variant.frames.get_mut(kind)
                && own.as_ref() != Some(&frame)
            {
                *own = Some(frame);
            }
        })
    }

    /// The number of a variant, whatever stands around its rows.
    #[must_use]
    pub fn number(&self, key: &[u8]) -> Variant {
        self.change(key, |_| ())
    }

    fn change(&self, key: &[u8], change: impl FnOnce(&mut Alike)) -> Variant {
        let mut variants = lock(&self.variants);
        if !variants.contains(key) {
            let variant = Alike {
                number: Variant(NEXT.fetch_add(1, Ordering::Relaxed)),
                frames: Default::default(),
            };
            variants.put(key.into(), variant);
            let of_all = OF_ALL.fetch_add(1, Ordering::Relaxed);
            let most = match of_all < VARIANTS_OF_ALL {
                true => VARIANTS,
                false => VARIANTS_THEN,
            };
            while variants.len() > most && variants.pop_lru().is_some() {
                OF_ALL.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let Some(variant) = variants.get_mut(key) else {
            return Variant(u64::MAX);
        };
        change(variant);
        variant.number
    }

    fn shared(&self, frame: Frame) -> Arc<Frame> {
        let mut frames = lock(&self.frames);
        if let Some(equal) = frames.iter().find(|own| ***own == frame) {
            return Arc::clone(equal);
        }
        let frame = Arc::new(frame);
        if frames.len() == FRAMES {
            frames.pop_front();
        }
        frames.push_back(Arc::clone(&frame));
        frame
    }

    /// True where it is worth a look whether the next statement's page is kept.
    pub fn is_tried(&self) -> bool {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let missing = self.missed.load(Ordering::Relaxed) >= MISSED;
        count % LOOKED_AT != LOOKED_AT - 1 && (!missing || count.is_multiple_of(TRIED))
    }

    /// True where it is worth a question of its own to have the next statement's page kept: most were there of late, or it is the turn of
    /// one that looks.
    pub fn is_worth_asking(&self) -> bool {
        let missing = self.missed.load(Ordering::Relaxed) >= MISSED;
        !missing || self.count.load(Ordering::Relaxed).is_multiple_of(TRIED)
    }

    /// A page was made of kept rows, or could not be.
    pub fn tried(&self, made: bool) {
        match made {
            true => self.missed.store(0, Ordering::Relaxed),
            false => drop(self.missed.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// Templates by their texts: those that were used last.
#[derive(Debug)]
pub struct Templates {
    own: Mutex<LruCache<Box<[u8]>, Arc<KeptRows>>>,
}

impl Templates {
    /// So many at most.
    #[must_use]
    pub fn new(most: NonZeroUsize) -> Templates {
        Templates {
            own: Mutex::new(LruCache::new(most)),
        }
    }

    /// What is kept for this text.
    pub fn of(&self, text: &[u8]) -> Arc<KeptRows> {
        let mut own = lock(&self.own);
        if let Some(known) = own.get(text) {
            return Arc::clone(known);
        }
        let new = Arc::new(KeptRows::default());
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

    fn frame(last: u8) -> Frame {
        Frame {
            columns: 1,
            head: vec![1, 2, 3],
            sequence: 4,
            last: vec![last],
            status: 2,
        }
    }

    #[test]
    fn a_variant_is_known_once_one_of_its_kind_was_answered() {
        let kept = KeptRows::default();
        let (few, many) = (3, 4);
        assert_eq!(kept.variant(b"a", few), None);
        let number = kept.answered_so(b"a", few, frame(1));
        assert_eq!(kept.variant(b"a", few), Some((number, Arc::new(frame(1)))));
        assert_eq!(kept.variant(b"a", many), None);
        assert_eq!(kept.answered_so(b"a", many, frame(2)), number);
        assert_ne!(kept.answered_so(b"b", few, frame(1)), number);
        let of = |key| kept.variant(key, few).unwrap().1;
        assert!(Arc::ptr_eq(&of(b"a"), &of(b"b")));
        // Another template's.
        assert_ne!(KeptRows::default().answered_so(b"a", few, frame(1)), number);
        assert_eq!(kept.answered_so(b"a", few, frame(9)), number);
        assert_eq!(kept.variant(b"a", few).unwrap().1.last, [9]);
    }

    #[test]
    fn variants_make_room_for_each_other() {
        let kept = KeptRows::default();
        let few = 3;
        for number in 0..VARIANTS as u64 + 10 {
            kept.answered_so(&number.to_le_bytes(), few, frame(1));
        }
        assert_eq!(lock(&kept.variants).len(), VARIANTS);
        assert_eq!(kept.variant(&0_u64.to_le_bytes(), few), None);
        let before = OF_ALL.load(Ordering::Relaxed);
        drop(kept);
        assert!(OF_ALL.load(Ordering::Relaxed) < before);
    }

    #[test]
    fn one_in_a_thousand_is_the_servers_and_all_but_one_in_sixteen_where_none_is_there() {
        let kept = KeptRows::default();
        let tried = |kept: &KeptRows| (0..5_000).filter(|_| kept.is_tried()).count();
        assert_eq!(tried(&kept), 4_995);
        (0..MISSED).for_each(|_| kept.tried(false));
        assert!(tried(&kept) < 5_000 / 15);
        let asking = (0..160).filter(|_| {
            kept.is_tried();
            kept.is_worth_asking()
        });
        assert_eq!(asking.count(), 10);
        kept.tried(true);
        assert!(kept.is_worth_asking());
        assert_eq!(tried(&kept), 4_995);
    }
}
