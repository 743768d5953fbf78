//! Remembers which texts are tails: an app sends the same one after each call.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;

use super::call::Call;
use super::classify::Class;
use super::effects::Effects;
use super::tail::Tail;
use crate::timeline::Definition;

/// Longest text that is remembered, in bytes; longer ones are read anew each time.
const TEXT_BYTES: usize = 4 * 1024;

/// Classifies statements, and remembers those that took a parser.
#[derive(Debug)]
pub struct Classes {
    definitions: Arc<[Definition]>,
    /// `None`: the text names a result table and is no tail.
    tails: LruCache<Box<[u8]>, Option<Arc<Tail>>>,
}

impl Classes {
    /// Remembers at most `entries` texts.
    #[must_use]
    pub fn new(definitions: Arc<[Definition]>, entries: usize) -> Self {
        let entries = NonZeroUsize::new(entries).unwrap_or(NonZeroUsize::MIN);
        Classes { definitions, tails: LruCache::new(entries) }
    }

    /// What a text means. Total: whatever is in doubt is [`Class::Other`].
    pub fn classify(&mut self, text: &[u8]) -> Class {
        if let Some(call) = Call::parse(text, &self.definitions) {
            return Class::Call(call);
        }
        match self.tail(text) {
            Some(tail) => Class::Tail(tail),
            None => Class::Other(Effects::of(text, &self.definitions)),
        }
    }

    fn tail(&mut self, text: &[u8]) -> Option<Arc<Tail>> {
        let names = |definition: &Definition| {
            let name = definition.result.table.as_bytes();
            text.windows(name.len().max(1)).any(|part| part == name)
        };
        if !self.definitions.iter().any(names) {
            return None;
        }
        if let Some(known) = self.tails.get(text) {
            return known.clone();
        }
        let tail = Tail::parse(text, &self.definitions).map(Arc::new);
        if text.len() <= TEXT_BYTES {
            self.tails.put(text.into(), tail.clone());
        }
        tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_remembered_up_to_the_limit() {
        let mut classes = Classes::new([Definition::classic()].into(), 2);
        for limit in 1..=5 {
            let text = format!(
                "SELECT body FROM message JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT {limit}"
            );
            assert!(matches!(classes.classify(text.as_bytes()), Class::Tail(_)), "{text}");
            assert!(matches!(classes.classify(text.as_bytes()), Class::Tail(_)), "{text}");
        }
        assert_eq!(classes.tails.len(), 2);
    }
}
