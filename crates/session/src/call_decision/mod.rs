//! The decision whether to serve a call: a state machine that the driver steps until it ends.
//!
//! ```text
//! values -> database -> verdict -> rights -> proofs and memory, or lookups -> warnings -> answer
//! ```
//!
//! Each stage holds what is known by then and names its next need ([`CallAction`]); the driver fetches exactly that. Whatever cannot be
//! proved ends in [`CallAction::Relay`]: only this folder turns a [`CallRelayReason`] into that.

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
pub(crate) mod tests;

use std::ops::DerefMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_lookup::hints::LookupHints;
use headwater_lookup::lookup::LookupResult;
use headwater_rows::template::CacheKeyTable;
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

/// The most that a reply to an internal query may hold: a table's description, a procedure's body.
pub const INTERNAL_QUERY_LIMITS: CollectLimits = CollectLimits {
    max_rows: 10_000,
    max_bytes: 4 * 1024 * 1024,
};

/// What a call needs next.
#[derive(Debug)]
pub enum CallAction {
    /// Send these on the client's own connection, in one write: [`CallInput::Answers`].
    Query(InternalQueries),
    /// Flush pending ids that belong to other tables: [`CallInput::Flushed`].
    Flush,
    /// Have the service account check the definition: [`CallInput::Checked`].
    Check {
        /// The definition's id.
        definition: DefinitionId,
        /// The database to check it in.
        database: Vec<u8>,
    },
    /// Keep the timeline in memory from here on, and report whether the page is likely there: [`CallInput::Probed`].
    ProbeMemory(TimelineRequest),
    /// Prove freshness, then take the page from memory: [`CallInput::Page`].
    Page,
    /// The end: the server's own procedure runs.
    Relay(CallRelayReason),
    /// The end: the client receives this error, as the procedure would return it.
    Interrupted(ErrPacket),
    /// The end: the call is answered.
    Answer(Box<AnsweredCall>),
}

/// Internal queries on the client's connection.
#[derive(Debug, PartialEq, Eq)]
pub struct InternalQueries {
    /// One statement each.
    pub queries: Vec<String>,
    /// The most that a reply may hold.
    pub limits: CollectLimits,
    /// They read the tables: the session sees what is committed by then.
    pub reads: bool,
}

impl InternalQueries {
    /// True if one of them runs the procedure. A CALL without arguments only tests the EXECUTE privilege.
    #[must_use]
    pub fn run_the_procedure(&self) -> bool {
        let mut queries = self.queries.iter();
        queries.any(|query| query.starts_with("CALL ") && !query.ends_with("()"))
    }
}

/// A request for a page from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineRequest {
    /// The definition's id.
    pub definition: DefinitionId,
    /// The database of its tables.
    pub database: Vec<u8>,
    /// The reader whose page it is.
    pub reader: u64,
    /// The largest id, if bounded.
    pub bound: Option<u64>,
    /// How many authors, and how many messages of each.
    pub n: usize,
    /// False: memory only starts to cache the timeline; the page comes from elsewhere.
    pub wants_page: bool,
    /// The messages are on data nodes, whose logs contain their changes.
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
    /// See [`CallAction::ProbeMemory`].
    Probed {
        /// The page is likely to be in memory.
        likely: bool,
        /// The answer is compared with the procedure's ([`AnsweredCall::compared_result`]).
        compared: bool,
    },
    /// See [`CallAction::Page`]; `None`: memory does not have it, or not in time.
    Page(Option<TimelinePage>),
}

/// The outcome of a check by the service account.
#[derive(Debug)]
pub enum CheckOutcome {
    /// Its verdict.
    Verdict(Arc<DefinitionVerdict>),
    /// The server took too long: whatever delays it would delay this session as well.
    TimedOut,
    /// There is no service account, or it cannot run queries: the client's session checks.
    NoServiceAccount,
}

