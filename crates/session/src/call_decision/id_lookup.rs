//! Finds a served call's ids: in memory, or by lookups (proofs and heads in one write, then the lists of the heads).

use headwater_lookup::lists::TopAuthorLists;
use headwater_lookup::lookup::LookupResult;
use headwater_lookup::plan::{LookupStep, LookupStepOutcome};
use headwater_timeline::index::TimelinePage;
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{QueryReply, ResultSet};

use super::call_stage::{
    CallContext, CallRefusal, CallStage, CallTransition, EligibleCall, query_error,
};
use super::proof_plan::ProofPlan;
use super::{CallAction, CallKnowledge, InternalQueries, ServedCallSource};
use crate::call_relay_reason::CallRelayReason;

/// Access denied: to the table, a column, the database, the command.
const DENIED_ERRORS: [u16; 5] = [1044, 1045, 1142, 1143, 1227];
/// Transient errors: locked tables (1099, 1100), a lock wait (1205), a deadlock (1213), a changed definition (1412).
const TRANSIENT_ERRORS: [u16; 5] = [1099, 1100, 1205, 1213, 1412];

impl<K: CallKnowledge> CallContext<'_, K> {
    /// If memory is likely to have the page, proves first what needs proof.
    pub(super) fn memory_probed(&mut self, subject: EligibleCall, likely: bool) -> CallTransition {
        if !likely {
            return self.look_up(subject);
        }
        let plan = self.plan(&subject);
        if plan.is_empty() {
            return self.request_page(subject);
        }
        let need = self.proof_queries(&subject, plan)?;
        Ok((CallStage::Proving(subject, plan), need))
    }

    pub(super) fn proof_queries(
        &self,
        subject: &EligibleCall,
        plan: ProofPlan,
    ) -> Result<CallAction, CallRefusal> {
        let lookup = self.lookup(subject)?;
        let mut queries = plan.queries(
            &lookup,
            self.session.probed_server(self.knowledge.is_galera()),
        );
        // A failed query leaves an error, which the reply to a COM_PING counts.
        queries.push("DO 0".into());
        Ok(CallAction::Query(InternalQueries {
            queries,
            limits: lookup.collect_limits(),
            reads: false,
        }))
    }

    /// Requests the page from memory, unless memory is another server's.
    pub(super) fn request_page(&mut self, subject: EligibleCall) -> CallTransition {
        match self.session.state.server() {
            Some(_) => Ok((CallStage::RequestingPage(subject), CallAction::Page)),
            None => self.look_up(subject),
        }
    }

    pub(super) fn page_received(
        &mut self,
        subject: EligibleCall,
        page: Option<TimelinePage>,
    ) -> CallTransition {
        match page {
            Some(page) => {
                let result = LookupResult::from_page(page, subject.call.form);
                self.ids_found(subject, result, ServedCallSource::Memory)
            }
            // A proof became doubtful meanwhile, which happens once: prove again.
            None if !self.session.state.are_tables_proven() => self.memory_probed(subject, true),
            None => self.look_up(subject),
        }
    }

    /// Sends the proofs and the first lookup step in one write.
    pub(super) fn look_up(&mut self, subject: EligibleCall) -> CallTransition {
        // A memory probe may have brought proofs meanwhile.
        let plan = self.plan(&subject);
        let lookup = self.lookup(&subject)?;
        let step = lookup.first_step(&mut self.knowledge.hints());
        let mut queries = plan.queries(
            &lookup,
            self.session.probed_server(self.knowledge.is_galera()),
        );
        queries.push(step.query().to_owned());
        let need = table_queries(queries, &lookup);
        Ok((CallStage::FirstStep(subject, plan, step), need))
    }

    /// Takes the proofs, and the reply to the first lookup step.
    pub(super) fn take_first_step(
        &mut self,
        subject: EligibleCall,
        plan: ProofPlan,
        step: &LookupStep,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let mut answers = answers.into_iter();
        self.take_proofs(&subject, plan, &mut answers)?;
        self.take_heads(subject, step, answers.collect())
    }

    /// Takes the reply to a step towards the heads.
    pub(super) fn take_heads(
        &mut self,
        subject: EligibleCall,
        step: &LookupStep,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let rows = self
            .lookup_rows(&subject, answers)?
            .pop()
            .ok_or(CallRelayReason::LookupFailed)?;
        let lookup = self.lookup(&subject)?;
        let next = lookup.next_step(step, &rows, &mut self.knowledge.hints())?;
        match next {
            LookupStepOutcome::Continue(step) => {
                let need = table_queries(vec![step.query().to_owned()], &lookup);
                Ok((CallStage::Heads(subject, step), need))
            }
            LookupStepOutcome::Heads(heads) => {
                let lists =
                    TopAuthorLists::new(&lookup, heads, &mut self.knowledge.hints().author_ranges);
                self.read_lists(subject, lists)
            }
        }
    }

    pub(super) fn take_lists(
        &mut self,
        subject: EligibleCall,
        mut lists: TopAuthorLists,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let rows = self.lookup_rows(&subject, answers)?;
        lists.read_replies(&self.lookup(&subject)?, &rows)?;
        self.read_lists(subject, lists)
    }

    /// Queries the lists that did not come with the heads.
    fn read_lists(&mut self, subject: EligibleCall, lists: TopAuthorLists) -> CallTransition {
        let lookup = self.lookup(&subject)?;
        let queries = lists.queries(&lookup);
        if !queries.is_empty() {
            let need = table_queries(queries, &lookup);
            return Ok((CallStage::Lists(subject, lists), need));
        }
        let result = lists.into_result(&lookup, &mut self.knowledge.hints().author_ranges)?;
        self.session.state.set_conditions(false);
        self.ids_found(subject, result, ServedCallSource::Lookups)
    }

    fn lookup_rows(
        &mut self,
        subject: &EligibleCall,
        answers: Vec<QueryReply>,
    ) -> Result<Vec<ResultSet>, CallRefusal> {
        let mut all = Vec::new();
        for answer in answers {
            match answer {
                QueryReply::Rows(rows) => all.push(rows),
                QueryReply::Err(error) => return Err(self.lookup_failed(subject, &error)),
                QueryReply::Ok(_) => return Err(CallRelayReason::LookupFailed.into()),
            }
        }
        Ok(all)
    }

    pub(super) fn lookup_failed(
        &mut self,
        subject: &EligibleCall,
        error: &ErrPacket,
    ) -> CallRefusal {
        if DENIED_ERRORS.contains(&error.code) {
            self.session.state.relay_all(CallRelayReason::LookupDenied);
            return CallRelayReason::LookupDenied.into();
        }
        // A permanent failure would cost the next call a second try as well; a data node, however, comes back.
        let refusal = query_error(error);
        if !subject.facts.is_spread()
            && !TRANSIENT_ERRORS.contains(&error.code)
            && let CallRefusal::Relay(reason) = refusal
        {
            self.session.state.relay_all(reason);
        }
        refusal
    }
}

/// Queries that read the tables.
fn table_queries(queries: Vec<String>, lookup: &headwater_lookup::CallLookup<'_>) -> CallAction {
    CallAction::Query(InternalQueries {
        queries,
        limits: lookup.collect_limits(),
        reads: true,
    })
}
