//! Statements of Headwater's own in a client's session: narrowed texts that are prepared, for executions to be answered by.
//!
//! The server numbers them among the client's, which never hears of them. They end with the statement that they stand for.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::narrow::Form;

/// So many are kept in a session. The server has a limit on those of all sessions (`max_prepared_stmt_count`).
const MOST: usize = 8;

/// What one is made from.
#[derive(Clone, Debug)]
pub struct Made {
    /// The client's statement.
    pub of: u32,
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
    /// With their numbers; the one used last comes last.
    kept: Vec<(Made, u32)>,
    /// Those that are to be closed.
    ended: Vec<u32>,
}

impl OwnStatements {
    /// The number of one.
    pub(super) fn find(&mut self, made: &Made) -> Option<u32> {
        // Of tables that have changed since.
        self.end(|own| own.of == made.of && !Arc::ptr_eq(&own.template, &made.template));
        let at = self.kept.iter().position(|(own, _)| own.is(made))?;
        let found = self.kept.remove(at);
        let number = found.1;
        self.kept.push(found);
        Some(number)
    }

    pub(super) fn has_any(&self) -> bool {
        !self.kept.is_empty() || !self.ended.is_empty()
    }

    /// True for the number of one that is open on the server.
    pub(super) fn has(&self, number: u32) -> bool {
        self.kept.iter().any(|(_, own)| *own == number) || self.ended.contains(&number)
    }

    /// One more is about to be prepared: those that are to be closed before it.
    pub(super) fn make_room(&mut self) -> Vec<u32> {
        while self.kept.len() >= MOST {
            let (_, oldest) = self.kept.remove(0);
            self.ended.push(oldest);
        }
        self.take_ended()
    }

    pub(super) fn insert(&mut self, made: Made, number: u32) {
        self.kept.push((made, number));
    }

    /// Ends all that this holds for.
    pub(super) fn end(&mut self, which: impl Fn(&Made) -> bool) {
        let Self { kept, ended } = self;
        kept.retain(|(own, number)| {
            let ends = which(own);
            if ends {
                ended.push(*number);
            }
            !ends
        });
    }

    /// Those that are to be closed now.
    pub(super) fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }
}

impl Made {
    fn is(&self, other: &Made) -> bool {
        self.of == other.of
            && self.form == other.form
            && self.ids == other.ids
            && Arc::ptr_eq(&self.template, &other.template)
    }
}
