//! The verdict on the definition, and what it leaves to prove.

use std::sync::Arc;

use headwater_lookup::proofs;
use headwater_statement::Call;
use headwater_timeline::check::{self, Facts, ParseWarnings, Procedure, Verdict};
use headwater_wire::command::query_payload;
use headwater_wire::resultset::Answer;

use super::stage::{Placed, Refusal, Stage, Subject, Turn, World, ask};
use super::{Checked, Knowledge, Need, Want};
use crate::asked::Dress;
use crate::reason::Reason;
use crate::rights::Course;

impl<K: Knowledge> World<'_, K> {
    /// The verdict that counts, or a check.
    pub(super) fn verdict(&mut self, placed: Placed) -> Turn {
        let number = placed.call.definition;
        match self.known.verdict(number, &placed.database) {
            Some(verdict) => self.judged(placed, &verdict),
            None => {
                let need = Need::Check {
                    definition: number,
                    database: placed.database.clone(),
                };
                Ok((Stage::Checking(placed), need))
            }
        }
    }

    /// Takes in what came of the service account's check.
    pub(super) fn checked(&mut self, placed: Placed, checked: Checked) -> Turn {
        match checked {
            Checked::Verdict(verdict) => self.judged(placed, &verdict),
            Checked::Slow => Err(Reason::Unchecked.into()),
            Checked::Nobody => self.check_here(placed),
        }
    }

    /// Checks the definition on this session's connection, with its account's eyes.
    fn check_here(&mut self, placed: Placed) -> Turn {
        let in_vain = self.session.standing.checked_in_vain(&placed.database);
        if in_vain.is_some_and(|at| self.now.duration_since(at) < self.policy.recheck) {
            return Err(Reason::Unchecked.into());
        }
        let definition = self.definition(placed.call.definition)?;
        let queries = check::queries(definition, name_of(&placed.database)?);
        let epoch = self.known.epoch();
        Ok((Stage::CheckingHere(placed, epoch), ask(queries)))
    }

    /// Takes in what this session's account sees of the definition.
    pub(super) fn checked_here(
        &mut self,
        placed: Placed,
        epoch: u64,
        answers: Vec<Answer>,
    ) -> Turn {
        let number = placed.call.definition;
        let answered: Vec<_> = answers.into_iter().map(proofs::answered).collect();
        let definition = self.definition(number)?;
        match check::evaluate(definition, name_of(&placed.database)?, &answered) {
            // Another account may see more: what this one does not see is no verdict.
            Verdict::Relay(reason) if reason.may_be_blindness() => {
                self.known.unseen(number, &reason);
                let standing = &mut self.session.standing;
                standing.check_was_in_vain(self.now, placed.database);
                Err(Reason::Unchecked.into())
            }
            verdict => {
                let verdict = self.known.record(number, &placed.database, verdict, epoch);
                self.judged(placed, &verdict)
            }
        }
    }

    /// With the verdict known, the call may be owned as far as its definition goes, or is relayed.
    fn judged(&mut self, placed: Placed, verdict: &Verdict) -> Turn {
        let Verdict::Accelerate(facts) = verdict else {
            return Err(Reason::Definition.into());
        };
        let Placed { call, database } = placed;
        if facts.form(call.form).is_err() {
            return Err(Reason::Definition.into());
        }
        self.heed_parse_warnings(&call, facts)?;
        let subject = Subject {
            payload: self.plain(&call)?,
            call,
            database,
            facts: Arc::clone(facts),
            compared: false,
            ran: false,
        };
        // Where there is no procedure nothing says who may have its answers, but the tables themselves: they are asked.
        if subject.facts.form(subject.call.form) == &Ok(Procedure::Absent) {
            return self.look_up(subject);
        }
        let (number, form) = (subject.call.definition, subject.call.form);
        match self.known.course(number, &subject.database, form, self.now) {
            Course::Relay => Err(Reason::DefinerRights.into()),
            Course::Run => self.prove_and_run(subject),
            Course::Answer => self.ask_memory(subject),
        }
    }

    /// Has memory keep the timeline, and asks it for the page.
    pub(super) fn ask_memory(&mut self, subject: Subject) -> Turn {
        // A lookup ends what the last statement left behind, as the procedure would.
        let want = self.want(&subject, !self.session.standing.has_conditions())?;
        Ok((Stage::Looking(subject), Need::Memory(want)))
    }

    pub(super) fn want(&self, subject: &Subject, now: bool) -> Result<Want, Refusal> {
        Ok(Want {
            definition: subject.call.definition,
            database: subject.database.clone(),
            reader: subject.call.reader,
            bound: subject.call.bound,
            n: self.lookup(subject)?.n(),
            now,
            spread: subject.facts.are_spread(),
        })
    }

    /// The payload by which the same call runs again.
    fn plain(&self, call: &Call) -> Result<Vec<u8>, Refusal> {
        if let Dress::Text = self.asked.dress {
            return Ok(self.payload.to_vec());
        }
        let text = call.written_out(self.known.definitions());
        let text = text.ok_or(Reason::Unchecked)?;
        Ok(query_payload(text.as_bytes(), self.session.capabilities))
    }

    /// A procedure of whose text the server says what cannot be said again is relayed once in a session.
    fn heed_parse_warnings(&mut self, call: &Call, facts: &Facts) -> Result<(), Reason> {
        if facts.parse_warnings != ParseWarnings::Others {
            return Ok(());
        }
        let epoch = self.known.epoch();
        let standing = &mut self.session.standing;
        match standing.leaves_to_parse(call.definition, call.form, epoch) {
            true => Err(Reason::ParseWarnings),
            false => Ok(()),
        }
    }
}

fn name_of(database: &[u8]) -> Result<&str, Reason> {
    std::str::from_utf8(database).map_err(|_| Reason::OtherDatabase)
}
