//! Which transactions memory is made of: where a stream began, and what of it has been applied.

use std::collections::VecDeque;

use headwater_timeline::index::BinlogPosition;

use super::gtid::{CommittedGtid, GtidSet};

/// Transactions that were received and are not applied, of which that is remembered. With more of them it is not known any more what
/// memory is made of.
const MAX_RECEIVED: usize = 1_000_000;

/// Keeps the account.
#[derive(Clone, Debug, Default)]
pub struct AppliedGtids {
    /// All that the log held before the stream; `None` while that is not known.
    base: Option<GtidSet>,
    /// What was applied of the stream.
    applied: GtidSet,
    /// The last one of all.
    last: Option<CommittedGtid>,
    /// What was received behind that.
    received: VecDeque<ReceivedTransaction>,
    /// A transaction had no number.
    incomplete: bool,
}

#[derive(Clone, Debug)]
struct ReceivedTransaction {
    end: BinlogPosition,
    gtid: Option<CommittedGtid>,
}

impl AppliedGtids {
    /// Behind these, and this one as the last.
    #[must_use]
    pub fn starting_after(base: GtidSet, last: CommittedGtid) -> AppliedGtids {
        AppliedGtids {
            base: Some(base),
            last: Some(last),
            ..AppliedGtids::default()
        }
    }

    /// It is known now what the log held before the stream, and which of it was the last.
    pub fn set_base(&mut self, base: GtidSet, last: CommittedGtid) {
        self.base = Some(base);
        self.last.get_or_insert(last);
    }

    /// A transaction was received that ends here.
    pub fn record_received(&mut self, end: BinlogPosition, stamp: Option<CommittedGtid>) {
        self.received
            .push_back(ReceivedTransaction { end, gtid: stamp });
        if self.received.len() > MAX_RECEIVED {
            self.incomplete = true;
            self.received.clear();
        }
    }

    /// Up to here all is applied.
    pub fn mark_applied_to(&mut self, floor: BinlogPosition) {
        let is_applied = |next: &ReceivedTransaction| next.end <= floor;
        while self.received.front().is_some_and(is_applied)
            && let Some(next) = self.received.pop_front()
        {
            match &next.gtid {
                Some(stamp) => self.applied.add(&stamp.gtid),
                None => self.incomplete = true,
            }
            self.last = next.gtid.or(self.last.take());
        }
    }

    /// What was received and not applied is forgotten.
    pub fn forget_received(&mut self) {
        self.received.clear();
    }

    /// The same, or a new one from here on where it is not known what memory is made of.
    #[must_use]
    pub fn or_restart(self) -> AppliedGtids {
        match self.is_known() {
            true => self,
            false => AppliedGtids::default(),
        }
    }

    /// True where it is known what memory is made of.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.base.is_some() && !self.incomplete
    }

    /// All that memory is made of, and the last of it; `None` where that is not known.
    #[must_use]
    pub fn applied(&self) -> Option<(GtidSet, CommittedGtid)> {
        let mut held = self.base.clone().filter(|_| !self.incomplete)?;
        held.add_all(&self.applied);
        Some((held, self.last.clone()?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::gtid::{Gtid, GtidSource};

    fn stamp(number: u64) -> Option<CommittedGtid> {
        let source = GtidSource::Domain {
            domain: 0,
            server: 1,
        };
        let gtid = Gtid { source, number };
        Some(CommittedGtid {
            gtid,
            committed_at: number * 10,
        })
    }

    fn at(offset: u64) -> BinlogPosition {
        BinlogPosition { file: 1, offset }
    }

    fn held(trail: &AppliedGtids) -> (String, u64) {
        let (held, last) = trail.applied().unwrap();
        (held.to_string(), last.committed_at)
    }

    #[test]
    fn what_is_applied_is_held_and_what_was_received_behind_it_is_not() {
        let mut trail = AppliedGtids::default();
        trail.record_received(at(10), stamp(6));
        trail.record_received(at(20), stamp(7));
        trail.record_received(at(30), stamp(8));
        trail.mark_applied_to(at(10));
        assert_eq!(trail.applied(), None, "it is not known what came before");
        let base = GtidSet::parse("0-1-5").unwrap();
        trail.set_base(base, stamp(5).unwrap());
        assert_eq!(held(&trail), ("0-1-6".to_owned(), 60));
        trail.mark_applied_to(at(25));
        assert_eq!(held(&trail), ("0-1-7".to_owned(), 70));
        trail.forget_received();
        trail.mark_applied_to(at(40));
        assert_eq!(held(&trail), ("0-1-7".to_owned(), 70));
        trail.record_received(at(50), None);
        assert!(trail.applied().is_some());
        trail.mark_applied_to(at(50));
        assert_eq!(trail.applied(), None, "one had no number");
    }
}
