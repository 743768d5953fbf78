//! The verdict on the definition, and the proofs that it requires.

use std::sync::Arc;

use headwater_lookup::session_probes;
use headwater_statement::TimelineCall;
use headwater_timeline::check::{
    self, DefinitionFacts, DefinitionVerdict, ParseWarnings, ProcedureStatus,
};
use headwater_wire::command::query_payload;
use headwater_wire::resultset::QueryReply;

use super::call_stage::{
    CallContext, CallRefusal, CallStage, CallTransition, EligibleCall, LocatedCall, query_session,
};
use super::{CallAction, CallKnowledge, CheckOutcome, TimelineRequest};
use crate::call_relay_reason::CallRelayReason;
use crate::call_request::CallPacketForm;
use crate::definer_rights::CallStrategy;

impl<K: CallKnowledge> CallContext<'_, K> {
    /// Uses the valid verdict, or starts a check.
    pub(super) fn verdict(&mut self, located: LocatedCall) -> CallTransition {
        let number = located.call.definition;
        match self.knowledge.verdict(number, &located.database) {
            Some(verdict) => self.verdict_known(located, &verdict),
            None => {
                let need = CallAction::Check {
                    definition: number,
                    database: located.database.clone(),
                };
                Ok((CallStage::Checking(located), need))
            }
        }
    }

    pub(super) fn check_ended(
        &mut self,
        located: LocatedCall,
        checked: CheckOutcome,
    ) -> CallTransition {
        match checked {
            CheckOutcome::Verdict(verdict) => self.verdict_known(located, &verdict),
            CheckOutcome::TimedOut => Err(CallRelayReason::Unchecked.into()),
            CheckOutcome::NoServiceAccount => self.check_in_session(located),
        }
    }

    /// Checks the definition on this session's connection, with its account's rights.
    fn check_in_session(&mut self, located: LocatedCall) -> CallTransition {
        let in_vain = self.session.state.last_failed_check(&located.database);
        if in_vain.is_some_and(|at| self.now.duration_since(at) < self.policy.recheck) {
            return Err(CallRelayReason::Unchecked.into());
        }
        let definition = self.definition(located.call.definition)?;
        let queries = check::queries(definition, name_of(&located.database)?);
        let epoch = self.knowledge.epoch();
        Ok((
            CallStage::CheckingHere(located, epoch),
            query_session(queries),
        ))
    }

    /// Takes what this session's account sees of the definition.
    pub(super) fn session_check_ended(
        &mut self,
        located: LocatedCall,
        epoch: u64,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let number = located.call.definition;
        let answered: Vec<_> = answers
            .into_iter()
            .map(session_probes::to_check_reply)
            .collect();
        let definition = self.definition(number)?;
        match check::evaluate(definition, name_of(&located.database)?, &answered) {
            // Another account may see more: what this account cannot see is no verdict.
            DefinitionVerdict::Relay(reason) if reason.may_lack_privilege() => {
                self.knowledge.unseen(number, &reason);
                let state = &mut self.session.state;
                state.check_failed(self.now, located.database);
                Err(CallRelayReason::Unchecked.into())
            }
            verdict => {
                let verdict = self
                    .knowledge
                    .record(number, &located.database, verdict, epoch);
                self.verdict_known(located, &verdict)
            }
        }
    }

    /// With the verdict known, the call may be served as far as its definition goes, or is relayed.
    fn verdict_known(
        &mut self,
        located: LocatedCall,
        verdict: &DefinitionVerdict,
    ) -> CallTransition {
        let DefinitionVerdict::Accelerate(facts) = verdict else {
            return Err(CallRelayReason::Definition.into());
        };
        let LocatedCall { call, database } = located;
        if facts.procedure_status(call.form).is_err() {
            return Err(CallRelayReason::Definition.into());
        }
        self.relay_for_parse_warnings(&call, facts)?;
        let subject = EligibleCall {
            payload: self.plain_payload(&call)?,
            call,
            database,
            facts: Arc::clone(facts),
            compared: false,
            run_proved: false,
        };
        // Without a procedure only the tables themselves show who may read the answers: query them.
        if subject.facts.procedure_status(subject.call.form) == &Ok(ProcedureStatus::Absent) {
            return self.look_up(subject);
        }
        let (number, form) = (subject.call.definition, subject.call.form);
        match self
            .knowledge
            .strategy(number, &subject.database, form, self.now)
        {
            CallStrategy::Relay => Err(CallRelayReason::DefinerRights.into()),
            CallStrategy::Run => self.prove_and_run(subject),
            CallStrategy::Answer => self.probe_memory(subject),
        }
    }

    /// Has memory cache the timeline, and probes it for the page.
    pub(super) fn probe_memory(&mut self, subject: EligibleCall) -> CallTransition {
        // A lookup clears what the last statement left, as the procedure would.
        let request = self.timeline_request(&subject, !self.session.state.has_conditions())?;
        Ok((
            CallStage::ProbingMemory(subject),
            CallAction::ProbeMemory(request),
        ))
    }

    pub(super) fn timeline_request(
        &self,
        subject: &EligibleCall,
        now: bool,
    ) -> Result<TimelineRequest, CallRefusal> {
        Ok(TimelineRequest {
            definition: subject.call.definition,
            database: subject.database.clone(),
            reader: subject.call.reader,
            bound: subject.call.bound,
            n: self.lookup(subject)?.n(),
            wants_page: now,
            spread: subject.facts.is_spread(),
        })
    }

    fn plain_payload(&self, call: &TimelineCall) -> Result<Vec<u8>, CallRefusal> {
        if let CallPacketForm::Text = self.request.packet_form {
            return Ok(self.payload.to_vec());
        }
        let text = call.to_sql(self.knowledge.definitions());
        let text = text.ok_or(CallRelayReason::Unchecked)?;
        Ok(query_payload(text.as_bytes(), self.session.capabilities))
    }

    /// Relays a procedure once per session where its parse warnings cannot be repeated.
    fn relay_for_parse_warnings(
        &self,
        call: &TimelineCall,
        facts: &DefinitionFacts,
    ) -> Result<(), CallRelayReason> {
        let epoch = self.knowledge.epoch();
        let state = &self.session.state;
        match facts.parse_warnings == ParseWarnings::Others
            && !state.has_parsed(call.definition, call.form, epoch)
        {
            true => Err(CallRelayReason::ParseWarnings),
            false => Ok(()),
        }
    }
}

fn name_of(database: &[u8]) -> Result<&str, CallRelayReason> {
    std::str::from_utf8(database).map_err(|_| CallRelayReason::OtherDatabase)
}
