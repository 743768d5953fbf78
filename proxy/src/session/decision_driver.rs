//! Carries out decisions about calls and feeds. A statement is served and explained by the same loop, so that an explanation cannot
//! differ from what happens.

use std::time::Duration;

use super::counts::CountScope;
use super::feed_statements::SharedFeedKnowledge;
use super::knowledge::SharedCallKnowledge;
use super::log_span::log_in;
use super::memory_access::{CandidateScope, PageLocation, ProofMoment};
use super::state::{Session, SessionEnd};
use crate::backend::QueryBatch;
use crate::catalogue::ServiceError;
use crate::clock;
use headwater_session::call_decision::{
    AnsweredCall, CallAction, CallDecision, CallInput, CheckOutcome, InternalQueries,
};
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_session::feed_decision::metadata_samples::SampleWait;
use headwater_session::feed_decision::{
    FeedAction, FeedDecision, FeedInput, FeedRelayReason, FeedReply, InternalReply, MetadataSample,
    PrepareRequest,
};
use headwater_timeline::definition::DefinitionId;
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::QueryReply;

/// Interval of polling whether another statement has sampled the metadata that this one needs.
const SAMPLE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Why a decision is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecisionPurpose {
    /// A statement waits for its answer.
    Serve,
    /// A statement is explained: the decision ends before the server would run it, or something in its place.
    Explain,
}

/// How a decision about a call ended.
#[derive(Debug)]
pub(super) enum CallOutcome {
    /// The call is answered; its page was looked for at this place.
    Answered(Box<AnsweredCall>, PageLocation),
    /// The server's procedure answers.
    Relayed(CallRelayReason),
    /// The client gets this error.
    Interrupted(ErrPacket),
    /// Only explained: the server would run the procedure, to prove its definer's rights.
    ProvesRights,
    /// The session has not logged in.
    LoginPending,
}

/// How a decision about a feed's statement ended.
#[derive(Debug)]
pub(super) enum FeedOutcome {
    /// The client gets this reply, which was proved at that moment.
    Replied(FeedReply, Option<ProofMoment>),
    /// The statement is relayed. `runs_functions`: a function that was just created may hide behind a name in it.
    Relayed {
        reason: FeedRelayReason,
        runs_functions: bool,
    },
    /// The execution is relayed, and its reply sampled.
    RelayedSampled(MetadataSample),
    /// Only explained: the page is made of cached rows.
    Cached,
    /// Only explained: the server would run a narrowed text.
    Narrowed,
    /// Only explained: the server would run the statement, and its reply be sampled.
    Sampled,
    /// The session has not logged in.
    LoginPending,
}

impl Session {
    /// Carries out the actions of a decision about a call, to its end.
    pub(super) async fn drive_call(
        &mut self,
        decision: &mut CallDecision,
        purpose: DecisionPurpose,
    ) -> Result<CallOutcome, SessionEnd> {
        let explains = purpose == DecisionPurpose::Explain;
        let mut location = PageLocation::Nowhere;
        let mut input = CallInput::Begin;
        loop {
            let action = {
                let Some(commands) = self.machine.commands() else {
                    return Ok(CallOutcome::LoginPending);
                };
                let known = SharedCallKnowledge::new(&self.shared, &self.definer_rights);
                decision.next(input, commands, &known, clock::now())
            };
            input = match action {
                CallAction::Query(ask) if explains && ask.run_the_procedure() => {
                    return Ok(CallOutcome::ProvesRights);
                }
                CallAction::Query(ask) => {
                    CallInput::Answers(self.run_internal_queries(&ask).await?)
                }
                CallAction::Flush => {
                    self.flush_pending(false).await?;
                    CallInput::Flushed
                }
                CallAction::Check {
                    definition,
                    database,
                } => CallInput::Checked(self.check(definition, &database).await),
                CallAction::ProbeMemory(request) => {
                    location = self.locate_page(request, purpose).await;
                    CallInput::Probed {
                        likely: location.is_likely(),
                        compared: location.is_compared(),
                    }
                }
                CallAction::Page => CallInput::Page(self.page_from_memory(&location).await),
                CallAction::Relay(reason) => return Ok(CallOutcome::Relayed(reason)),
                CallAction::Interrupted(error) => return Ok(CallOutcome::Interrupted(error)),
                CallAction::Answer(answered) => {
                    return Ok(CallOutcome::Answered(answered, location));
                }
            };
        }
    }

