//! The row cache: filled from the server's replies, invalidated by its log, and read for pages.
//!
//! A row is invalidated when the log reports a change of its message, before that may be readable. A reply about a message is cached if no
//! earlier change of it could still be unreadable at that time, and none was received since.

use std::sync::Arc;

use headwater_rows::{RowCache, RowLink};
use headwater_session::cached_rows::CacheFill;
use headwater_timeline::index::RowKey;

use super::cached_timeline::CachedTimeline;
use super::candidates::{CandidateMessages, CandidateRequest};
use super::{Binlog, BinlogState, ReplicationMark};
use headwater_log::edits::RowEdits;
use headwater_timeline::index::{BinlogPosition, TimelineChange, TimelineId};

/// Attempts to build a page while the log receives changes.
const TRIES: usize = 3;
/// Replies that wait for a proof before their rows are cached; each is at most `limits.tail_bytes` long.
pub(super) const MAX_PENDING_FILLS: usize = 64;

impl Binlog {
    /// The row cache, if there is one.
    #[must_use]
    pub fn row_cache(&self) -> Option<&Arc<RowCache>> {
        self.row_cache.as_ref()
    }

    /// Runs `make` on a page's messages and rows, all of one moment; with `proves`, of one no earlier than this call.
    pub async fn cached_page<T>(
        &self,
        timeline: &CachedTimeline,
        identity: &[u8],
        request: &CandidateRequest,
        proves: bool,
        make: impl Fn(&CandidateMessages) -> Option<T>,
    ) -> Option<T> {
        let make = || {
            let (candidates, _) = request.newest_messages(&timeline.index()).ok()?;
            make(&candidates)
        };
        self.read_consistently(timeline, identity, proves, make)
            .await
    }

    /// Runs `make` on cached rows, all of one moment; with `proves`, of one no earlier than this call.
    pub async fn read_consistently<T>(
        &self,
        timeline: &CachedTimeline,
        identity: &[u8],
        proves: bool,
        make: impl Fn() -> Option<T>,
    ) -> Option<T> {
        if proves && !self.prove().await {
            return None;
        }
        for _ in 0..TRIES {
            let before = self.version_of(timeline, identity)?;
            let page = make()?;
            if self.version_of(timeline, identity)? == before {
                return Some(page);
            }
        }
        None
    }

    /// A number that changes when anything is received, applied or lost; `None`: this timeline is not served from memory.
    fn version_of(&self, timeline: &CachedTimeline, identity: &[u8]) -> Option<u64> {
        let state = self.state();
        state
            .may_answer(timeline, Some(identity))
            .then(|| state.replication.version())
    }

    /// Caches the rows of a reply. It was requested after `mark`, and a proof has succeeded after it.
    pub fn cache_rows(
        &self,
        timeline: &CachedTimeline,
        identity: &[u8],
        mark: ReplicationMark,
        fill: &CacheFill,
        answer: &[u8],
    ) {
        let Some(rows) = &self.row_cache else {
            return;
        };
        let state = self.state();
        // In another stream the table may be a different one.
        if !state.may_answer(timeline, Some(identity)) || !state.replication.is_proven_since(mark) {
            return;
        }
        let replication = &state.replication;
        let is_same = |row: RowKey| {
            replication.is_streamed(row.table) && replication.is_row_unchanged(mark, row)
        };
        if !fill.lists.iter().all(|reply| is_same(reply.list.whose)) {
            return;
        }
        for reply in &fill.lists {
            if let Some(list) = &reply.reply {
                reply.list.cache(rows, list.as_deref());
            }
        }
        let variant = fill.cache_key();
        for (observed, kept) in fill.observed_rows(answer) {
            let message = RowKey::message(timeline.id(), observed.id);
            let mut others = observed.joined_rows.iter().flatten();
            if replication.is_row_unchanged(mark, message) && others.all(|other| is_same(*other)) {
                let link = |other: &Option<RowKey>| {
                    other.map_or(RowLink::NONE, |other| rows.link_to(other))
                };
                let links: Vec<RowLink> = observed.joined_rows.iter().map(link).collect();
                rows.insert(message, variant, kept, &links);
            }
        }
    }

    /// Caches a reply's rows after a proof that begins from now on, in the background. Drops them if too many replies wait already.
    pub fn cache_rows_later(
        self: &Arc<Self>,
        timeline: Arc<CachedTimeline>,
        identity: Vec<u8>,
        mark: ReplicationMark,
        fill: CacheFill,
        answer: Vec<u8>,
    ) {
        let Ok(permit) = Arc::clone(&self.fill_permits).try_acquire_owned() else {
            return;
        };
        let binlog = Arc::clone(self);
        tokio::spawn(async move {
            if binlog.prove().await {
                binlog.cache_rows(&timeline, &identity, mark, &fill, &answer);
            }
            drop(permit);
        });
    }

    /// Records a transaction of the stream. Its changed rows are invalidated before it can be known to be readable.
    pub(super) fn receive(
        &self,
        state: &mut BinlogState,
        end: BinlogPosition,
        changes: Vec<(TimelineId, TimelineChange)>,
        edits: &RowEdits,
    ) {
        self.invalidate_rows(edits);
        state.replication.push(end, changes, edits);
    }

    /// Invalidates the rows that the log reports as changed.
    pub(super) fn invalidate_rows(&self, edits: &RowEdits) {
        let Some(rows) = &self.row_cache else {
            return;
        };
        edits.rows().for_each(|row| rows.invalidate(row));
        edits
            .whole_tables()
            .for_each(|table| rows.invalidate_table(table));
    }
}
