//! Served calls: carries out the actions of their decision, and answers the client.

use std::time::{Duration, Instant};

use super::call_counters;
use super::decision_driver::{CallOutcome, DecisionPurpose};
use super::knowledge::SharedCallKnowledge;
use super::log_span::log_in;
use super::memory_access::PageLocation;
use super::session_counters::SessionEvent;
use super::slow_statements::{self, AnsweredStatement};
use super::state::{Session, SessionEnd};
use crate::clock;
use headwater_session::call_decision::{
    AnsweredCall, CallDecision, CallPolicy, RelayedCall, ServedCallSource,
};
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_session::call_request::CallRequest;
use headwater_timeline::{DefinitionId, ProcedureForm};
use headwater_wire::command::query_payload;
use headwater_wire::packet::{self, HEADER_BYTES};
use headwater_wire::response::{ErrPacket, OkPacket};
use headwater_wire::status;

impl Session {
    /// Serves the waiting call, or has the server's procedure answer it.
    pub(super) async fn serve_call(&mut self, request: CallRequest) -> Result<(), SessionEnd> {
        let packet = self.client_in.get(HEADER_BYTES..request.length);
        let payload = packet.unwrap_or_default().to_vec();
        let mut decision = CallDecision::new(request, payload, self.call_policy());
        let begun = clock::now();
        match self
            .drive_call(&mut decision, DecisionPurpose::Serve)
            .await?
        {
            CallOutcome::Answered(answered, location) => {
                self.answer_call(decision, *answered, &location, begun)
            }
            CallOutcome::Relayed(reason) => self.relay_call(decision, reason).await,
            CallOutcome::Interrupted(error) => self.interrupt(decision, &error),
            CallOutcome::ProvesRights | CallOutcome::LoginPending => Ok(()),
        }
    }

    pub(super) fn call_policy(&self) -> CallPolicy {
        let shared = &self.shared;
        CallPolicy {
            accelerate: shared.accelerate,
            pending_ids: shared.limits.pending_ids,
            privileges_ttl: shared.privileges_ttl,
            recheck: Duration::from_millis(shared.limits.recheck_ms),
            case: shared.name_case,
        }
    }

    fn answer_call(
        &mut self,
        decision: CallDecision,
        answered: AnsweredCall,
        location: &PageLocation,
        begun: Instant,
    ) -> Result<(), SessionEnd> {
        let (request, payload) = decision.into_request();
        let call = &answered.call;
        let answer = call_counters::CallAnswer::from(answered.source);
        let watched = &self.shared.measurements;
        self.shared.counters.answered(Some(call.definition), answer);
        watched.record_call(answer, clock::since(begun));
        watched.hot_readers.add(call.definition, call.reader);
        self.call_was_proved = answered.source == ServedCallSource::Memory;
        if self.call_was_proved {
            self.server_was_queried = false;
        }
        if answered.ran {
            self.shared.counters.add(SessionEvent::CallRunForRights);
        }
        self.compare(&answered, location);
        if let Some(took) = self.take_slow_duration() {
            let ids = answered.served.pending.ids.as_ref();
            let slow_statement = AnsweredStatement {
                owner: slow_statements::definition_name(&self.shared, Some(call.definition)),
                rows: ids.map(|ids| ids.len() as u64),
                ..AnsweredStatement::new("call", answer.name())
            };
            self.log_slow(&took, &slow_statement);
        }
        let owned = answered.served;
        let mut ok = OkPacket {
            affected_rows: owned.affected_rows,
            status: owned.status,
            warnings: owned.pending.warnings,
            ..OkPacket::default()
        };
        self.client_in.drain(..request.length);
        let frames = self.frames_before_last();
        let (mut bytes, mut packet) = (Vec::new(), Vec::new());
        let mut goes_on = false;
        if let Some(commands) = self.machine.commands() {
            commands.tables.pending = Some(Box::new(owned.pending));
            if let Some(rest) = request.packet_form.remainder(&payload) {
                ok.status |= status::MORE_RESULTS;
                goes_on = true;
                // It comes next, as its own command, whose reply continues this one.
                let rest = query_payload(rest, commands.capabilities);
                self.client_in.splice(..0, packet::encode_first(&rest));
            }
            ok.write(commands.capabilities, &mut bytes);
            let seq = commands
                .served_call(&request.packet_form)
                .wrapping_add(frames);
            packet::encode(seq, &bytes, &mut packet);
        }
        // With compression, joined replies would be framed differently than the server frames them.
        if goes_on && !self.client.is_compressed() {
            self.deferred_reply.append(&mut packet);
            return Ok(());
        }
        self.send_to_client(&packet)
    }

