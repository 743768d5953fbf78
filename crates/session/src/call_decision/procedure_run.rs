//! Has the server run the procedure, which proves the rights of its definer.
//!
//! Where possible, the run is for a reader without follows: it takes no locks and costs nothing. That proves everything about the newest
//! page, whose cursor is over both tables; it proves the bounded page together with a run of the newest one, if all procedures have one
//! definer. Elsewhere, and where the server warns of the text that a run parses, the run is for the call's own reader, and its tables are
//! the answer. It follows all proofs about the session: what runs is the known procedure, in the client's current database.

use headwater_lookup::lookup::LookupResult;
use headwater_timeline::check::{ParseWarnings, ProcedureStatus, ServerProduct};
use headwater_timeline::{AuthorHead, ProcedureForm};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{QueryReply, ResultSet};

use super::call_stage::{
    CallContext, CallRefusal, CallStage, CallTransition, EligibleCall, query_error, query_session,
};
use super::proof_plan::{NO_PROCEDURE, WRONG_ARGUMENT_COUNT};
use super::run_remainder::{ProcedureRun, RunRemainder};
use super::{CallAction, CallKnowledge, INTERRUPTED, InternalQueries, ServedCallSource};
use crate::call_relay_reason::CallRelayReason;
use crate::definer_rights::{denies_definer, has_read_both};
use crate::result_table::TableRowCount as Count;

/// ER_PROCACCESS_DENIED_ERROR: the caller may not execute the procedure, or the definer may not execute it or its helper.
const NO_EXECUTE: u16 = 1370;
/// ER_SP_FETCH_NO_DATA: what MariaDB's procedure reports for a KILL QUERY at its cursor.
pub(crate) const NO_MORE_ROWS: u16 = 1329;

