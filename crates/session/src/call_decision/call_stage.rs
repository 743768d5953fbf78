//! The stages of a decision, and what each is handled by.

use std::sync::Arc;
use std::time::Instant;

use headwater_lookup::LookupError;
use headwater_lookup::lists::TopAuthorLists;
use headwater_lookup::lookup::{CallLookup, LookupResult};
use headwater_lookup::plan::LookupStep;
use headwater_statement::{CallStatement, TimelineCall};
use headwater_timeline::check::DefinitionFacts;
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::QueryReply;

use super::proof_plan::ProofPlan;
use super::run_remainder::{ProcedureRun, RunRemainder};
use super::{
    CallAction, CallInput, CallKnowledge, CallPolicy, INTERNAL_QUERY_LIMITS, INTERRUPTED,
    InternalQueries, ServedCallSource,
};
use crate::call_relay_reason::CallRelayReason;
use crate::call_request::CallRequest;
use crate::commands::CommandPhase;

/// The connection is being closed: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED (MariaDB), ER_SESSION_WAS_KILLED
/// and ER_CLIENT_INTERACTION_TIMEOUT (MySQL).
const CONNECTION_CLOSED_ERRORS: [u16; 4] = [1053, 1927, 3169, 4031];

/// Where a decision stands: each variant holds what is known by then.
#[derive(Debug)]
pub(super) enum CallStage {
    /// Nothing was asked.
    Begin,
    /// The session is asked for the values of the call.
    Values(CallStatement),
    /// The session is asked for its settings alone.
    Settings(TimelineCall),
    /// Other tables' ids are written.
    Flushing(LocatedCall),
    /// The service account is asked for the verdict.
    Checking(LocatedCall),
    /// The client's session is asked for it.
    CheckingHere(LocatedCall, u64),
    /// Memory is asked whether it has the page.
    ProbingMemory(EligibleCall),
    /// What is to be proved is asked for before memory answers.
    Proving(EligibleCall, ProofPlan),
    /// Memory is asked for the page.
    RequestingPage(EligibleCall),
    /// Proofs and the first step of a lookup are asked for in one write.
    FirstStep(EligibleCall, ProofPlan, LookupStep),
    /// The heads are looked up.
    Heads(EligibleCall, LookupStep),
    /// The lists behind the heads are looked up.
    Lists(EligibleCall, TopAuthorLists),
    /// The procedure runs for a reader who follows nobody, and that of the newest page beside it or not.
    RunningProbe(EligibleCall, ProcedureRun, bool),
    /// The timeline is listened to from here on, and the procedure runs for the call's own reader.
    Listening(EligibleCall),
    /// What is to be proved is asked for before the procedure runs.
    ProvingRun(EligibleCall, ProofPlan),
    /// The procedure runs, and what it leaves is read.
    Running(EligibleCall, ProcedureRun),
    /// The tables get as many rows as they had before the run.
    RestoringTables(EligibleCall, ProcedureRun, RunRemainder),
    /// Somebody may not execute something: the account, or the definer.
    Denied(EligibleCall),
    /// The right to execute is asked for behind all else.
    ExecuteLast(EligibleCall, LookupResult, ServedCallSource),
    /// The server is told to warn again.
    WarnAgain(EligibleCall, LookupResult, ServedCallSource, bool),
    /// A need was told that ends it.
    Ended,
}

/// A call, and the definition and database that it belongs to.
#[derive(Debug)]
pub(super) struct LocatedCall {
    /// Its `definition` is the number.
    pub(super) call: TimelineCall,
    pub(super) database: Vec<u8>,
}

/// A call that may be owned as far as its definition goes.
#[derive(Debug)]
pub(super) struct EligibleCall {
    pub(super) call: TimelineCall,
    pub(super) database: Vec<u8>,
    pub(super) facts: Arc<DefinitionFacts>,
    /// The payload by which the same call runs again, whatever the session's variables have become.
    pub(super) payload: Vec<u8>,
    /// The answer is compared with the procedure's.
    pub(super) compared: bool,
    /// A run has proved the definer's rights.
    pub(super) run_proved: bool,
}

/// Why a call is not owned after all.
#[derive(Debug)]
pub(super) enum CallRefusal {
    Relay(CallRelayReason),
    /// The lookups were interrupted: the client is told, as it would be of the procedure.
    Interrupted(ErrPacket),
}

impl From<CallRelayReason> for CallRefusal {
    fn from(reason: CallRelayReason) -> Self {
        CallRefusal::Relay(reason)
    }
}

impl From<LookupError> for CallRefusal {
    fn from(unusable: LookupError) -> Self {
        CallRefusal::Relay(unusable.into())
    }
}

/// The next stage, and what it needs.
pub(super) type CallTransition = Result<(CallStage, CallAction), CallRefusal>;

/// What a stage looks at.
pub(super) struct CallContext<'a, K> {
    pub(super) request: &'a CallRequest,
    pub(super) payload: &'a [u8],
    pub(super) policy: CallPolicy,
    pub(super) session: &'a mut CommandPhase,
    pub(super) knowledge: &'a K,
    pub(super) now: Instant,
}

