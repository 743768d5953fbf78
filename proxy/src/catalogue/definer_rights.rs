//! What is known of the definers' privileges, shared by all sessions that use their procedures in one database.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::lock;
use crate::clock;
use headwater_session::definer_rights::{CallStrategy, DefinerRightProof};
use headwater_timeline::{DefinitionId, ProcedureForm};

/// The privileges of the definers of one definition in one database.
#[derive(Debug)]
pub struct DefinerRights {
    definition: DefinitionId,
    database: Vec<u8>,
    beginning: Instant,
    forms: Mutex<[DefinerRightProof; ProcedureForm::ALL.len()]>,
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

    /// True for this definition in this database.
    #[must_use]
    pub fn is_of(&self, definition: DefinitionId, database: &[u8]) -> bool {
        self.definition == definition && self.database == database
    }

    /// As [`headwater_session::definer_rights::DefinerRightProof::strategy`].
    pub fn call_came(&self, form: ProcedureForm, now: Instant, ttl: Duration) -> CallStrategy {
        self.with(form, |right| right.strategy(self.since(now), ttl))
    }

    /// As [`DefinerRightProof::run_succeeded`].
    pub fn run_succeeded(&self, form: ProcedureForm, sent: Instant) {
        self.with(form, |right| right.run_succeeded(self.since(sent)));
    }

    /// As [`DefinerRightProof::run_was_denied`].
    pub fn run_was_denied(&self, form: ProcedureForm) {
        self.with(form, |right| {
            right.run_was_denied(clock::since(self.beginning))
        });
    }

    fn since(&self, then: Instant) -> Duration {
        then.saturating_duration_since(self.beginning)
    }

    fn with<T>(&self, form: ProcedureForm, change: impl FnOnce(&mut DefinerRightProof) -> T) -> T {
        let [newest, bounded, heads] = &mut *lock(&self.forms);
        change(match form {
            ProcedureForm::Newest => newest,
            ProcedureForm::Bounded => bounded,
            ProcedureForm::Heads => heads,
        })
    }
}
