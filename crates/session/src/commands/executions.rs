//! COM_STMT_EXECUTE of a feed's SELECT, and what Headwater's own statements in the session call for.

use super::*;
use crate::legs::told;
use crate::narrowing::Lesson;
use headwater_wire::response::ErrPacket;

/// Of an execution the part in front of its types is no longer.
const MOST_HEAD: usize = 10 + 9 + MOST_PARAMETERS / 8 + 1;
const MOST_PARAMETERS: usize = 0x1_0000;

impl Commands {
    /// What is prepared.
    pub(crate) fn statements(&mut self) -> &mut Statements {
        &mut self.prepared
    }

    /// What is prepared, to be looked at.
    pub(crate) fn known_statements(&self) -> &Statements {
        &self.prepared
    }

    /// What has the server answer a query or an execution that waits, as it is; `None`: it is neither. The server has seen then what it
    /// has to know of the statement.
    pub fn as_it_is(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let own = match command_of(payload) {
            Command::Query => None,
            Command::StmtExecute => self.typed(command::statement_id(payload)?, payload),
            _ => return None,
        };
        Some(own.unwrap_or_else(|| payload.to_vec()))
    }

    /// Whether this executes a feed's SELECT.
    pub(super) fn is_feed(&self, command: Command, id: u32) -> bool {
        let feed = match self.being_prepared(id) {
            Some(text) => text.is_feed(),
            None => self.prepared.is_feed(id),
        };
        command == Command::StmtExecute && feed
    }

    /// What the client names would be one of Headwater's own statements to the server: it is told what the client means.
    pub(super) fn called_by_its_id(&self, body: &[u8]) -> Option<ClientStep> {
        if !self.prepared.has_own() {
            return None;
        }
        let command = command_of(body);
        let names = names_statement(command) || command == Command::StmtFetch;
        let id = command::statement_id(body).filter(|_| names)?;
        self.prepared.meant(id).map(ClientStep::Statement)
    }

    /// An execution of a feed's SELECT; `whole`: it is not too long to be looked at.
    pub(super) fn execute_feed(
        &mut self,
        id: u32,
        whole: bool,
        header: Header,
        input: &[u8],
    ) -> ClientStep {
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        let called = self.prepared.called(id);
        if called != id {
            // Before one of Headwater's own is the last one.
            return ClientStep::Statement(called);
        }
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        let payload = match (whole, body.get(..header.len)) {
            (true, Some(payload)) => payload,
            (true, None) => return ClientStep::Need,
            (false, _) => return self.execute_unread(id, header, input),
        };
        let effects = self.execution_effects(id);
        if !effects.diagnostics {
            // It is a SELECT, and leaves its own in its place.
            self.take_aside();
        }
        if let Some(step) = self.settle_first(effects, None) {
            return step;
        }
        let current = self.standing.current();
        let executed = self.prepared.feed(id, payload, self.capabilities, current);
        match executed {
            Some(executed) => ClientStep::Execution(HEADER_BYTES + header.len, effects, executed),
            None => self.other(Command::StmtExecute, header, input),
        }
    }

    /// An execution that is too long to be looked at. Where the server has not seen the types that it relies on, they are put in.
    fn execute_unread(&mut self, id: u32, header: Header, input: &[u8]) -> ClientStep {
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        let parameters = self.prepared.types(id).map_or(0, |(count, _)| count);
        let flag = command::types_flag(body, parameters, self.capabilities);
        if body.len() < header.len.min(MOST_HEAD) {
            return ClientStep::Need;
        }
        let effects = self.execution_effects(id);
        if let Some(step) = self.settle_first(effects, None) {
            return step;
        }
        let bound = flag.and_then(|flag| body.get(flag));
        let (flag, types) = match (self.prepared.unread(id), flag, bound) {
            (Some(types), Some(flag), Some(0)) => (flag, types),
            _ => return self.other(Command::StmtExecute, header, input),
        };
        let len = header.len + types.len();
        if len >= MAX_BODY {
            return ClientStep::Refuse(too_long());
        }
        let own = Header { len, ..header }.to_bytes();
        self.disturb(effects);
        self.begin(Command::StmtExecute, After::Executed(id, None));
        let head = HEADER_BYTES + flag + 1;
        self.passing = Some(Passing {
            left: HEADER_BYTES + header.len - head,
            continued: false,
            answered: true,
            renumber: None,
        });
        let before = body.get(..flag).unwrap_or_default();
        ClientStep::replace(head, [&own[..], before, &[1], &types].concat())
    }

    /// Notes that an execution of a feed's SELECT goes on to the server, and may be learned from; the packet that goes in its place, if
    /// it has to be another one.
    pub fn relay_execution(
        &mut self,
        id: u32,
        payload: &[u8],
        effects: Effects,
        lesson: Option<Lesson>,
    ) -> Option<Vec<u8>> {
        self.disturb(effects);
        let after = After::Executed(id, lesson.map(Box::new));
        self.begin(Command::StmtExecute, after);
        let payload = self.typed(id, payload)?;
        Some(frame::opening(&payload))
    }

    /// An execution goes on to the server: the payload that it has to have, where the server lacks the types in it.
    pub(crate) fn typed(&mut self, id: u32, payload: &[u8]) -> Option<Vec<u8>> {
        let current = self.standing.current();
        self.prepared
            .relayed(id, payload, self.capabilities, current)
    }
}

/// As the servers say it.
fn too_long() -> Vec<u8> {
    const NET_PACKET_TOO_LARGE: u16 = 1153;
    let error = ErrPacket {
        code: NET_PACKET_TOO_LARGE,
        sqlstate: Some(*b"08S01"),
        message: b"Got a packet bigger than 'max_allowed_packet' bytes".to_vec(),
    };
    told(1, &error)
}

/// Packets of COM_STMT_CLOSE, which has no reply.
pub(crate) fn closing(ids: Vec<u32>) -> Vec<u8> {
    let close = |id: u32| [&[Command::StmtClose.byte()][..], &id.to_le_bytes()].concat();
    let packets = ids.into_iter().map(|id| frame::opening(&close(id)));
    packets.flatten().collect()
}
