//! Rows that are kept: a page made of them, and what an answer of the server's tells of each message.
//!
//! A row that was kept is what the server would send now, as long as the log tells no change of its message. So such a page needs no
//! question to the server but the proof that memory is up to date. Outside transactions only: inside, the snapshot decides.

use std::collections::HashMap;
use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::binding::FeedStatement;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::joined_tables::{JoinedRowReference, ReferenceKeySource};
use headwater_rows::CacheKey;
use headwater_rows::template::ResultEnvelope;
use headwater_timeline::index::TimelineId;
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

/// A page that may be made of rows that are kept.
#[derive(Clone, Debug)]
pub struct CachedPageRequest {
    /// Whose messages.
    pub candidates: FeedCandidateRequest,
    /// As they were named without a proof: if nothing is kept of these, none is needed.
    pub named: Vec<u64>,
    /// There are no others.
    pub exhaustive: bool,
    /// Under which number rows are kept.
    pub cache_key: CacheKey,
    /// The places of rows that they are made of.
    pub joined_tables: Arc<[TimelineId]>,
    /// Lists of authors beside those whom a reader follows, and whose the messages are, one by one.
    pub lists: Option<(Vec<AuthorListKey>, Vec<u64>)>,
    /// What stands in front of the rows, and which number the first of them has.
    pub envelope: Arc<ResultEnvelope>,
    /// OFFSET.
    pub offset: u64,
    /// LIMIT.
    pub limit: u64,
}

/// Under what rows of a statement are kept.
#[derive(Clone, Debug)]
pub(super) struct FeedCacheScope {
    /// All that rows depend on but the template and the messages.
    key: Vec<u8>,
    /// What the session's settings are of that.
    pub(super) settings: Vec<u8>,
    /// Lists of authors beside those whom a reader follows.
    pub(super) lists: Vec<AuthorListQuery>,
}

/// Rows of statements with longer literals beside those that are apart are not kept.
const MAX_LITERAL_BYTES: usize = 1024;

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// Under what rows of the statement may be kept, if they may.
    pub(super) fn cache_scope(
        &self,
        template: &Template,
        statement: FeedStatement<'_>,
    ) -> Option<FeedCacheScope> {
        let standing = &self.session.state;
        let may = self.policy.rows
            && !self.is_planned(template)
            && !self.caches_columns()
            && self.named.is_none()
            && !standing.reads_a_snapshot();
        let keep = template.shape.row_dependencies.as_ref().filter(|_| may)?;
        let follow = standing.row_settings()?;
        let literals = keep.cache_key_literals(statement, template.types)?;
        let literals = (literals.len() <= MAX_LITERAL_BYTES).then_some(literals)?;
        let around = self.session.envelope_key();
        Some(FeedCacheScope {
            key: [&around[..], follow, &[0], &literals].concat(),
            settings: follow.to_vec(),
            lists: Vec::new(),
        })
    }

    /// The page that may be there already.
    pub(super) fn cached_page_request(
        &self,
        subject: &ServedStatement,
        wishes: &CandidateQuery,
        found: &CandidateSet,
    ) -> Option<CachedPageRequest> {
        let keeping = wishes.cache_scope.as_ref()?;
        let template = &subject.template;
        let kept = &template.row_cache;
        let first = wishes.retakes == 0 && !wishes.was_short;
        let ttl = self.policy.privileges_ttl;
        let standing = &self.session.state;
        let may = first
            && !template.is_retired()
            && standing.has_recent_contact(self.now)
            && standing.may_read_template(kept.template, ttl, self.now)
            && kept.should_try();
        if !may {
            return None;
        }
        let key = keeping.cache_key(found);
        let (variant, frame) = kept.lookup(&key, AuthorCountBucket::of(found.authors).number())?;
        // Of other columns than those that were told of the client's own statement, the server tells it with a flag.
        if let Some(executed) = self.executed
            && executed.columns != frame.columns
        {
            return None;
        }
        Some(CachedPageRequest {
            candidates: wishes.request(subject),
            named: found.ids.clone(),
            exhaustive: found.exhaustive,
            cache_key: variant,
            joined_tables: Arc::clone(&template.joined_timelines),
            lists: (!keeping.lists.is_empty()).then(|| {
                (
                    keeping.author_list_keys(template, found),
                    found.written_by.clone(),
                )
            }),
            envelope: frame,
            offset: wishes.bound.offset,
            limit: wishes.bound.limit,
        })
    }

    /// The page was made of kept rows, or could not be.
    pub(super) fn page_made(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        found: CandidateSet,
        frame: &ResultEnvelope,
        paged: Option<CachedPage>,
    ) -> FeedTransition {
        subject.template.row_cache.record_attempt(paged.is_some());
        let Some(paged) = paged else {
            return self.query_server(subject, wishes, found);
        };
        let crowd = AuthorCountBucket::of(found.authors);
        subject
            .template
            .record_cached_page(crowd, self.microseconds());
        if let Some(executed) = self.executed {
            self.session
                .prepared_mut()
                .executed_locally(executed.statement);
        }
        // Behind a call it is among what runs once more where somebody asks for counts.
        if self.session.tables.pending.is_none() {
            self.session.set_found_rows(paged.found_rows);
        }
        let (packets, outcome) = paged.reply(frame);
        let told = FeedReply {
            from_cache: true,
            ..FeedReply::narrowed(packets, outcome)
        };
        Ok((FeedStage::Ended, FeedAction::Reply(told)))
    }

    /// What a narrowed answer tells of the messages among which the server looked.
    pub(super) fn cache_fill(
        &mut self,
        subject: &ServedStatement,
        wishes: &CandidateQuery,
        candidates: &ChosenCandidates,
        bytes: &[u8],
    ) -> Option<CacheFill> {
        let template = &subject.template;
        let keeping = wishes.cache_scope.as_ref()?;
        let found = candidates.cacheable.as_ref()?;
        if let Some(begun) = *self.begun {
            let standing = &mut self.session.state;
            standing.template_answered(template.row_cache.template, begun);
        }
        let (names, words) = (&template.feed_names, &subject.words);
        let id = MessageColumn {
            database: &template.database,
            table: &names.message,
            alias: words.text(template.shape.qualifier, self.text()?),
            name: &names.id,
        };
        // Whom a list has not pass is not shown, whatever else holds.
        let authors = wishes.authors(found)?;
        let too_many = authors.is_none();
        let lists = authors.filter(|lists| !lists.is_empty());
        let passing = lists.map(|lists| passing_messages(&lists, &found.ids, &found.written_by));
        let among = PageCandidates {
            ids: passing.as_deref().unwrap_or(&found.ids),
            exhaustive: found.exhaustive,
            offset: wishes.bound.offset,
            limit: wishes.bound.limit,
        };
        let parts = ResultSetParts::read(bytes, self.session.capabilities)?;
        let binary = self.executed.is_some();
        let (frame, rows) = cached_rows::read_observations(bytes, &parts, binary, id, among)?;
        let refers = &template.shape.row_dependencies.as_ref()?.joined_rows;
        let others = (&refers[..], &template.joined_timelines[..]);
        let others = JoinedRows::read(bytes, &parts, binary, (id, found), others)?;
        Some(CacheFill {
            cache: Arc::clone(&template.row_cache),
            key: keeping.cache_key(found),
            envelope_kind: candidates.bucket.number(),
            envelope: frame,
            rows: rows
                .into_iter()
                .filter(|_| !too_many)
                .filter_map(|told| others.observe(bytes, told))
                .collect(),
            lists: wishes.queried_lists(keeping.author_list_keys(template, found)),
        })
    }
}

