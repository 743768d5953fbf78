//! What has to be proved of the session before a call is owned, asked for in one write.

use headwater_lookup::proofs::{self, ResultTablesThere};
use headwater_statement::Call;
use headwater_timeline::check::{Facts, ParseWarnings, Procedure, Product};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::Answer;

use super::plan::{NO_PROCEDURE, Plan, WRONG_ARGUMENT_COUNT};
use super::stage::{Refusal, Subject, World, failed};
use super::{INTERRUPTED, Knowledge};
use crate::reason::Reason;
use crate::result_table::Rows;
use crate::standing::{ExecuteRight, HEARD_OF};

impl<K: Knowledge> World<'_, K> {
    /// What is not known of the session now.
    pub(super) fn plan(&self, subject: &Subject) -> Plan {
        let Subject { call, facts, .. } = subject;
        let execute = self.execute_is_due(call, facts);
        let warns = facts.parse_warnings != ParseWarnings::None;
        // Only MariaDB's OK packet counts the rows that the call deletes.
        let counts = facts.product == Product::Mariadb;
        let unknown = |rows: Rows| counts && rows.known().is_none();
        let tables = &self.session.tables;
        let count_result = call.form.fills_result() && unknown(tables.result);
        let count_heads = call.form.fills_heads() && unknown(tables.heads);
        let standing = &self.session.standing;
        Plan {
            settings: !standing.are_settings_proven(),
            // What is counted must be the temporary table, not a permanent one of its name.
            tables: !standing.are_tables_proven() || count_result || count_heads,
            execute: execute && !warns,
            count_result,
            count_heads,
            execute_last: execute && warns,
        }
    }

    /// True when the right to execute is not proven for this account, or was so too long ago; where the server warns of texts that it
    /// parses, also when a routine may have changed since.
    fn execute_is_due(&self, call: &Call, facts: &Facts) -> bool {
        let standing = &self.session.standing;
        // It has the server hear of a session that is answered from memory, before it would end that.
        let lifetime = self
            .policy
            .privileges_ttl
            .min(standing.wait_timeout() / HEARD_OF);
        let warns = facts.parse_warnings != ParseWarnings::None;
        let holds = |right: &ExecuteRight| {
            right.of == (call.definition, call.form)
                && self.now.duration_since(right.at) < lifetime
                && (right.epoch == self.known.epoch() || !warns)
        };
        !standing.may_execute().is_some_and(holds)
    }

    /// Takes in the answers to [`Plan::queries`]; those behind them are left.
    pub(super) fn take_proofs(
        &mut self,
        subject: &Subject,
        plan: Plan,
        answers: &mut impl Iterator<Item = Answer>,
    ) -> Result<(), Refusal> {
        if plan.settings {
            self.take_settings(answers.next().as_ref())?;
            if self.session.standing.database() != Some(&*subject.database) {
                return Err(Reason::OtherDatabase.into());
            }
        }
        let mut there = ResultTablesThere::default();
        if plan.tables {
            let lookup = self.lookup(subject)?;
            let count = lookup.shadow_queries().len();
            let shadows: Vec<Answer> = answers.take(count).collect();
            if let Some(error) = shadows.iter().find_map(interruption) {
                return Err(failed(error));
            }
            there = lookup.judge_shadows(&shadows)?;
        }
        if plan.execute {
            self.take_execute(answers.next(), &subject.call, &subject.facts)?;
        }
        self.session.standing.tables_proved();
        if plan.count_result {
            self.session.tables.result = counted(answers.next(), there.result)?;
        }
        if plan.count_heads {
            self.session.tables.heads = counted(answers.next(), there.heads)?;
        }
        Ok(())
    }

    /// Judges the answer to a call without arguments: only who may execute it is told of those.
    pub(super) fn take_execute(
        &mut self,
        answer: Option<Answer>,
        call: &Call,
        facts: &Facts,
    ) -> Result<(), Refusal> {
        let absent = facts.form(call.form) == &Ok(Procedure::Absent);
        match answer {
            Some(Answer::Err(error)) if error.code == INTERRUPTED => return Err(failed(&error)),
            Some(Answer::Err(error)) if error.code == WRONG_ARGUMENT_COUNT && !absent => {}
            // A server that never had the procedure is served from the definition.
            Some(Answer::Err(error)) if error.code != WRONG_ARGUMENT_COUNT && absent => {}
            // It is there now, or gone: whose rights count is another matter then.
            Some(Answer::Err(error))
                if [NO_PROCEDURE, WRONG_ARGUMENT_COUNT].contains(&error.code) =>
            {
                self.known.expire();
                return Err(Reason::Definition.into());
            }
            _ => return Err(Reason::NoExecute.into()),
        }
        self.may_execute(call);
        Ok(())
    }

    /// The server has let this account execute the procedure.
    pub(super) fn may_execute(&mut self, call: &Call) {
        self.session.standing.execute_proved(ExecuteRight {
            of: (call.definition, call.form),
            at: self.now,
            // What changed while it was asked for counts as a change since.
            epoch: self.known.epoch(),
        });
    }
}

fn interruption(answer: &Answer) -> Option<&ErrPacket> {
    match answer {
        Answer::Err(error) if error.code == INTERRUPTED => Some(error),
        _ => None,
    }
}

/// The rows of a table that may not be there.
fn counted(answer: Option<Answer>, there: bool) -> Result<Rows, Refusal> {
    match answer {
        Some(Answer::Rows(_)) if !there => Ok(Rows::Absent),
        Some(Answer::Rows(rows)) => {
            let count = rows.iter().next().and_then(|row| row.u64(0));
            Ok(count.map_or(Rows::Unknown, Rows::Counted))
        }
        Some(Answer::Err(error)) if proofs::is_absent(&error) => Ok(Rows::Absent),
        Some(Answer::Err(error)) => Err(failed(&error)),
        _ => Err(Reason::LookupFailed.into()),
    }
}
