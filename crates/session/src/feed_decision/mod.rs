//! The decision whether to narrow a feed's statement: a state machine that the driver steps until it ends.
//!
//! ```text
//! session -> template -> proofs -> values -> candidates -> the server's reply -> nothing has changed -> answer
//! ```
//!
//! Candidates come from memory without a proof that it is fresh. That proof comes last: if nothing about these authors and readers has
//! changed between the memory lookup and a moment after the server's reply, memory was right all the while, and the reply is consistent
//! with one moment.

mod author_list_queries;
mod cached_page;
mod candidate_query;
pub mod count;
mod count_request;
mod count_row;
mod execution;
mod feed_action;
mod feed_knowledge;
mod feed_relay_reason;
mod index_bounds;
mod metadata_sample;
pub mod metadata_samples;
mod named_execution;
mod newest;
mod plan_explanation;
mod proofs;
mod reply_metadata;
mod served_statement;
mod server_replies;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use headwater_feed::binding::{FeedPageRequest, FeedStatement, PostingRequest, index_numbers};
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::narrowed_text::{CandidateCondition as Among, NarrowingForm};
use headwater_feed::template::{ExecutionChoice, OutcomeCounters};
use headwater_feed::{NarrowingRefusal, Template};
use headwater_rows::template::ResultEnvelope;
use headwater_timeline::index::{KeyedMessage, MessageRange};
use headwater_wire::capability::Capabilities;
use headwater_wire::command;
use headwater_wire::reply::ReplyOutcome;
use headwater_wire::resultset::QueryReply;

pub use author_list_queries::AuthorListQuery;
pub use cached_page::CachedPageRequest;
use cached_page::FeedCacheScope;
use candidate_query::{CandidateQuery, candidate_request, padded};
pub use count::{
    AuthorValue, CountAnswer, CountFill, CountGaps, CountTotal, CountUnit, FeedCountRequest,
};
use count::{CountQuery, CountSample, request_count};
use execution::NarrowedExecution;
pub use execution::PrepareRequest;
pub use feed_action::{
    CandidateSelection, CandidateSet, FeedAction, FeedCandidateRequest, FeedInput, FeedReply,
    InternalReply,
};
pub use feed_knowledge::{FeedKnowledge, FeedPolicy, TemplateLookup};
pub use feed_relay_reason::FeedRelayReason;
use index_bounds::index_range;
pub use metadata_sample::MetadataSample;
use metadata_samples::{SampleKey, SampleWait};
use named_execution::NamedFeedExecution;
pub use newest::NewestRequest;
use proofs::MissingProofs;
use served_statement::ServedStatement;

use crate::author_lists::ListedAuthors;
use crate::cached_rows::{CacheFill, CachedPage};
use crate::call_decision::{INTERNAL_QUERY_LIMITS, INTERRUPTED, InternalQueries};
use crate::commands::CommandPhase;
use crate::prepared_statements::{FeedExecution, NamedExecution, PreparedFeed};

/// Longer lists become a range from the oldest candidate on. On MariaDB 600 took 4.4 ms as a list and 2.9 ms as a range.
const MAX_LISTED_CANDIDATES: usize = 400;

/// The decision about one statement.
#[derive(Debug)]
pub struct FeedDecision {
    payload: Vec<u8>,
    /// The execution, unless the statement is a text.
    executed: Option<FeedExecution>,
    named: Option<NamedFeedExecution>,
    policy: FeedPolicy,
    stage: FeedStage,
    begun: Option<Instant>,
    is_plain: bool,
    /// It has queried the session.
    has_queried: bool,
    template: Option<Arc<Template>>,
    /// The outcome counters, while it has no served template.
    tallies: Option<OutcomeCounters>,
}

