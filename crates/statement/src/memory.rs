//! Classes of texts that were dear to find out, remembered.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::batch::Batch;
use super::classify::{Class, may_be_feed, names_a_result, of_call, other};
use super::effects::Effects;
use super::tail::{MAX_TEXT_BYTES, Tail};
use headwater_timeline::Definition;

/// What each text was found to be: a tail, or none.
type Tails = LruCache<Box<[u8]>, Option<Arc<Tail>>>;

/// Classifies texts as [`classify()`](super::classify()) does, and remembers of each that names a result table whether it is a tail.
///
/// It is bound to the definitions that it was made with. Calls differ in their numbers and are read each time; what other texts
/// may do is found in one pass.
#[derive(Debug)]
pub struct Classes {
    definitions: Arc<[Definition]>,
    /// Tables of messages of feeds.
    messages: Box<[Box<[u8]>]>,
    /// SELECTs of other tables may be feeds', too.
    any_messages: bool,
    tails: Mutex<Tails>,
    statement_bytes: usize,
}

impl Classes {
    /// Remembers up to `entries` texts, and looks at no text longer than `statement_bytes`: such ones may do anything.
    pub fn new(
        definitions: Arc<[Definition]>,
        entries: NonZeroUsize,
        statement_bytes: usize,
    ) -> Self {
        Self {
            definitions,
            messages: Box::default(),
            any_messages: false,
            tails: Mutex::new(LruCache::new(entries)),
            statement_bytes,
        }
    }

    /// The same, where SELECTs of these tables may be feeds', and those of `any` other that look so.
    #[must_use]
    pub fn with_messages(self, messages: Box<[Box<[u8]>]>, any: bool) -> Self {
        Self {
            messages,
            any_messages: any,
            ..self
        }
    }

    /// What a text means on a server that is known to have `no_functions`, or may have some.
    pub fn classify(&self, text: &[u8], no_functions: bool) -> Class {
        if text.len() > self.statement_bytes {
            return Class::Other(Effects::ALL);
        }
        if let Some(class) = of_call(text, &self.definitions) {
            return class;
        }
        if text.len() > MAX_TEXT_BYTES || !names_a_result(text, &self.definitions) {
            return self.other(text, no_functions);
        }
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match tails.get(text) {
            Some(known) => known.clone(),
            None => {
                let found = Tail::parse(text, &self.definitions).map(Arc::new);
                tails.push(text.into(), found.clone());
                found
            }
        };
        drop(tails);
        known.map_or_else(|| self.other(text, no_functions), Class::Tail)
    }

    fn other(&self, text: &[u8], no_functions: bool) -> Class {
        let definitions = &self.definitions;
        if !self.messages.is_empty()
            && text.contains(&b';')
            && let Some(batch) = Batch::parse(text, &self.messages, definitions, no_functions)
        {
            return Class::Batch(batch);
        }
        match other(text, definitions, no_functions) {
            Class::Other(effects) if may_be_feed(text, &self.messages, self.any_messages) => {
                Class::Feed(effects)
            }
            class => class,
        }
    }
}