    async fn relay_call(
        &mut self,
        decision: CallDecision,
        reason: CallRelayReason,
    ) -> Result<(), SessionEnd> {
        let (request, payload) = decision.into_request();
        let procedure = self.procedure_of(&request);
        let definition = procedure.map(|(definition, _)| definition);
        self.shared.counters.relayed(definition, reason);
        log_in!(
            self.span(),
            DEBUG,
            reason = reason.label(),
            "a call is relayed"
        );
        self.advise(reason);
        // The OK packet of the procedure may count the rows it deletes.
        self.flush_pending(false).await?;
        let Some(commands) = self.machine.commands() else {
            return self.relay_from_client(request.length);
        };
        let known = SharedCallKnowledge::new(&self.shared, &self.definer_rights);
        let relayed = RelayedCall::new(&request.call, &commands.state, &known);
        let rewritten = commands.relay_call(&request.packet_form, &payload, relayed.effects);
        commands.state.procedure_relayed(relayed.refused);
        if let (CallRelayReason::ParseWarnings, Some((definition, form))) = (reason, procedure) {
            let epoch = self.shared.catalogue.epoch().count();
            commands.state.procedure_parsed(definition, form, epoch);
        }
        self.relayed_procedure = relayed.known;
        if self.slow_timer.is_some() {
            let of = slow_statements::definition_name(&self.shared, definition);
            self.note_relayed("call", reason.label(), (of, None));
        }
        let Some(rewritten) = rewritten else {
            return self.relay_from_client(request.length);
        };
        let length = rewritten.len();
        self.client_in.splice(..request.length, rewritten);
        self.relay_from_client(length)
    }

    /// The call's definition, if known.
    pub(super) fn definition_of(&mut self, request: &CallRequest) -> Option<DefinitionId> {
        self.procedure_of(request).map(|(definition, _)| definition)
    }

    fn procedure_of(&mut self, request: &CallRequest) -> Option<(DefinitionId, ProcedureForm)> {
        let database = self.machine.commands()?.state.database();
        let definitions = self.shared.catalogue.definitions();
        let (definition, form, _) = request.call.resolve(definitions, database)?;
        Some((definition, form))
    }

    /// Logs what an operator would otherwise learn only from a counter.
    fn advise(&mut self, reason: CallRelayReason) {
        if matches!(
            reason,
            CallRelayReason::AutocommitOff | CallRelayReason::InTransaction
        ) && let Some(commands) = self.machine.commands()
            && commands.state.autocommit_is_off()
        {
            let account = self.machine.account().unwrap_or_default();
            let advice = &self.shared.advice;
            advice.warn_autocommit_off(account, || self.span());
        }
    }

    fn interrupt(&mut self, decision: CallDecision, error: &ErrPacket) -> Result<(), SessionEnd> {
        let (request, _) = decision.into_request();
        self.client_in.drain(..request.length);
        let definition = self.definition_of(&request);
        let counts = &self.shared.counters;
        counts.answered(definition, call_counters::CallAnswer::Interrupted);
        if let Some(took) = self.take_slow_duration() {
            let answered = AnsweredStatement {
                owner: slow_statements::definition_name(&self.shared, definition),
                error: Some(error.code),
                ..AnsweredStatement::new("call", call_counters::CallAnswer::Lookups.name())
            };
            self.log_slow(&took, &answered);
        }
        let (mut bytes, mut packet) = (Vec::new(), Vec::new());
        error.write(&mut bytes);
        packet::encode(1, &bytes, &mut packet);
        let frames = self.frames_before_last();
        if let Some(commands) = self.machine.commands() {
            commands.state.observe_error();
            commands.numbered(&mut packet, frames);
        }
        self.send_to_client(&packet)
    }
}
