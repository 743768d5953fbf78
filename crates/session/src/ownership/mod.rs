//! The decision to answer a call ourselves: one machine, asked until it has an end.
//!
//! ```text
//! values -> place -> verdict -> rights -> proofs and memory, or lookups -> warnings -> answer
//! ```
//!
//! Each stage holds what is known by then, and each says what it needs next ([`Need`]); the driver fetches that, and nothing
//! else. Whatever cannot be proved ends in [`Need::Relay`]: only this folder turns a [`Reason`] into that.

mod bind;
mod conclude;
mod ids;
mod kept_tail;
mod left;
mod plan;
mod procedure;
mod proofs;
mod run;
mod stage;
mod tail;
mod verdict;
mod warnings;

#[cfg(test)]
mod tests;

use std::ops::DerefMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_lookup::hints::Hints;
use headwater_lookup::lookup::Found;
use headwater_rows::template::KeptRows;
use headwater_sql::NameCase;
use headwater_statement::Call;
use headwater_timeline::Form;
use headwater_timeline::check::{self, Verdict};
use headwater_timeline::definition::{Definition, DefinitionId};
use headwater_timeline::index::Page;
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{Answer, Limits};

pub use conclude::Owned;
pub use kept_tail::TailWant;
pub use procedure::{ProcedurePlace, Relayed};
pub(crate) use run::NO_MORE_ROWS;
pub use tail::{OwnTail, TailReply};
pub(crate) use warnings::utf8_is_an_alias;

use crate::asked::Asked;
use crate::commands::Commands;
use crate::reason::Reason;
use crate::rights::Course;
use stage::{Refusal, Stage, World};

/// ER_QUERY_INTERRUPTED: KILL QUERY, or Ctrl-C at a prompt.
pub const INTERRUPTED: u16 = 1317;

/// How much the answer to an own question may hold: a table's description, a procedure's body.
pub const ASK_LIMITS: Limits = Limits {
    max_rows: 10_000,
    max_bytes: 4 * 1024 * 1024,
};

/// What a call needs next.
#[derive(Debug)]
pub enum Need {
    /// Ask these on the client's own connection, in one write: [`Input::Answers`].
    Ask(Ask),
    /// Write what is pending to the server, which belongs to other tables: [`Input::Settled`].
    Settle,
    /// Have the service account check the definition: [`Input::Checked`].
    Check {
        /// Its number.
        definition: DefinitionId,
        /// Where.
        database: Vec<u8>,
    },
    /// From here on the timeline is kept in memory. Say whether the page is likely to be there: [`Input::Likely`].
    Memory(Want),
    /// Prove freshness, and take the page from memory: [`Input::Page`].
    Page,
    /// The end: the server's own procedure runs.
    Relay(Reason),
    /// The end: the client is told this, as it would be of the procedure.
    Interrupted(ErrPacket),
    /// The end: the call is answered.
    Answer(Box<Answered>),
}

/// Questions of ours on the client's connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Ask {
    /// One statement each.
    pub queries: Vec<String>,
    /// How much an answer may hold.
    pub limits: Limits,
    /// They read the tables: the session has seen what is committed by then.
    pub reads: bool,
}

/// A page that memory is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
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
    pub now: bool,
    /// The messages are on data nodes, whose logs tell of them.
    pub spread: bool,
}

/// What the driver has fetched.
#[derive(Debug)]
pub enum Input {
    /// Nothing yet.
    Begin,
    /// See [`Need::Ask`].
    Answers(Vec<Answer>),
    /// See [`Need::Settle`].
    Settled,
    /// See [`Need::Check`].
    Checked(Checked),
    /// See [`Need::Memory`].
    Likely {
        /// The page is likely to be in memory.
        likely: bool,
        /// The answer is compared with the procedure's ([`Answered::found`]).
        compared: bool,
    },
    /// See [`Need::Page`]; `None`: it is not there, or not in time.
    Page(Option<Page>),
}

