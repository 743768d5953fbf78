//! Executions of a feed's prepared statement: treated as its text, except for what was prepared.

use super::feed_statements::WaitingPacket;
use super::state::{Session, SessionEnd};
use headwater_session::feed_decision::{FeedDecision, MetadataSample};
use headwater_session::prepared_statements::{FeedExecution, NamedExecution};
use headwater_statement::StatementEffects;
use headwater_wire::packet::HEADER_BYTES;

impl Session {
    /// Serves the waiting execution, or relays it.
    pub(super) async fn serve_execution(
        &mut self,
        length: usize,
        effects: StatementEffects,
        executed: FeedExecution,
    ) -> Result<(), SessionEnd> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default().to_vec();
        let policy = self.feed_policy();
        let decision = FeedDecision::of_execution(payload, executed, policy);
        self.narrow(WaitingPacket::single(length, effects), decision)
            .await
    }

    /// Serves or relays an EXECUTE of a named statement.
    pub(super) async fn serve_named_execution(
        &mut self,
        length: usize,
        effects: StatementEffects,
        executed: NamedExecution,
    ) -> Result<(), SessionEnd> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default().to_vec();
        let policy = self.feed_policy();
        let decision = FeedDecision::of_named(payload, executed, policy);
        self.narrow(WaitingPacket::single(length, effects), decision)
            .await
    }

    /// Relays the waiting execution, with everything it relies on.
    pub(super) fn relay_execution(
        &mut self,
        length: usize,
        effects: StatementEffects,
        statement: u32,
        sample: Option<MetadataSample>,
    ) -> Result<(), SessionEnd> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default();
        let commands = self.machine.commands();
        let rewritten =
            commands.and_then(|it| it.relay_execution(statement, payload, effects, sample));
        let Some(rewritten) = rewritten else {
            return self.relay_from_client(length);
        };
        let whole = rewritten.len();
        self.client_in.splice(..length, rewritten);
        self.relay_from_client(whole)
    }

    /// Writes another statement id into the waiting packet.
    pub(super) fn set_statement_id(&mut self, id: u32) {
        const AT: usize = HEADER_BYTES + 1;
        let id_bytes = id.to_le_bytes();
        if let Some(named) = self.client_in.get_mut(AT..AT + id_bytes.len()) {
            named.copy_from_slice(&id_bytes);
        }
    }
}
