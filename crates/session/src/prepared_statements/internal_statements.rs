//! Internal statements in a client's session: prepared narrowed texts that answer the client's executions.
//!
//! The server numbers them among the client's statements; the client does not know of them. They outlive the client's statement: drivers
//! prepare, execute and close the same text again and again.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::narrowed_text::NarrowingForm;
use headwater_feed::result_metadata::ColumnFingerprint;

use super::{CachedColumns, PreparedFeed};

/// The limit per session. The server limits those of all sessions (`max_prepared_stmt_count`).
const MAX_STATEMENTS: usize = 8;
/// After this many failed PREPAREs, no more are sent.
const MAX_FAILURES: u8 = 3;

/// The key of an internal statement.
#[derive(Clone, Debug)]
pub struct NarrowedKey {
    /// The client's text.
    pub client_statement: Arc<PreparedFeed>,
    /// Its template, in its present version.
    pub template: Arc<Template>,
    /// The way it is narrowed.
    pub form: NarrowingForm,
    /// How many ids it takes.
    pub ids: usize,
}

#[derive(Debug, Default)]
pub(super) struct InternalStatements {
    /// In order of use, the latest last.
    open: Vec<InternalStatement>,
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
    pub(super) fn find(&mut self, key: &NarrowedKey) -> Option<u32> {
        // Its tables have changed since.
        self.close_where(|other| {
            other.is_of(&key.client_statement) && !Arc::ptr_eq(&other.template, &key.template)
        });
        let at = self
            .open
            .iter()
            .position(|open_statement| open_statement.key.matches(key))?;
        let statement = self.open.remove(at);
        let number = statement.number;
        self.open.push(statement);
        Some(number)
    }

    pub(super) fn has_any(&self) -> bool {
        !self.open.is_empty() || !self.to_close.is_empty()
    }

    /// True for the id of a statement that is open on the server.
    pub(super) fn has(&self, number: u32) -> bool {
        self.open.iter().any(|own| own.number == number) || self.to_close.contains(&number)
    }

    /// Makes room for one more: returns those to close before. `None`: it would fail as others did.
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

    pub(super) fn insert(&mut self, key: NarrowedKey, number: u32, columns: CachedColumns) {
        self.open.push(InternalStatement {
            key,
            number,
            columns,
        });
    }

    /// The columns of a statement, after its last reply.
    pub(super) fn columns(
        &mut self,
        number: u32,
        sent_columns: Option<ColumnFingerprint>,
    ) -> Option<ColumnFingerprint> {
        let open_statement = self.open.iter_mut().find(|own| own.number == number)?;
        if let Some(said) = sent_columns {
            open_statement.columns.put(said);
        }
        open_statement.columns.get().cloned()
    }

    pub(super) fn fails(&mut self) {
        self.failures = self.failures.saturating_add(1).min(MAX_FAILURES);
    }

    pub(super) fn close_all(&mut self, feed: &PreparedFeed) {
        self.close_where(|other| other.is_of(feed));
    }

    fn close_where(&mut self, which: impl Fn(&NarrowedKey) -> bool) {
        let Self {
            open: kept,
            to_close: ended,
            ..
        } = self;
        kept.retain(|statement| {
            let ends = which(&statement.key);
            if ends {
                ended.push(statement.number);
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
