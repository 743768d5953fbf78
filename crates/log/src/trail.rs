//! Which transactions memory is made of: where a stream began, and what of it has been applied.

use std::collections::VecDeque;

use headwater_timeline::index::Position;

use super::gtid::{Gtids, Stamp};

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
    /// The last one of all.
    last: Option<Stamp>,
    /// What was received behind that.
    received: VecDeque<Received>,
    /// A transaction had no number.
    broken: bool,
}

#[derive(Clone, Debug)]
struct Received {
    end: Position,
    stamp: Option<Stamp>,
}

impl Trail {
    /// Behind these, and this one as the last.
    #[must_use]
    pub fn behind(base: Gtids, last: Stamp) -> Trail {
        Trail {
            base: Some(base),
            last: Some(last),
            ..Trail::default()
        }
    }

    /// It is known now what the log held before the stream, and which of it was the last.
    pub fn learn_base(&mut self, base: Gtids, last: Stamp) {
        self.base = Some(base);
        self.last.get_or_insert(last);
    }

    /// A transaction was received that ends here.
    pub fn note(&mut self, end: Position, stamp: Option<Stamp>) {
        self.received.push_back(Received { end, stamp });
        if self.received.len() > MOST_RECEIVED {
            self.broken = true;
            self.received.clear();
        }
    }

    /// Up to here all is applied.
    pub fn applied_to(&mut self, floor: Position) {
        let is_applied = |next: &Received| next.end <= floor;
        while self.received.front().is_some_and(is_applied)
            && let Some(next) = self.received.pop_front()
        {
            match &next.stamp {
                Some(stamp) => self.applied.add(&stamp.gtid),
                None => self.broken = true,
            }
            self.last = next.stamp.or(self.last.take());
        }
    }

    /// What was received and not applied is forgotten.
    pub fn forget_received(&mut self) {
        self.received.clear();
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

    /// All that memory is made of, and the last of it; `None` where that is not known.
    #[must_use]
    pub fn held(&self) -> Option<(Gtids, Stamp)> {
        let mut held = self.base.clone().filter(|_| !self.broken)?;
        held.add_all(&self.applied);
        Some((held, self.last.clone()?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::gtid::{Gtid, Source};

    fn stamp(number: u64) -> Option<Stamp> {
        let source = Source::Domain {
            domain: 0,
            server: 1,
        };
        let gtid = Gtid { source, number };
        Some(Stamp {
            gtid,
            at: number * 10,
        })
    }

    fn at(offset: u64) -> Position {
        Position { file: 1, offset }
    }

    fn held(trail: &Trail) -> (String, u64) {
        let (held, last) = trail.held().unwrap();
        (held.to_string(), last.at)
    }

    #[test]
    fn what_is_applied_is_held_and_what_was_received_behind_it_is_not() {
        let mut trail = Trail::default();
        trail.note(at(10), stamp(6));
        trail.note(at(20), stamp(7));
        trail.note(at(30), stamp(8));
        trail.applied_to(at(10));
        assert_eq!(trail.held(), None, "it is not known what came before");
        let base = Gtids::parse("0-1-5").unwrap();
        trail.learn_base(base, stamp(5).unwrap());
        assert_eq!(held(&trail), ("0-1-6".to_owned(), 60));
        trail.applied_to(at(25));
        assert_eq!(held(&trail), ("0-1-7".to_owned(), 70));
        trail.forget_received();
        trail.applied_to(at(40));
        assert_eq!(held(&trail), ("0-1-7".to_owned(), 70));
        trail.note(at(50), None);
        assert!(trail.held().is_some());
        trail.applied_to(at(50));
        assert_eq!(trail.held(), None, "one had no number");
    }
}
