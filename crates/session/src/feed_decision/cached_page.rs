//! Cached rows of feed statements: pages made of them, and what a server reply shows about each message.
//!
//! A cached row is what the server would send now, as long as the log contains no change of its message. So such a page needs no query but
//! the proof that memory is fresh. This holds outside transactions only: inside, the snapshot decides.

use std::collections::HashMap;
use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::binding::FeedStatement;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::joined_tables::{JoinedRowReference, ReferenceKeySource};
use headwater_rows::CacheKey;
use headwater_rows::template::ResultEnvelope;
use headwater_timeline::index::{RowKey, TableId};
use headwater_wire::reply::layout::ResultSetParts;
use headwater_wire::resultset::column;

use super::{
    AuthorListQuery, CandidateQuery, CandidateSet, ChosenCandidates, FeedAction,
    FeedCandidateRequest, FeedContext, FeedKnowledge, FeedReply, FeedStage, FeedTransition,
    ServedStatement,
};
use crate::author_lists::{AuthorListKey, passing_messages};
use crate::cached_rows::{
    self, CacheFill, CachedPage, MessageColumn, MessageObservation, PageCandidates, RowOutcome,
};
use crate::commands::UnseenSelect;

/// A page that cached rows may answer.
#[derive(Clone, Debug)]
pub struct CachedPageRequest {
    /// The authors or readers whose messages they are.
    pub candidates: FeedCandidateRequest,
    /// The ids as named without a proof: if no row of these is cached, no proof is needed.
    pub named: Vec<u64>,
    /// There are no other messages.
    pub exhaustive: bool,
    /// The rows' cache key.
    pub cache_key: CacheKey,
    /// The generation of the log.
    pub generation: u64,
    /// The timelines of the joined tables.
    pub joined_tables: Arc<[TableId]>,
    /// Author lists besides the reader's follows, and the author of each message.
    pub lists: Option<(Vec<AuthorListKey>, Vec<u64>)>,
    /// The result-set envelope, which also gives the first row's packet number.
    pub envelope: Arc<ResultEnvelope>,
    /// OFFSET.
    pub offset: u64,
    /// LIMIT.
    pub limit: u64,
}

/// What a statement's cached rows depend on.
#[derive(Clone, Debug)]
pub(super) struct FeedCacheScope {
    /// The cache key, without the template and the messages.
    key: Vec<u8>,
    pub(super) settings: Vec<u8>,
    /// Author lists besides the reader's follows.
    pub(super) lists: Vec<AuthorListQuery>,
}