/// What came of a check by the service account.
#[derive(Debug)]
pub enum Checked {
    /// Its verdict.
    Verdict(Arc<Verdict>),
    /// The server took too long: whatever holds it up would hold this session up as well.
    Slow,
    /// There is no service account, or it cannot ask: the client's session is asked.
    Nobody,
}

/// A call that is answered.
#[derive(Debug)]
pub struct Answered {
    /// What it leaves in the session, and what the client is told.
    pub owned: Owned,
    /// The call.
    pub call: Call,
    /// Where the ids are from.
    pub source: Source,
    /// The server has run the procedure for it, which proved what its definer may do.
    pub ran: bool,
    /// What was found, where it is compared.
    pub found: Option<Found>,
}

/// Where an answer is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From memory.
    Memory,
    /// From lookups on the client's connection.
    Lookups,
    /// From a run of the server's procedure.
    Procedure,
}

/// What all sessions know, as far as a decision needs it.
pub trait Knowledge {
    /// Every definition.
    fn definitions(&self) -> &[Definition];
    /// The verdict on a definition in a database, while it counts.
    fn verdict(&self, definition: DefinitionId, database: &[u8]) -> Option<Arc<Verdict>>;
    /// The verdict that was found last, and whether it still counts.
    fn last_verdict(
        &self,
        definition: DefinitionId,
        database: &[u8],
    ) -> Option<(Arc<Verdict>, bool)>;
    /// Takes in a verdict whose questions were asked at this epoch.
    fn record(
        &self,
        definition: DefinitionId,
        database: &[u8],
        verdict: Verdict,
        epoch: u64,
    ) -> Arc<Verdict>;
    /// A client's account sees too little of a definition to check it.
    fn unseen(&self, definition: DefinitionId, reason: &check::Reason);
    /// Counts what may have changed definitions.
    fn epoch(&self) -> u64;
    /// Makes every check due.
    fn expire(&self);
    /// An answer to a call of this definition was wrong.
    fn distrusts(&self, definition: DefinitionId) -> bool;
    /// What a call is to do about the rights of its procedure's definer.
    fn course(&self, definition: DefinitionId, database: &[u8], form: Form, now: Instant)
    -> Course;
    /// A run of the procedure that was sent then has read both tables.
    fn run_succeeded(&self, definition: DefinitionId, database: &[u8], form: Form, sent: Instant);
    /// A run of the procedure was denied.
    fn run_was_denied(&self, definition: DefinitionId, database: &[u8], form: Form);
    /// What is kept of the replies to tails of this text, about messages of this table; `None`: nothing ever is.
    fn rows_of(&self, database: &str, table: &str, text: &str) -> Option<Arc<KeptRows>>;
    /// What earlier lookups saw.
    fn hints(&self) -> impl DerefMut<Target = Hints>;
    /// The server is a node of a Galera cluster, as the service account has found.
    fn is_galera(&self) -> bool {
        false
    }
}

/// Settings that a decision heeds.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
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
pub struct Ownership {
    asked: Asked,
    payload: Vec<u8>,
    policy: Policy,
    stage: Stage,
}

impl Ownership {
    /// Begins with a call whose packet waits.
    #[must_use]
    pub fn new(asked: Asked, payload: Vec<u8>, policy: Policy) -> Self {
        Ownership {
            asked,
            payload,
            policy,
            stage: Stage::Begin,
        }
    }

    /// The call as it was asked for, and its packet's payload.
    #[must_use]
    pub fn into_asked(self) -> (Asked, Vec<u8>) {
        (self.asked, self.payload)
    }

    /// Takes in what was needed, and says what is needed next.
    pub fn next(
        &mut self,
        input: Input,
        session: &mut Commands,
        known: &impl Knowledge,
        now: Instant,
    ) -> Need {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        let mut world = World {
            asked: &self.asked,
            payload: &self.payload,
            policy: self.policy,
            session,
            known,
            now,
        };
        match stage.handle(input, &mut world) {
            Ok((stage, need)) => {
                self.stage = stage;
                need
            }
            Err(Refusal::Relay(reason)) => Need::Relay(reason),
            Err(Refusal::Interrupted(error)) => Need::Interrupted(error),
        }
    }
}
