//! An execution of a feed's statement: as its text, but for what was prepared.

use super::feed_decision::{FeedDecision, InternalReply, MetadataSample, PrepareRequest};
use super::feed_statements::WaitingPacket;
use super::prepared_statements::{FeedExecution, NamedExecution};
use super::state::{Session, SessionEnd};
use crate::statement::StatementEffects;
use crate::wire::packet::HEADER_BYTES;

impl Session {
    /// Answers the execution whose packet waits, or has it go on as it is.
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

    /// The same by its name.
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

    /// Prepares a statement of Headwater's own.
    pub(super) async fn prepare_internal(
        &mut self,
        prepare: &PrepareRequest,
    ) -> Result<InternalReply, SessionEnd> {
        if !prepare.before.is_empty() {
            self.backend
                .link
                .send_all(&prepare.before)
                .await
                .map_err(SessionEnd::ServerClosed)?;
        }
        self.run_in_place(&prepare.payload).await
    }

    /// Has the execution that waits go on, with all that it relies on.
    pub(super) fn relay_execution(
        &mut self,
        length: usize,
        effects: StatementEffects,
        statement: u32,
        lesson: Option<MetadataSample>,
    ) -> Result<(), SessionEnd> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default();
        let commands = self.machine.commands();
        let own = commands.and_then(|it| it.relay_execution(statement, payload, effects, lesson));
        let Some(own) = own else {
            return self.relay_from_client(length);
        };
        let whole = own.len();
        self.client_in.splice(..length, own);
        self.relay_from_client(whole)
    }

    /// Gives the packet that waits another statement's id.
    pub(super) fn set_statement_id(&mut self, id: u32) {
        const AT: usize = HEADER_BYTES + 1;
        let own = id.to_le_bytes();
        if let Some(named) = self.client_in.get_mut(AT..AT + own.len()) {
            named.copy_from_slice(&own);
        }
    }
}
