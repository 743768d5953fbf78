//! COM_STMT_EXECUTE of a feed's SELECT, and the ids of internal statements in the session.

use super::*;
use crate::feed_decision::MetadataSample;
use crate::tls_policy::error_bytes;
use headwater_wire::response::ErrPacket;

/// The longest part of an execution before its parameter types.
const MAX_EXECUTE_HEADER_BYTES: usize = 10 + 9 + MAX_PARAMETERS / 8 + 1;
const MAX_PARAMETERS: usize = 0x1_0000;

impl CommandPhase {
    /// The session's prepared statements, for changes.
    pub(crate) fn prepared_mut(&mut self) -> &mut PreparedStatements {
        &mut self.prepared
    }

    pub(crate) fn prepared(&self) -> &PreparedStatements {
        &self.prepared
    }

    /// The payload that has the server answer a waiting query or execution unchanged; `None`: it is neither. Marks what the server then
    /// knows of the statement.
    pub fn original_payload(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let with_types = match command_of(payload) {
            Command::Query => None,
            Command::StmtExecute => {
                self.payload_with_types(command::statement_id(payload)?, payload)
            }
            _ => return None,
        };
        Some(with_types.unwrap_or_else(|| payload.to_vec()))
    }

    pub(super) fn is_feed(&self, command: Command, id: u32) -> bool {
        let feed = match self.being_prepared(id) {
            Some(text) => text.is_feed(),
            None => self.prepared.is_feed(id),
        };
        command == Command::StmtExecute && feed
    }

    /// The client's id would denote an internal statement to the server: gives the id that the client means.
    pub(super) fn substitute_statement_id(&self, body: &[u8]) -> Option<ClientStep> {
        if !self.prepared.has_internal() {
            return None;
        }
        let command = command_of(body);
        let names_statement = has_statement_id(command) || command == Command::StmtFetch;
        let id = command::statement_id(body).filter(|_| names_statement)?;
        self.prepared
            .substitute_id(id)
            .map(ClientStep::ReplaceStatementId)
    }

    /// An execution of a feed's SELECT; `whole`: it is short enough to be read.
    pub(super) fn execute_feed(
        &mut self,
        id: u32,
        whole: bool,
        header: PacketHeader,
        input: &[u8],
    ) -> ClientStep {
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        let resolved_id = self.prepared.resolve_id(id);
        if resolved_id != id {
            // The last statement before an internal one.
            return ClientStep::ReplaceStatementId(resolved_id);
        }
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        let payload = match (whole, body.get(..header.len)) {
            (true, Some(payload)) => payload,
            (true, None) => return ClientStep::Need,
            (false, _) => return self.execute_unread(id, header, input),
        };
        let effects = self.execution_effects(id);
        let mut earlier = Vec::new();
        if !effects.diagnostics {
            // It is a SELECT, and replaces the row count, or what came before it is recalled.
            earlier = std::mem::take(&mut self.unseen_selects);
        }
        if let Some(step) = self.flush_first(effects, None) {
            return step;
        }
        self.earlier_selects = earlier;
        let current = self.state.current();
        let executed = self.prepared.feed(id, payload, self.capabilities, current);
        match executed {
            Some(executed) => ClientStep::Execution(HEADER_BYTES + header.len, effects, executed),
            None if self.recall_earlier_selects(effects) => self.flush_counts(),
            None => self.relay_other(Command::StmtExecute, header, input),
        }
    }

    /// Relays an execution that is too long to be read. Adds the parameter types where the server has not seen them.
    fn execute_unread(&mut self, id: u32, header: PacketHeader, input: &[u8]) -> ClientStep {
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        let parameters = self.prepared.types(id).map_or(0, |(count, _)| count);
        let flag = command::types_flag_offset(body, parameters, self.capabilities);
        if body.len() < header.len.min(MAX_EXECUTE_HEADER_BYTES) {
            return ClientStep::Need;
        }
        let effects = self.execution_effects(id);
        if let Some(step) = self.flush_first(effects, None) {
            return step;
        }
        let bound = flag.and_then(|flag| body.get(flag));
        let (flag, types) = match (self.prepared.relay_unread(id), flag, bound) {
            (Some(types), Some(flag), Some(0)) => (flag, types),
            _ => return self.relay_other(Command::StmtExecute, header, input),
        };
        let len = header.len + types.len();
        if len >= MAX_BODY {
            return ClientStep::Refuse(packet_too_large());
        }
        let new_header = PacketHeader { len, ..header }.to_bytes();
        self.apply_effects(effects);
        self.begin(Command::StmtExecute, ReplyCompletion::Executed(id, None));
        let head = HEADER_BYTES + flag + 1;
        self.partial_packet = Some(PartialPacket {
            remaining: HEADER_BYTES + header.len - head,
            continued: false,
            has_reply: true,
            renumber: None,
        });
        let before = body.get(..flag).unwrap_or_default();
        ClientStep::replace(head, [&new_header[..], before, &[1], &types].concat())
    }

    /// Records that an execution of a feed's SELECT is relayed, and may be sampled; returns the packet that replaces the client's, if one
    /// must.
    pub fn relay_execution(
        &mut self,
        id: u32,
        payload: &[u8],
        effects: StatementEffects,
        sample: Option<MetadataSample>,
    ) -> Option<Vec<u8>> {
        self.apply_effects(effects);
        let after = ReplyCompletion::Executed(id, sample.map(Box::new));
        self.begin(Command::StmtExecute, after);
        let payload = self.payload_with_types(id, payload)?;
        Some(packet::encode_first(&payload))
    }

    /// Relays an execution: the payload with types, where the server lacks them.
    pub(crate) fn payload_with_types(&mut self, id: u32, payload: &[u8]) -> Option<Vec<u8>> {
        let current = self.state.current();
        self.prepared
            .relay_execution(id, payload, self.capabilities, current)
    }
}

fn packet_too_large() -> Vec<u8> {
    const NET_PACKET_TOO_LARGE: u16 = 1153;
    let error = ErrPacket {
        code: NET_PACKET_TOO_LARGE,
        sqlstate: Some(*b"08S01"),
        message: b"Got a packet bigger than 'max_allowed_packet' bytes".to_vec(),
    };
    error_bytes(1, &error)
}
