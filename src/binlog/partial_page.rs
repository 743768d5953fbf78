//! What is taken from this log alone for a page that several logs tell of: follow lists, and the part of some authors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Binlog;
use super::cached_timeline::CachedTimeline;
use super::load::LoadRequest;
use super::timeline_memory::TimelineMemory;
use crate::index::TimelinePage;
use crate::log::timeline_tables::TimelineTables;
use crate::timeline::definition::TimelineDefinition;

/// Some authors' part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialPageRequest {
    /// Whose messages, ascending.
    pub authors: Vec<u64>,
    /// Up to which id.
    pub bound: Option<u64>,
    /// How many authors, and messages of each; 0: their newest ids alone.
    pub n: usize,
}

impl PartialPageRequest {
    pub(super) fn partial_page(&self, index: &TimelineMemory) -> Result<TimelinePage, Vec<u64>> {
        index.page_of(&self.authors, self.bound, self.n)
    }
}

impl Binlog {
    /// The place of a definition's follow lists in a database, where its messages are on other servers.
    pub fn follow_list_timeline(
        &self,
        definition: &TimelineDefinition,
        database: &str,
    ) -> Option<Arc<CachedTimeline>> {
        self.cached_timeline(TimelineTables::elsewhere(definition, database))
    }

    /// Which server's log is followed.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        let state = self.state();
        state.server.as_ref().map(|server| server.identity.clone())
    }

    /// Whom a reader follows, if that is in memory.
    #[must_use]
    pub fn follow_list(&self, place: &CachedTimeline, reader: u64) -> Option<Vec<u64>> {
        place.index().follows(reader)
    }

    /// Has a reader's list loaded. True if it is there soon.
    pub async fn load_list(&self, place: &CachedTimeline, reader: u64) -> bool {
        if place.follows_too_many(reader) {
            return false;
        }
        let place = place.id();
        let load = |done| LoadRequest::List {
            timeline: place,
            reader,
            done,
        };
        self.request_load(load).await
    }

    /// A part of a page, as memory knows it now.
    ///
    /// # Errors
    /// Authors that are missing.
    pub fn partial_page(
        &self,
        place: &CachedTimeline,
        part: &PartialPageRequest,
    ) -> Result<TimelinePage, Vec<u64>> {
        part.partial_page(&place.index())
    }

    /// Has what a part lacks loaded. True if it is there soon.
    pub async fn load_partial_page(
        &self,
        place: &CachedTimeline,
        part: PartialPageRequest,
    ) -> bool {
        let place = place.id();
        self.request_load(|done| LoadRequest::PartialPage {
            timeline: place,
            request: part,
            done,
        })
        .await
    }

    pub(super) async fn request_load(
        &self,
        load: impl FnOnce(oneshot::Sender<bool>) -> LoadRequest,
    ) -> bool {
        let (done, there) = oneshot::channel();
        if self.loads.try_send(load(done)).is_err() {
            return false;
        }
        let limit = Duration::from_millis(self.limits.wait_ms);
        matches!(tokio::time::timeout(limit, there).await, Ok(Ok(true)))
    }

    /// Shares its memory with so many other logs from now on. Returns the bytes of each.
    pub fn share_with(&self, others: usize) -> usize {
        self.set_budget_input(&self.sharing_logs, others);
        self.budget(self.timeline_count())
    }

    /// All timelines together take so much memory at most from now on.
    pub fn resize(&self, bytes: usize) {
        self.set_budget_input(&self.total_bytes, bytes);
    }

    /// Sets what budgets are made of; where it was another, each place has another budget.
    fn set_budget_input(&self, what: &AtomicUsize, now: usize) {
        if what.swap(now, Ordering::Relaxed) != now {
            let places = self.cached_timelines();
            let budget = self.budget(places.len());
            places.iter().for_each(|place| place.set_budget(budget));
        }
    }

    /// Nothing more is proved, loaded or answered: the log of this server is not followed any more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.closing.notify_waiters();
        self.discard_memory();
    }

    /// Waits for that.
    pub(super) async fn wait_until_closed(&self) {
        loop {
            let closing = self.closing.notified();
            if self.closed.load(Ordering::Relaxed) {
                return;
            }
            closing.await;
        }
    }
}
