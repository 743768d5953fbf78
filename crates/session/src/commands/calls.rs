//! Calls in every form: as a text, with variables, before other statements, prepared.

use super::*;
use headwater_statement::CallBatch;
use headwater_wire::command::LAST_PREPARED;

impl CommandPhase {
    /// A call that waits until the replies before it have ended.
    pub(super) fn request_call(
        &mut self,
        length: usize,
        wanted: RequestedCall,
        packet_form: CallPacketForm,
    ) -> ClientStep {
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        // The call's results replace those of the statement before it.
        self.unseen_selects.clear();
        ClientStep::Call(Box::new(CallRequest {
            length,
            call: wanted,
            packet_form,
        }))
    }

    /// A call with more statements after it.
    pub(super) fn call_of_several(
        &mut self,
        length: usize,
        from: usize,
        several: CallBatch,
        effects: StatementEffects,
    ) -> ClientStep {
        let CallBatch {
            call,
            remainder_start: rest,
        } = several;
        // Without attributes only the command byte and two counts precede the text.
        let plain = from <= 3;
        if self.multi_statements != Some(true) || !plain || call.parameter_count() > 0 {
            return self.relay_text(length, StatementEffects::ALL, None);
        }
        let rest = from + rest;
        let packet_form = CallPacketForm::FirstOfSeveral {
            remainder: rest,
            effects,
        };
        self.request_call(length, RequestedCall::in_session(call), packet_form)
    }

    /// Handles COM_STMT_PREPARE of a text of this class.
    pub(super) fn prepare(
        &mut self,
        class: StatementClass,
        text: &[u8],
        header: PacketHeader,
        input: &[u8],
    ) -> ClientStep {
        if let Some(step) = self.flush_first(StatementEffects::NONE, None) {
            return step;
        }
        let text = PreparedText::new(class, text, self.state.current());
        self.prepared.begin();
        self.begin(
            Command::StmtPrepare,
            ReplyCompletion::Prepared(Box::new(text)),
        );
        self.pass(Command::StmtPrepare, header, input)
    }

    pub(super) fn is_call(&self, command: Command, id: u32) -> bool {
        let call = match self.being_prepared(id) {
            Some(text) => text.is_call(),
            None => self.prepared.is_call(id),
        };
        command == Command::StmtExecute && call
    }

    pub(super) fn execution_effects(&self, id: u32) -> StatementEffects {
        let effects = match self.being_prepared(id) {
            Some(text) => text.effects(),
            None => self.prepared.effects(id),
        };
        self.trusted_effects(effects)
    }

    /// MariaDB's drivers send an execution of the last prepared statement right after its text.
    pub(super) fn being_prepared(&self, id: u32) -> Option<&PreparedText> {
        if id != LAST_PREPARED || !self.server.mariadb {
            return None;
        }
        let mut latest = self.in_flight.iter().rev();
        latest.find_map(|command| match &command.completion {
            ReplyCompletion::Prepared(text) => Some(&**text),
            _ => None,
        })
    }

    pub(super) fn execute(&mut self, id: u32, payload: &[u8]) -> ClientStep {
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        let current = self.state.current();
        let execution = self
            .prepared
            .execution(id, payload, self.capabilities, current);
        let (wanted, dress) = match execution {
            Some(execution) => (
                execution.call,
                CallPacketForm::Prepared(execution.statement),
            ),
            None => (RequestedCall::Unresolvable, CallPacketForm::Prepared(id)),
        };
        self.request_call(HEADER_BYTES + payload.len(), wanted, dress)
    }

    /// Records what a command means for the prepared statement that it names.
    pub(super) fn note_statement_command(&mut self, command: Command, payload: &[u8]) {
        let Some(id) = command::statement_id(payload) else {
            return;
        };
        match command {
            Command::StmtClose => self.prepared.close(id),
            Command::StmtReset => self.prepared.long_data(id, false),
            Command::StmtSendLongData => self.prepared.long_data(id, true),
            Command::StmtBulkExecute if self.prepared.is_feed(id) => {
                drop(self.prepared.relay_unread(id))
            }
            _ => {}
        }
    }

    /// Records that a call is relayed; returns the packet that replaces the client's, if one must.
    /// `effects`: what the procedure may do where its body is not known; one that is known does nothing beyond its tables.
    pub fn relay_call(
        &mut self,
        packet_form: &CallPacketForm,
        payload: &[u8],
        effects: Option<StatementEffects>,
    ) -> Option<Vec<u8>> {
        self.tables.invalidate();
        self.state.call_relayed();
        let mut completion = ReplyCompletion::ProcedureCall(match packet_form {
            CallPacketForm::Prepared(id) => Some(*id),
            _ => None,
        });
        for unknown in effects.iter().chain(packet_form.remainder_effects()) {
            self.apply_effects(*unknown);
            if unknown.next_transaction {
                completion = ReplyCompletion::Nothing;
            }
        }
        let CallPacketForm::Prepared(id) = packet_form else {
            self.begin(Command::Query, completion);
            return None;
        };
        self.begin(Command::StmtExecute, completion);
        let payload = self.payload_with_types(*id, payload)?;
        Some(packet::encode_first(&payload))
    }

    /// Records that a call was served; returns the sequence number of its OK packet.
    pub fn served_call(&mut self, packet_form: &CallPacketForm) -> u8 {
        // A client that asks for them has the call run first.
        self.state.clear_older_conditions();
        let packets_sent = self.packets_sent.take().unwrap_or(0).wrapping_add(1);
        match packet_form {
            CallPacketForm::Prepared(id) => self.prepared.executed_locally(*id),
            CallPacketForm::FirstOfSeveral { .. } => self.packets_sent = Some(packets_sent),
            CallPacketForm::Text | CallPacketForm::Indirect => {}
        }
        packets_sent
    }
}
