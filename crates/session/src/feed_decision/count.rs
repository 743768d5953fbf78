//! Counts of messages: sums of the numbers that are cached for single authors; and the newest message's id, which is the largest of such
//! numbers.
//!
//! An author's number stays cached until the log shows a change of one of their messages. What is missing is asked for in the client's
//! session, cached behind a proof, and then read again with the rest: a sum is of one moment.
//!
//! A count that says where its messages begin (`id > 7`, as of unread ones) mostly has few, and a new beginning each time. So memory
//! names these messages, and of each it is cached whether it passes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use headwater_feed::binding::{FeedStatement, index_numbers};
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::count::{CountShape, is_renderable, literal_text};
use headwater_feed::query::{AggregateFunction, LargestKind};
use headwater_feed::template::ExecutionChoice;
use headwater_feed::{NarrowingRefusal, Template};
use headwater_rows::template::{CacheKeyTable, ResultEnvelope};
use headwater_rows::{CacheKey, CachedRow, RowCache, RowLink};
use headwater_sql::quoted;
use headwater_timeline::KeyType;
use headwater_timeline::datetime::{DatetimeValue, MAX_FRACTION_DIGITS};
use headwater_timeline::index::{KeyedMessage, MessageRange, RowKey, TableId, TimelineId};
use headwater_wire::reply::ReplyOutcome;
use headwater_wire::reply::layout::ResultSetParts;
use headwater_wire::resultset::{QueryReply, ResultRow};
use headwater_wire::status;

use super::cached_page::FeedCacheScope;
pub use super::count_request::FeedCountRequest;
use super::count_row::{envelope_formats, is_row_of_values};
use super::index_bounds::index_range;
use super::{
    FeedAction, FeedContext, FeedKnowledge, FeedRelayReason, FeedReply, FeedStage, FeedTransition,
    InternalReply, ServedStatement, query_session,
};
use crate::author_lists::ListedAuthors;
use crate::cached_rows::{
    AuthorListReply, CachedPage, QueriedAuthorList, TRANSACTION_STATUS, envelope_in_transaction,
};
use crate::commands::UnseenSelect;

/// The messages of a count that says where they begin.
#[derive(Clone, Debug)]
pub struct CountedWindow {
    /// Where they are in the feed's order, and the most that are counted singly.
    pub range: MessageRange<KeyedMessage>,
    /// Each of them passes, unless a list excludes its author.
    pub is_unfiltered: bool,
    pub(super) scope: FeedCacheScope,
}

/// What a count is the sum of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountUnit {
    /// Numbers of authors' messages.
    Authors,
    /// Messages in a window.
    Messages,
}

/// What memory knows of a count.
#[derive(Clone, Debug)]
pub enum CountAnswer {
    /// The number, proved to be fresh.
    Total(CountTotal),
    /// Something is not cached.
    Missing(CountGaps),
    /// Memory cannot tell.
    Unavailable(FeedRelayReason),
}

/// What is cached of an author's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthorValue {
    /// Their number; or the number above the newest one's id, where 0 is none.
    pub number: u64,
    /// The number above their largest value, where that is shown; 0: there is none.
    pub largest: u64,
}

/// What a count shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTotal {
    /// The number of messages, or another number of them, and the largest value.
    pub total: AuthorValue,
    /// Each author, and what is known of their messages, where these are the rows.
    pub each: Vec<(u64, AuthorValue)>,
    /// How many authors they may be of.
    pub authors: usize,
    /// What it is the sum of.
    pub unit: CountUnit,
    /// The generation of the log.
    pub generation: u64,
}

/// What is not cached of a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountGaps {
    /// What the count is the sum of.
    pub unit: CountUnit,
    /// Authors without a number, ascending: all that may count.
    pub authors: Vec<u64>,
    /// Messages of which it is unknown whether they pass, and the author of each.
    pub messages: Vec<(u64, u64)>,
    /// How many authors there are.
    pub all_authors: usize,
    /// The authors of each list. `None`: unknown. `Some(None)`: it has too many authors to be cached.
    pub lists: Vec<Option<Option<ListedAuthors>>>,
    /// The generation of the log.
    pub generation: u64,
}

