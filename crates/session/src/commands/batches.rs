//! Several statements in one command, of which one may be a feed's SELECT.

use super::*;
use crate::step::Part;
use headwater_statement::{Batch, First};

impl Commands {
    /// Such a command: its first statement is taken by itself, where that is certain to be the same.
    pub(super) fn batch(
        &mut self,
        length: usize,
        from: usize,
        batch: Batch,
        payload: &[u8],
    ) -> ClientStep {
        if self.multi_statements != Some(true) {
            return self.text(length, batch.effects, Some(payload));
        }
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        if let Some(step) = self.settle_first(batch.effects, Some(payload)) {
            return step;
        }
        // Attributes would be those of each statement. In frames the numbers depend on what was flushed when.
        let plain = from <= 3 && self.frames.client.is_none() && self.frames.server.is_none();
        let first = match plain {
            true => batch.first,
            false => First::Acts,
        };
        ClientStep::Batch(Box::new(Part {
            length,
            first,
            end: from + batch.end,
            rest: from + batch.rest,
            effects: batch.effects,
        }))
    }

    /// Notes that the first of several statements goes to the server by itself; it only reads.
    pub fn begins_batch(&mut self) {
        self.standing.sends(Effects::NONE, self.is_idle());
    }

    /// How many packets the client was told of the waiting command.
    #[must_use]
    pub fn told_before(&self) -> u8 {
        self.told.unwrap_or(0)
    }

    /// The client was told so many packets of a reply whose rest is to come, behind those before it.
    pub fn goes_on(&mut self, before: u8, packets: usize) {
        let [packets, ..] = packets.to_le_bytes();
        self.told = Some(before.wrapping_add(packets));
    }
}

#[cfg(test)]
#[allow(clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::idle;

    const BATCH: Batch = Batch {
        first: First::Feed,
        end: 8,
        rest: 9,
        effects: Effects::NONE,
    };

    /// What becomes of such a command, whose text stands so far behind its beginning.
    fn step(session: &mut Commands, from: usize) -> Option<First> {
        match session.batch(30, from, BATCH, b"\x03SELECT 1; SELECT 2") {
            ClientStep::Batch(part) => {
                assert_eq!((part.end, part.rest), (from + 8, from + 9));
                Some(part.first)
            }
            ClientStep::Pass(_) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_is_taken_by_itself_where_several_are_taken() {
        let mut session = idle::session(true);
        session.multi_statements = Some(true);
        assert_eq!(step(&mut session, 1), Some(First::Feed));
        // With attributes.
        assert_eq!(step(&mut session, 20), Some(First::Acts));
        for not_certain in [Some(false), None] {
            let mut session = idle::session(true);
            session.multi_statements = not_certain;
            assert_eq!(step(&mut session, 1), None);
        }
    }

    #[test]
    fn a_reply_goes_on_with_the_number_behind_what_was_told() {
        for (told, next) in [(1, 2), (254, 255), (255, 0), (256, 1), (257, 2)] {
            let mut session = idle::session(true);
            session.goes_on(0, told);
            assert!(!session.is_at_rest());
            let mut reply = frame::opening(b"row");
            reply[3] = 1;
            session.numbered(&mut reply, 0);
            assert_eq!(reply[3], next, "behind {told}");
            assert_eq!(session.told, None);
        }
        let mut session = idle::session(true);
        session.goes_on(200, 100);
        assert_eq!(session.told_before(), 44);
    }
}
