//! The stages of a decision, and the handler of each.

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

/// The server closes the connection: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED (MariaDB), ER_SESSION_WAS_KILLED and
/// ER_CLIENT_INTERACTION_TIMEOUT (MySQL).
const CONNECTION_CLOSED_ERRORS: [u16; 4] = [1053, 1927, 3169, 4031];

/// The stage of a decision; each variant holds what is known by then.
#[derive(Debug)]
pub(super) enum CallStage {
    Begin,
    /// Queries the session for the call's values.
    Values(CallStatement),
    /// Queries the session for its settings alone.
    Settings(TimelineCall),
    /// Flushes pending ids of other tables.
    Flushing(LocatedCall),
    /// Waits for the service account's verdict.
    Checking(LocatedCall),
    /// Checks the definition in the client's session.
    CheckingHere(LocatedCall, u64),
    /// Probes memory for the page.
    ProbingMemory(EligibleCall),
    /// Proves what is missing before memory answers.
    Proving(EligibleCall, ProofPlan),
    RequestingPage(EligibleCall),
    /// Sends proofs and the first lookup step in one write.
    FirstStep(EligibleCall, ProofPlan, LookupStep),
    /// The heads are looked up.
    Heads(EligibleCall, LookupStep),
    /// Looks up the lists of the heads.
    Lists(EligibleCall, TopAuthorLists),
    /// Runs the procedure for a reader without follows, and that of the newest page with it or not.
    RunningProbe(EligibleCall, ProcedureRun, bool),
    /// Starts to follow the timeline; the procedure then runs for the call's own reader.
    Listening(EligibleCall),
    /// Proves what is missing before the procedure runs.
    ProvingRun(EligibleCall, ProofPlan),
    /// Runs the procedure, then reads its tables.
    Running(EligibleCall, ProcedureRun),
    /// Restores the tables' row counts from before the run.
    RestoringTables(EligibleCall, ProcedureRun, RunRemainder),
    /// A right to execute is missing: the account's, or the definer's.
    Denied(EligibleCall),
    /// Proves the right to execute, as the last step.
    ExecuteLast(EligibleCall, LookupResult, ServedCallSource),
    /// Has the server repeat its warnings.
    WarnAgain(EligibleCall, LookupResult, ServedCallSource, bool),
    Ended,
}

#[derive(Debug)]
pub(super) struct LocatedCall {
    /// Its `definition` is the definition's id.
    pub(super) call: TimelineCall,
    pub(super) database: Vec<u8>,
}

/// A call that may be served as far as its definition goes.
#[derive(Debug)]
pub(super) struct EligibleCall {
    pub(super) call: TimelineCall,
    pub(super) database: Vec<u8>,
    pub(super) facts: Arc<DefinitionFacts>,
    /// The payload that runs the same call again, whatever the session's variables are by then.
    pub(super) payload: Vec<u8>,
    /// The answer is compared with the procedure's.
    pub(super) compared: bool,
    /// A run has proved the definer's rights.
    pub(super) run_proved: bool,
}

#[derive(Debug)]
pub(super) enum CallRefusal {
    Relay(CallRelayReason),
    /// The lookups were interrupted: the client receives the error that the procedure would return.
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

pub(super) type CallTransition = Result<(CallStage, CallAction), CallRefusal>;

/// What a stage has access to.
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
    /// Takes the input that this stage requested.
    pub(super) fn handle<K: CallKnowledge>(
        self,
        input: CallInput,
        context: &mut CallContext<'_, K>,
    ) -> CallTransition {
        match (self, input) {
            (CallStage::Begin, CallInput::Begin) => context.begin(),
            (CallStage::Values(statement), CallInput::Answers(answers)) => {
                context.take_values(&statement, answers)
            }
            (CallStage::Settings(call), CallInput::Answers(answers)) => {
                context.take_settings(answers.first())?;
                context.locate(call)
            }
            (CallStage::Flushing(placed), CallInput::Flushed) => context.switch_tables(placed),
            (CallStage::Checking(placed), CallInput::Checked(checked)) => {
                context.check_ended(placed, checked)
            }
            (CallStage::CheckingHere(placed, epoch), CallInput::Answers(answers)) => {
                context.session_check_ended(placed, epoch, answers)
            }
            (CallStage::ProbingMemory(subject), CallInput::Probed { likely, compared }) => {
                let subject = EligibleCall {
                    compared,
                    ..subject
                };
                context.memory_probed(subject, likely)
            }
            (CallStage::Proving(subject, plan), CallInput::Answers(answers)) => {
                context.take_proofs(&subject, plan, &mut answers.into_iter())?;
                context.request_page(subject)
            }
            (CallStage::RequestingPage(subject), CallInput::Page(page)) => {
                context.page_received(subject, page)
            }
            (CallStage::FirstStep(subject, plan, step), CallInput::Answers(answers)) => {
                context.take_first_step(subject, plan, &step, answers)
            }
            (CallStage::Heads(subject, step), CallInput::Answers(answers)) => {
                context.take_heads(subject, &step, answers)
            }
            (CallStage::Lists(subject, lists), CallInput::Answers(answers)) => {
                context.take_lists(subject, lists, answers)
            }
            (CallStage::RunningProbe(subject, run, beside), CallInput::Answers(answers)) => {
                context.probe_run_ended(subject, run, beside, answers)
            }
            (CallStage::Listening(subject), CallInput::Probed { compared, .. }) => {
                let subject = EligibleCall {
                    compared,
                    ..subject
                };
                context.run_procedure(subject)
            }
            (CallStage::ProvingRun(subject, plan), CallInput::Answers(answers)) => {
                context.take_proofs(&subject, plan, &mut answers.into_iter())?;
                context.run_probe(subject)
            }
            (CallStage::Running(subject, run), CallInput::Answers(answers)) => {
                context.run_ended(subject, run, answers)
            }
            (CallStage::RestoringTables(subject, run, left), CallInput::Answers(answers)) => {
                context.tables_restored(subject, run, left, answers)
            }
            (CallStage::Denied(subject), CallInput::Answers(answers)) => {
                Err(context.denied_party(&subject, &answers))
            }
            (CallStage::ExecuteLast(subject, found, source), CallInput::Answers(answers)) => {
                context.take_last_execute(subject, found, source, answers)
            }
            (CallStage::WarnAgain(subject, found, source, others), CallInput::Answers(answers)) => {
                context.take_repeated_warnings(subject, found, source, others, answers)
            }
            // Only a driver that sends the wrong input gets here.
            _ => Err(CallRelayReason::LookupFailed.into()),
        }
    }
}

/// The meaning of an error in reply to an internal query.
pub(super) fn query_error(error: &ErrPacket) -> CallRefusal {
    if error.code == INTERRUPTED || CONNECTION_CLOSED_ERRORS.contains(&error.code) {
        return CallRefusal::Interrupted(error.clone());
    }
    CallRelayReason::LookupFailed.into()
}

/// Queries about the session that read no table.
pub(super) fn query_session(queries: Vec<String>) -> CallAction {
    CallAction::Query(InternalQueries {
        queries,
        limits: INTERNAL_QUERY_LIMITS,
        reads: false,
    })
}

pub(super) fn first_answer(answers: Vec<QueryReply>) -> Option<QueryReply> {
    answers.into_iter().next()
}
