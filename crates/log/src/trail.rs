//! Which transactions memory is made of: where a stream began, and what of it has been applied.

use std::collections::VecDeque;

use headwater_timeline::index::Position;

use super::edits::Tick;
use super::gtid::{Gtid, Gtids};

/// Transactions that were received and are not applied, of which that is remembered. With more of them it is not known any more what
/// memory is made of.
const MOST_RECEIVED: usize = 1_000_000;

/// Keeps the account.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// All that the log held before the stream; `None` while that is not known.
    base: Option<Gtids>,
    /// What was applied of the stream.
    applied: Gtids,
    /// What was received behind that.
    received: VecDeque<Received>,
    /// A transaction had no number.
    broken: bool,
}

#[derive(Clone, Debug)]
struct Received {
    end: Position,
    gtid: Option<Gtid>,
    /// So many changes of rows were received before it.
    edits: Tick,
}

impl Trail {
    /// Behind these.
    #[must_use]
    pub fn behind(base: Gtids) -> Trail {
        Trail {
            base: Some(base),
            ..Trail::default()
        }
    }

    /// It is known now what the log held before the stream.
    pub fn learn_base(&mut self, base: Gtids) {
        self.base = Some(base);
    }

    /// A transaction was received that ends here, before which so many changes of rows had been.
    pub fn note(&mut self, end: Position, gtid: Option<Gtid>, edits: Tick) {
        self.received.push_back(Received { end, gtid, edits });
        if self.received.len() > MOST_RECEIVED {
            self.broken = true;
            self.received.clear();
        }
    }

    /// Up to here all is applied.
    pub fn applied_to(&mut self, floor: Position) {
        while let Some(next) = self.received.pop_front_if(|next| next.end <= floor) {
            match &next.gtid {
                Some(gtid) => self.applied.add(gtid),
                None => self.broken = true,
            }
        }
    }

    /// What was received and not applied is forgotten. Returns how many changes of rows had been received before that; `None`: there was
    /// none.
    pub fn forget_received(&mut self) -> Option<Tick> {
        let first = self.received.front().map(|next| next.edits);
        self.received.clear();
        first
    }

    /// The same, or a new one from here on where it is not known what memory is made of.
    #[must_use]
    pub fn or_new(self) -> Trail {
        match self.is_known() {
            true => self,
            false => Trail::default(),
        }
    }

    /// True where it is known what memory is made of.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.base.is_some() && !self.broken
    }

    /// All that memory is made of; `None` where that is not known.
    #[must_use]
    pub fn held(&self) -> Option<Gtids> {
        let mut held = self.base.clone().filter(|_| !self.broken)?;
        held.add_all(&self.applied);
        Some(held)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::gtid::Source;

    fn gtid(number: u64) -> Option<Gtid> {
        let source = Source::Domain {
            domain: 0,
            server: 1,
        };
        Some(Gtid { source, number })
    }

    fn at(offset: u64) -> Position {
        Position { file: 1, offset }
    }

    #[test]
    fn what_is_applied_is_held_and_what_was_received_behind_it_is_not() {
        let mut trail = Trail::default();
        trail.note(at(10), gtid(6), 0);
        trail.note(at(20), gtid(7), 3);
        trail.note(at(30), gtid(8), 5);
        trail.applied_to(at(10));
        assert_eq!(trail.held(), None, "it is not known what came before");
        trail.learn_base(Gtids::parse("0-1-5").unwrap());
        assert_eq!(trail.held().unwrap().to_string(), "0-1-6");
        trail.applied_to(at(25));
        assert_eq!(trail.held().unwrap().to_string(), "0-1-7");
        assert_eq!(trail.forget_received(), Some(5));
        assert_eq!(trail.forget_received(), None);
        trail.applied_to(at(40));
        assert_eq!(trail.held().unwrap().to_string(), "0-1-7");
        trail.note(at(50), None, 5);
        assert!(trail.held().is_some());
        trail.applied_to(at(50));
        assert_eq!(trail.held(), None, "one had no number");
    }
}