impl CountGaps {
    /// True if nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.authors.is_empty()
            && self.messages.is_empty()
            && self.lists.iter().all(Option::is_some)
    }
}

/// Numbers to cache, if nothing has changed since memory named the authors.
#[derive(Debug)]
pub struct CountFill {
    cache: Arc<CacheKeyTable>,
    key: Vec<u8>,
    /// The readers whose edges the server has read.
    pub readers: Vec<u64>,
    /// What is known of each author's messages.
    pub counts: Vec<(u64, AuthorValue)>,
    /// Messages, the author of each, and whether it passes.
    pub messages: Vec<(u64, u64, bool)>,
    /// The table of rows that are joined by the author.
    pub joined_tables: Arc<[TableId]>,
    /// The lists that were queried.
    pub lists: Vec<QueriedAuthorList>,
}

/// A count that is being answered.
#[derive(Debug)]
pub(super) struct CountQuery {
    request: Arc<FeedCountRequest>,
    /// How often memory was asked.
    attempts: u32,
}

/// What a sampled count was: of so many authors, the sum of this unit, in this generation of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountSample {
    bucket: AuthorCountBucket,
    unit: CountUnit,
    generation: u64,
}

/// How often what is missing is asked for, before the server answers.
const MAX_ATTEMPTS: u32 = 3;
/// The most that a count may take, relative to the server's own, whose numbers are asked for.
const MAX_FILL_COST: f64 = 1.25;
/// The most messages of a window that are asked for: a longer list of ids may become a derived table.
const MAX_COUNTED_MESSAGES: usize = 500;
/// The most authors whose messages are counted from memory.
pub const MAX_COUNTED_AUTHORS: usize = 10_000;

impl CountFill {
    /// The key of the authors' numbers.
    #[must_use]
    pub fn cache_key(&self) -> CacheKey {
        self.cache.cache_key(&self.key)
    }
}

/// True if the message counts, as far as is cached. `joined`: the tables of the rows that it depends on.
#[must_use]
pub fn cached_outcome(
    rows: &RowCache,
    of: (TimelineId, CacheKey),
    message: u64,
    joined: &[TableId],
) -> Option<bool> {
    rows.lookup_current(RowKey::message(of.0, message), of.1, joined, |row| {
        Some(row != CachedRow::FilteredOut)
    })
}

/// Caches the number of an author's messages.
pub fn cache_count(
    rows: &RowCache,
    of: (TimelineId, CacheKey),
    (author, value): (u64, AuthorValue),
    links: &[RowLink],
) {
    let AuthorValue { number, largest } = value;
    let bytes = u128::from(largest) << 64 | u128::from(number);
    let length = (128 - bytes.leading_zeros()).div_ceil(8) as usize;
    let bytes = bytes.to_le_bytes();
    let row = CachedRow::Row(bytes.get(..length).unwrap_or(&bytes));
    rows.insert(RowKey::author(of.0, author), of.1, row, links);
}