impl<K: CallKnowledge> CallContext<'_, K> {
    pub(super) fn definition(
        &self,
        number: DefinitionId,
    ) -> Result<&TimelineDefinition, CallRefusal> {
        let definition = number.resolve(self.knowledge.definitions());
        definition.ok_or_else(|| CallRelayReason::OtherDatabase.into())
    }

    /// The call in terms of SQL.
    pub(super) fn lookup<'s>(
        &'s self,
        subject: &'s EligibleCall,
    ) -> Result<CallLookup<'s>, CallRefusal> {
        Ok(CallLookup {
            definition: self.definition(subject.call.definition)?,
            facts: &subject.facts,
            database: &subject.database,
            call: &subject.call,
            max_heads: self.policy.pending_ids,
        })
    }
}

impl CallStage {
    /// Takes in what this stage needed.
    pub(super) fn handle<K: CallKnowledge>(
        self,
        input: CallInput,
        world: &mut CallContext<'_, K>,
    ) -> CallTransition {
        match (self, input) {
            (CallStage::Begin, CallInput::Begin) => world.begin(),
            (CallStage::Values(statement), CallInput::Answers(answers)) => {
                world.take_values(&statement, answers)
            }
            (CallStage::Settings(call), CallInput::Answers(answers)) => {
                world.take_settings(answers.first())?;
                world.locate(call)
            }
            (CallStage::Flushing(placed), CallInput::Flushed) => world.switch_tables(placed),
            (CallStage::Checking(placed), CallInput::Checked(checked)) => {
                world.check_ended(placed, checked)
            }
            (CallStage::CheckingHere(placed, epoch), CallInput::Answers(answers)) => {
                world.session_check_ended(placed, epoch, answers)
            }
            (CallStage::ProbingMemory(subject), CallInput::Likely { likely, compared }) => {
                let subject = EligibleCall {
                    compared,
                    ..subject
                };
                world.memory_probed(subject, likely)
            }
            (CallStage::Proving(subject, plan), CallInput::Answers(answers)) => {
                world.take_proofs(&subject, plan, &mut answers.into_iter())?;
                world.request_page(subject)
            }
            (CallStage::RequestingPage(subject), CallInput::Page(page)) => {
                world.page_received(subject, page)
            }
            (CallStage::FirstStep(subject, plan, step), CallInput::Answers(answers)) => {
                world.take_first_step(subject, plan, &step, answers)
            }
            (CallStage::Heads(subject, step), CallInput::Answers(answers)) => {
                world.take_heads(subject, &step, answers)
            }
            (CallStage::Lists(subject, lists), CallInput::Answers(answers)) => {
                world.take_lists(subject, lists, answers)
            }
            (CallStage::RunningProbe(subject, run, beside), CallInput::Answers(answers)) => {
                world.probe_run_ended(subject, run, beside, answers)
            }
            (CallStage::Listening(subject), CallInput::Likely { compared, .. }) => {
                let subject = EligibleCall {
                    compared,
                    ..subject
                };
                world.run_procedure(subject)
            }
            (CallStage::ProvingRun(subject, plan), CallInput::Answers(answers)) => {
                world.take_proofs(&subject, plan, &mut answers.into_iter())?;
                world.run_probe(subject)
            }
            (CallStage::Running(subject, run), CallInput::Answers(answers)) => {
                world.run_ended(subject, run, answers)
            }
            (CallStage::RestoringTables(subject, run, left), CallInput::Answers(answers)) => {
                world.tables_restored(subject, run, left, answers)
            }
            (CallStage::Denied(subject), CallInput::Answers(answers)) => {
                Err(world.denied_party(&subject, &answers))
            }
            (CallStage::ExecuteLast(subject, found, source), CallInput::Answers(answers)) => {
                world.take_last_execute(subject, found, source, answers)
            }
            (CallStage::WarnAgain(subject, found, source, others), CallInput::Answers(answers)) => {
                world.take_repeated_warnings(subject, found, source, others, answers)
            }
            // Only a driver that fetches something else than what is needed gets here.
            _ => Err(CallRelayReason::LookupFailed.into()),
        }
    }
}

/// What an error in answer to a question of ours means.
pub(super) fn query_error(error: &ErrPacket) -> CallRefusal {
    if error.code == INTERRUPTED || CONNECTION_CLOSED_ERRORS.contains(&error.code) {
        return CallRefusal::Interrupted(error.clone());
    }
    CallRelayReason::LookupFailed.into()
}

/// Questions about the session, which read no table.
pub(super) fn query_session(queries: Vec<String>) -> CallAction {
    CallAction::Query(InternalQueries {
        queries,
        limits: INTERNAL_QUERY_LIMITS,
        reads: false,
    })
}

/// The first of several answers.
pub(super) fn first_answer(answers: Vec<QueryReply>) -> Option<QueryReply> {
    answers.into_iter().next()
}
