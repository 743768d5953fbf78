//! What all sessions share, as a decision asks for it.

use std::cell::RefCell;
use std::ops::DerefMut;
use std::sync::Arc;
use std::time::Instant;

use headwater_rows::template::KeptRows;

use super::ownership::Knowledge;
use super::rights::Course;
use super::shared::Shared;
use crate::catalogue::{DefinerRights, Epoch};
use crate::source::hints::Hints;
use crate::timeline::Form;
use crate::timeline::check::{Reason, Verdict};
use crate::timeline::definition::{Definition, DefinitionId};

/// What all sessions share, and a session's own way to what is known of its procedures' definers.
pub(super) struct SharedKnowledge<'a> {
    shared: &'a Shared,
    rights: &'a RefCell<Option<Arc<DefinerRights>>>,
}

impl<'a> SharedKnowledge<'a> {
    pub(super) fn new(shared: &'a Shared, rights: &'a RefCell<Option<Arc<DefinerRights>>>) -> Self {
        SharedKnowledge { shared, rights }
    }

    fn rights(&self, definition: DefinitionId, database: &[u8]) -> Arc<DefinerRights> {
        let mut last = self.rights.borrow_mut();
        match &*last {
            Some(rights) if rights.is_of(definition, database) => Arc::clone(rights),
            _ => {
                let rights = self.shared.catalogue.definer_rights(definition, database);
                Arc::clone(last.insert(rights))
            }
        }
    }
}

impl Knowledge for SharedKnowledge<'_> {
    fn definitions(&self) -> &[Definition] {
        self.shared.catalogue.definitions()
    }

    fn verdict(&self, definition: DefinitionId, database: &[u8]) -> Option<Arc<Verdict>> {
        self.shared.catalogue.verdict(definition, database)
    }

    fn last_verdict(
        &self,
        definition: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<Verdict>, bool)> {
        self.shared.catalogue.last_verdict(definition, database)
    }

    fn record(
        &self,
        definition: DefinitionId,
        database: &[u8],
        verdict: Verdict,
        epoch: u64,
    ) -> Arc<Verdict> {
        let epoch = Epoch::from(epoch);
        self.shared
            .catalogue
            .record(definition, database, verdict, epoch)
    }

    fn unseen(&self, definition: DefinitionId, reason: &Reason) {
        self.shared.catalogue.say_unseen(definition, reason);
    }

    fn epoch(&self) -> u64 {
        self.shared.catalogue.epoch().count()
    }

    fn expire(&self) {
        self.shared.catalogue.expire();
    }

    fn distrusts(&self, definition: DefinitionId) -> bool {
        let shadow = self.shared.shadow.as_ref();
        shadow.is_some_and(|shadow| shadow.distrusts(definition))
    }

    fn course(
        &self,
        definition: DefinitionId,
        database: &[u8],
        form: Form,
        now: Instant,
    ) -> Course {
        let ttl = self.shared.privileges_ttl;
        self.rights(definition, database).call_came(form, now, ttl)
    }

    fn run_succeeded(&self, definition: DefinitionId, database: &[u8], form: Form, sent: Instant) {
        self.rights(definition, database).run_succeeded(form, sent);
    }

    fn run_was_denied(&self, definition: DefinitionId, database: &[u8], form: Form) {
        self.rights(definition, database).run_was_denied(form);
    }

    fn rows_of(&self, database: &str, table: &str, text: &str) -> Option<Arc<KeptRows>> {
        let tails = self.shared.tails.as_ref();
        tails.and_then(|tails| tails.rows_of(database, table, text))
    }

    fn hints(&self) -> impl DerefMut<Target = Hints> {
        self.shared.catalogue.hints()
    }

    fn is_galera(&self) -> bool {
        self.shared.is_galera()
    }
}