/// The cached number of an author's messages. `joined`: the tables of the rows that it depends on.
#[must_use]
pub fn cached_count(
    rows: &RowCache,
    of: (TimelineId, CacheKey),
    author: u64,
    joined: &[TableId],
) -> Option<AuthorValue> {
    rows.lookup_current(RowKey::author(of.0, author), of.1, joined, |row| {
        let CachedRow::Row(bytes) = row else {
            return None;
        };
        let mut value = [0; 16];
        value.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let (number, largest) = value.split_first_chunk::<8>()?;
        Some(AuthorValue {
            number: u64::from_le_bytes(*number),
            largest: u64::from_le_bytes(largest.try_into().ok()?),
        })
    })
}

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// Reads the values of a count.
    pub(super) fn count_query(
        &self,
        template: &Arc<Template>,
        statement: FeedStatement<'_>,
    ) -> Result<CountQuery, FeedRelayReason> {
        let request = self.count_request(template, statement)?;
        // Whether a message passes says nothing of its author's other messages, or of its other columns.
        let has_window = request.groups().is_none() && request.function().largest().is_none();
        let window = has_window.then(|| self.counted_window(template, statement));
        let request = FeedCountRequest {
            window: window.flatten(),
            ..request
        };
        Ok(CountQuery {
            request: Arc::new(request),
            attempts: 0,
        })
    }

    /// A request for the numbers of all of a statement's authors.
    pub(super) fn count_request(
        &self,
        template: &Arc<Template>,
        statement: FeedStatement<'_>,
    ) -> Result<FeedCountRequest, FeedRelayReason> {
        let authors = template.shape.bind_count(statement, template.types)?;
        let author_count = authors.authors.len() + authors.readers.len();
        if author_count > self.policy.list_authors {
            return Err(FeedRelayReason::TooMany);
        }
        let dependencies = template.shape.row_dependencies.as_ref();
        let dependencies = dependencies.ok_or(NarrowingRefusal::Count)?;
        let literals = dependencies.cache_key_literals_and_bounds(statement);
        let scope = literals.and_then(|literals| self.cache_scope_of(template, &literals));
        let scope =
            scope.and_then(|it| it.with_author_lists(template, statement, &authors.authors));
        let scope = scope.filter(|_| is_renderable(statement));
        let scope = scope.ok_or(NarrowingRefusal::Count)?;
        let lists = &dependencies.lists[..];
        let mut parameter_types = statement.types.to_vec();
        parameter_types.sort_unstable();
        parameter_types.dedup();
        let count = template.shape.count.as_ref();
        let groups = count.and_then(|count| count.groups.as_ref());
        Ok(FeedCountRequest {
            template: Arc::clone(template),
            readers: index_numbers(&authors.readers, template.types)?,
            authors: index_numbers(&authors.authors, template.types)?,
            copies: lists.iter().position(|list| list.copies),
            window: None,
            binary: self.executed.is_some(),
            parameter_types,
            part: match groups {
                Some(groups) => groups.part(statement).ok_or(NarrowingRefusal::Limit)?,
                None => (0, u64::MAX),
            },
            transaction_status: status::AUTOCOMMIT,
            scope,
        })
    }

    /// The messages of a count that says where they begin.
    fn counted_window(
        &self,
        template: &Template,
        statement: FeedStatement<'_>,
    ) -> Option<CountedWindow> {
        let window = template.shape.count_window(statement, template.types)?;
        let is_unfiltered = template.shape.row_dependencies.as_ref()?.is_unfiltered;
        let most = match is_unfiltered {
            true => self.policy.candidates,
            false => self.policy.candidates.min(MAX_COUNTED_MESSAGES),
        };
        let bounds = (window.lower, window.upper);
        Some(CountedWindow {
            range: index_range(bounds, template, most).ok()?,
            is_unfiltered,
            scope: self.cache_scope(template, statement)?,
        })
    }

    /// Begins to answer a count.
    pub(super) fn begin_count(
        &mut self,
        subject: ServedStatement,
        query: CountQuery,
    ) -> FeedTransition {
        let template = &subject.template;
        *self.begun = Some(self.now);
        let state = &self.session.state;
        let is_proved = state.has_recent_contact(self.now) && self.may_read_template(template);
        let in_snapshot = state.reads_a_snapshot();
        if is_proved && !in_snapshot {
            return Ok(request_count(subject, Box::new(query)));
        }
        let mut probes = Vec::new();
        if in_snapshot {
            // Whatever the statement reads after this is of the snapshot that the count would have opened.
            let message = quoted(&template.feed_names.message);
            probes.push(format!("SELECT 1 FROM {message} LIMIT 1"));
        }
        // No message has this author in a table of edges or messages that memory follows.
        let nobody = |statement: FeedStatement<'_>| {
            let (shape, names) = (&template.shape, &template.feed_names);
            shape.count_of_authors(statement, names, &[0])
        };
        probes.push(self.count_text(&subject, nobody)?);
        let probes = query_session(probes);
        Ok((FeedStage::ProvingCount(subject, Box::new(query)), probes))
    }

    /// The server has run the statement for nobody's messages, or has refused it.
    pub(super) fn count_proved(
        &mut self,
        subject: ServedStatement,
        mut query: Box<CountQuery>,
        answers: &[QueryReply],
    ) -> FeedTransition {
        for answer in answers {
            let QueryReply::Rows(rows) = answer else {
                return Err(FeedRelayReason::Failed);
            };
            self.session.state.observe(rows.end());
        }
        let flags = self.session.state.flags().ok_or(FeedRelayReason::Failed)?;
        Arc::make_mut(&mut query.request).transaction_status = flags & TRANSACTION_STATUS;
        let sent: Instant = self.begun.unwrap_or(self.now);
        let state = &mut self.session.state;
        state.note_server_contact(sent);
        let template = subject.template.row_cache.template;
        self.knowledge.account_rights().template_answered(
            state,
            template,
            self.policy.privileges_ttl,
            sent,
        );
        Ok(request_count(subject, query))
    }

    /// Memory has answered.
    pub(super) fn counted(
        &mut self,
        subject: ServedStatement,
        mut query: Box<CountQuery>,
        answer: CountAnswer,
    ) -> FeedTransition {
        if !self.is_certain() {
            return self.begin();
        }
        let (authors, unit, generation) = match &answer {
            CountAnswer::Total(counted) => (counted.authors, counted.unit, counted.generation),
            CountAnswer::Missing(gaps) => (gaps.all_authors, gaps.unit, gaps.generation),
            CountAnswer::Unavailable(reason) => return Err(*reason),
        };
        let template = Arc::clone(&subject.template);
        let bucket = AuthorCountBucket::of(authors);
        let envelope = query.request.envelope(unit, generation, bucket);
        let is_enveloped = envelope.is_some();
        let is_first = query.attempts == 0;
        let is_tried = is_enveloped && (!is_first || template.row_cache.should_try());
        match template.choose(bucket, self.plan_settings(), self.policy.always) {
            ExecutionChoice::Narrowed { .. } if is_tried => {}
            // What it costs to count authors anew is paid back by the counts after it.
            ExecutionChoice::Direct if is_tried && is_worthwhile(&template) => {}
            ExecutionChoice::Retired(retired) => return Err(FeedRelayReason::Retired(retired)),
            ExecutionChoice::Direct => return Err(FeedRelayReason::Cheaper),
            ExecutionChoice::Narrowed { .. } | ExecutionChoice::Sample => {
                let payload = self.original_payload();
                *self.begun = Some(self.now);
                let sample = CountSample {
                    bucket,
                    unit,
                    generation,
                };
                let sampling = FeedStage::SamplingCount(subject, query, sample);
                return Ok((sampling, FeedAction::Run(payload)));
            }
        }
        let gaps = match answer {
            CountAnswer::Total(counted) => {
                if !query.request.knows_order(&counted) {
                    return Err(FeedRelayReason::Ties);
                }
                let page = query.request.page(&counted);
                let page = page.ok_or(FeedRelayReason::Failed)?;
                let shown = (page, counted.total.number, is_first);
                return self.count_reply(&subject, &query, bucket, shown);
            }
            CountAnswer::Missing(gaps) => gaps,
            CountAnswer::Unavailable(reason) => return Err(reason),
        };
        query.attempts += 1;
        if query.attempts > MAX_ATTEMPTS {
            template.row_cache.record_attempt(false);
            template.record_failed_narrowing(bucket, self.microseconds());
            return Err(FeedRelayReason::Changed);
        }
        let queries = self.count_queries(&subject, &query.request, &gaps)?;
        self.session.state.note_server_contact(self.now);
        let querying = FeedStage::QueryingCounts(subject, query, gaps);
        Ok((querying, query_session(queries)))
    }

    /// The queries for what is missing: lists of authors, and then the numbers.
    pub(super) fn count_queries(
        &self,
        subject: &ServedStatement,
        request: &FeedCountRequest,
        gaps: &CountGaps,
    ) -> Result<Vec<String>, FeedRelayReason> {
        let template = &request.template;
        let each = request.lists().iter().zip(&gaps.lists);
        let unknown = each.filter(|(_, list)| list.is_none());
        let mut queries: Vec<String> = unknown.map(|(list, _)| list.text()).collect();
        if !gaps.authors.is_empty() {
            let (shape, names) = (&template.shape, &template.feed_names);
            let numbers = |of: FeedStatement<'_>| shape.count_by_author(of, names, &gaps.authors);
            queries.push(self.count_text(subject, numbers)?);
        }
        if !gaps.messages.is_empty() {
            let (shape, names) = (&template.shape, &template.feed_names);
            let ids: Vec<u64> = gaps.messages.iter().map(|(id, _)| *id).collect();
            let passing = |of: FeedStatement<'_>| shape.counted_messages(of, names, &ids);
            queries.push(self.count_text(subject, passing)?);
        }
        Ok(queries)
    }

    /// A text that is made of the statement and its values.
    fn count_text(
        &self,
        subject: &ServedStatement,
        make: impl FnOnce(FeedStatement<'_>) -> Option<String>,
    ) -> Result<String, FeedRelayReason> {
        let statement = FeedStatement {
            text: self.text().ok_or(FeedRelayReason::Failed)?,
            words: &subject.words,
            parameters: &self.parameters(subject)?,
            types: &self.parameter_types()?,
            utc_offset: self.session.state.utc_offset(),
        };
        Ok(make(statement).ok_or(NarrowingRefusal::Count)?)
    }

    /// The server has told what was missing.
    pub(super) fn take_counts(
        &mut self,
        subject: ServedStatement,
        query: Box<CountQuery>,
        gaps: &CountGaps,
        answers: Vec<QueryReply>,
    ) -> FeedTransition {
        let fill = self.count_fill(&query.request, gaps, answers)?;
        Ok((
            FeedStage::CachingCounts(subject, query),
            FeedAction::CacheCounts(Box::new(fill)),
        ))
    }

    /// What the server's replies to [`Self::count_queries`] tell.
    pub(super) fn count_fill(
        &mut self,
        request: &FeedCountRequest,
        gaps: &CountGaps,
        answers: Vec<QueryReply>,
    ) -> Result<CountFill, FeedRelayReason> {
        let mut answers = answers.into_iter();
        let (mut lists, mut known_lists) = (Vec::new(), Vec::new());
        for (list, known) in request.lists().iter().zip(&gaps.lists) {
            let mut reply: Option<AuthorListReply> = None;
            known_lists.push(match known {
                Some(known) => known.clone(),
                None => {
                    let answer = answers.next().ok_or(FeedRelayReason::Failed)?;
                    let read = list.read_reply(answer).ok_or(FeedRelayReason::Failed)?;
                    let listed = read.as_deref().map(|authors| list.rule.list_of(authors));
                    reply = Some(read);
                    listed
                }
            });
            lists.push(QueriedAuthorList {
                list: list.cache_key(&request.template, gaps.generation),
                reply,
            });
        }
        let passes = |author: &u64| {
            let mut lists = known_lists.iter();
            lists.all(|list| list.as_ref().is_some_and(|list| list.passes(*author)))
        };
        let mut counts = Vec::new();
        if !gaps.authors.is_empty() {
            let Some(QueryReply::Rows(rows)) = answers.next() else {
                return Err(FeedRelayReason::Failed);
            };
            self.session.state.observe(rows.end());
            // An id is cached as the number above it: 0 is none.
            let above = u64::from(request.function().is_of_ids());
            let count = request.template.shape.count.as_ref();
            let largest = count.and_then(CountShape::largest_kind);
            let orders = count.is_some_and(CountShape::has_newest_time);
            let value = |row: ResultRow<'_>| {
                let largest = match largest {
                    // The server may warn of a date that is none where it sorts by it.
                    Some(_) if orders && row.cell(2).is_some_and(|text| !is_date(text)) => {
                        return None;
                    }
                    Some(kind) => largest_number(kind, row.cell(2))?,
                    None => 0,
                };
                let number = row.u64(1)?.checked_add(above)?;
                Some((row.u64(0)?, AuthorValue { number, largest }))
            };
            let numbers: Option<HashMap<u64, AuthorValue>> = rows.iter().map(value).collect();
            let numbers = numbers.ok_or(FeedRelayReason::Failed)?;
            let number_of = |author: &u64| numbers.get(author).copied().unwrap_or_default();
            // The statement shows nothing of authors who do not pass a list.
            let passing = gaps.authors.iter().filter(|author| passes(author));
            counts = passing.map(|author| (*author, number_of(author))).collect();
        }
        let mut messages = Vec::new();
        if !gaps.messages.is_empty() {
            let Some(QueryReply::Rows(rows)) = answers.next() else {
                return Err(FeedRelayReason::Failed);
            };
            self.session.state.observe(rows.end());
            let passing: Option<HashSet<u64>> = rows.iter().map(|row| row.u64(0)).collect();
            let passing = passing.ok_or(FeedRelayReason::Failed)?;
            let listed = gaps.messages.iter().filter(|(_, author)| passes(author));
            messages = listed
                .map(|(id, author)| (*id, *author, passing.contains(id)))
                .collect();
        }
        Ok(CountFill {
            cache: Arc::clone(&request.template.row_cache),
            key: request.key_in(gaps.unit, gaps.generation),
            readers: request.readers.clone(),
            counts,
            messages,
            joined_tables: Arc::clone(&request.template.joined_tables),
            lists,
        })
    }

    /// The client gets the server's own reply; what surrounds its number is kept.
    pub(super) fn count_sampled(
        &mut self,
        subject: &ServedStatement,
        query: &CountQuery,
        sample: CountSample,
        reply: InternalReply,
    ) -> FeedTransition {
        let binary = self.executed.is_some();
        let function = query.request.function();
        let envelope = reply.bytes.as_deref().and_then(|bytes| {
            let parts = ResultSetParts::read(bytes, self.session.capabilities)?;
            let envelope = envelope_in_transaction(bytes, &parts)?;
            let formats = envelope_formats(&envelope, function)?;
            // The rows are as they would be made.
            let groups = query.request.groups();
            let columns = match (groups, function) {
                (Some(groups), _) => groups.columns.len(),
                (None, AggregateFunction::Largest(largest)) => largest.columns.number(),
                _ => 1,
            };
            let has_rows = groups.is_some() || parts.rows.len() <= 1;
            let is_alike = (has_rows && formats.len() == columns)
                && parts.rows.iter().all(|row| {
                    let row = bytes.get(row.clone()).unwrap_or_default();
                    is_row_of_values(row, &formats, binary)
                });
            is_alike.then_some(envelope)
        });
        let is_ok = matches!(&reply.outcome, Some(ReplyOutcome::Ok(ok)) if ok.warnings == 0);
        if let Some(envelope) = envelope.filter(|_| is_ok) {
            let status = envelope.status & TRANSACTION_STATUS;
            let key = query
                .request
                .envelope_key(sample.unit, sample.generation, status);
            let cache = &subject.template.row_cache;
            cache.record_envelope(&key, sample.bucket.number(), envelope);
        }
        self.sampled(subject, sample.bucket, None, reply)
    }

    fn count_reply(
        &mut self,
        subject: &ServedStatement,
        query: &CountQuery,
        bucket: AuthorCountBucket,
        ((page, envelope), total, was_cached): ((CachedPage, Arc<ResultEnvelope>), u64, bool),
    ) -> FeedTransition {
        // If the columns differ from those last sent for the client's own statement, the server sets a flag.
        if let Some(executed) = self.executed
            && executed.columns != envelope.columns
        {
            return Err(FeedRelayReason::Execution);
        }
        let is_one_row = query.request.groups().is_none();
        let aggregates = is_one_row
            && matches!(
                query.request.function(),
                AggregateFunction::Count
                    | AggregateFunction::Newest
                    | AggregateFunction::Largest(_)
            );
        // After a count of nothing, MariaDB's FOUND_ROWS() follows its plan, by which it may be the number of before: the server has to
        // know that. An execution's plan may be another than its text's.
        let is_planned = total == 0 && aggregates && self.session.probed_server(false).mariadb;
        let found = match is_planned {
            true if self.has_queried
                || self.executed.is_some()
                || self.session.tables.pending.is_some()
                || !self.session.may_leave_unseen() =>
            {
                return Err(FeedRelayReason::Cheaper);
            }
            true => UnseenSelect::Planned(self.count_text(subject, literal_text)?),
            false => UnseenSelect::FoundRows(page.found_rows),
        };
        let template = &subject.template;
        template.row_cache.record_attempt(true);
        match was_cached {
            true => template.record_cached_page(bucket, self.microseconds()),
            false => template.record_narrowed(bucket, self.microseconds(), true),
        }
        if let Some(executed) = self.executed {
            let statements = self.session.prepared_mut();
            statements.executed_locally(executed.statement);
        }
        if self.session.tables.pending.is_none() {
            self.session.set_unseen_select(found);
        }
        let (bytes, outcome) = page.reply(&envelope);
        let reply = FeedReply {
            from_cache: was_cached,
            ..FeedReply::narrowed(bytes, outcome)
        };
        Ok((FeedStage::Ended, FeedAction::Reply(reply)))
    }
}

