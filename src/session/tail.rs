//! A tail whose result table is pending: the statement of ours goes out in its place, and its reply is looked at before the
//! client is told.

use super::counts::Event;
use super::knowledge::SharedKnowledge;
use super::ownership::{OwnTail, TailReply};
use super::state::{Ended, Session};
use crate::statement::Tail;
use crate::wire::capability::Capabilities;
use crate::wire::frame::HEADER_BYTES;
use crate::wire::reply::Outcome;

impl Session {
    /// Answers the tail whose packet waits; where the reply could differ from the real join's, the
    /// table is written and the packet goes on as it is.
    pub(super) async fn tail(&mut self, length: usize, tail: &Tail) -> Result<(), Ended> {
        let Some((own, capabilities)) = self.own_tail(length, tail) else {
            return self.settle_and_pass(length).await;
        };
        let limit = self.shared.limits.tail_bytes;
        self.sent = true;
        let mut read = self.backend.run(&own.payload, capabilities, limit).await?;
        let reply = own.judge(read.outcome.as_ref(), read.rows, read.bytes.is_some());
        let Some(bytes) = read.bytes.as_mut().filter(|_| reply != TailReply::PutAside) else {
            self.shared.counts.add(Event::TailRetried);
            return self.settle_and_pass(length).await;
        };
        let text = self.client_in.drain(..length).skip(HEADER_BYTES).collect();
        if let (Some(Outcome::Ok(_)), Some(commands)) = (&read.outcome, self.machine.commands()) {
            if let Some(pending) = &mut commands.tables.pending {
                pending.answered(text);
            }
            self.shared.counts.add(Event::TailVirtual);
        }
        self.tell_in_place(bytes, read.outcome.as_ref())
    }

    /// Tells the client the reply to a statement of ours, as one to its own, whose packet is gone by now.
    pub(super) fn tell_in_place(
        &mut self,
        bytes: &mut [u8],
        outcome: Option<&Outcome>,
    ) -> Result<(), Ended> {
        let frames = self.frames_before_last();
        if let Some(commands) = self.machine.commands() {
            commands.numbered(bytes, frames);
            match outcome {
                Some(Outcome::Ok(ok)) => commands.standing.observe(ok),
                _ => commands.standing.observe_error(),
            }
        }
        self.tell_client(bytes)
    }

    /// The statement of ours in the place of the tail that waits.
    fn own_tail(&mut self, length: usize, tail: &Tail) -> Option<(OwnTail, Capabilities)> {
        let commands = self.machine.commands()?;
        let packet = self.client_in.get(HEADER_BYTES..length)?;
        let known = SharedKnowledge::new(&self.shared, &self.definer_rights);
        let own = OwnTail::new(tail, packet, commands, &known)?;
        Some((own, commands.capabilities))
    }
}
