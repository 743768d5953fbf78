//! Classes of texts that were dear to find out, remembered.

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

/// What each text was found to be: a tail, or none.
type FollowUpCache = LruCache<Box<[u8]>, Option<Arc<FollowUpSelect>>>;

/// Classifies texts as [`statement_class()`](super::classify()) does, and remembers of each that names a result table whether it is a tail.
///
/// It is bound to the definitions that it was made with. Calls differ in their numbers and are read each time; what other texts
/// may do is found in one pass.
#[derive(Debug)]
pub struct StatementClassifier {
    definitions: Arc<[TimelineDefinition]>,
    /// Tables of messages of feeds.
    message_tables: Box<[Box<[u8]>]>,
    /// SELECTs of other tables may be feeds', too.
    any_message_table: bool,
    follow_ups: Mutex<FollowUpCache>,
    max_statement_bytes: usize,
}

impl StatementClassifier {
    /// Remembers up to `entries` texts, and looks at no text longer than `max_statement_bytes`: such ones may do anything.
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

    /// The same, where SELECTs of these tables may be feeds', and those of `any` other that look so.
    #[must_use]
    pub fn with_message_tables(self, messages: Box<[Box<[u8]>]>, any: bool) -> Self {
        Self {
            message_tables: messages,
            any_message_table: any,
            ..self
        }
    }

    /// What a text means on a server that is known to have `no_functions`, or may have some.
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
        let mut tails = self
            .follow_ups
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = match tails.get(text) {
            Some(known) => known.clone(),
            None => {
                let found = FollowUpSelect::parse(text, &self.definitions).map(Arc::new);
                tails.push(text.into(), found.clone());
                found
            }
        };
        drop(tails);
        known.map_or_else(
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
