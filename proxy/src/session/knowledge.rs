//! The shared state, as call decisions query it.

use std::cell::RefCell;
use std::ops::DerefMut;
use std::sync::Arc;
use std::time::Instant;

use headwater_rows::template::CacheKeyTable;

use super::shared_state::SharedState;
use crate::catalogue::{DefinerRights, DefinitionEpoch};
use headwater_lookup::hints::LookupHints;
use headwater_session::call_decision::CallKnowledge;
use headwater_session::definer_rights::CallStrategy;
use headwater_timeline::ProcedureForm;
use headwater_timeline::check::{DefinitionVerdict, RelayReason};
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};

/// The shared state, and the session's cached knowledge of its procedures' definers.
pub(super) struct SharedCallKnowledge<'a> {
    shared: &'a SharedState,
    rights: &'a RefCell<Option<Arc<DefinerRights>>>,
}

impl<'a> SharedCallKnowledge<'a> {
    pub(super) fn new(
        shared: &'a SharedState,
        rights: &'a RefCell<Option<Arc<DefinerRights>>>,
    ) -> Self {
        SharedCallKnowledge { shared, rights }
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

impl CallKnowledge for SharedCallKnowledge<'_> {
    fn definitions(&self) -> &[TimelineDefinition] {
        self.shared.catalogue.definitions()
    }

    fn verdict(&self, definition: DefinitionId, database: &[u8]) -> Option<Arc<DefinitionVerdict>> {
        self.shared.catalogue.verdict(definition, database)
    }

    fn last_verdict(
        &self,
        definition: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<DefinitionVerdict>, bool)> {
        self.shared.catalogue.last_verdict(definition, database)
    }

    fn record(
        &self,
        definition: DefinitionId,
        database: &[u8],
        verdict: DefinitionVerdict,
        epoch: u64,
    ) -> Arc<DefinitionVerdict> {
        let epoch = DefinitionEpoch::from(epoch);
        self.shared
            .catalogue
            .record(definition, database, verdict, epoch)
    }

    fn unseen(&self, definition: DefinitionId, reason: &RelayReason) {
        self.shared.catalogue.log_unseen(definition, reason);
    }

    fn epoch(&self) -> u64 {
        self.shared.catalogue.epoch().count()
    }

    fn expire(&self) {
        self.shared.catalogue.expire();
    }

    fn is_distrusted(&self, definition: DefinitionId) -> bool {
        let shadow = self.shared.shadow.as_ref();
        shadow.is_some_and(|shadow| shadow.distrusts(definition))
    }

    fn strategy(
        &self,
        definition: DefinitionId,
        database: &[u8],
        form: ProcedureForm,
        now: Instant,
    ) -> CallStrategy {
        let ttl = self.shared.privileges_ttl;
        self.rights(definition, database).call_came(form, now, ttl)
    }

    fn run_succeeded(
        &self,
        definition: DefinitionId,
        database: &[u8],
        form: ProcedureForm,
        sent: Instant,
    ) {
        self.rights(definition, database).run_succeeded(form, sent);
    }

    fn run_was_denied(&self, definition: DefinitionId, database: &[u8], form: ProcedureForm) {
        self.rights(definition, database).run_was_denied(form);
    }

    fn cache_keys(&self, database: &str, table: &str, text: &str) -> Option<Arc<CacheKeyTable>> {
        let tails = self.shared.follow_ups.as_ref();
        tails.and_then(|tails| tails.cache_keys(database, table, text))
    }

    fn hints(&self) -> impl DerefMut<Target = LookupHints> {
        self.shared.catalogue.hints()
    }

    fn is_galera(&self) -> bool {
        self.shared.is_galera()
    }
}
