//! Several statements in one command, one of which may be a feed's SELECT.

use super::*;
use crate::machine_step::BatchPart;
use headwater_statement::{FeedBatch, FirstStatement};

impl CommandPhase {
    /// Handles such a command: its first statement runs by itself, where the result is certain to be the same.
    pub(super) fn batch(
        &mut self,
        length: usize,
        from: usize,
        batch: FeedBatch,
        payload: &[u8],
    ) -> ClientStep {
        if self.multi_statements != Some(true) {
            return self.relay_text(length, batch.effects, Some(payload));
        }
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        if let Some(step) = self.flush_first(batch.effects, Some(payload)) {
            return step;
        }
        // Attributes would belong to each statement. In compressed frames the numbers depend on when the server flushed.
        let plain = from <= 3
            && self.compression_frames.client.is_none()
            && self.compression_frames.server.is_none();
        let first = match plain {
            true => batch.first,
            false => FirstStatement::Other,
        };
        ClientStep::Batch(Box::new(BatchPart {
            length,
            first,
            end: from + batch.first_end,
            remainder: from + batch.remainder_start,
            effects: batch.effects,
        }))
    }

    /// Records that the first of several statements goes to the server by itself; it only reads.
    pub fn begins_batch(&mut self) {
        self.state
            .command_sent(StatementEffects::NONE, self.is_idle());
    }

    /// How many packets of the waiting command's reply the client has received.
    #[must_use]
    pub fn packets_sent(&self) -> u8 {
        self.packets_sent.unwrap_or(0)
    }

    /// The client received this many packets of an unfinished reply, after those of `before`.
    pub fn continue_reply(&mut self, before: u8, packets: usize) {
        let [packets, ..] = packets.to_le_bytes();
        self.packets_sent = Some(before.wrapping_add(packets));
    }
}

#[cfg(test)]
#[allow(clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::idle_session;

    const BATCH: FeedBatch = FeedBatch {
        first: FirstStatement::Feed,
        first_end: 8,
        remainder_start: 9,
        effects: StatementEffects::NONE,
    };

    /// The step for such a command, whose text begins at this offset.
    fn step(session: &mut CommandPhase, from: usize) -> Option<FirstStatement> {
        match session.batch(30, from, BATCH, b"\x03SELECT 1; SELECT 2") {
            ClientStep::Batch(part) => {
                assert_eq!((part.end, part.remainder), (from + 8, from + 9));
                Some(part.first)
            }
            ClientStep::Pass(_) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_is_taken_by_itself_where_several_are_taken() {
        let mut session = idle_session::session(true);
        session.multi_statements = Some(true);
        assert_eq!(step(&mut session, 1), Some(FirstStatement::Feed));
        // With attributes.
        assert_eq!(step(&mut session, 20), Some(FirstStatement::Other));
        for not_certain in [Some(false), None] {
            let mut session = idle_session::session(true);
            session.multi_statements = not_certain;
            assert_eq!(step(&mut session, 1), None);
        }
    }

    #[test]
    fn a_reply_continues_with_the_number_after_the_packets_sent() {
        for (told, next) in [(1, 2), (254, 255), (255, 0), (256, 1), (257, 2)] {
            let mut session = idle_session::session(true);
            session.continue_reply(0, told);
            assert!(!session.is_at_rest());
            let mut reply = packet::encode_first(b"row");
            reply[3] = 1;
            session.numbered(&mut reply, 0);
            assert_eq!(reply[3], next, "behind {told}");
            assert_eq!(session.packets_sent, None);
        }
        let mut session = idle_session::session(true);
        session.continue_reply(200, 100);
        assert_eq!(session.packets_sent(), 44);
    }
}