impl FeedCacheScope {
    /// In this stream of the log: what was told in another one is of other tables, perhaps.
    fn cache_key(&self, found: &CandidateSet) -> Vec<u8> {
        [&found.generation.to_le_bytes()[..], &self.key].concat()
    }
}

/// The other rows that those of a reply are made of.
struct JoinedRows {
    tables: Vec<JoinedTableRows>,
    /// Of each message its author, where that matters.
    authors: HashMap<u64, u64>,
    kinds: Vec<u8>,
    binary: bool,
}

/// Rows of one table.
struct JoinedTableRows {
    table: TimelineId,
    /// Which column of the reply has its key; `None`: the message's author.
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
        (refers, places): (&[JoinedRowReference], &[TimelineId]),
    ) -> Option<JoinedRows> {
        let each = refers.iter().zip(places).map(|(refer, place)| {
            let column = match &refer.key_source {
                ReferenceKeySource::Author => None,
                ReferenceKeySource::Column(name) => {
                    Some(MessageColumn { name, ..message }.position(bytes, parts)?)
                }
            };
            Some(JoinedTableRows {
                table: *place,
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

    /// What is told of a message, with the rows that it is made of. `None`: these are not known.
    fn observe(&self, bytes: &[u8], (id, says): (u64, RowOutcome)) -> Option<MessageObservation> {
        if self.tables.is_empty() {
            return Some(MessageObservation::without_joined_rows((id, says)));
        }
        let row = match &says {
            RowOutcome::Row(range) => Some(bytes.get(range.clone())?),
            RowOutcome::Passes | RowOutcome::FilteredOut => None,
        };
        let made_of = self.tables.iter().map(|other| {
            let key = match (other.column, row) {
                // That it passes, or does not, is no matter of theirs.
                (_, None) if !other.decides => None,
                (None, _) => Some(*self.authors.get(&id)?),
                (Some(place), Some(row)) => {
                    column::nullable_id_cell(row, place, &self.kinds, self.binary)?
                }
                (Some(_), None) => return None,
            };
            Some(key.map(|key| (other.table, key)))
        });
        Some(MessageObservation {
            joined_rows: made_of.collect::<Option<_>>()?,
            id,
            outcome: says,
        })
    }
}
