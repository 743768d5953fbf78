//! The decision to narrow a feed's statement: one machine, asked until it has an end.
//!
//! ```text
//! session -> template -> proofs -> values -> candidates -> the server's answer -> nothing has changed -> answer
//! ```
//!
//! Candidates come from memory as it is, without a proof that it is up to date. That comes last: if nothing about these authors and
//! readers has changed from the look into memory to a moment behind the server's answer, memory was right all the while, and the
//! answer is that of one moment.

mod author_list_queries;
mod cached_page;
mod execution;
mod feed_action;
mod feed_knowledge;
mod feed_relay_reason;
mod index_bounds;
mod metadata_sample;
pub mod metadata_samples;
mod named_execution;
mod plan_explanation;
mod proofs;
mod reply_metadata;
mod served_statement;
mod server_replies;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use headwater_feed::binding::{FeedPageRequest, FeedStatement};
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::narrowed_text::{CandidateCondition as Among, NarrowingForm};
use headwater_feed::result_metadata::{PlanSettings, ServerPlan};
use headwater_feed::template::{ExecutionChoice, OutcomeCounters};
use headwater_feed::{NarrowingRefusal, Template};
use headwater_rows::template::ResultEnvelope;
use headwater_timeline::KeyType;
use headwater_timeline::index::{KeyedMessage, MessageRange};
use headwater_wire::capability::Capabilities;
use headwater_wire::command;
use headwater_wire::reply::ReplyOutcome;
use headwater_wire::resultset::QueryReply;

pub use author_list_queries::AuthorListQuery;
pub use cached_page::CachedPageRequest;
use cached_page::FeedCacheScope;
use execution::NarrowedExecution;
pub use execution::PrepareRequest;
pub use feed_action::{
    CandidateSet, FeedAction, FeedCandidateRequest, FeedInput, FeedReply, InternalReply,
};
pub use feed_knowledge::{FeedKnowledge, FeedPolicy, TemplateLookup};
pub use feed_relay_reason::FeedRelayReason;
use index_bounds::{index_numbers, index_range};
pub use metadata_sample::MetadataSample;
use metadata_samples::{SampleKey, SampleWait};
use named_execution::NamedFeedExecution;
use proofs::MissingProofs;
use served_statement::ServedStatement;

use crate::author_lists::ListedAuthors;
use crate::cached_rows::{CacheFill, CachedPage};
use crate::call_decision::{INTERNAL_QUERY_LIMITS, INTERRUPTED, InternalQueries};
use crate::commands::CommandPhase;
use crate::prepared_statements::{FeedExecution, NamedExecution, PreparedFeed};

/// More candidates are not listed, but all messages from the oldest one on: on MariaDB 600 took 4.4 ms as a list and 2.9 ms so.
const MAX_LISTED_CANDIDATES: usize = 400;

/// The decision about one statement.
#[derive(Debug)]
pub struct FeedDecision {
    payload: Vec<u8>,
    /// It is no text, but an execution of one.
    executed: Option<FeedExecution>,
    /// It is an execution by a name.
    named: Option<NamedFeedExecution>,
    policy: FeedPolicy,
    stage: FeedStage,
    begun: Option<Instant>,
    is_plain: bool,
    template: Option<Arc<Template>>,
    /// Where it is counted, while it has no template that is served.
    tallies: Option<OutcomeCounters>,
}

/// Where a decision stands.
#[derive(Debug)]
enum FeedStage {
    Begin,
    /// The session is asked for its settings; it was taken to be in this database.
    Settings(ServedStatement, Vec<u8>),
    /// The session is asked for the rest.
    Proving(ServedStatement, MissingProofs),
    /// The session is asked for the values of variables.
    ReadingVariables(ServedStatement),
    /// Memory is asked.
    RequestingCandidates(ServedStatement, CandidateQuery),
    /// A page is made of kept rows.
    Paging(
        ServedStatement,
        CandidateQuery,
        CandidateSet,
        Arc<ResultEnvelope>,
    ),
    /// The server says how it would go about the statement.
    Explaining(
        ServedStatement,
        CandidateQuery,
        CandidateSet,
        ExecutionChoice,
    ),
    /// The statement itself runs, to be learned from.
    Sampling(ServedStatement, AuthorCountBucket, Option<ServerPlan>),
    /// The narrowed one is prepared.
    Preparing(
        ServedStatement,
        CandidateQuery,
        ChosenCandidates,
        NarrowedExecution,
    ),
    /// It is asked for lists of authors.
    QueryingLists(
        ServedStatement,
        CandidateQuery,
        CandidateSet,
        ExecutionChoice,
    ),
    /// The narrowed one runs.
    Running(ServedStatement, CandidateQuery, ChosenCandidates),
    /// Another one of its kind is on its way, from which is learned what this one needs.
    AwaitingSample(ServedStatement, CandidateQuery),
    /// It is asked whether anything has changed.
    CheckingUnchanged(ServedStatement, CandidateQuery, ChosenCandidates, FeedReply),
    Ended,
}