#[derive(Debug)]
enum FeedStage {
    Begin,
    /// Queries the session's settings; it was last known to be in this database.
    Settings(ServedStatement, Vec<u8>),
    /// Queries the settings before an execution that is relayed for this reason.
    SettingsOfPrepare(FeedRelayReason),
    Proving(ServedStatement, MissingProofs),
    /// Runs a count for nobody's messages, to prove that the session may.
    ProvingCount(ServedStatement, Box<CountQuery>),
    /// Asks memory for a count.
    Counting(ServedStatement, Box<CountQuery>),
    /// Queries what memory lacks of it.
    QueryingCounts(ServedStatement, Box<CountQuery>, CountGaps),
    CachingCounts(ServedStatement, Box<CountQuery>),
    /// Runs the count itself, to sample it.
    SamplingCount(ServedStatement, Box<CountQuery>, CountSample),
    ReadingVariables(ServedStatement),
    RequestingCandidates(ServedStatement, CandidateQuery),
    /// Queries which messages are the newest of authors, where memory does not know.
    QueryingNewest(ServedStatement, CandidateQuery, CountGaps),
    CachingNewest(ServedStatement, CandidateQuery),
    Paging(
        ServedStatement,
        CandidateQuery,
        CandidateSet,
        Arc<ResultEnvelope>,
    ),
    /// Queries the server's plan of the statement.
    Explaining(
        ServedStatement,
        CandidateQuery,
        CandidateSet,
        ExecutionChoice,
    ),
    /// Runs the statement itself, to sample it.
    Sampling(ServedStatement, AuthorCountBucket, CandidateQuery),
    Preparing(
        ServedStatement,
        CandidateQuery,
        ChosenCandidates,
        NarrowedExecution,
    ),
    QueryingLists(
        ServedStatement,
        CandidateQuery,
        CandidateSet,
        ExecutionChoice,
    ),
    Running(ServedStatement, CandidateQuery, ChosenCandidates),
    /// Waits for the sample of another statement of its kind.
    AwaitingSample(ServedStatement, CandidateQuery),
    CheckingUnchanged(ServedStatement, CandidateQuery, ChosenCandidates, FeedReply),
    Ended,
}

#[derive(Debug)]
struct ChosenCandidates {
    bucket: AuthorCountBucket,
    count: usize,
    exhaustive: bool,
    tied: bool,
    /// The internal statement that is executed with them.
    internal_statement: Option<u32>,
    /// The candidate set, where rows may be cached.
    cacheable: Option<CandidateSet>,
}

type FeedTransition = Result<(FeedStage, FeedAction), FeedRelayReason>;

/// What a stage has access to.
struct FeedContext<'a, K> {
    payload: &'a [u8],
    executed: Option<&'a FeedExecution>,
    named: Option<&'a mut NamedFeedExecution>,
    policy: FeedPolicy,
    begun: &'a mut Option<Instant>,
    is_plain: &'a mut bool,
    has_queried: bool,
    template: &'a mut Option<Arc<Template>>,
    tallies: &'a mut Option<OutcomeCounters>,
    session: &'a mut CommandPhase,
    knowledge: &'a K,
    now: Instant,
}

impl FeedDecision {
    /// Begins with a statement whose packet waits.
    #[must_use]
    pub fn new(payload: Vec<u8>, policy: FeedPolicy) -> FeedDecision {
        FeedDecision {
            payload,
            executed: None,
            named: None,
            policy,
            stage: FeedStage::Begin,
            begun: None,
            is_plain: false,
            has_queried: false,
            template: None,
            tallies: None,
        }
    }

    /// As [`FeedDecision::new`], for an execution of a prepared statement.
    #[must_use]
    pub fn of_execution(
        payload: Vec<u8>,
        executed: FeedExecution,
        policy: FeedPolicy,
    ) -> FeedDecision {
        FeedDecision {
            executed: Some(executed),
            ..FeedDecision::new(payload, policy)
        }
    }

    /// As [`FeedDecision::new`], for an execution by name.
    #[must_use]
    pub fn of_named(
        payload: Vec<u8>,
        executed: NamedExecution,
        policy: FeedPolicy,
    ) -> FeedDecision {
        FeedDecision {
            named: Some(NamedFeedExecution::new(executed)),
            ..FeedDecision::new(payload, policy)
        }
    }

    /// The client's prepared statement, if this is an execution.
    #[must_use]
    pub fn statement(&self) -> Option<u32> {
        self.executed.as_ref().map(|executed| executed.statement)
    }

