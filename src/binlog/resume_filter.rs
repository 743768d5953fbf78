//! What memory has already is passed over, in the log of another server than the one beside which it was filled.

use crate::index::BinlogPosition;
use crate::log::assembler::TransactionAssembler;
use crate::log::gtid::CommittedGtid;
use crate::log::resume_search::{HistoryMismatch, ResumeSearch, TransactionMembership};
use crate::log::routes::TableRoutes;

/// Which of the transactions that a stream tells are to be applied.
#[derive(Debug)]
pub(super) struct ResumeFilter {
    /// What is still looked for, and where the log ended when it was asked for.
    seek: Option<(ResumeSearch, BinlogPosition)>,
    /// The transaction that is being told is in memory already, or there was none yet.
    skips: bool,
    /// One was begun.
    begun: bool,
    /// No table is listened to.
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

    /// The tables that are listened to now.
    pub(super) fn routes<'a>(&'a self, own: &'a TableRoutes) -> &'a TableRoutes {
        match self.skips {
            true => &self.no_routes,
            false => own,
        }
    }

    /// An event was taken in.
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

    /// The log has been told up to between two transactions. The one that ended there, if it is to be applied.
    pub(super) fn take_ended(
        &mut self,
        events: &TransactionAssembler,
    ) -> Option<Option<CommittedGtid>> {
        let ended = std::mem::take(&mut self.begun) && !self.skips;
        ended.then(|| events.gtid().cloned())
    }

    /// The log has been told up to there. True once, where nothing is to be passed over any more.
    pub(super) fn reach(&mut self, at: BinlogPosition) -> Result<bool, HistoryMismatch> {
        let Some((seek, _)) = self.seek.take_if(|(_, end)| at >= *end) else {
            return Ok(false);
        };
        self.skips = false;
        seek.finish().map(|()| true)
    }

    /// True of a transaction that ends there, if it was in the log before the stream began: nothing in memory is confirmed yet.
    pub(super) fn is_before(&self, end: BinlogPosition) -> bool {
        self.seek.as_ref().is_some_and(|(_, goal)| end <= *goal)
    }

    /// True while something may have to be passed over.
    pub(super) fn is_active(&self) -> bool {
        self.seek.is_some()
    }
}