/// What a statement asks for, and how often candidates were taken for it.
#[derive(Debug)]
struct CandidateQuery {
    bound: FeedPageRequest,
    rows_needed: usize,
    range: MessageRange<KeyedMessage>,
    retakes: u32,
    /// How the server would go about it, where that has been asked.
    plan: Option<ServerPlan>,
    /// Candidates did not suffice at first.
    was_short: bool,
    /// Under what rows are kept, if they may be.
    cache_scope: Option<Box<FeedCacheScope>>,
    /// What the server said of each list, where it was asked.
    list_replies: Vec<Option<crate::cached_rows::AuthorListReply>>,
}

impl CandidateQuery {
    fn request(&self, subject: &ServedStatement) -> FeedCandidateRequest {
        FeedCandidateRequest {
            template: Arc::clone(&subject.template),
            readers: self.bound.readers.clone(),
            authors: self.bound.authors.clone(),
            range: self.range,
            untied: subject.template.shape.ties,
            lists: self
                .cache_scope
                .as_ref()
                .map_or(Vec::new(), |it| it.lists.clone()),
        }
    }
}

/// Candidates in use.
#[derive(Debug)]
struct ChosenCandidates {
    bucket: AuthorCountBucket,
    count: usize,
    exhaustive: bool,
    tied: bool,
    /// The statement of Headwater's own that is executed with them.
    internal_statement: Option<u32>,
    /// Which they are, where rows may be kept.
    cacheable: Option<CandidateSet>,
}

type FeedTransition = Result<(FeedStage, FeedAction), FeedRelayReason>;

/// What a stage looks at.
struct FeedContext<'a, K> {
    payload: &'a [u8],
    executed: Option<&'a FeedExecution>,
    named: Option<&'a mut NamedFeedExecution>,
    policy: FeedPolicy,
    begun: &'a mut Option<Instant>,
    is_plain: &'a mut bool,
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
            template: None,
            tallies: None,
        }
    }

    /// The same with an execution of a statement that was prepared.
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

    /// The same with an execution by a name.
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

    /// The client's statement that is executed, if it is an execution.
    #[must_use]
    pub fn statement(&self) -> Option<u32> {
        self.executed.as_ref().map(|executed| executed.statement)
    }

    /// True where the server's own answer is awaited, to be learned from.
    #[must_use]
    pub fn is_sampling(&self) -> bool {
        matches!(self.stage, FeedStage::Sampling(..))
    }

    /// The statement's text.
    #[must_use]
    pub fn text(&self, capabilities: Capabilities) -> Option<&[u8]> {
        let prepared = prepared(self.executed.as_ref(), self.named.as_ref());
        text(&self.payload, prepared, capabilities)
    }

    /// Its template, once that is known.
    #[must_use]
    pub fn template(&self) -> Option<&Template> {
        self.template.as_deref()
    }

    /// Counts what became of it, for its template and its feed.
    pub fn count(&self, what: &'static str) {
        match (&self.template, &self.tallies) {
            (Some(template), _) => template.count_outcome(what),
            (None, Some(tallies)) => tallies.add(what),
            (None, None) => {}
        }
    }

    /// True once it is proved that the statement reads rows of plain tables and does nothing else, so that it leaves nothing in its
    /// session but what each SELECT does.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Takes in what was needed, and says what is needed next.
    pub fn next(
        &mut self,
        input: FeedInput,
        session: &mut CommandPhase,
        known: &impl FeedKnowledge,
        now: Instant,
    ) -> FeedAction {
        let stage = std::mem::replace(&mut self.stage, FeedStage::Ended);
        let mut world = FeedContext {
            payload: &self.payload,
            executed: self.executed.as_ref(),
            named: self.named.as_mut(),
            policy: self.policy,
            begun: &mut self.begun,
            is_plain: &mut self.is_plain,
            template: &mut self.template,
            tallies: &mut self.tallies,
            session,
            knowledge: known,
            now,
        };
        match stage.handle(input, &mut world) {
            Ok((stage, need)) => {
                self.stage = stage;
                need
            }
            Err(why) => FeedAction::Relay(why),
        }
    }
}