    /// Carries out the actions of a decision about a feed's statement, to its end. `comparable`: the length of the waiting packet, if
    /// its page may be compared with the server's.
    pub(super) async fn drive_feed(
        &mut self,
        decision: &mut FeedDecision,
        purpose: DecisionPurpose,
        comparable: Option<usize>,
    ) -> Result<FeedOutcome, SessionEnd> {
        let explains = purpose == DecisionPurpose::Explain;
        let mut scope: Option<CandidateScope> = None;
        let mut count_scope: Option<CountScope> = None;
        let mut proof = None;
        let mut input = FeedInput::Begin;
        self.forget_early_proof();
        loop {
            let Some(commands) = self.machine.commands() else {
                return Ok(FeedOutcome::LoginPending);
            };
            let feeds = SharedFeedKnowledge {
                shared: &self.shared,
                has_arrived: !explains,
            };
            let action = decision.next(input, commands, &feeds, clock::now());
            let samples = match action {
                FeedAction::Run(_) => decision.is_sampling(),
                _ => matches!(action, FeedAction::RelaySampled(_)),
            };
            // A hidden table has other columns.
            if samples && !self.prove_no_functions().await {
                if let FeedAction::RelaySampled(_) = action {
                    return Ok(FeedOutcome::Relayed {
                        reason: FeedRelayReason::Changed,
                        runs_functions: true,
                    });
                }
                input = FeedInput::Unchanged(false);
                continue;
            }
            input = match action {
                FeedAction::Query(_) if explains && decision.is_querying_counts() => {
                    return Ok(FeedOutcome::Narrowed);
                }
                FeedAction::Query(ask) if decision.is_querying_settings() => {
                    FeedInput::Answers(self.query_settings_beside_proof(&ask).await?)
                }
                FeedAction::Query(ask) => {
                    self.forget_early_proof();
                    FeedInput::Answers(self.run_internal_queries(&ask).await?)
                }
                FeedAction::Candidates(request) => {
                    let (candidates, found) = match self.candidates(&request).await {
                        Ok((candidates, found)) => (Ok(candidates), Some(found)),
                        Err(reason) => (Err(reason), None),
                    };
                    if candidates.as_ref().is_ok_and(|it| it.gaps.is_some()) {
                        count_scope = found.as_ref().map(CandidateScope::count_scope);
                    }
                    scope = found;
                    FeedInput::Candidates(candidates)
                }
                FeedAction::Page(request) => {
                    let page = match &scope {
                        Some(scope) if explains => self.cached_page(&request, scope).await,
                        Some(scope) => self.compared_feed_page(&request, scope, comparable).await?,
                        None => None,
                    };
                    if explains && page.is_some() {
                        return Ok(FeedOutcome::Cached);
                    }
                    FeedInput::CachedPage(page)
                }
                FeedAction::Count(request) => {
                    let (answer, found) = match explains {
                        true => self.count(&request).await,
                        false => self.compared_count(&request, comparable).await?,
                    };
                    count_scope = found;
                    FeedInput::Count(answer)
                }
                FeedAction::CacheCounts(fill) => {
                    self.cache_counts(&fill, count_scope.take()).await;
                    FeedInput::CountsCached
                }
                FeedAction::Run(_) | FeedAction::Prepare(_) if explains => {
                    return Ok(match samples {
                        true => FeedOutcome::Sampled,
                        false => FeedOutcome::Narrowed,
                    });
                }
                FeedAction::Run(payload) => FeedInput::Reply(self.run_in_place(&payload).await?),
                FeedAction::Prepare(prepare) => {
                    FeedInput::Reply(self.prepare_internal(&prepare).await?)
                }
                FeedAction::CheckUnchanged => {
                    proof = match scope.take() {
                        Some(scope) => self.prove_unchanged(scope).await,
                        None => None,
                    };
                    FeedInput::Unchanged(proof.is_some())
                }
                FeedAction::AwaitSample(sample) => {
                    self.await_sample(&sample).await;
                    FeedInput::SampleAwaited
                }
                FeedAction::Reply(reply) if explains && reply.from_cache => {
                    return Ok(FeedOutcome::Cached);
                }
                FeedAction::Reply(reply) => return Ok(FeedOutcome::Replied(reply, proof)),
                FeedAction::Relay(reason) => {
                    return Ok(FeedOutcome::Relayed {
                        reason,
                        runs_functions: false,
                    });
                }
                FeedAction::RelaySampled(sample) => return Ok(FeedOutcome::RelayedSampled(sample)),
            };
        }
    }