    /// True while it waits for the server's own reply, to sample it.
    #[must_use]
    pub fn is_sampling(&self) -> bool {
        matches!(
            self.stage,
            FeedStage::Sampling(..) | FeedStage::SamplingCount(..)
        )
    }

    /// True while it waits for what memory lacks of a count.
    #[must_use]
    pub fn is_querying_counts(&self) -> bool {
        matches!(
            self.stage,
            FeedStage::QueryingCounts(..) | FeedStage::QueryingNewest(..)
        )
    }

    /// True while it waits for the session's settings, before memory is asked.
    #[must_use]
    pub fn is_querying_settings(&self) -> bool {
        matches!(self.stage, FeedStage::Settings(..))
    }

    /// The statement's text.
    #[must_use]
    pub fn text(&self, capabilities: Capabilities) -> Option<&[u8]> {
        let prepared = prepared(self.executed.as_ref(), self.named.as_ref());
        text(&self.payload, prepared, capabilities)
    }

    /// Its template, once known.
    #[must_use]
    pub fn template(&self) -> Option<&Template> {
        self.template.as_deref()
    }

    /// Counts its outcome, for its template and its feed.
    pub fn count(&self, outcome: &'static str) {
        match (&self.template, &self.tallies) {
            (Some(template), _) => template.count_outcome(outcome),
            (None, Some(tallies)) => tallies.add(outcome),
            (None, None) => {}
        }
    }

    /// True once it is proved that the statement only reads rows of plain tables, so that it leaves nothing in its session but what every
    /// SELECT leaves.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Takes the input that was requested, and returns the next action.
    pub fn next(
        &mut self,
        input: FeedInput,
        session: &mut CommandPhase,
        knowledge: &impl FeedKnowledge,
        now: Instant,
    ) -> FeedAction {
        let stage = std::mem::replace(&mut self.stage, FeedStage::Ended);
        let mut context = FeedContext {
            payload: &self.payload,
            executed: self.executed.as_ref(),
            named: self.named.as_mut(),
            policy: self.policy,
            begun: &mut self.begun,
            is_plain: &mut self.is_plain,
            has_queried: self.has_queried,
            template: &mut self.template,
            tallies: &mut self.tallies,
            session,
            knowledge,
            now,
        };
        match stage.handle(input, &mut context) {
            Ok((stage, need)) => {
                self.has_queried |= need.reaches_session();
                self.stage = stage;
                need
            }
            Err(reason) => FeedAction::Relay(reason),
        }
    }
}

