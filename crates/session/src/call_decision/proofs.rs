//! Proves the session's state before a call is served, in one write.

use headwater_lookup::session_probes::{self, TemporaryResultTables};
use headwater_statement::TimelineCall;
use headwater_timeline::check::{DefinitionFacts, ParseWarnings, ProcedureStatus, ServerProduct};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::QueryReply;

use super::call_stage::{CallContext, CallRefusal, EligibleCall, query_error};
use super::proof_plan::{NO_PROCEDURE, ProofPlan, WRONG_ARGUMENT_COUNT};
use super::{CallKnowledge, INTERRUPTED};
use crate::call_relay_reason::CallRelayReason;
use crate::result_table::TableRowCount;
use crate::session_state::{CONTACTS_PER_TIMEOUT, ExecuteRight};

impl<K: CallKnowledge> CallContext<'_, K> {
    pub(super) fn plan(&self, subject: &EligibleCall) -> ProofPlan {
        let EligibleCall { call, facts, .. } = subject;
        let execute = self.execute_is_due(call, facts);
        let warns = facts.parse_warnings != ParseWarnings::None;
        // Only MariaDB's OK packet counts the rows that the call deletes.
        let counts = facts.product == ServerProduct::Mariadb;
        let needs_count = |rows: TableRowCount| counts && rows.known_count().is_none();
        let tables = &self.session.tables;
        let count_result = call.form.fills_result() && needs_count(tables.result);
        let count_heads = call.form.fills_heads() && needs_count(tables.heads);
        let state = &self.session.state;
        ProofPlan {
            settings: !state.are_settings_proven(),
            // The count must be of the temporary table, not of a permanent one with the same name.
            tables: !state.are_tables_proven() || count_result || count_heads,
            execute: execute && !warns,
            count_result,
            count_heads,
            execute_last: execute && warns,
        }
    }

    /// True when this account's right to execute has no recent proof; where the server warns of texts that it parses, also when a routine
    /// may have changed since.
    fn execute_is_due(&self, call: &TimelineCall, facts: &DefinitionFacts) -> bool {
        let state = &self.session.state;
        // Also contacts the server for a session that is served from memory, before `wait_timeout` would end it.
        let lifetime = self
            .policy
            .privileges_ttl
            .min(state.wait_timeout() / CONTACTS_PER_TIMEOUT);
        let warns = facts.parse_warnings != ParseWarnings::None;
        let holds = |right: &ExecuteRight| {
            right.of == (call.definition, call.form)
                && self.now.duration_since(right.at) < lifetime
                && (right.epoch == self.knowledge.epoch() || !warns)
        };
        !state.may_execute().is_some_and(holds)
    }

    /// Takes the replies to [`ProofPlan::queries`]; later ones remain.
    pub(super) fn take_proofs(
        &mut self,
        subject: &EligibleCall,
        plan: ProofPlan,
        answers: &mut impl Iterator<Item = QueryReply>,
    ) -> Result<(), CallRefusal> {
        if plan.settings {
            self.take_settings(answers.next().as_ref())?;
            if self.session.state.database() != Some(&*subject.database) {
                return Err(CallRelayReason::OtherDatabase.into());
            }
        }
        let mut there = TemporaryResultTables::default();
        if plan.tables {
            let lookup = self.lookup(subject)?;
            let count = lookup.temporary_table_queries().len();
            let shadows: Vec<QueryReply> = answers.take(count).collect();
            if let Some(error) = shadows.iter().find_map(interruption_error) {
                return Err(query_error(error));
            }
            there = lookup.check_temporary_tables(&shadows)?;
        }
        if plan.execute {
            self.take_execute(answers.next(), &subject.call, &subject.facts)?;
        }
        self.session.state.tables_proved();
        if plan.count_result {
            self.session.tables.result = row_count(answers.next(), there.result)?;
        }
        if plan.count_heads {
            self.session.tables.heads = row_count(answers.next(), there.heads)?;
        }
        Ok(())
    }

    /// Judges the reply to a call without arguments: only an account that may execute it gets that error.
    pub(super) fn take_execute(
        &mut self,
        answer: Option<QueryReply>,
        call: &TimelineCall,
        facts: &DefinitionFacts,
    ) -> Result<(), CallRefusal> {
        let absent = facts.procedure_status(call.form) == &Ok(ProcedureStatus::Absent);
        match answer {
            Some(QueryReply::Err(error)) if error.code == INTERRUPTED => {
                return Err(query_error(&error));
            }
            Some(QueryReply::Err(error)) if error.code == WRONG_ARGUMENT_COUNT && !absent => {}
            // A server that never had the procedure is served from the definition.
            Some(QueryReply::Err(error)) if error.code != WRONG_ARGUMENT_COUNT && absent => {}
            // The procedure now exists, or is gone: the rights that count are others then.
            Some(QueryReply::Err(error))
                if [NO_PROCEDURE, WRONG_ARGUMENT_COUNT].contains(&error.code) =>
            {
                self.knowledge.expire();
                return Err(CallRelayReason::Definition.into());
            }
            _ => return Err(CallRelayReason::NoExecute.into()),
        }
        self.may_execute(call);
        Ok(())
    }

    /// Records that the server let this account execute the procedure.
    pub(super) fn may_execute(&mut self, call: &TimelineCall) {
        self.session.state.execute_right_proved(ExecuteRight {
            of: (call.definition, call.form),
            at: self.now,
            // A change during the query counts as a change since.
            epoch: self.knowledge.epoch(),
        });
    }
}

fn interruption_error(answer: &QueryReply) -> Option<&ErrPacket> {
    match answer {
        QueryReply::Err(error) if error.code == INTERRUPTED => Some(error),
        _ => None,
    }
}

/// The row count of a table that may not exist.
fn row_count(answer: Option<QueryReply>, there: bool) -> Result<TableRowCount, CallRefusal> {
    match answer {
        Some(QueryReply::Rows(_)) if !there => Ok(TableRowCount::Absent),
        Some(QueryReply::Rows(rows)) => {
            let count = rows.iter().next().and_then(|row| row.u64(0));
            Ok(count.map_or(TableRowCount::Unknown, TableRowCount::Counted))
        }
        Some(QueryReply::Err(error)) if session_probes::is_table_absent(&error) => {
            Ok(TableRowCount::Absent)
        }
        Some(QueryReply::Err(error)) => Err(query_error(&error)),
        _ => Err(CallRelayReason::LookupFailed.into()),
    }
}
