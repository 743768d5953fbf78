//! The decision to answer a call ourselves: one machine, asked until it has an end.
//!
//! ```text
//! values -> place -> verdict -> rights -> proofs and memory, or lookups -> warnings -> answer
//! ```
//!
//! Each stage holds what is known by then, and each says what it needs next ([`CallAction`]); the driver fetches that, and nothing
//! else. Whatever cannot be proved ends in [`CallAction::Relay`]: only this folder turns a [`CallRelayReason`] into that.

mod cached_follow_up;
mod call_binding;
mod call_conclusion;
mod call_stage;
mod follow_up;
mod id_lookup;
mod parse_warnings;
mod procedure_run;
mod proof_plan;
mod proofs;
mod relayed_call;
mod run_remainder;
mod verdict;

#[cfg(test)]
mod tests;

use std::ops::DerefMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_lookup::hints::LookupHints;
use headwater_lookup::lookup::LookupResult;
use headwater_rows::template::TemplateCache;
use headwater_sql::NameCase;
use headwater_statement::TimelineCall;
use headwater_timeline::ProcedureForm;
use headwater_timeline::check::{self, DefinitionVerdict};
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};
use headwater_timeline::index::TimelinePage;
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{CollectLimits, QueryReply};

pub use cached_follow_up::FollowUpPageRequest;
pub use call_conclusion::ServedCall;
pub use follow_up::{FollowUpReply, ServedFollowUp};
pub(crate) use parse_warnings::utf8_is_an_alias;
pub(crate) use procedure_run::NO_MORE_ROWS;
pub use relayed_call::{ProcedureLocation, RelayedCall};

use crate::call_relay_reason::CallRelayReason;
use crate::call_request::CallRequest;
use crate::commands::CommandPhase;
use crate::definer_rights::CallStrategy;
use call_stage::{CallContext, CallRefusal, CallStage};

/// ER_QUERY_INTERRUPTED: KILL QUERY, or Ctrl-C at a prompt.
pub const INTERRUPTED: u16 = 1317;

/// How much the answer to an own question may hold: a table's description, a procedure's body.
pub const INTERNAL_QUERY_LIMITS: CollectLimits = CollectLimits {
    max_rows: 10_000,
    max_bytes: 4 * 1024 * 1024,
};

/// What a call needs next.
#[derive(Debug)]
pub enum CallAction {
    /// Ask these on the client's own connection, in one write: [`CallInput::Answers`].
    Query(InternalQueries),
    /// Write what is pending to the server, which belongs to other tables: [`CallInput::Flushed`].
    Flush,
    /// Have the service account check the definition: [`CallInput::Checked`].
    Check {
        /// Its number.
        definition: DefinitionId,
        /// Where.
        database: Vec<u8>,
    },
    /// From here on the timeline is kept in memory. Say whether the page is likely to be there: [`CallInput::Likely`].
    Memory(TimelineRequest),
    /// Prove freshness, and take the page from memory: [`CallInput::Page`].
    Page,
    /// The end: the server's own procedure runs.
    Relay(CallRelayReason),
    /// The end: the client is told this, as it would be of the procedure.
    Interrupted(ErrPacket),
    /// The end: the call is answered.
    Answer(Box<AnsweredCall>),
}

/// Questions of ours on the client's connection.
#[derive(Debug, PartialEq, Eq)]
pub struct InternalQueries {
    /// One statement each.
    pub queries: Vec<String>,
    /// How much an answer may hold.
    pub limits: CollectLimits,
    /// They read the tables: the session has seen what is committed by then.
    pub reads: bool,
}

/// A page that memory is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineRequest {
    /// The definition's number.
    pub definition: DefinitionId,
    /// The database of its tables.
    pub database: Vec<u8>,
    /// Whose page.
    pub reader: u64,
    /// Up to which id.
    pub bound: Option<u64>,
    /// How many authors, and messages of each.
    pub n: usize,
    /// False: memory only begins to keep the timeline, and the page comes from elsewhere.
    pub wants_page: bool,
    /// The messages are on data nodes, whose logs tell of them.
    pub spread: bool,
}

/// What the driver has fetched.
#[derive(Debug)]
pub enum CallInput {
    /// Nothing yet.
    Begin,
    /// See [`CallAction::Query`].
    Answers(Vec<QueryReply>),
    /// See [`CallAction::Flush`].
    Flushed,
    /// See [`CallAction::Check`].
    Checked(CheckOutcome),
    /// See [`CallAction::Memory`].
    Likely {
        /// The page is likely to be in memory.
        likely: bool,
        /// The answer is compared with the procedure's ([`AnsweredCall::compared_result`]).
        compared: bool,
    },
    /// See [`CallAction::Page`]; `None`: it is not there, or not in time.
    Page(Option<TimelinePage>),
}

/// What came of a check by the service account.
#[derive(Debug)]
pub enum CheckOutcome {
    /// Its verdict.
    Verdict(Arc<DefinitionVerdict>),
    /// The server took too long: whatever holds it up would hold this session up as well.
    TimedOut,
    /// There is no service account, or it cannot ask: the client's session is asked.
    NoServiceAccount,
}

