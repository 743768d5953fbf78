//! The set of transactions that memory contains: those before the start of the stream, and those applied from it.

use std::collections::VecDeque;

use headwater_timeline::index::BinlogPosition;

use super::gtid::{CommittedGtid, GtidSet};

/// How many received but not yet applied transactions are tracked. Beyond that, it is no longer known what memory contains.
const MAX_RECEIVED: usize = 1_000_000;

/// Tracks the GTIDs of all applied transactions.
#[derive(Clone, Debug, Default)]
pub struct AppliedGtids {
    /// All transactions that the log contained before the stream; `None` while unknown.
    base: Option<GtidSet>,
    applied: GtidSet,
    last: Option<CommittedGtid>,
    /// Transactions received after `last`.
    received: VecDeque<ReceivedTransaction>,
    /// A transaction had no GTID.
    incomplete: bool,
}

#[derive(Clone, Debug)]
struct ReceivedTransaction {
    end: BinlogPosition,
    gtid: Option<CommittedGtid>,
}

impl AppliedGtids {
    /// Starts after the transactions in `base`, the last of which is `last`.
    #[must_use]
    pub fn starting_after(base: GtidSet, last: CommittedGtid) -> AppliedGtids {
        AppliedGtids {
            base: Some(base),
            last: Some(last),
            ..AppliedGtids::default()
        }
    }

    /// Sets what the log contained before the stream, and the last transaction of that.
    pub fn set_base(&mut self, base: GtidSet, last: CommittedGtid) {
        self.base = Some(base);
        self.last.get_or_insert(last);
    }

    /// Records a received transaction that ends at `end`.
    pub fn record_received(&mut self, end: BinlogPosition, gtid: Option<CommittedGtid>) {
        self.received.push_back(ReceivedTransaction { end, gtid });
        if self.received.len() > MAX_RECEIVED {
            self.incomplete = true;
            self.received.clear();
        }
    }

    /// Marks all transactions that end at `floor` or before as applied.
    pub fn mark_applied_to(&mut self, floor: BinlogPosition) {
        let is_applied = |next: &ReceivedTransaction| next.end <= floor;
        while self.received.front().is_some_and(is_applied)
            && let Some(next) = self.received.pop_front()
        {
            match &next.gtid {
                Some(committed) => self.applied.add(&committed.gtid),
                None => self.incomplete = true,
            }
            self.last = next.gtid.or(self.last.take());
        }
    }

    /// Forgets transactions that were received and not applied.
    pub fn forget_received(&mut self) {
        self.received.clear();
    }

    /// Returns `self`, or an empty account if it is unknown what memory contains.
    #[must_use]
    pub fn or_restart(self) -> AppliedGtids {
        match self.is_known() {
            true => self,
            false => AppliedGtids::default(),
        }
    }

    /// True if it is known which transactions memory contains.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.base.is_some() && !self.incomplete
    }

    /// All transactions that memory contains, and the last of them; `None` if unknown.
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

    fn committed_gtid(number: u64) -> Option<CommittedGtid> {
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

    fn held(applied_gtids: &AppliedGtids) -> (String, u64) {
        let (held, last) = applied_gtids.applied().unwrap();
        (held.to_string(), last.committed_at)
    }

    #[test]
    fn applied_gtids_are_held_and_those_received_after_them_are_not() {
        let mut applied_gtids = AppliedGtids::default();
        applied_gtids.record_received(at(10), committed_gtid(6));
        applied_gtids.record_received(at(20), committed_gtid(7));
        applied_gtids.record_received(at(30), committed_gtid(8));
        applied_gtids.mark_applied_to(at(10));
        assert_eq!(
            applied_gtids.applied(),
            None,
            "it is not known what came before"
        );
        let base = GtidSet::parse("0-1-5").unwrap();
        applied_gtids.set_base(base, committed_gtid(5).unwrap());
        assert_eq!(held(&applied_gtids), ("0-1-6".to_owned(), 60));
        applied_gtids.mark_applied_to(at(25));
        assert_eq!(held(&applied_gtids), ("0-1-7".to_owned(), 70));
        applied_gtids.forget_received();
        applied_gtids.mark_applied_to(at(40));
        assert_eq!(held(&applied_gtids), ("0-1-7".to_owned(), 70));
        applied_gtids.record_received(at(50), None);
        assert!(applied_gtids.applied().is_some());
        applied_gtids.mark_applied_to(at(50));
        assert_eq!(applied_gtids.applied(), None, "one had no number");
    }
}
