//! The stages of a decision, and what each is handled by.

use std::sync::Arc;
use std::time::Instant;

use headwater_lookup::Unusable;
use headwater_lookup::lists::Lists;
use headwater_lookup::lookup::{Found, Lookup};
use headwater_lookup::plan::Step;
use headwater_statement::{Call, CallStatement};
use headwater_timeline::check::Facts;
use headwater_timeline::definition::{Definition, DefinitionId};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::Answer;

use super::left::{Left, Run};
use super::plan::Plan;
use super::{ASK_LIMITS, Ask, INTERRUPTED, Input, Knowledge, Need, Policy, Source};
use crate::asked::Asked;
use crate::commands::Commands;
use crate::reason::Reason;

/// The connection is being closed: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED (MariaDB), ER_SESSION_WAS_KILLED
/// and ER_CLIENT_INTERACTION_TIMEOUT (MySQL).
const LAST_WORDS: [u16; 4] = [1053, 1927, 3169, 4031];

/// Where a decision stands: each variant holds what is known by then.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing was asked.
    Begin,
    /// The session is asked for the values of the call.
    Values(CallStatement),
    /// The session is asked for its settings alone.
    Settings(Call),
    /// Other tables' ids are written.
    Settling(Placed),
    /// The service account is asked for the verdict.
    Checking(Placed),
    /// The client's session is asked for it.
    CheckingHere(Placed, u64),
    /// Memory is asked whether it has the page.
    Looking(Subject),
    /// What is to be proved is asked for before memory answers.
    Proving(Subject, Plan),
    /// Memory is asked for the page.
    Remembering(Subject),
    /// Proofs and the first step of a lookup are asked for in one write.
    FirstStep(Subject, Plan, Step),
    /// The heads are looked up.
    Heads(Subject, Step),
    /// The lists behind the heads are looked up.
    Lists(Subject, Lists),
    /// The procedure runs for a reader who follows nobody, and that of the newest page beside it or not.
    RunningForNobody(Subject, Run, bool),
    /// The timeline is listened to from here on, and the procedure runs for the call's own reader.
    Listening(Subject),
    /// What is to be proved is asked for before the procedure runs.
    ProvingRun(Subject, Plan),
    /// The procedure runs, and what it leaves is read.
    Running(Subject, Run),
    /// The tables get as many rows as they had before the run.
    PuttingBack(Subject, Run, Left),
    /// Somebody may not execute something: the account, or the definer.
    Denied(Subject),
    /// The right to execute is asked for behind all else.
    ExecuteLast(Subject, Found, Source),
    /// The server is told to warn again.
    WarnAgain(Subject, Found, Source, bool),
    /// A need was told that ends it.
    Ended,
}

/// A call, and the definition and database that it belongs to.
#[derive(Debug)]
pub(super) struct Placed {
    /// Its `definition` is the number.
    pub(super) call: Call,
    pub(super) database: Vec<u8>,
}

/// A call that may be owned as far as its definition goes.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) call: Call,
    pub(super) database: Vec<u8>,
    pub(super) facts: Arc<Facts>,
    /// The payload by which the same call runs again, whatever the session's variables have become.
    pub(super) payload: Vec<u8>,
    /// The answer is compared with the procedure's.
    pub(super) compared: bool,
    /// A run has proved the definer's rights.
    pub(super) ran: bool,
}

/// Why a call is not owned after all.
#[derive(Debug)]
pub(super) enum Refusal {
    Relay(Reason),
    /// The lookups were interrupted: the client is told, as it would be of the procedure.
    Interrupted(ErrPacket),
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Refusal::Relay(reason)
    }
}

impl From<Unusable> for Refusal {
    fn from(unusable: Unusable) -> Self {
        Refusal::Relay(unusable.into())
    }
}

/// The next stage, and what it needs.
pub(super) type Turn = Result<(Stage, Need), Refusal>;

/// What a stage looks at.
pub(super) struct World<'a, K> {
    pub(super) asked: &'a Asked,
    pub(super) payload: &'a [u8],
    pub(super) policy: Policy,
    pub(super) session: &'a mut Commands,
    pub(super) known: &'a K,
    pub(super) now: Instant,
}

