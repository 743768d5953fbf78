//! What is known of the rights of the procedures' definers, shared by all sessions that use them in one database.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::lock;
use crate::clock;
use crate::session::rights::{Course, DefinerRight};
use crate::timeline::{DefinitionId, Form};

/// A definition's procedures in one database.
#[derive(Debug)]
pub struct DefinerRights {
    definition: DefinitionId,
    database: Vec<u8>,
    beginning: Instant,
    forms: Mutex<[DefinerRight; Form::ALL.len()]>,
}

impl DefinerRights {
    pub(super) fn new(definition: DefinitionId, database: &[u8]) -> DefinerRights {
        DefinerRights {
            definition,
            database: database.to_vec(),
            beginning: clock::now(),
            forms: Mutex::default(),
        }
    }

    /// True for those of this definition in this database.
    #[must_use]
    pub fn is_of(&self, definition: DefinitionId, database: &[u8]) -> bool {
        self.definition == definition && self.database == database
    }

    /// As [`DefinerRight::call_came`].
    pub fn call_came(&self, form: Form, now: Instant, ttl: Duration) -> Course {
        self.with(form, |right| right.call_came(self.since(now), ttl))
    }

    /// As [`DefinerRight::run_succeeded`].
    pub fn run_succeeded(&self, form: Form, sent: Instant) {
        self.with(form, |right| right.run_succeeded(self.since(sent)));
    }

    /// As [`DefinerRight::run_was_denied`].
    pub fn run_was_denied(&self, form: Form) {
        self.with(form, |right| {
            right.run_was_denied(clock::since(self.beginning))
        });
    }

    fn since(&self, then: Instant) -> Duration {
        then.saturating_duration_since(self.beginning)
    }

    fn with<T>(&self, form: Form, change: impl FnOnce(&mut DefinerRight) -> T) -> T {
        let [newest, bounded, heads] = &mut *lock(&self.forms);
        change(match form {
            Form::Newest => newest,
            Form::Bounded => bounded,
            Form::Heads => heads,
        })
    }
}
