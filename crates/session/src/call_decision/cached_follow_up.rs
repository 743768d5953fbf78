//! A tail's page of rows that are kept: then the server is asked nothing but the proof that they are up to date.
//!
//! The ids are the session's own already. So a tail's rows follow its text, the session's settings and the messages, and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::CacheKey;
use headwater_rows::template::{ResultEnvelope, TemplateCache};
use headwater_statement::{FollowUpForm, FollowUpSelect};
use headwater_timeline::TimelineDefinition;
use headwater_timeline::check::DefinitionFacts;
use headwater_wire::reply::layout::ResultSetParts;

use super::{CallKnowledge, ServedFollowUp};
use crate::cached_rows::{self, CacheFill, MessageColumn, MessageObservation, PageCandidates};
use crate::commands::CommandPhase;

/// Under what the rows of a tail are kept.
#[derive(Debug)]
pub(super) struct FollowUpCacheScope {
    rows: Arc<TemplateCache>,
    /// All that rows depend on but the text and the messages.
    key: Vec<u8>,
    database: String,
    message: String,
    id: String,
    /// The message table's columns that are what they were written as.
    stored: Arc<[String]>,
}

/// A page that may be made of rows that are kept.
#[derive(Clone, Debug)]
pub struct FollowUpPageRequest {
    /// Under which number rows are kept.
    pub cache_key: CacheKey,
    /// What stands around the rows.
    pub envelope: Arc<ResultEnvelope>,
}

impl FollowUpCacheScope {
    /// `None`: rows of this tail are not kept in this session.
    pub(super) fn new(
        tail: &FollowUpSelect,
        form: FollowUpForm,
        definition: &TimelineDefinition,
        facts: &DefinitionFacts,
        session: &CommandPhase,
        known: &impl CallKnowledge,
    ) -> Option<FollowUpCacheScope> {
        let standing = &session.state;
        let follow = standing
            .row_settings()
            .filter(|_| !standing.reads_a_snapshot())?;
        let database = std::str::from_utf8(standing.database()?).ok()?;
        let table = &definition.message.table;
        let rows = known.cached_rows(database, table, tail.template())?;
        let form = [matches!(form, FollowUpForm::BufferedList).into()];
        let around = session.envelope_key();
        Some(FollowUpCacheScope {
            rows,
            key: [&form[..], &around, follow].concat(),
            database: database.to_owned(),
            message: table.clone(),
            id: definition.message.id.clone(),
            stored: Arc::clone(&facts.stored_columns),
        })
    }

    /// In this stream of the log: what was told in another one is of other tables, perhaps.
    fn cache_key_of(&self, generation: u64) -> Vec<u8> {
        [&generation.to_le_bytes()[..], &self.key].concat()
    }
}

impl ServedFollowUp {
    /// Replies are framed alike where the real join's flags are.
    fn envelope_kind(&self) -> usize {
        self.rows.min(2)
    }

    /// The page that may be there already, in this stream of the log. `ttl`: so long a right that was seen is taken to be there.
    pub fn page_request(
        &self,
        session: &CommandPhase,
        generation: u64,
        ttl: Duration,
        now: Instant,
    ) -> Option<FollowUpPageRequest> {
        let keeping = self.cache_scope.as_ref()?;
        let (rows, standing) = (&keeping.rows, &session.state);
        let may = standing.has_recent_contact(now)
            && standing.may_read_template(rows.template, ttl, now)
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

    /// A page was made of kept rows, or could not be.
    pub fn note_page_attempt(&self, made: bool) {
        if let Some(keeping) = &self.cache_scope {
            keeping.rows.record_attempt(made);
        }
    }

    /// What the server's reply tells of the messages: it was sent at `begun`, in this stream of the log.
    pub fn cache_fill(
        &self,
        tail: &FollowUpSelect,
        reply: &[u8],
        session: &mut CommandPhase,
        generation: u64,
        begun: Instant,
    ) -> Option<CacheFill> {
        let keeping = self.cache_scope.as_ref()?;
        let standing = &mut session.state;
        standing.note_server_contact(begun);
        standing.template_answered(keeping.rows.template, begun);
        let id = MessageColumn {
            database: &keeping.database,
            table: &keeping.message,
            alias: tail.qualifier(),
            name: &keeping.id,
        };
        // What is computed when it is read may follow the time, or who reads it.
        let stored = |name: &[u8]| {
            let mut stored = keeping.stored.iter();
            stored.any(|own| name.eq_ignore_ascii_case(own.as_bytes()))
        };
        let parts = ResultSetParts::read(reply, session.capabilities)?;
        if !cached_rows::shows_only(reply, &parts, stored) {
            return None;
        }
        let among = PageCandidates {
            ids: &self.ids,
            exhaustive: self.whole,
            offset: 0,
            limit: self.limit,
        };
        let (frame, rows) = cached_rows::read_observations(reply, &parts, false, id, among)?;
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
