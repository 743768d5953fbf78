//! Classifies texts, and caches classes that are expensive to compute.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::effects::StatementEffects;
use super::feed_batch::FeedBatch;
use super::follow_up::{FollowUpSelect, MAX_TEXT_BYTES};
use super::statement_class::{
    StatementClass, classify_by_verb, classify_other, may_be_feed, may_name_result_table,
};
use headwater_timeline::TimelineDefinition;

/// The result for each text: a follow-up SELECT, or none.
type FollowUpCache = LruCache<Box<[u8]>, Option<Arc<FollowUpSelect>>>;

/// Classifies texts as [`classify()`](super::classify()) does, and caches for a text with a result table's name whether it is a follow-up.
///
/// It is bound to its definitions. Calls differ in their numbers and are parsed each time; the effects of other texts take one pass.
#[derive(Debug)]
pub struct StatementClassifier {
    definitions: Arc<[TimelineDefinition]>,
    message_tables: Box<[Box<[u8]>]>,
    /// SELECTs of other tables may be feeds' as well.
    any_message_table: bool,
    follow_ups: Mutex<FollowUpCache>,
    max_statement_bytes: usize,
}

impl StatementClassifier {
    /// Caches up to `entries` texts. A text longer than `statement_bytes` is not parsed, and has all effects.
    pub fn new(
        definitions: Arc<[TimelineDefinition]>,
        entries: NonZeroUsize,
        statement_bytes: usize,
    ) -> Self {
        Self {
            definitions,
            message_tables: Box::default(),
            any_message_table: false,
            follow_ups: Mutex::new(LruCache::new(entries)),
            max_statement_bytes: statement_bytes,
        }
    }

    /// The same, where SELECTs of these tables may be feeds', and with `any` also SELECTs of others that look alike.
    #[must_use]
    pub fn with_message_tables(self, messages: Box<[Box<[u8]>]>, any: bool) -> Self {
        Self {
            message_tables: messages,
            any_message_table: any,
            ..self
        }
    }

    /// The class of a text on a server that is known to have `no_functions`, or may have some.
    pub fn classify(&self, text: &[u8], no_functions: bool) -> StatementClass {
        if text.len() > self.max_statement_bytes {
            return StatementClass::Other(StatementEffects::ALL);
        }
        if let Some(class) = classify_by_verb(text, &self.definitions) {
            return class;
        }
        if text.len() > MAX_TEXT_BYTES || !may_name_result_table(text, &self.definitions) {
            return self.classify_other(text, no_functions);
        }
        let mut follow_ups = self
            .follow_ups
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let cached = match follow_ups.get(text) {
            Some(entry) => entry.clone(),
            None => {
                let parsed = FollowUpSelect::parse(text, &self.definitions).map(Arc::new);
                follow_ups.push(text.into(), parsed.clone());
                parsed
            }
        };
        drop(follow_ups);
        cached.map_or_else(
            || self.classify_other(text, no_functions),
            StatementClass::FollowUp,
        )
    }

    fn classify_other(&self, text: &[u8], no_functions: bool) -> StatementClass {
        let definitions = &self.definitions;
        if !self.message_tables.is_empty()
            && text.contains(&b';')
            && let Some(batch) =
                FeedBatch::parse(text, &self.message_tables, definitions, no_functions)
        {
            return StatementClass::FeedBatch(batch);
        }
        match classify_other(text, definitions, no_functions) {
            StatementClass::Other(effects)
                if may_be_feed(text, &self.message_tables, self.any_message_table) =>
            {
                StatementClass::Feed(effects)
            }
            class => class,
        }
    }
}
