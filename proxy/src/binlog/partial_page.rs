//! One log's share of a page that spans several logs: follow lists, and the part of some authors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Binlog;
use super::cached_timeline::CachedTimeline;
use super::load::LoadRequest;
use super::timeline_memory::TimelineMemory;
use headwater_log::timeline_tables::TimelineTables;
use headwater_timeline::definition::TimelineDefinition;
use headwater_timeline::index::TimelinePage;

/// Some authors' part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialPageRequest {
    /// The authors, ascending.
    pub authors: Vec<u64>,
    /// The highest id.
    pub bound: Option<u64>,
    /// How many authors, and messages of each; 0: their newest ids only.
    pub n: usize,
}

impl PartialPageRequest {
    pub(super) fn partial_page(&self, index: &TimelineMemory) -> Result<TimelinePage, Vec<u64>> {
        index.page_of(&self.authors, self.bound, self.n)
    }
}

impl Binlog {
    /// The timeline of a definition's follow lists in a database, where its messages are on other servers.
    pub fn follow_list_timeline(
        &self,
        definition: &TimelineDefinition,
        database: &str,
    ) -> Option<Arc<CachedTimeline>> {
        self.cached_timeline(TimelineTables::elsewhere(definition, database))
    }

    /// The identity of the server whose log is followed.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        let state = self.state();
        state.server.as_ref().map(|server| server.identity.clone())
    }

    /// The follow list of a reader, if it is in memory.
    #[must_use]
    pub fn follow_list(&self, timeline: &CachedTimeline, reader: u64) -> Option<Vec<u64>> {
        timeline.index().follows(reader)
    }

    /// Loads a reader's follow list. True if it arrives in time.
    pub async fn load_list(&self, timeline: &CachedTimeline, reader: u64) -> bool {
        if timeline.follows_too_many(reader) {
            return false;
        }
        let timeline_id = timeline.id();
        let load = |done| LoadRequest::List {
            timeline: timeline_id,
            reader,
            done,
        };
        self.request_load(load).await
    }

    /// A part of a page, as memory has it now.
    ///
    /// # Errors
    /// The missing authors.
    pub fn partial_page(
        &self,
        timeline: &CachedTimeline,
        part: &PartialPageRequest,
    ) -> Result<TimelinePage, Vec<u64>> {
        part.partial_page(&timeline.index())
    }

    /// Loads what a part lacks. True if it arrives in time.
    pub async fn load_partial_page(
        &self,
        timeline: &CachedTimeline,
        part: PartialPageRequest,
    ) -> bool {
        let timeline = timeline.id();
        self.request_load(|done| LoadRequest::PartialPage {
            timeline,
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

    /// Shares memory with this many other logs from now on. Returns each log's bytes.
    pub fn share_with(&self, others: usize) -> usize {
        self.set_budget_input(&self.sharing_logs, others);
        self.budget(self.timeline_count())
    }

    /// Sets the most bytes of all timelines together.
    pub fn resize(&self, bytes: usize) {
        self.set_budget_input(&self.total_bytes, bytes);
    }

    /// Sets an input of the budgets; if it changed, updates each timeline's budget.
    fn set_budget_input(&self, what: &AtomicUsize, now: usize) {
        if what.swap(now, Ordering::Relaxed) != now {
            let timelines = self.cached_timelines();
            let budget = self.budget(timelines.len());
            timelines
                .iter()
                .for_each(|timeline| timeline.set_budget(budget));
        }
    }

    /// Closes it: no more proofs, loads or pages from this server's log.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.closing.notify_waiters();
        self.discard_memory();
    }

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