impl<K: Knowledge> World<'_, K> {
    pub(super) fn definition(&self, number: DefinitionId) -> Result<&Definition, Refusal> {
        let definition = number.of(self.known.definitions());
        definition.ok_or_else(|| Reason::OtherDatabase.into())
    }

    /// The call in terms of SQL.
    pub(super) fn lookup<'s>(&'s self, subject: &'s Subject) -> Result<Lookup<'s>, Refusal> {
        Ok(Lookup {
            definition: self.definition(subject.call.definition)?,
            facts: &subject.facts,
            database: &subject.database,
            call: &subject.call,
            most: self.policy.pending_ids,
        })
    }
}

impl Stage {
    /// Takes in what this stage needed.
    pub(super) fn handle<K: Knowledge>(self, input: Input, world: &mut World<'_, K>) -> Turn {
        match (self, input) {
            (Stage::Begin, Input::Begin) => world.begin(),
            (Stage::Values(statement), Input::Answers(answers)) => {
                world.take_values(&statement, answers)
            }
            (Stage::Settings(call), Input::Answers(answers)) => {
                world.take_settings(answers.first())?;
                world.place(call)
            }
            (Stage::Settling(placed), Input::Settled) => world.turn(placed),
            (Stage::Checking(placed), Input::Checked(checked)) => world.checked(placed, checked),
            (Stage::CheckingHere(placed, epoch), Input::Answers(answers)) => {
                world.checked_here(placed, epoch, answers)
            }
            (Stage::Looking(subject), Input::Likely { likely, compared }) => {
                let subject = Subject {
                    compared,
                    ..subject
                };
                world.looked(subject, likely)
            }
            (Stage::Proving(subject, plan), Input::Answers(answers)) => {
                world.take_proofs(&subject, plan, &mut answers.into_iter())?;
                world.remember(subject)
            }
            (Stage::Remembering(subject), Input::Page(page)) => world.remembered(subject, page),
            (Stage::FirstStep(subject, plan, step), Input::Answers(answers)) => {
                world.first_step(subject, plan, &step, answers)
            }
            (Stage::Heads(subject, step), Input::Answers(answers)) => {
                world.heads(subject, &step, answers)
            }
            (Stage::Lists(subject, lists), Input::Answers(answers)) => {
                world.lists(subject, lists, answers)
            }
            (Stage::RunningForNobody(subject, run, beside), Input::Answers(answers)) => {
                world.ran_for_nobody(subject, run, beside, answers)
            }
            (Stage::Listening(subject), Input::Likely { compared, .. }) => {
                let subject = Subject {
                    compared,
                    ..subject
                };
                world.run(subject)
            }
            (Stage::ProvingRun(subject, plan), Input::Answers(answers)) => {
                world.take_proofs(&subject, plan, &mut answers.into_iter())?;
                world.run_for_nobody(subject)
            }
            (Stage::Running(subject, run), Input::Answers(answers)) => {
                world.ran(subject, run, answers)
            }
            (Stage::PuttingBack(subject, run, left), Input::Answers(answers)) => {
                world.was_put_back(subject, run, left, answers)
            }
            (Stage::Denied(subject), Input::Answers(answers)) => {
                Err(world.who_is_denied(&subject, &answers))
            }
            (Stage::ExecuteLast(subject, found, source), Input::Answers(answers)) => {
                world.take_execute_last(subject, found, source, answers)
            }
            (Stage::WarnAgain(subject, found, source, others), Input::Answers(answers)) => {
                world.warned_again(subject, found, source, others, answers)
            }
            // Only a driver that fetches something else than what is needed gets here.
            _ => Err(Reason::LookupFailed.into()),
        }
    }
}

/// What an error in answer to a question of ours means.
pub(super) fn failed(error: &ErrPacket) -> Refusal {
    if error.code == INTERRUPTED || LAST_WORDS.contains(&error.code) {
        return Refusal::Interrupted(error.clone());
    }
    Reason::LookupFailed.into()
}

/// Questions about the session, which read no table.
pub(super) fn ask(queries: Vec<String>) -> Need {
    Need::Ask(Ask {
        queries,
        limits: ASK_LIMITS,
        reads: false,
    })
}

/// The first of several answers.
pub(super) fn first(answers: Vec<Answer>) -> Option<Answer> {
    answers.into_iter().next()
}