/// A call that is answered.
#[derive(Debug)]
pub struct AnsweredCall {
    /// What it leaves in the session, and what the client is told.
    pub served: ServedCall,
    /// The call.
    pub call: TimelineCall,
    /// Where the ids are from.
    pub source: ServedCallSource,
    /// The server has run the procedure for it, which proved what its definer may do.
    pub ran: bool,
    /// What was found, where it is compared.
    pub compared_result: Option<LookupResult>,
}

/// Where an answer is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedCallSource {
    /// From memory.
    Memory,
    /// From lookups on the client's connection.
    Lookups,
    /// From a run of the server's procedure.
    Procedure,
}

/// What all sessions know, as far as a decision needs it.
pub trait CallKnowledge {
    /// Every definition.
    fn definitions(&self) -> &[TimelineDefinition];
    /// The verdict on a definition in a database, while it counts.
    fn verdict(&self, definition: DefinitionId, database: &[u8]) -> Option<Arc<DefinitionVerdict>>;
    /// The verdict that was found last, and whether it still counts.
    fn last_verdict(
        &self,
        definition: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<DefinitionVerdict>, bool)>;
    /// Takes in a verdict whose questions were asked at this epoch.
    fn record(
        &self,
        definition: DefinitionId,
        database: &[u8],
        verdict: DefinitionVerdict,
        epoch: u64,
    ) -> Arc<DefinitionVerdict>;
    /// A client's account sees too little of a definition to check it.
    fn unseen(&self, definition: DefinitionId, reason: &check::RelayReason);
    /// Counts what may have changed definitions.
    fn epoch(&self) -> u64;
    /// Makes every check due.
    fn expire(&self);
    /// An answer to a call of this definition was wrong.
    fn is_distrusted(&self, definition: DefinitionId) -> bool;
    /// What a call is to do about the rights of its procedure's definer.
    fn strategy(
        &self,
        definition: DefinitionId,
        database: &[u8],
        form: ProcedureForm,
        now: Instant,
    ) -> CallStrategy;
    /// A run of the procedure that was sent then has read both tables.
    fn run_succeeded(
        &self,
        definition: DefinitionId,
        database: &[u8],
        form: ProcedureForm,
        sent: Instant,
    );
    /// A run of the procedure was denied.
    fn run_was_denied(&self, definition: DefinitionId, database: &[u8], form: ProcedureForm);
    /// What is kept of the replies to tails of this text, about messages of this table; `None`: nothing ever is.
    fn cached_rows(&self, database: &str, table: &str, text: &str) -> Option<Arc<TemplateCache>>;
    /// What earlier lookups saw.
    fn hints(&self) -> impl DerefMut<Target = LookupHints>;
    /// The server is a node of a Galera cluster, as the service account has found.
    fn is_galera(&self) -> bool {
        false
    }
}

/// Settings that a decision heeds.
#[derive(Clone, Copy, Debug)]
pub struct CallPolicy {
    /// False: every call is relayed (`accelerate`).
    pub accelerate: bool,
    /// Most ids and heads that a session may have pending (`limits.pending_ids`).
    pub pending_ids: usize,
    /// How long a right that was seen is taken to be there (`privileges.ttl_s`).
    pub privileges_ttl: Duration,
    /// After so long a definition is checked again (`limits.recheck_ms`).
    pub recheck: Duration,
    /// How the server compares names of databases.
    pub case: NameCase,
}

/// The decision about one call.
#[derive(Debug)]
pub struct CallDecision {
    request: CallRequest,
    payload: Vec<u8>,
    policy: CallPolicy,
    stage: CallStage,
}

impl CallDecision {
    /// Begins with a call whose packet waits.
    #[must_use]
    pub fn new(asked: CallRequest, payload: Vec<u8>, policy: CallPolicy) -> Self {
        CallDecision {
            request: asked,
            payload,
            policy,
            stage: CallStage::Begin,
        }
    }

    /// The call as it was asked for, and its packet's payload.
    #[must_use]
    pub fn into_request(self) -> (CallRequest, Vec<u8>) {
        (self.request, self.payload)
    }

    /// Takes in what was needed, and says what is needed next.
    pub fn next(
        &mut self,
        input: CallInput,
        session: &mut CommandPhase,
        known: &impl CallKnowledge,
        now: Instant,
    ) -> CallAction {
        let stage = std::mem::replace(&mut self.stage, CallStage::Ended);
        let mut world = CallContext {
            request: &self.request,
            payload: &self.payload,
            policy: self.policy,
            session,
            knowledge: known,
            now,
        };
        match stage.handle(input, &mut world) {
            Ok((stage, need)) => {
                self.stage = stage;
                need
            }
            Err(CallRefusal::Relay(reason)) => CallAction::Relay(reason),
            Err(CallRefusal::Interrupted(error)) => CallAction::Interrupted(error),
        }
    }
}
