//! An execution of a feed's statement: as its text, but for what was prepared.

use super::feed::Waits;
use super::narrowing::{Lesson, Narrowing, Prepare, Reply};
use super::prepared::{Executed, ExecutedByName};
use super::state::{Ended, Session};
use crate::statement::Effects;
use crate::wire::frame::HEADER_BYTES;

impl Session {
    /// Answers the execution whose packet waits, or has it go on as it is.
    pub(super) async fn execution(
        &mut self,
        length: usize,
        effects: Effects,
        executed: Executed,
    ) -> Result<(), Ended> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default().to_vec();
        let policy = self.narrowing_policy();
        let decision = Narrowing::of_execution(payload, executed, policy);
        self.narrow(Waits::alone(length, effects), decision).await
    }

    /// The same by its name.
    pub(super) async fn execution_by_name(
        &mut self,
        length: usize,
        effects: Effects,
        executed: ExecutedByName,
    ) -> Result<(), Ended> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default().to_vec();
        let policy = self.narrowing_policy();
        let decision = Narrowing::of_named(payload, executed, policy);
        self.narrow(Waits::alone(length, effects), decision).await
    }

    /// Prepares a statement of Headwater's own.
    pub(super) async fn prepare_own(&mut self, prepare: &Prepare) -> Result<Reply, Ended> {
        if !prepare.before.is_empty() {
            self.backend
                .link
                .send_all(&prepare.before)
                .await
                .map_err(Ended::Server)?;
        }
        self.run_in_place(&prepare.payload).await
    }

    /// Has the execution that waits go on, with all that it relies on.
    pub(super) fn relay_execution(
        &mut self,
        length: usize,
        effects: Effects,
        statement: u32,
        lesson: Option<Lesson>,
    ) -> Result<(), Ended> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default();
        let commands = self.machine.commands();
        let own = commands.and_then(|it| it.relay_execution(statement, payload, effects, lesson));
        let Some(own) = own else {
            return self.pass_client(length);
        };
        let whole = own.len();
        self.client_in.splice(..length, own);
        self.pass_client(whole)
    }

    /// Gives the packet that waits another statement's id.
    pub(super) fn name_statement(&mut self, id: u32) {
        const AT: usize = HEADER_BYTES + 1;
        let own = id.to_le_bytes();
        if let Some(named) = self.client_in.get_mut(AT..AT + own.len()) {
            named.copy_from_slice(&own);
        }
    }
}
