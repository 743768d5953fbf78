//! A call for which the server runs the procedure, which proves what the procedure's definer may do.
//!
//! Where it can be, the run is for a reader who follows nobody: it takes no locks and costs nothing. That proves all about the
//! newest page, whose cursor is over both tables; and about the bounded page with a run of the newest one beside it, where all
//! procedures have one definer. Elsewhere, and where the server warns of the text that a run has it parse, the run is for the
//! call's own reader, and the call is answered with what it leaves.
//! It comes behind all proofs about the session, so what runs is the known procedure, in the place where the client calls it.

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
/// ER_SP_FETCH_NO_DATA: to MariaDB's procedure, a KILL QUERY that met it at its cursor.
pub(crate) const NO_MORE_ROWS: u16 = 1329;

impl<K: CallKnowledge> CallContext<'_, K> {
    /// What is to be proved of the session is proved before the procedure runs.
    pub(super) fn prove_and_run(&mut self, subject: EligibleCall) -> CallTransition {
        let plan = self.plan(&subject);
        if plan.is_empty() {
            return self.run_probe(subject);
        }
        let need = self.proof_queries(&subject, plan)?;
        Ok((CallStage::ProvingRun(subject, plan), need))
    }

    /// Has the server run the procedure for a reader who follows nobody, and the one for the newest page beside it.
    pub(super) fn run_probe(&mut self, subject: EligibleCall) -> CallTransition {
        let form = subject.call.form;
        let known =
            subject.facts.procedure_status(ProcedureForm::Newest) == &Ok(ProcedureStatus::Known);
        let beside = form == ProcedureForm::Bounded && known;
        // Of a text that is parsed here nothing would be said to the call, should it be relayed after all.
        let warns = subject.facts.parse_warnings != ParseWarnings::None;
        if warns || form != ProcedureForm::Newest && !beside {
            return self.run_for_reader(subject);
        }
        let run = self.begin_run()?;
        let lookup = self.lookup(&subject)?;
        let mut queries = Vec::new();
        if beside {
            queries.push(lookup.empty_call_statement(ProcedureForm::Newest));
            queries.push(lookup.one_definer_query());
        }
        queries.push(lookup.empty_call_statement(form));
        queries.push("DO 0".into());
        Ok((
            CallStage::RunningProbe(subject, run, beside),
            query_session(queries),
        ))
    }

    /// Takes in how that ended.
    pub(super) fn probe_run_ended(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        beside: bool,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let mut answers = answers.into_iter();
        let mut proved = true;
        if beside {
            proved &= matches!(answers.next(), Some(QueryReply::Ok(_)));
            proved &= is_one(answers.next().as_ref());
        }
        self.run_result(subject, run, answers.next(), RunRemainder::ProbeRun(proved))
    }

    /// From here on the timeline is listened to, whatever answers this call; the procedure runs for its own reader.
    fn run_for_reader(&mut self, subject: EligibleCall) -> CallTransition {
        if subject.facts.is_spread() {
            return self.run_procedure(subject);
        }
        let want = self.timeline_request(&subject, false)?;
        Ok((CallStage::Listening(subject), CallAction::Memory(want)))
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

    /// Has the server run the procedure, and reads what it left.
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
        // A question that failed leaves an error behind, which the reply to a COM_PING counts.
        queries.push("DO 0".into());
        let need = CallAction::Query(InternalQueries {
            queries,
            limits: lookup.collect_limits(),
            reads: true,
        });
        Ok((CallStage::Running(subject, run), need))
    }

    /// Takes in how the run ended. What it left is read behind putting the tables back.
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
        left: RunRemainder,
    ) -> CallTransition {
        self.session.tables.invalidate();
        match ended {
            Some(QueryReply::Ok(_)) => {
                self.may_execute(&subject.call);
                self.session.state.set_conditions(false);
                self.restore_tables(subject, run, left)
            }
            Some(QueryReply::Err(error)) => self.run_failed(subject, run, &error),
            // It has become another one, which has rows to show.
            _ => {
                self.knowledge.expire();
                Err(CallRelayReason::Definition.into())
            }
        }
    }

    /// MariaDB counts the rows that a call deletes. Should the procedure run once more for this call, it has to find as many as
    /// it would have found.
    fn restore_tables(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        left: RunRemainder,
    ) -> CallTransition {
        if subject.facts.product != ServerProduct::Mariadb {
            return self.take_remainder(subject, &run, left);
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
            CallStage::RestoringTables(subject, run, left),
            query_session(statements),
        ))
    }

    /// The tables are as they were before the run, but that they are there.
    pub(super) fn tables_restored(
        &mut self,
        subject: EligibleCall,
        run: ProcedureRun,
        left: RunRemainder,
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
        self.take_remainder(subject, &run, left)
    }

    /// Takes in what the run left.
    fn take_remainder(
        &mut self,
        mut subject: EligibleCall,
        run: &ProcedureRun,
        left: RunRemainder,
    ) -> CallTransition {
        let mut answers = match left {
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
        let said = warns.then(|| answers.next()).flatten();
        let form = subject.call.form;
        let mut found = LookupResult::default();
        if form.fills_result() {
            found.ids = read_ids(answers.next())?;
        }
        if form.fills_heads() {
            found.heads = read_heads(answers.next())?;
        }
        if has_read_both(form, found.ids.len(), found.heads.len()) {
            self.note_run_success(&subject, run);
        }
        if self.are_too_many(form, &found) {
            return Err(CallRelayReason::TooManyIds.into());
        }
        match warns {
            true => self.warn_of_text(subject, found, ServedCallSource::Procedure, said),
            false => Ok(self.conclude(subject, found, ServedCallSource::Procedure, 0)),
        }
    }

    /// What the server's error to a run means: the client's own call goes on, and is told it.
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
            // The tables were there by then.
            NO_MORE_ROWS => self.restore_tables(subject, run, RunRemainder::Interrupted),
            _ => Err(self.lookup_failed(&subject, error)),
        }
    }

    /// If this account may execute the procedure, it is the definer who may not execute it, or its helper.
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

/// True for the answer to [`headwater_lookup::CallLookup::one_definer_query`] that says so.
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