/// Rows are not cached where the statement's other literals are longer than this.
const MAX_LITERAL_BYTES: usize = 1024;

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// The cache scope of the statement's rows, if they may be cached.
    pub(super) fn cache_scope(
        &self,
        template: &Template,
        statement: FeedStatement<'_>,
    ) -> Option<FeedCacheScope> {
        if self.session.state.reads_a_snapshot() {
            return None;
        }
        let dependencies = template.shape.row_dependencies.as_ref()?;
        let literals = dependencies.cache_key_literals(statement, template.types)?;
        self.cache_scope_of(template, &literals)
    }

    /// The cache scope of what depends on these literals.
    pub(super) fn cache_scope_of(
        &self,
        template: &Template,
        literals: &[u8],
    ) -> Option<FeedCacheScope> {
        let state = &self.session.state;
        let may = self.policy.rows
            && !self.is_planned(template)
            && !self.caches_columns()
            && self.named.is_none();
        let follow = state.row_settings().filter(|_| may)?;
        let literals = (literals.len() <= MAX_LITERAL_BYTES).then_some(literals)?;
        let envelope_key = self.session.envelope_key();
        Some(FeedCacheScope {
            key: [&envelope_key[..], follow, &[0], literals].concat(),
            settings: follow.to_vec(),
            lists: Vec::new(),
        })
    }

    /// A request for the page, if cached rows may answer it.
    pub(super) fn cached_page_request(
        &self,
        subject: &ServedStatement,
        query: &CandidateQuery,
        candidates: &CandidateSet,
    ) -> Option<CachedPageRequest> {
        let keeping = query.cache_scope.as_ref()?;
        let template = &subject.template;
        let row_cache = &template.row_cache;
        let first = query.retakes == 0 && !query.was_short;
        let state = &self.session.state;
        let may = first
            && !template.is_retired()
            && state.has_recent_contact(self.now)
            && self.may_read_template(template)
            && row_cache.should_try();
        if !may {
            return None;
        }
        let key = keeping.cache_key(candidates);
        let (variant, frame) =
            row_cache.lookup(&key, AuthorCountBucket::of(candidates.authors).number())?;
        // If the columns differ from those last sent for the client's own statement, the server sets a flag.
        if let Some(executed) = self.executed
            && executed.columns != frame.columns
        {
            return None;
        }
        Some(CachedPageRequest {
            candidates: query.request(subject),
            named: candidates.ids.clone(),
            exhaustive: candidates.exhaustive,
            cache_key: variant,
            generation: candidates.generation,
            joined_tables: Arc::clone(&template.joined_tables),
            lists: (!keeping.lists.is_empty()).then(|| {
                (
                    keeping.author_list_keys(template, candidates),
                    candidates.written_by.clone(),
                )
            }),
            envelope: frame,
            offset: query.bound.offset,
            limit: query.bound.limit,
        })
    }

    /// The page was made of cached rows, or could not be.
    pub(super) fn page_made(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: CandidateSet,
        frame: &ResultEnvelope,
        paged: Option<CachedPage>,
    ) -> FeedTransition {
        subject.template.row_cache.record_attempt(paged.is_some());
        let Some(paged) = paged else {
            return self.query_server(subject, query, candidates);
        };
        let bucket = AuthorCountBucket::of(candidates.authors);
        subject
            .template
            .record_cached_page(bucket, self.microseconds());
        if let Some(executed) = self.executed {
            self.session
                .prepared_mut()
                .executed_locally(executed.statement);
        }
        // After a call it is among the statements that run again where the client asks for counts.
        if self.session.tables.pending.is_none() {
            let found = UnseenSelect::FoundRows(paged.found_rows);
            self.session.set_unseen_select(found);
        }
        let (packets, outcome) = paged.reply(frame);
        let reply = FeedReply {
            from_cache: true,
            ..FeedReply::narrowed(packets, outcome)
        };
        Ok((FeedStage::Ended, FeedAction::Reply(reply)))
    }

    /// What a narrowed reply shows about the candidates.
    pub(super) fn cache_fill(
        &mut self,
        subject: &ServedStatement,
        query: &CandidateQuery,
        candidates: &ChosenCandidates,
        bytes: &[u8],
    ) -> Option<CacheFill> {
        let template = &subject.template;
        let keeping = query.cache_scope.as_ref()?;
        let candidate_set = candidates.cacheable.as_ref()?;
        if let Some(begun) = *self.begun {
            let rights = self.knowledge.account_rights();
            let (state, ttl) = (&mut self.session.state, self.policy.privileges_ttl);
            rights.template_answered(state, template.row_cache.template, ttl, begun);
        }
        let (names, words) = (&template.feed_names, &subject.words);
        let id = MessageColumn {
            database: &template.database,
            table: &names.message,
            alias: words.text(template.shape.shown_table, self.text()?),
            name: &names.id,
        };
        // Messages of authors who do not pass a list are not shown, whatever else holds.
        let authors = query.authors(candidate_set)?;
        let too_many = authors.is_none();
        let lists = authors.filter(|lists| !lists.is_empty());
        let passing = lists
            .map(|lists| passing_messages(&lists, &candidate_set.ids, &candidate_set.written_by));
        let page_candidates = PageCandidates {
            ids: passing.as_deref().unwrap_or(&candidate_set.ids),
            exhaustive: candidate_set.exhaustive,
            offset: query.bound.offset,
            limit: query.bound.limit,
        };
        let parts = ResultSetParts::read(bytes, self.session.capabilities)?;
        let binary = self.executed.is_some();
        let (frame, rows) =
            cached_rows::read_observations(bytes, &parts, binary, id, page_candidates)?;
        let refers = &template.shape.row_dependencies.as_ref()?.joined_rows;
        let others = (&refers[..], &template.joined_tables[..]);
        let others = JoinedRows::read(bytes, &parts, binary, (id, candidate_set), others)?;
        Some(CacheFill {
            cache: Arc::clone(&template.row_cache),
            key: keeping.cache_key(candidate_set),
            envelope_kind: candidates.bucket.number(),
            envelope: frame,
            rows: rows
                .into_iter()
                .filter(|_| !too_many)
                .filter_map(|told| others.observe(bytes, told))
                .collect(),
            lists: query.queried_lists(keeping.author_list_keys(template, candidate_set)),
        })
    }
}

