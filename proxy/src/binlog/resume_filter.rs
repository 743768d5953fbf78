//! Skips transactions that memory has already, in the log of another server than the one it was filled from.

use headwater_log::assembler::TransactionAssembler;
use headwater_log::gtid::CommittedGtid;
use headwater_log::resume_search::{HistoryMismatch, ResumeSearch, TransactionMembership};
use headwater_log::routes::TableRoutes;
use headwater_timeline::index::BinlogPosition;

/// Decides which transactions of a stream are applied.
#[derive(Debug)]
pub(super) struct ResumeFilter {
    /// The running search, and the end of the log when it began.
    seek: Option<(ResumeSearch, BinlogPosition)>,
    /// The current transaction is in memory already, or none has begun yet.
    skips: bool,
    begun: bool,
    /// Routes of no table.
    no_routes: TableRoutes,
}

impl ResumeFilter {
    pub(super) fn new(seek: Option<(ResumeSearch, BinlogPosition)>) -> ResumeFilter {
        ResumeFilter {
            skips: seek.is_some(),
            seek,
            begun: false,
            no_routes: TableRoutes::default(),
        }
    }

    pub(super) fn routes<'a>(&'a self, followed: &'a TableRoutes) -> &'a TableRoutes {
        match self.skips {
            true => &self.no_routes,
            false => followed,
        }
    }

    pub(super) fn receive(
        &mut self,
        events: &mut TransactionAssembler,
    ) -> Result<(), HistoryMismatch> {
        if !events.take_begun() {
            return Ok(());
        }
        self.begun = true;
        if let Some((seek, _)) = &mut self.seek {
            self.skips = seek.observe(events.gtid())? == TransactionMembership::Applied;
        }
        Ok(())
    }

    /// Called between two transactions. The GTID of the one that ended there, if it is to be applied.
    pub(super) fn take_ended(
        &mut self,
        events: &TransactionAssembler,
    ) -> Option<Option<CommittedGtid>> {
        let ended = std::mem::take(&mut self.begun) && !self.skips;
        ended.then(|| events.gtid().cloned())
    }

    /// Records the received position. True once, when nothing is to be skipped any more.
    pub(super) fn reach(&mut self, at: BinlogPosition) -> Result<bool, HistoryMismatch> {
        let Some((seek, _)) = self.seek.take_if(|(_, end)| at >= *end) else {
            return Ok(false);
        };
        self.skips = false;
        seek.finish().map(|()| true)
    }

    /// True if a transaction that ends there was in the log before the stream began: nothing in memory is confirmed yet.
    pub(super) fn is_before(&self, end: BinlogPosition) -> bool {
        self.seek.as_ref().is_some_and(|(_, goal)| end <= *goal)
    }

    /// True while transactions may have to be skipped.
    pub(super) fn is_active(&self) -> bool {
        self.seek.is_some()
    }
}