impl FeedStage {
    fn handle<K: FeedKnowledge>(
        self,
        input: FeedInput,
        world: &mut FeedContext<'_, K>,
    ) -> FeedTransition {
        match (self, input) {
            (FeedStage::Begin, FeedInput::Begin) => world.begin(),
            (FeedStage::Settings(subject, database), FeedInput::Answers(answers)) => {
                world.take_settings(answers.first())?;
                world.is_in(&database)?;
                world.prove(subject)
            }
            (FeedStage::Proving(subject, unproved), FeedInput::Answers(answers)) => {
                world.take_proofs(&subject, unproved, answers)?;
                world.read_variables(subject)
            }
            (FeedStage::ReadingVariables(subject), FeedInput::Answers(answers)) => {
                world.take_values(&subject, answers.first())?;
                world.request_candidates(subject)
            }
            (FeedStage::RequestingCandidates(subject, wishes), FeedInput::Candidates(found)) => {
                world.candidates_received(subject, wishes, found?)
            }
            (FeedStage::Paging(subject, wishes, found, frame), FeedInput::CachedPage(paged)) => {
                world.page_made(subject, wishes, found, &frame, paged)
            }
            (
                FeedStage::QueryingLists(subject, mut wishes, found, choice),
                FeedInput::Answers(answers),
            ) => {
                wishes.take_list_replies(&found, answers);
                world.execute_choice(subject, wishes, found, choice)
            }
            (
                FeedStage::Explaining(subject, wishes, found, choice),
                FeedInput::Answers(answers),
            ) => world.explained(subject, wishes, found, choice, answers),
            (FeedStage::Sampling(subject, crowd, plan), FeedInput::Reply(reply)) => {
                let turn = world.sampled(&subject, crowd, plan, reply);
                if let Some(lessons) = world.knowledge.metadata_samples() {
                    let (template, under) = (&subject.template, world.plan_settings());
                    let has_taught = template.has_sampled(crowd, under);
                    lessons.end(
                        SampleKey::new(template, crowd, under),
                        has_taught,
                        world.now,
                    );
                }
                turn
            }
            // What it would teach is not certain to be of this table.
            (FeedStage::Sampling(subject, crowd, _), FeedInput::Unchanged(_)) => {
                if let Some(lessons) = world.knowledge.metadata_samples() {
                    let of = SampleKey::new(&subject.template, crowd, world.plan_settings());
                    lessons.end(of, false, world.now);
                }
                if let Some(executed) = world.executed {
                    world
                        .session
                        .prepared_mut()
                        .relay_cancelled(executed.statement);
                }
                Err(FeedRelayReason::Changed)
            }
            (FeedStage::Preparing(subject, wishes, candidates, plan), FeedInput::Reply(reply)) => {
                world.narrowed_prepared(subject, wishes, candidates, plan, reply)
            }
            (FeedStage::Running(subject, wishes, candidates), FeedInput::Reply(reply)) => {
                world.narrowed_ran(subject, wishes, candidates, reply)
            }
            (FeedStage::AwaitingSample(subject, wishes), FeedInput::SampleAwaited) => {
                // The time is no cost of this way.
                *world.begun = None;
                Ok(candidate_request(subject, wishes))
            }
            (
                FeedStage::CheckingUnchanged(subject, wishes, candidates, told),
                FeedInput::Unchanged(unchanged),
            ) => world.changes_checked(subject, wishes, &candidates, told, unchanged),
            // Only a driver that fetches something else than what is needed gets here.
            _ => Err(FeedRelayReason::Failed),
        }
    }
}

/// A statement's text: that of its packet, or the one that was prepared.
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