/// The number above a value, by which values sort; 0 for NULL. `None`: it has none.
fn largest_number(kind: LargestKind, value: Option<&[u8]>) -> Option<u64> {
    let Some(text) = value else {
        return Some(0);
    };
    match kind {
        LargestKind::Id => std::str::from_utf8(text)
            .ok()?
            .parse::<u64>()
            .ok()?
            .checked_add(1),
        LargestKind::Moment { .. } => KeyType::Datetime(MAX_FRACTION_DIGITS).encode_text(text),
    }
}

fn is_date(text: &[u8]) -> bool {
    let moment = DatetimeValue::parse(text, MAX_FRACTION_DIGITS);
    moment.is_some_and(|moment| moment.day_number().is_some())
}

/// True where counts whose numbers are missing take little more than the server's own.
fn is_worthwhile(template: &Template) -> bool {
    let times = template.times();
    times.is_some_and(|(direct, filled)| filled <= direct * MAX_FILL_COST)
}

/// Asks memory for the count.
pub(super) fn request_count(
    subject: ServedStatement,
    query: Box<CountQuery>,
) -> (FeedStage, FeedAction) {
    let request = Arc::clone(&query.request);
    (
        FeedStage::Counting(subject, query),
        FeedAction::Count(request),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_cached_until_a_message_of_its_author_changes() {
        let rows = RowCache::new(1 << 20);
        let of = (TimelineId(3), CacheKey(5));
        let value = |number, largest| AuthorValue { number, largest };
        let cached = |author| cached_count(&rows, of, author, &[]);
        for (author, number, largest) in [
            (7, 0, 0),
            (8, 1, 0),
            (9, 300, 0),
            (10, u64::MAX, 0),
            (11, 0, 1),
            (12, 300, u64::MAX),
        ] {
            assert_eq!(cached(author), None);
            cache_count(&rows, of, (author, value(number, largest)), &[]);
            assert_eq!(cached(author), Some(value(number, largest)));
        }
        rows.invalidate(RowKey::message(of.0, 9));
        assert_eq!(cached(9), Some(value(300, 0)));
        rows.invalidate(RowKey::author(of.0, 9));
        assert_eq!(cached(9), None);
        let name = RowKey {
            table: TableId::Joined(1),
            id: 8,
        };
        let link = rows.link_to(name);
        cache_count(&rows, of, (8, value(5, 0)), &[link]);
        let joined = [TableId::Joined(1)];
        assert_eq!(cached_count(&rows, of, 8, &joined), Some(value(5, 0)));
        rows.invalidate(name);
        assert_eq!(cached_count(&rows, of, 8, &joined), None);
        rows.invalidate_table(TableId::Authors(TimelineId(3)));
        assert_eq!(cached_count(&rows, of, 7, &[]), None);
    }

    /// A record of 26 bytes, and 6 to 12 of the hash table; the last segments are not full.
    #[test]
    fn a_number_takes_48_bytes() {
        for authors in [
            100_000, 150_000, 200_000, 234_567, 300_000, 400_000, 450_000, 470_000, 500_000,
        ] {
            let rows = RowCache::new(64 << 20);
            for author in 0..authors {
                let value = AuthorValue {
                    number: author % 5_000,
                    largest: 0,
                };
                cache_count(&rows, (TimelineId(0), CacheKey(1)), (author, value), &[]);
            }
            assert_eq!(rows.cached_messages() as u64, authors);
            let bytes = rows.memory_bytes() as u64 / authors;
            assert!(bytes <= 48, "{bytes} of {authors}");
        }
    }
}