impl FeedCacheScope {
    /// The cache key in this generation of the log: rows of another generation may be of other tables.
    fn cache_key(&self, candidates: &CandidateSet) -> Vec<u8> {
        self.cache_key_in(candidates.generation)
    }

    pub(super) fn cache_key_in(&self, generation: u64) -> Vec<u8> {
        [&generation.to_le_bytes()[..], &self.key].concat()
    }
}

/// The joined rows that a reply's rows depend on.
struct JoinedRows {
    tables: Vec<JoinedTableRows>,
    /// Each message's author, where a joined table needs it.
    authors: HashMap<u64, u64>,
    kinds: Vec<u8>,
    binary: bool,
}

struct JoinedTableRows {
    table: TableId,
    /// The reply's column with its key; `None`: the message's author.
    column: Option<usize>,
    decides: bool,
}

impl JoinedRows {
    /// `None`: a key is not among the columns.
    fn read(
        bytes: &[u8],
        parts: &ResultSetParts,
        binary: bool,
        (message, found): (MessageColumn<'_>, &CandidateSet),
        (refers, places): (&[JoinedRowReference], &[TableId]),
    ) -> Option<JoinedRows> {
        let each = refers.iter().zip(places).map(|(refer, timeline)| {
            let column = match &refer.key_source {
                ReferenceKeySource::Author => None,
                ReferenceKeySource::Column(name) => {
                    Some(MessageColumn { name, ..message }.position(bytes, parts)?)
                }
            };
            Some(JoinedTableRows {
                table: *timeline,
                column,
                decides: refer.filters,
            })
        });
        let authors = found.ids.iter().zip(&found.written_by);
        let authors = authors.filter(|_| !refers.is_empty());
        Some(JoinedRows {
            authors: authors.map(|(id, author)| (*id, *author)).collect(),
            tables: each.collect::<Option<_>>()?,
            kinds: column::column_types(bytes, &parts.definitions)?,
            binary,
        })
    }

    /// A message's outcome with its joined rows; `None`: these are not known.
    fn observe(
        &self,
        bytes: &[u8],
        (id, outcome): (u64, RowOutcome),
    ) -> Option<MessageObservation> {
        if self.tables.is_empty() {
            return Some(MessageObservation::without_joined_rows((id, outcome)));
        }
        let row = match &outcome {
            RowOutcome::Row(range) => Some(bytes.get(range.clone())?),
            RowOutcome::Passes | RowOutcome::FilteredOut => None,
        };
        let made_of = self.tables.iter().map(|table| {
            let key = match (table.column, row) {
                // These rows do not decide whether it passes.
                (_, None) if !table.decides => None,
                (None, _) => Some(*self.authors.get(&id)?),
                (Some(column_index), Some(row)) => {
                    column::nullable_id_cell(row, column_index, &self.kinds, self.binary)?
                }
                (Some(_), None) => return None,
            };
            Some(key.map(|id| RowKey {
                table: table.table,
                id,
            }))
        });
        Some(MessageObservation {
            joined_rows: made_of.collect::<Option<_>>()?,
            id,
            outcome,
        })
    }
}