    /// Runs internal queries on the client's server connection.
    pub(super) async fn run_internal_queries(
        &mut self,
        ask: &InternalQueries,
    ) -> Result<Vec<QueryReply>, SessionEnd> {
        let Some(commands) = self.machine.commands() else {
            return Ok(Vec::new());
        };
        let capabilities = commands.capabilities;
        let mut batch = QueryBatch::new(capabilities);
        for query in &ask.queries {
            batch.push_query(query);
        }
        self.server_was_queried |= ask.reads;
        let sent_at = self.note_query_sent();
        let answers = self.backend.query(&batch, capabilities, ask.limits).await?;
        self.note_query_answered(sent_at);
        Ok(answers)
    }

    /// Has the service account check a definition, if it can.
    async fn check(&mut self, definition: DefinitionId, database: &[u8]) -> CheckOutcome {
        let catalogue = &self.shared.catalogue;
        if catalogue.service.is_none() {
            return CheckOutcome::NoServiceAccount;
        }
        match catalogue.check_due(definition, database).await {
            Ok(verdict) => CheckOutcome::Verdict(verdict),
            Err(ServiceError::TimedOut(_)) => CheckOutcome::TimedOut,
            Err(error) if error.was_logged() => CheckOutcome::NoServiceAccount,
            Err(error) => {
                log_in!(
                    self.span(),
                    WARN,
                    "{error}; a client session is asked instead"
                );
                CheckOutcome::NoServiceAccount
            }
        }
    }

    /// Runs an internal statement on the server; its reply is kept up to `limits.tail_bytes`.
    pub(super) async fn run_in_place(
        &mut self,
        payload: &[u8],
    ) -> Result<InternalReply, SessionEnd> {
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Ok(InternalReply {
                bytes: None,
                rows: 0,
                outcome: None,
            });
        };
        let limit = self.shared.limits.tail_bytes;
        self.server_was_queried = true;
        let sent_at = self.note_query_sent();
        let read = self
            .backend
            .run_command(payload, capabilities, limit)
            .await?;
        self.note_query_answered(sent_at);
        Ok(InternalReply {
            bytes: read.bytes,
            rows: read.rows,
            outcome: read.outcome,
        })
    }

    /// Prepares an internal statement.
    async fn prepare_internal(
        &mut self,
        prepare: &PrepareRequest,
    ) -> Result<InternalReply, SessionEnd> {
        if !prepare.before.is_empty() {
            self.backend
                .link
                .send_all(&prepare.before)
                .await
                .map_err(SessionEnd::ServerClosed)?;
        }
        self.run_in_place(&prepare.payload).await
    }

    /// Waits while another statement samples the metadata that this one needs.
    async fn await_sample(&mut self, sample: &SampleWait) {
        let Some(feeds) = &self.shared.feeds else {
            return;
        };
        while sample.is_pending(feeds.metadata_samples(), clock::now()) {
            tokio::time::sleep(SAMPLE_POLL_INTERVAL).await;
        }
    }
}