/// A served call.
#[derive(Debug)]
pub struct AnsweredCall {
    /// What it leaves in the session, and what the client receives.
    pub served: ServedCall,
    /// The call.
    pub call: TimelineCall,
    /// The source of the ids.
    pub source: ServedCallSource,
    /// The server ran the procedure for it, which proved the definer's rights.
    pub ran: bool,
    /// The ids, where they are compared with the procedure's.
    pub compared_result: Option<LookupResult>,
}

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedCallSource {
    /// From memory.
    Memory,
    /// From lookups on the client's connection.
    Lookups,
    /// From a run of the server's procedure.
    Procedure,
}

/// The shared knowledge that a decision needs.
pub trait CallKnowledge {
    /// Every definition.
    fn definitions(&self) -> &[TimelineDefinition];
    /// The verdict on a definition in a database, while it is valid.
    fn verdict(&self, definition: DefinitionId, database: &[u8]) -> Option<Arc<DefinitionVerdict>>;
    /// The last verdict, and whether it is still valid.
    fn last_verdict(
        &self,
        definition: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<DefinitionVerdict>, bool)>;
    /// Records a verdict whose queries were sent at this epoch.
    fn record(
        &self,
        definition: DefinitionId,
        database: &[u8],
        verdict: DefinitionVerdict,
        epoch: u64,
    ) -> Arc<DefinitionVerdict>;
    /// A client's account sees too little of a definition to check it.
    fn unseen(&self, definition: DefinitionId, reason: &check::RelayReason);
    /// Counts events that may have changed definitions.
    fn epoch(&self) -> u64;
    /// Makes every check due.
    fn expire(&self);
    /// True where an answer to a call of this definition was wrong.
    fn is_distrusted(&self, definition: DefinitionId) -> bool;
    /// How a call handles the rights of its procedure's definer.
    fn strategy(
        &self,
        definition: DefinitionId,
        database: &[u8],
        form: ProcedureForm,
        now: Instant,
    ) -> CallStrategy;
    /// A run of the procedure, sent at this time, has read both tables.
    fn run_succeeded(
        &self,
        definition: DefinitionId,
        database: &[u8],
        form: ProcedureForm,
        sent: Instant,
    );
    /// A run of the procedure was denied.
    fn run_was_denied(&self, definition: DefinitionId, database: &[u8], form: ProcedureForm);
    /// The row cache for follow-up SELECTs of this text on this message table; `None`: their rows are never cached.
    fn cache_keys(&self, database: &str, table: &str, text: &str) -> Option<Arc<CacheKeyTable>>;
    /// The hints of earlier lookups.
    fn hints(&self) -> impl DerefMut<Target = LookupHints>;
    /// The server is a node of a Galera cluster, as the service account found.
    fn is_galera(&self) -> bool {
        false
    }
}

/// The settings of a decision.
#[derive(Clone, Copy, Debug)]
pub struct CallPolicy {
    /// False: every call is relayed (`accelerate`).
    pub accelerate: bool,
    /// Most ids and heads that a session may have pending (`limits.pending_ids`).
    pub pending_ids: usize,
    /// How long a seen right counts as held (`privileges.ttl_s`).
    pub privileges_ttl: Duration,
    /// How long a check is valid (`limits.recheck_ms`).
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
    pub fn new(request: CallRequest, payload: Vec<u8>, policy: CallPolicy) -> Self {
        CallDecision {
            request,
            payload,
            policy,
            stage: CallStage::Begin,
        }
    }

    /// The call's request, and its packet's payload.
    #[must_use]
    pub fn into_request(self) -> (CallRequest, Vec<u8>) {
        (self.request, self.payload)
    }

    /// Takes the input that was requested, and returns the next action.
    pub fn next(
        &mut self,
        input: CallInput,
        session: &mut CommandPhase,
        knowledge: &impl CallKnowledge,
        now: Instant,
    ) -> CallAction {
        let stage = std::mem::replace(&mut self.stage, CallStage::Ended);
        let mut context = CallContext {
            request: &self.request,
            payload: &self.payload,
            policy: self.policy,
            session,
            knowledge,
            now,
        };
        match stage.handle(input, &mut context) {
            Ok((stage, need)) => {
                self.stage = stage;
                need
            }
            Err(CallRefusal::Relay(reason)) => CallAction::Relay(reason),
            Err(CallRefusal::Interrupted(error)) => CallAction::Interrupted(error),
        }
    }
}
