//! Statements of Headwater's own in a client's session: narrowed texts that are prepared, for executions to be answered by.
//!
//! The server numbers them among the client's, which never hears of them. They outlive the client's statement: drivers prepare,
//! execute and close the same text again and again.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::narrowed_text::NarrowingForm;
use headwater_feed::result_metadata::ColumnFingerprint;

use super::{CachedColumns, PreparedFeed};

/// So many are kept in a session. The server has a limit on those of all sessions (`max_prepared_stmt_count`).
const MAX_STATEMENTS: usize = 8;
/// Once so many could not be prepared, no more are.
const MAX_FAILURES: u8 = 3;

/// What one is made from.
#[derive(Clone, Debug)]
pub struct NarrowedKey {
    /// The client's text.
    pub client_statement: Arc<PreparedFeed>,
    /// Its template, as it is now.
    pub template: Arc<Template>,
    /// How it is narrowed.
    pub form: NarrowingForm,
    /// How many ids it takes.
    pub ids: usize,
}

/// Those of one session.
#[derive(Debug, Default)]
pub(super) struct InternalStatements {
    /// The one used last comes last.
    open: Vec<InternalStatement>,
    /// Those that are to be closed.
    to_close: Vec<u32>,
    failures: u8,
}

#[derive(Debug)]
struct InternalStatement {
    key: NarrowedKey,
    number: u32,
    columns: CachedColumns,
}

impl InternalStatements {
    /// The number of one.
    pub(super) fn find(&mut self, made: &NarrowedKey) -> Option<u32> {
        // Of tables that have changed since.
        self.close_where(|own| {
            own.is_of(&made.client_statement) && !Arc::ptr_eq(&own.template, &made.template)
        });
        let at = self.open.iter().position(|own| own.key.matches(made))?;
        let found = self.open.remove(at);
        let number = found.number;
        self.open.push(found);
        Some(number)
    }

    pub(super) fn has_any(&self) -> bool {
        !self.open.is_empty() || !self.to_close.is_empty()
    }

    /// True for the number of one that is open on the server.
    pub(super) fn has(&self, number: u32) -> bool {
        self.open.iter().any(|own| own.number == number) || self.to_close.contains(&number)
    }

    /// One more is about to be prepared: those that are to be closed before it. `None`: it would fail as others did.
    pub(super) fn make_room(&mut self) -> Option<Vec<u32>> {
        if self.failures == MAX_FAILURES {
            return None;
        }
        while self.open.len() >= MAX_STATEMENTS {
            let oldest = self.open.remove(0);
            self.to_close.push(oldest.number);
        }
        Some(std::mem::take(&mut self.to_close))
    }

    pub(super) fn insert(&mut self, made: NarrowedKey, number: u32, columns: CachedColumns) {
        self.open.push(InternalStatement {
            key: made,
            number,
            columns,
        });
    }

    /// What is known of one's columns; `said`: it has just told them.
    pub(super) fn columns(
        &mut self,
        number: u32,
        said: Option<ColumnFingerprint>,
    ) -> Option<ColumnFingerprint> {
        let own = self.open.iter_mut().find(|own| own.number == number)?;
        if let Some(said) = said {
            own.columns.put(said);
        }
        own.columns.get().cloned()
    }

    /// One could not be prepared.
    pub(super) fn fails(&mut self) {
        self.failures = self.failures.saturating_add(1).min(MAX_FAILURES);
    }

    /// Those of a text are of no use.
    pub(super) fn close_all(&mut self, of: &PreparedFeed) {
        self.close_where(|own| own.is_of(of));
    }

    fn close_where(&mut self, which: impl Fn(&NarrowedKey) -> bool) {
        let Self {
            open: kept,
            to_close: ended,
            ..
        } = self;
        kept.retain(|own| {
            let ends = which(&own.key);
            if ends {
                ended.push(own.number);
            }
            !ends
        });
    }
}

impl NarrowedKey {
    fn is_of(&self, feed: &PreparedFeed) -> bool {
        self.client_statement.text() == feed.text()
    }

    /// A template is of one database.
    fn matches(&self, other: &NarrowedKey) -> bool {
        self.form == other.form
            && self.ids == other.ids
            && Arc::ptr_eq(&self.template, &other.template)
            && self.is_of(&other.client_statement)
            && self.client_statement.has_modes_of(&other.client_statement)
    }
}