/// What was prepared, where that is executed.
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

    /// Reads the statement's values, and asks memory.
    fn request_candidates(&mut self, subject: ServedStatement) -> FeedTransition {
        *self.is_plain = true;
        let text = self.text().ok_or(FeedRelayReason::Failed)?;
        let template = &subject.template;
        let ahead = self.session.state.utc_offset();
        // MySQL may sort by the time that the session is told, and both servers compare that by row, but UTC by index: in the hour that
        // comes twice order and answer are the plan's.
        if is_zoned(template) && ahead.is_none() {
            return Err(FeedRelayReason::TimeZone);
        }
        if self.is_planned(template) && !self.is_explainable(template) {
            return Err(FeedRelayReason::ColumnsUnsure);
        }
        // How columns of a SELECT in FROM are described depends on how often it was executed.
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
        let asked = template.shape.bind(statement, template.types)?;
        // MySQL goes on comparing a parameter as what it has been: a variable in an execution that nobody may have looked at.
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
        let rows = asked.limit.saturating_add(asked.offset);
        let wanted = usize::try_from(rows).unwrap_or(usize::MAX);
        let named = asked.authors.len() + asked.readers.len();
        if wanted > self.policy.candidates || named > self.policy.list_authors {
            return Err(FeedRelayReason::TooMany);
        }
        let most = template.candidates(wanted, self.policy.candidates);
        let range = index_range(&asked, template, most)?;
        let keeping = self.cache_scope(template, statement);
        let keeping = keeping.and_then(|it| it.with_author_lists(template, statement, &asked));
        let asked = FeedPageRequest {
            readers: index_numbers(&asked.readers, template)?,
            authors: index_numbers(&asked.authors, template)?,
            ..asked
        };
        let wishes = CandidateQuery {
            bound: asked,
            rows_needed: wanted,
            range,
            retakes: 0,
            plan: None,
            was_short: false,
            cache_scope: keeping.map(Box::new),
            list_replies: Vec::new(),
        };
        Ok(candidate_request(subject, wishes))
    }

    /// What was proved of the session still holds. Where it is doubted since, which happens once in a statement, all is proved anew.
    fn is_certain(&self) -> bool {
        self.session.state.are_settings_proven()
    }

    fn candidates_received(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        found: CandidateSet,
    ) -> FeedTransition {
        // Which of those that share a key come first is the server's own choice.
        if found.tied && found.ids.len() < wishes.rows_needed {
            return Err(FeedRelayReason::Ties);
        }
        // What was missing in memory was loaded once and for all: that is no cost of this way.
        self.begun.get_or_insert(self.now);
        if let Some(want) = self.cached_page_request(&subject, &wishes, &found) {
            let frame = Arc::clone(&want.envelope);
            let paging = FeedStage::Paging(subject, wishes, found, frame);
            return Ok((paging, FeedAction::Page(Box::new(want))));
        }
        self.query_server(subject, wishes, found)
    }

    /// Has the server be asked.
    fn query_server(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        found: CandidateSet,
    ) -> FeedTransition {
        if !self.is_certain() {
            return self.begin();
        }
        self.session.state.note_server_contact(self.now);
        let crowd = AuthorCountBucket::of(found.authors);
        let of = SampleKey::new(&subject.template, crowd, self.plan_settings());
        // What goes on as it is, and is learned from by the way, may teach nothing: nobody waits for that.
        if let Some(lessons) = self.knowledge.metadata_samples()
            && !self.caches_columns()
            && !subject.template.has_sampled(crowd, self.plan_settings())
            && !lessons.begin(of, self.now)
        {
            let template = Arc::clone(&subject.template);
            let awaits = SampleWait { template, key: of };
            return Ok((
                FeedStage::AwaitingSample(subject, wishes),
                FeedAction::AwaitSample(awaits),
            ));
        }
        let choice = subject
            .template
            .choose(crowd, self.plan_settings(), self.policy.always);
        let goes_on = matches!(
            choice,
            ExecutionChoice::Sample | ExecutionChoice::Narrowed { .. }
        );
        let is_planned = self.is_planned(&subject.template);
        match goes_on && is_planned && wishes.plan.is_none() {
            true => self.explain(subject, wishes, found, choice),
            false => self.execute_choice(subject, wishes, found, choice),
        }
    }

    /// Has the server be asked in the way that was chosen.
    fn execute_choice(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        found: CandidateSet,
        choice: ExecutionChoice,
    ) -> FeedTransition {
        let crowd = AuthorCountBucket::of(found.authors);
        let template = &subject.template;
        let buffered = match choice {
            ExecutionChoice::Narrowed { buffered } if self.knows_columns(template, crowd) => {
                buffered
            }
            ExecutionChoice::Narrowed { .. } | ExecutionChoice::Sample if self.caches_columns() => {
                let of = Arc::clone(template);
                let lesson = MetadataSample::new(of, crowd, self.plan_settings(), self.now);
                return Ok((FeedStage::Ended, FeedAction::RelaySampled(lesson)));
            }
            ExecutionChoice::Narrowed { .. } | ExecutionChoice::Sample => {
                let payload = self.original_payload();
                *self.begun = Some(self.now);
                let learning = FeedStage::Sampling(subject, crowd, wishes.plan);
                return Ok((learning, FeedAction::Run(payload)));
            }
            ExecutionChoice::Direct => return Err(FeedRelayReason::Cheaper),
            ExecutionChoice::Retired(retired) => return Err(FeedRelayReason::Retired(retired)),
        };
        let buffered = match &wishes.plan {
            Some(plan) => template.is_buffered(self.plan_settings(), plan),
            None => buffered,
        };
        let queries = wishes.list_queries(template, &found);
        if !queries.is_empty() {
            let listing = FeedStage::QueryingLists(subject, wishes, found, choice);
            return Ok((listing, query_session(queries)));
        }
        let replaces_list = template.shape.replaceable_list.is_some() && found.ids.len() > 1;
        let form = NarrowingForm {
            replaces_list,
            buffered,
        };
        let ids = padded(&found.ids);
        let candidates = ChosenCandidates {
            bucket: crowd,
            count: found.ids.len(),
            exhaustive: found.exhaustive,
            tied: found.tied,
            internal_statement: None,
            cacheable: wishes.cache_scope.is_some().then(|| found.clone()),
        };
        if let Some(executed) = self.executed {
            return self.run_prepared(executed, subject, wishes, candidates, ids, form);
        }
        let text = self.text().ok_or(FeedRelayReason::Failed)?;
        let (shape, words, names) = (&template.shape, &subject.words, &template.feed_names);
        if let Some(named) = self.named.as_deref() {
            let open = shape.narrow_prepared(text, words, names, ids.len(), form);
            let narrowed = open.and_then(|open| named.with_values(&open, &ids));
            let payload = self.query(&narrowed.ok_or(NarrowingRefusal::NotUnderstood)?)?;
            let running = FeedStage::Running(subject, wishes, candidates);
            return Ok((running, FeedAction::Run(payload)));
        }
        let oldest = found.ids.last().filter(|_| {
            // A list of authors that stays costs more.
            ids.len() > MAX_LISTED_CANDIDATES && !replaces_list && names.key.is_none()
        });
        let among = oldest.map_or(Among::Ids(&ids), |oldest| Among::From(*oldest));
        let narrowed = shape.narrow(text, words, names, among, form);
        let narrowed = narrowed.ok_or(NarrowingRefusal::NotUnderstood)?;
        let payload = self.query(&narrowed)?;
        Ok((
            FeedStage::Running(subject, wishes, candidates),
            FeedAction::Run(payload),
        ))
    }

    /// The client's query with another text.
    fn query(&self, text: &[u8]) -> Result<Vec<u8>, FeedRelayReason> {
        let payload = command::with_query_text(self.payload, self.session.capabilities, text);
        payload.ok_or(FeedRelayReason::Failed)
    }

    /// What the server's descriptions of columns follow in this session.
    fn plan_settings(&self) -> PlanSettings {
        const READ: [Capabilities; 3] = [
            Capabilities::DEPRECATE_EOF,
            Capabilities::OPTIONAL_RESULTSET_METADATA,
            Capabilities::MARIADB_EXTENDED_METADATA,
        ];
        let plans = self.session.state.plan_settings();
        let read = READ.iter().fold(0, |read, one| {
            read << 1 | u64::from(self.session.capabilities.contains(*one))
        });
        PlanSettings(plans << READ.len() | read)
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean of times")]
    fn microseconds(&self) -> f64 {
        let begun = self.begun.unwrap_or(self.now);
        self.now.saturating_duration_since(begun).as_micros() as f64
    }
}

/// Its rows, or their order, follow the session's time zone.
fn is_zoned(template: &Template) -> bool {
    matches!(template.types.key, Some(KeyType::Timestamp(_))) || template.shape.zoned
}

fn candidate_request(
    subject: ServedStatement,
    mut wishes: CandidateQuery,
) -> (FeedStage, FeedAction) {
    // What was said of lists was said in front of the moment to which candidates belong now.
    wishes.list_replies.clear();
    let want = wishes.request(&subject);
    (
        FeedStage::RequestingCandidates(subject, wishes),
        FeedAction::Candidates(want),
    )
}

/// Two different ids at least: with one, or none, the server plans otherwise. The conditions of the statement stand beside them, so one
/// too many takes nothing away.
fn padded(ids: &[u64]) -> Vec<u64> {
    let mut padded = ids.to_vec();
    for id in [0, 1] {
        if padded.len() < 2 && !padded.contains(&id) {
            padded.push(id);
        }
    }
    padded
}

fn query_session(queries: Vec<String>) -> FeedAction {
    FeedAction::Query(InternalQueries {
        queries,
        limits: INTERNAL_QUERY_LIMITS,
        reads: false,
    })
}