impl<K: CallKnowledge> CallContext<'_, K> {
    /// Proves what is missing of the session before the procedure runs.
    pub(super) fn prove_and_run(&mut self, subject: EligibleCall) -> CallTransition {
        let plan = self.plan(&subject);
        if plan.is_empty() {
            return self.run_probe(subject);
        }
        let need = self.proof_queries(&subject, plan)?;
        Ok((CallStage::ProvingRun(subject, plan), need))
    }

    /// Runs the procedure for a reader without follows, together with that of the newest page if needed.
    pub(super) fn run_probe(&mut self, subject: EligibleCall) -> CallTransition {
        let form = subject.call.form;
        let is_proven =
            subject.facts.procedure_status(ProcedureForm::Newest) == &Ok(ProcedureStatus::Known);
        let runs_newest_too = form == ProcedureForm::Bounded && is_proven;
        // Once the text is parsed here, the server would not warn at the call itself, should it be relayed after all.
        let warns = subject.facts.parse_warnings != ParseWarnings::None;
        if warns || form != ProcedureForm::Newest && !runs_newest_too {
            return self.run_for_reader(subject);
        }
        let run = self.begin_run()?;
        let lookup = self.lookup(&subject)?;
        let mut queries = Vec::new();
        if runs_newest_too {
            queries.push(lookup.empty_call_statement(ProcedureForm::Newest));
            queries.push(lookup.one_definer_query());
        }
        queries.push(lookup.empty_call_statement(form));
        queries.push("DO 0".into());
        Ok((
            CallStage::RunningProbe(subject, run, runs_newest_too),
            query_session(queries),
        ))
    }

    pub(super) fn probe_run_ended(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        runs_newest_too: bool,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let mut answers = answers.into_iter();
        let mut proved = true;
        if runs_newest_too {
            proved &= matches!(answers.next(), Some(QueryReply::Ok(_)));
            proved &= is_one(answers.next().as_ref());
        }
        self.run_result(subject, run, answers.next(), RunRemainder::ProbeRun(proved))
    }

    /// Follows the timeline from here on, whatever answers this call; the procedure runs for the call's own reader.
    fn run_for_reader(&mut self, subject: EligibleCall) -> CallTransition {
        if subject.facts.is_spread() {
            return self.run_procedure(subject);
        }
        let request = self.timeline_request(&subject, false)?;
        Ok((
            CallStage::Listening(subject),
            CallAction::ProbeMemory(request),
        ))
    }

    fn begin_run(&self) -> Result<ProcedureRun, CallRefusal> {
        let tables = &self.session.tables;
        let before = [tables.result, tables.heads];
        let most = self.policy.pending_ids as u64;
        match before.iter().any(|count| count.known_count() > Some(most)) {
            true => Err(CallRelayReason::TooManyIds.into()),
            false => Ok(ProcedureRun {
                sent: self.now,
                before,
            }),
        }
    }

    pub(super) fn run_procedure(&mut self, subject: EligibleCall) -> CallTransition {
        let run = self.begin_run()?;
        let lookup = self.lookup(&subject)?;
        let form = subject.call.form;
        let mut queries = vec![lookup.call_statement()];
        if subject.facts.parse_warnings != ParseWarnings::None {
            queries.push("SHOW WARNINGS".into());
        }
        if form.fills_result() {
            queries.push(lookup.ids_left());
        }
        if form.fills_heads() {
            queries.push(lookup.heads_left());
        }
        // A failed query leaves an error, which the reply to a COM_PING counts.
        queries.push("DO 0".into());
        let need = CallAction::Query(InternalQueries {
            queries,
            limits: lookup.collect_limits(),
            reads: true,
        });
        Ok((CallStage::Running(subject, run), need))
    }

    /// Takes the outcome of the run. Its tables are read after the row counts are restored.
    pub(super) fn run_ended(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let mut answers = answers.into_iter();
        let ended = answers.next();
        self.run_result(
            subject,
            run,
            ended,
            RunRemainder::ReaderRun(answers.collect()),
        )
    }

    fn run_result(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        ended: Option<QueryReply>,
        remainder: RunRemainder,
    ) -> CallTransition {
        self.session.tables.invalidate();
        match ended {
            Some(QueryReply::Ok(_)) => {
                self.may_execute(&subject.call);
                self.session.state.set_conditions(false);
                self.restore_tables(subject, run, remainder)
            }
            Some(QueryReply::Err(error)) => self.run_failed(subject, run, &error),
            // It is another procedure by now, which returns rows.
            _ => {
                self.knowledge.expire();
                Err(CallRelayReason::Definition.into())
            }
        }
    }

    /// MariaDB counts the rows that a call deletes. Should the procedure run again for this call, it must find as many rows as before.
    fn restore_tables(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        remainder: RunRemainder,
    ) -> CallTransition {
        if subject.facts.product != ServerProduct::Mariadb {
            return self.take_remainder(subject, &run, remainder);
        }
        let form = subject.call.form;
        let lookup = self.lookup(&subject)?;
        let [result, heads] = run
            .before
            .map(|count| count.known_count().unwrap_or_default());
        let mut statements = Vec::new();
        if form.fills_result() {
            statements.extend(lookup.ids_put_back(result));
        }
        if form.fills_heads() {
            statements.extend(lookup.heads_put_back(heads));
        }
        Ok((
            CallStage::RestoringTables(subject, run, remainder),
            query_session(statements),
        ))
    }

    /// The tables are as before the run, except that they now exist.
    pub(super) fn tables_restored(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        remainder: RunRemainder,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        for answer in answers {
            match answer {
                QueryReply::Ok(_) => {}
                QueryReply::Err(error) => return Err(query_error(&error)),
                QueryReply::Rows(_) => return Err(CallRelayReason::LookupFailed.into()),
            }
        }
        let form = subject.call.form;
        let [result, heads] = run.before;
        let there = |filled, count: Count| match filled {
            true => Count::Counted(count.known_count().unwrap_or_default()),
            false => count,
        };
        self.session.tables.result = there(form.fills_result(), result);
        self.session.tables.heads = there(form.fills_heads(), heads);
        self.take_remainder(subject, &run, remainder)
    }

    fn take_remainder(
        &mut self,
        mut subject: EligibleCall,
        run: &ProcedureRun,
        remainder: RunRemainder,
    ) -> CallTransition {
        let mut answers = match remainder {
            RunRemainder::Interrupted => return Err(CallRelayReason::LookupFailed.into()),
            RunRemainder::ProbeRun(false) => return self.run_for_reader(subject),
            RunRemainder::ProbeRun(true) => {
                self.note_run_success(&subject, run);
                subject.run_proved = true;
                return self.probe_memory(subject);
            }
            RunRemainder::ReaderRun(answers) => answers.into_iter(),
        };
        subject.run_proved = true;
        let warns = subject.facts.parse_warnings != ParseWarnings::None;
        let warnings = warns.then(|| answers.next()).flatten();
        let form = subject.call.form;
        let mut result = LookupResult::default();
        if form.fills_result() {
            result.ids = read_ids(answers.next())?;
        }
        if form.fills_heads() {
            result.heads = read_heads(answers.next())?;
        }
        if has_read_both(form, result.ids.len(), result.heads.len()) {
            self.note_run_success(&subject, run);
        }
        if self.are_too_many(form, &result) {
            return Err(CallRelayReason::TooManyIds.into());
        }
        match warns {
            true => self.warn_of_text(subject, result, ServedCallSource::Procedure, warnings),
            false => Ok(self.conclude(subject, result, ServedCallSource::Procedure, 0)),
        }
    }

    /// The meaning of the server's error to a run: the client's own call is relayed, and returns it.
    fn run_failed(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        error: &ErrPacket,
    ) -> CallTransition {
        match error.code {
            NO_EXECUTE => {
                let lookup = self.lookup(&subject)?;
                let queries = vec![lookup.execute_probe(subject.call.form), "DO 0".into()];
                Ok((CallStage::Denied(subject), query_session(queries)))
            }
            code if denies_definer(code) => Err(self.note_run_denied(&subject)),
            NO_PROCEDURE => {
                self.knowledge.expire();
                Err(CallRelayReason::Definition.into())
            }
            INTERRUPTED => Err(query_error(error)),
            // The tables existed by then.
            NO_MORE_ROWS => self.restore_tables(subject, run, RunRemainder::Interrupted),
            _ => Err(self.lookup_failed(&subject, error)),
        }
    }

    /// If this account may execute the procedure, the definer lacks the right to it or to its helper.
    pub(super) fn denied_party(
        &mut self,
        subject: &EligibleCall,
        answers: &[QueryReply],
    ) -> CallRefusal {
        match answers.first() {
            Some(QueryReply::Err(error)) if error.code == WRONG_ARGUMENT_COUNT => {
                self.note_run_denied(subject)
            }
            _ => CallRelayReason::NoExecute.into(),
        }
    }

    fn note_run_success(&self, subject: &EligibleCall, run: &ProcedureRun) {
        let EligibleCall { call, database, .. } = subject;
        self.knowledge
            .run_succeeded(call.definition, database, call.form, run.sent);
    }

    fn note_run_denied(&self, subject: &EligibleCall) -> CallRefusal {
        let EligibleCall { call, database, .. } = subject;
        self.knowledge
            .run_was_denied(call.definition, database, call.form);
        CallRelayReason::DefinerRights.into()
    }
}