impl FeedStage {
    fn handle<K: FeedKnowledge>(
        self,
        input: FeedInput,
        context: &mut FeedContext<'_, K>,
    ) -> FeedTransition {
        match (self, input) {
            (FeedStage::Begin, FeedInput::Begin) => context.begin(),
            (FeedStage::Settings(subject, database), FeedInput::Answers(answers)) => {
                context.take_settings(answers.first())?;
                context.is_in(&database)?;
                context.prove(subject)
            }
            (FeedStage::SettingsOfPrepare(reason), FeedInput::Answers(answers)) => {
                context.take_settings_of_prepare(answers.first())?;
                Err(reason)
            }
            (FeedStage::Proving(subject, unproved), FeedInput::Answers(answers)) => {
                context.take_proofs(&subject, unproved, answers)?;
                context.read_variables(subject)
            }
            (FeedStage::ProvingCount(subject, query), FeedInput::Answers(answers)) => {
                context.count_proved(subject, query, &answers)
            }
            (FeedStage::Counting(subject, query), FeedInput::Count(answer)) => {
                context.counted(subject, query, answer)
            }
            (FeedStage::QueryingCounts(subject, query, gaps), FeedInput::Answers(answers)) => {
                context.take_counts(subject, query, &gaps, answers)
            }
            (FeedStage::CachingCounts(subject, query), FeedInput::CountsCached) => {
                Ok(request_count(subject, query))
            }
            (FeedStage::SamplingCount(subject, query, sample), FeedInput::Reply(reply)) => {
                context.count_sampled(&subject, &query, sample, reply)
            }
            (FeedStage::SamplingCount(..), FeedInput::Unchanged(_)) => {
                if let Some(executed) = context.executed {
                    let statements = context.session.prepared_mut();
                    statements.relay_cancelled(executed.statement);
                }
                Err(FeedRelayReason::Changed)
            }
            (FeedStage::ReadingVariables(subject), FeedInput::Answers(answers)) => {
                context.take_values(&subject, answers.first())?;
                context.request_candidates(subject)
            }
            (FeedStage::RequestingCandidates(subject, query), FeedInput::Candidates(found)) => {
                context.candidates_received(subject, query, found?)
            }
            (FeedStage::QueryingNewest(subject, query, gaps), FeedInput::Answers(answers)) => {
                context.take_newest(subject, query, &gaps, answers)
            }
            (FeedStage::CachingNewest(subject, query), FeedInput::CountsCached) => {
                Ok(candidate_request(subject, query))
            }
            (FeedStage::Paging(subject, query, found, frame), FeedInput::CachedPage(paged)) => {
                context.page_made(subject, query, found, &frame, paged)
            }
            (
                FeedStage::QueryingLists(subject, mut query, found, choice),
                FeedInput::Answers(answers),
            ) => {
                query.take_list_replies(&found, answers);
                context.execute_choice(subject, query, found, choice)
            }
            (FeedStage::Explaining(subject, query, found, choice), FeedInput::Answers(answers)) => {
                context.explained(subject, query, found, choice, answers)
            }
            (FeedStage::Sampling(subject, bucket, query), FeedInput::Reply(reply)) => {
                let plan = query.plan.clone();
                let transition = context.sampled(&subject, bucket, plan, reply);
                if let Some(samples) = context.knowledge.metadata_samples() {
                    let (template, settings) = (&subject.template, context.plan_settings());
                    let is_recorded = template.has_sampled(bucket, settings);
                    samples.end(
                        SampleKey::new(template, bucket, settings),
                        is_recorded,
                        context.now,
                    );
                }
                let is_page = matches!(
                    &transition,
                    Ok((_, FeedAction::Reply(reply))) if matches!(reply.outcome, ReplyOutcome::Ok(_))
                );
                match is_page && context.is_reordered(&subject, bucket) {
                    true => {
                        *context.begun = None;
                        Ok(candidate_request(subject, query))
                    }
                    false => transition,
                }
            }
            // The sample may not be of this table.
            (FeedStage::Sampling(subject, bucket, _), FeedInput::Unchanged(_)) => {
                if let Some(samples) = context.knowledge.metadata_samples() {
                    let of = SampleKey::new(&subject.template, bucket, context.plan_settings());
                    samples.end(of, false, context.now);
                }
                if let Some(executed) = context.executed {
                    context
                        .session
                        .prepared_mut()
                        .relay_cancelled(executed.statement);
                }
                Err(FeedRelayReason::Changed)
            }
            (FeedStage::Preparing(subject, query, candidates, plan), FeedInput::Reply(reply)) => {
                context.narrowed_prepared(subject, query, candidates, plan, reply)
            }
            (FeedStage::Running(subject, query, candidates), FeedInput::Reply(reply)) => {
                context.narrowed_ran(subject, query, candidates, reply)
            }
            (FeedStage::AwaitingSample(subject, query), FeedInput::SampleAwaited) => {
                // The time of a sample is no cost of narrowing.
                *context.begun = None;
                Ok(candidate_request(subject, query))
            }
            (
                FeedStage::CheckingUnchanged(subject, query, candidates, feed_reply),
                FeedInput::Unchanged(unchanged),
            ) => context.changes_checked(subject, query, &candidates, feed_reply, unchanged),
            // Only a driver that sends the wrong input gets here.
            _ => Err(FeedRelayReason::Failed),
        }
    }
}

