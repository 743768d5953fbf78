//! Makes a follow-up SELECT's page from cached rows: the server only has to prove that they are fresh.
//!
//! The ids are already the session's, so the rows depend only on the text, the session's settings and the messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::CacheKey;
use headwater_rows::template::{CacheKeyTable, ResultEnvelope};
use headwater_statement::{FollowUpForm, FollowUpSelect};
use headwater_timeline::TimelineDefinition;
use headwater_timeline::check::DefinitionFacts;
use headwater_wire::reply::layout::ResultSetParts;

use super::{CallKnowledge, ServedFollowUp};
use crate::account_rights::AccountRights;
use crate::cached_rows::{self, CacheFill, MessageColumn, MessageObservation, PageCandidates};
use crate::commands::CommandPhase;

/// What the cached rows of a follow-up SELECT depend on.
#[derive(Debug)]
pub(super) struct FollowUpCacheScope {
    rows: Arc<CacheKeyTable>,
    /// The cache key, without the text and the messages.
    key: Vec<u8>,
    database: String,
    message: String,
    id: String,
    /// The message table's columns that return what was stored.
    stored: Arc<[String]>,
}

/// A page that cached rows may answer.
#[derive(Clone, Debug)]
pub struct FollowUpPageRequest {
    /// The rows' cache key.
    pub cache_key: CacheKey,
    /// The result-set envelope.
    pub envelope: Arc<ResultEnvelope>,
}

impl FollowUpCacheScope {
    /// `None`: rows of this follow-up SELECT are not cached in this session.
    pub(super) fn new(
        follow_up: &FollowUpSelect,
        form: FollowUpForm,
        definition: &TimelineDefinition,
        facts: &DefinitionFacts,
        session: &CommandPhase,
        knowledge: &impl CallKnowledge,
    ) -> Option<FollowUpCacheScope> {
        let state = &session.state;
        let follow = state.row_settings().filter(|_| !state.reads_a_snapshot())?;
        let database = std::str::from_utf8(state.database()?).ok()?;
        let table = &definition.message.table;
        let rows = knowledge.cache_keys(database, table, follow_up.template())?;
        let form = [matches!(form, FollowUpForm::BufferedList).into()];
        let envelope_key = session.envelope_key();
        Some(FollowUpCacheScope {
            rows,
            key: [&form[..], &envelope_key, follow].concat(),
            database: database.to_owned(),
            message: table.clone(),
            id: definition.message.id.clone(),
            stored: Arc::clone(&facts.stored_columns),
        })
    }

    /// The cache key in one generation of the log: rows of another generation may be of other tables.
    fn cache_key_of(&self, generation: u64) -> Vec<u8> {
        [&generation.to_le_bytes()[..], &self.key].concat()
    }
}

impl ServedFollowUp {
    /// Envelopes are the same where the real join's flags are.
    fn envelope_kind(&self) -> usize {
        self.rows.min(2)
    }

    /// A request for the page in this generation of the log. `ttl`: how long a seen right counts as held.
    pub fn page_request(
        &self,
        session: &CommandPhase,
        generation: u64,
        (rights, ttl): (&AccountRights, Duration),
        now: Instant,
    ) -> Option<FollowUpPageRequest> {
        let keeping = self.cache_scope.as_ref()?;
        let (rows, state) = (&keeping.rows, &session.state);
        let may = state.has_recent_contact(now)
            && rights.may_read(state, rows.template, ttl, now)
            && rows.should_try();
        if !may {
            return None;
        }
        let (variant, frame) =
            rows.lookup(&keeping.cache_key_of(generation), self.envelope_kind())?;
        Some(FollowUpPageRequest {
            cache_key: variant,
            envelope: frame,
        })
    }

    /// Records whether a page could be made of cached rows.
    pub fn note_page_attempt(&self, made: bool) {
        if let Some(keeping) = &self.cache_scope {
            keeping.rows.record_attempt(made);
        }
    }

    /// What the server's reply shows about the messages; the statement was sent at `begun`, in this generation of the log.
    pub fn cache_fill(
        &self,
        follow_up: &FollowUpSelect,
        reply: &[u8],
        (session, (rights, ttl)): (&mut CommandPhase, (&AccountRights, Duration)),
        generation: u64,
        begun: Instant,
    ) -> Option<CacheFill> {
        let keeping = self.cache_scope.as_ref()?;
        let state = &mut session.state;
        state.note_server_contact(begun);
        rights.template_answered(state, keeping.rows.template, ttl, begun);
        let id = MessageColumn {
            database: &keeping.database,
            table: &keeping.message,
            alias: follow_up.qualifier(),
            name: &keeping.id,
        };
        // A column computed at read time may depend on the time or on the reader.
        let stored = |name: &[u8]| {
            let mut stored = keeping.stored.iter();
            stored.any(|stored_name| name.eq_ignore_ascii_case(stored_name.as_bytes()))
        };
        let parts = ResultSetParts::read(reply, session.capabilities)?;
        if !cached_rows::shows_only(reply, &parts, stored) {
            return None;
        }
        let candidates = PageCandidates {
            ids: &self.ids,
            exhaustive: self.whole,
            offset: 0,
            limit: self.limit,
        };
        let (frame, rows) = cached_rows::read_observations(reply, &parts, false, id, candidates)?;
        Some(CacheFill {
            cache: Arc::clone(&keeping.rows),
            key: keeping.cache_key_of(generation),
            envelope_kind: self.envelope_kind(),
            envelope: frame,
            rows: rows
                .into_iter()
                .map(MessageObservation::without_joined_rows)
                .collect(),
            lists: Vec::new(),
        })
    }
}
