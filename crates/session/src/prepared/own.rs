//! Statements of Headwater's own in a client's session: narrowed texts that are prepared, for executions to be answered by.
//!
//! The server numbers them among the client's, which never hears of them. They outlive the client's statement: drivers prepare,
//! execute and close the same text again and again.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::narrow::Form;
use headwater_feed::variants::Columns;

use super::{KeptColumns, PreparedFeed};

/// So many are kept in a session. The server has a limit on those of all sessions (`max_prepared_stmt_count`).
const MOST: usize = 8;
/// Once so many could not be prepared, no more are.
const MOST_FAILURES: u8 = 3;

/// What one is made from.
#[derive(Clone, Debug)]
pub struct Made {
    /// The client's text.
    pub of: Arc<PreparedFeed>,
    /// Its template, as it is now.
    pub template: Arc<Template>,
    /// How it is narrowed.
    pub form: Form,
    /// How many ids it takes.
    pub ids: usize,
}

/// Those of one session.
#[derive(Debug, Default)]
pub(super) struct OwnStatements {
    /// The one used last comes last.
    kept: Vec<OwnStatement>,
    /// Those that are to be closed.
    ended: Vec<u32>,
    failures: u8,
}

#[derive(Debug)]
struct OwnStatement {
    made: Made,
    number: u32,
    columns: KeptColumns,
}

impl OwnStatements {
    /// The number of one.
    pub(super) fn find(&mut self, made: &Made) -> Option<u32> {
        // Of tables that have changed since.
        self.end(|own| own.is_of(&made.of) && !Arc::ptr_eq(&own.template, &made.template));
        let at = self.kept.iter().position(|own| own.made.is(made))?;
        let found = self.kept.remove(at);
        let number = found.number;
        self.kept.push(found);
        Some(number)
    }

    pub(super) fn has_any(&self) -> bool {
        !self.kept.is_empty() || !self.ended.is_empty()
    }

    /// True for the number of one that is open on the server.
    pub(super) fn has(&self, number: u32) -> bool {
        self.kept.iter().any(|own| own.number == number) || self.ended.contains(&number)
    }

    /// One more is about to be prepared: those that are to be closed before it. `None`: it would fail as others did.
    pub(super) fn make_room(&mut self) -> Option<Vec<u32>> {
        if self.failures == MOST_FAILURES {
            return None;
        }
        while self.kept.len() >= MOST {
            let oldest = self.kept.remove(0);
            self.ended.push(oldest.number);
        }
        Some(std::mem::take(&mut self.ended))
    }

    pub(super) fn insert(&mut self, made: Made, number: u32, columns: KeptColumns) {
        self.kept.push(OwnStatement {
            made,
            number,
            columns,
        });
    }

    /// What is known of one's columns; `said`: it has just told them.
    pub(super) fn columns(&mut self, number: u32, said: Option<Columns>) -> Option<Columns> {
        let own = self.kept.iter_mut().find(|own| own.number == number)?;
        if let Some(said) = said {
            own.columns.put(said);
        }
        own.columns.get().cloned()
    }

    /// One could not be prepared.
    pub(super) fn fails(&mut self) {
        self.failures = self.failures.saturating_add(1).min(MOST_FAILURES);
    }

    /// Those of a text are of no use.
    pub(super) fn end_all(&mut self, of: &PreparedFeed) {
        self.end(|own| own.is_of(of));
    }

    fn end(&mut self, which: impl Fn(&Made) -> bool) {
        let Self { kept, ended, .. } = self;
        kept.retain(|own| {
            let ends = which(&own.made);
            if ends {
                ended.push(own.number);
            }
            !ends
        });
    }
}

impl Made {
    fn is_of(&self, feed: &PreparedFeed) -> bool {
        self.of.text() == feed.text()
    }

    /// A template is of one database.
    fn is(&self, other: &Made) -> bool {
        self.form == other.form
            && self.ids == other.ids
            && Arc::ptr_eq(&self.template, &other.template)
            && self.is_of(&other.of)
            && self.of.has_modes_of(&other.of)
    }
}