/// A statement's text: that of its packet, or the prepared one.
fn text<'a>(
    payload: &'a [u8],
    prepared: Option<&'a PreparedFeed>,
    capabilities: Capabilities,
) -> Option<&'a [u8]> {
    if let Some(prepared) = prepared {
        return Some(prepared.text());
    }
    payload.get(command::query_text_range(payload, capabilities)?)
}

fn prepared<'a>(
    executed: Option<&'a FeedExecution>,
    named: Option<&'a NamedFeedExecution>,
) -> Option<&'a PreparedFeed> {
    let of_named = named.map(|named| &*named.executed.feed);
    executed.map(|executed| &*executed.feed).or(of_named)
}

impl<K: FeedKnowledge> FeedContext<'_, K> {
    fn text(&self) -> Option<&[u8]> {
        let prepared = prepared(self.executed, self.named.as_deref());
        text(self.payload, prepared, self.session.capabilities)
    }

    /// Reads the statement's values, and requests candidates from memory.
    fn request_candidates(&mut self, subject: ServedStatement) -> FeedTransition {
        *self.is_plain = true;
        let text = self.text().ok_or(FeedRelayReason::Failed)?;
        let template = &subject.template;
        // A prepared text was read in the mode of its time.
        let is_prepared = self.executed.is_some() || self.named.is_some();
        if subject.words.has_double_quotes && (is_prepared || self.session.state.quotes_names()) {
            return Err(NarrowingRefusal::NotUnderstood.into());
        }
        let ahead = self.session.state.utc_offset();
        // MySQL may sort by the session's local time, and both servers compare that by row, but UTC by index: in the hour that occurs
        // twice, order and result depend on the plan.
        if template.depends_on_time_zone() && ahead.is_none() {
            return Err(FeedRelayReason::TimeZone);
        }
        if self.is_planned(template) && !self.is_explainable(template) {
            return Err(FeedRelayReason::ColumnsUnsure);
        }
        // The column definitions of a SELECT in FROM depend on how often it was executed.
        if template.shape.derived && (self.executed.is_some() || self.named.is_some()) {
            return Err(FeedRelayReason::Execution);
        }
        let statement = FeedStatement {
            text,
            words: &subject.words,
            parameters: &self.parameters(&subject)?,
            types: &self.parameter_types()?,
            utc_offset: ahead,
        };
        // MySQL compares a parameter by its earlier types: a variable's, too, in an execution that Headwater may not have read.
        let is_mysql = !self.session.probed_server(false).mariadb;
        let unknown = self.named.as_deref().filter(|_| is_mysql);
        let has_turned = self
            .executed
            .is_some_and(|executed| executed.has_turned_text);
        let may_have_turned = has_turned || unknown.is_some();
        if may_have_turned && template.shape.compares_text(statement)
            || unknown.is_some_and(NamedFeedExecution::has_large_number)
        {
            return Err(FeedRelayReason::Execution);
        }
        if template.shape.count.is_some() {
            let query = self.count_query(template, statement)?;
            return self.begin_count(subject, query);
        }
        let request = template.shape.bind(statement, template.types)?;
        if let Some(list) = &template.shape.id_list {
            let ids = list.bind(statement, template.types)?;
            let query = self.listed_query(template, statement, request, ids)?;
            return Ok(candidate_request(subject, query));
        }
        if template.shape.newest.is_some() {
            let query = self.newest_query(template, statement, request)?;
            return Ok(candidate_request(subject, query));
        }
        let rows = request.limit.saturating_add(request.offset);
        let wanted = usize::try_from(rows).unwrap_or(usize::MAX);
        let postings = template.bind_postings(statement)?;
        let each = postings
            .iter()
            .map(|posting| posting.authors.len() + posting.readers.len());
        let author_count = request.authors.len() + request.readers.len() + each.sum::<usize>();
        if wanted > self.policy.candidates || author_count > self.policy.list_authors {
            return Err(FeedRelayReason::TooMany);
        }
        let limit = template.candidates(wanted, self.policy.candidates);
        let range = index_range((request.lower, request.upper), template, limit)?;
        let keeping = self.cache_scope(template, statement);
        let keeping =
            keeping.and_then(|it| it.with_author_lists(template, statement, &request.authors));
        let request = FeedPageRequest {
            readers: index_numbers(&request.readers, template.types)?,
            authors: index_numbers(&request.authors, template.types)?,
            ..request
        };
        let query = CandidateQuery {
            bound: request,
            postings,
            selection: CandidateSelection::Range,
            rows_needed: wanted,
            range,
            retakes: 0,
            plan: None,
            was_short: false,
            cache_scope: keeping.map(Box::new),
            list_replies: Vec::new(),
        };
        Ok(candidate_request(subject, query))
    }

    /// True if the statement is narrowed whatever it costs. A page with the server's order of ties between others would repeat or omit
    /// messages.
    fn always_narrows(&self, template: &Template) -> bool {
        self.policy.always || template.shape.orders_messages()
    }

    /// True if the client gets the narrowed reply after the server's own was sampled: only that has the feed's order of ties.
    fn is_reordered(&self, subject: &ServedStatement, bucket: AuthorCountBucket) -> bool {
        let template = &subject.template;
        template.shape.orders_ties()
            && template.has_sampled(bucket, self.plan_settings())
            && !template.is_retired()
    }

    /// True while the session's proofs hold. A doubt, which occurs once per statement, has everything proved again.
    fn is_certain(&self) -> bool {
        self.session.state.are_settings_proven()
    }

    fn candidates_received(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        mut candidates: CandidateSet,
    ) -> FeedTransition {
        if let Some(gaps) = candidates.gaps.take() {
            return self.query_newest(subject, query, *gaps);
        }
        // The server itself chooses the order of messages that share a key.
        let is_few = candidates.ids.len() < query.rows_needed;
        if candidates.tied && is_few {
            return Err(FeedRelayReason::Ties);
        }
        // Messages of one key, of which not all were named, are left out.
        if !candidates.exhaustive && is_few {
            let range = self.widened(&query).ok_or(FeedRelayReason::Filtered)?;
            let query = CandidateQuery {
                range,
                was_short: true,
                ..query
            };
            return Ok(candidate_request(subject, query));
        }
        // Memory loads missing data only once: that is no cost of narrowing.
        self.begun.get_or_insert(self.now);
        if let Some(page_request) = self.cached_page_request(&subject, &query, &candidates) {
            let frame = Arc::clone(&page_request.envelope);
            let paging = FeedStage::Paging(subject, query, candidates, frame);
            return Ok((paging, FeedAction::Page(Box::new(page_request))));
        }
        self.query_server(subject, query, candidates)
    }

    /// Chooses how to query the server.
    fn query_server(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: CandidateSet,
    ) -> FeedTransition {
        if !self.is_certain() {
            return self.begin();
        }
        self.session.state.note_server_contact(self.now);
        let bucket = AuthorCountBucket::of(candidates.authors);
        let of = SampleKey::new(&subject.template, bucket, self.plan_settings());
        // A statement that is relayed unchanged may yield no sample: none waits for it.
        if let Some(samples) = self.knowledge.metadata_samples()
            && !self.caches_columns()
            && !subject.template.has_sampled(bucket, self.plan_settings())
            && !samples.begin(of, self.now)
        {
            let template = Arc::clone(&subject.template);
            let awaits = SampleWait { template, key: of };
            return Ok((
                FeedStage::AwaitingSample(subject, query),
                FeedAction::AwaitSample(awaits),
            ));
        }
        let choice = subject.template.choose(
            bucket,
            self.plan_settings(),
            self.always_narrows(&subject.template),
        );
        let goes_on = matches!(
            choice,
            ExecutionChoice::Sample | ExecutionChoice::Narrowed { .. }
        );
        let is_planned = self.is_planned(&subject.template);
        match goes_on && is_planned && query.plan.is_none() {
            true => self.explain(subject, query, candidates, choice),
            false => self.execute_choice(subject, query, candidates, choice),
        }
    }

    fn execute_choice(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidate_set: CandidateSet,
        choice: ExecutionChoice,
    ) -> FeedTransition {
        let bucket = AuthorCountBucket::of(candidate_set.authors);
        let template = &subject.template;
        let buffered = match choice {
            ExecutionChoice::Narrowed { buffered } if self.knows_columns(template, bucket) => {
                buffered
            }
            ExecutionChoice::Narrowed { .. } | ExecutionChoice::Sample if self.caches_columns() => {
                let of = Arc::clone(template);
                let sample = MetadataSample::new(of, bucket, self.plan_settings(), self.now);
                return Ok((FeedStage::Ended, FeedAction::RelaySampled(sample)));
            }
            ExecutionChoice::Narrowed { .. } | ExecutionChoice::Sample => {
                let payload = self.original_payload();
                *self.begun = Some(self.now);
                let learning = FeedStage::Sampling(subject, bucket, query);
                return Ok((learning, FeedAction::Run(payload)));
            }
            ExecutionChoice::Direct => return Err(FeedRelayReason::Cheaper),
            ExecutionChoice::Retired(retired) => return Err(FeedRelayReason::Retired(retired)),
        };
        let buffered = match &query.plan {
            Some(plan) => template.is_buffered(self.plan_settings(), plan),
            None => buffered,
        };
        let queries = query.list_queries(template, &candidate_set);
        if !queries.is_empty() {
            let listing = FeedStage::QueryingLists(subject, query, candidate_set, choice);
            return Ok((listing, query_session(queries)));
        }
        let replaces_list =
            template.shape.replaceable_list.is_some() && candidate_set.ids.len() > 1;
        let form = NarrowingForm {
            replaces_list,
            buffered,
        };
        let ids = padded(&candidate_set, template);
        let candidates = ChosenCandidates {
            bucket,
            count: candidate_set.ids.len(),
            exhaustive: candidate_set.exhaustive,
            tied: candidate_set.tied,
            internal_statement: None,
            cacheable: query.cache_scope.is_some().then(|| candidate_set.clone()),
        };
        if let Some(executed) = self.executed {
            return self.run_prepared(executed, subject, query, candidates, ids, form);
        }
        let text = self.text().ok_or(FeedRelayReason::Failed)?;
        let (shape, words, names) = (&template.shape, &subject.words, &template.feed_names);
        if let Some(named) = self.named.as_deref() {
            let open = shape.narrow_prepared(text, words, names, ids.len(), form);
            let narrowed = open.and_then(|open| named.with_values(&open, &ids));
            let payload = self.query(&narrowed.ok_or(NarrowingRefusal::NotUnderstood)?)?;
            let running = FeedStage::Running(subject, query, candidates);
            return Ok((running, FeedAction::Run(payload)));
        }
        let oldest = candidate_set.ids.last().filter(|_| {
            // An author list that stays in the statement costs more.
            let may_be_range = !replaces_list && names.key.is_none() && query.is_of_range();
            ids.len() > MAX_LISTED_CANDIDATES && may_be_range
        });
        let selected = oldest.map_or(Among::Ids(&ids), |oldest| Among::From(*oldest));
        // Without enough candidates, a page within another SELECT is empty.
        let whole_page = (shape.page_in_outer.is_some() && !candidate_set.exhaustive)
            .then_some(query.rows_needed as u64);
        let narrowed = shape.narrow(text, words, names, (selected, whole_page), form);
        let narrowed = narrowed.ok_or(NarrowingRefusal::NotUnderstood)?;
        let payload = self.query(&narrowed)?;
        Ok((
            FeedStage::Running(subject, query, candidates),
            FeedAction::Run(payload),
        ))
    }

    fn query(&self, text: &[u8]) -> Result<Vec<u8>, FeedRelayReason> {
        let payload = command::with_query_text(self.payload, self.session.capabilities, text);
        payload.ok_or(FeedRelayReason::Failed)
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean of times")]
    fn microseconds(&self) -> f64 {
        let begun = self.begun.unwrap_or(self.now);
        self.now.saturating_duration_since(begun).as_micros() as f64
    }
}

fn query_session(queries: Vec<String>) -> FeedAction {
    FeedAction::Query(InternalQueries {
        queries,
        limits: INTERNAL_QUERY_LIMITS,
        reads: false,
    })
}