/// True where the reply to [`headwater_lookup::CallLookup::one_definer_query`] is 1.
fn is_one(answer: Option<&QueryReply>) -> bool {
    let Some(QueryReply::Rows(rows)) = answer else {
        return false;
    };
    rows.iter().next().and_then(|row| row.u64(0)) == Some(1)
}

fn read_ids(answer: Option<QueryReply>) -> Result<Vec<u64>, CallRefusal> {
    let rows = remaining_rows(answer)?;
    let ids: Option<Vec<u64>> = rows.iter().map(|row| row.u64(0)).collect();
    let mut ids = ids.ok_or(CallRelayReason::LookupFailed)?;
    ids.sort_unstable_by(|a, b| b.cmp(a));
    Ok(ids)
}

fn read_heads(answer: Option<QueryReply>) -> Result<Vec<AuthorHead>, CallRefusal> {
    let rows = remaining_rows(answer)?;
    let heads: Option<Vec<AuthorHead>> = rows
        .iter()
        .map(|row| {
            let (author, id) = row.u64(0).zip(row.u64(1))?;
            Some(AuthorHead { author, id })
        })
        .collect();
    heads.ok_or_else(|| CallRelayReason::LookupFailed.into())
}

fn remaining_rows(answer: Option<QueryReply>) -> Result<ResultSet, CallRefusal> {
    match answer {
        Some(QueryReply::Rows(rows)) => Ok(rows),
        Some(QueryReply::Err(error)) => Err(query_error(&error)),
        _ => Err(CallRelayReason::LookupFailed.into()),
    }
}
