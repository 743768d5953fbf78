//! The row cache: filled from the server's replies, invalidated by its log, and read for pages.
//!
//! A row is invalidated when the log reports a change of its message, before that may be readable. A reply about a message is cached if no
//! earlier change of it could still be unreadable at that time, and none was received since.

use std::sync::Arc;

use headwater_rows::{CachedRow, RowCache, RowLink};
use headwater_session::cached_rows::{CacheFill, QueriedAuthorList};
use headwater_session::feed_decision::CountFill;
use headwater_session::feed_decision::count::cache_count;
use headwater_timeline::index::RowKey;

use super::cached_timeline::CachedTimeline;
use super::candidates::{CandidateMessages, CandidateRequest};
use super::{Binlog, BinlogState, ReplicationMark};
use headwater_log::edits::RowEdits;
use headwater_timeline::index::{BinlogPosition, TableId, TimelineChange, TimelineId};

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

    /// True if the log tells of changes of all of these tables by now.
    pub fn are_streamed(&self, mut tables: impl Iterator<Item = TableId>) -> bool {
        let state = self.state();
        tables.all(|table| state.replication.is_streamed(table))
    }

    /// True if the log shows no change of these rows since the mark, and whatever it showed before was readable then.
    pub fn are_rows_unchanged(
        &self,
        mark: ReplicationMark,
        mut rows: impl Iterator<Item = RowKey>,
    ) -> bool {
        let state = self.state();
        rows.all(|row| self.is_unchanged(&state, mark, row))
    }

    /// True if the log shows no change of the row since the mark, and whatever it showed before was readable then. Where a change is not known to be
    /// readable, it is to be proved now: until then, nothing that is read of the row is cached.
    fn is_unchanged(&self, state: &BinlogState, mark: ReplicationMark, row: RowKey) -> bool {
        let replication = &state.replication;
        let is_same = replication.is_streamed(row.table) && replication.is_row_unchanged(mark, row);
        if !is_same && replication.has_unread_edits() {
            self.edits_wanted.notify_one();
        }
        is_same
    }

    /// Caches lists of authors. False: since the mark, one of them has changed, or all may have.
    fn cache_lists(
        &self,
        (state, rows): (&BinlogState, &RowCache),
        mark: ReplicationMark,
        lists: &[QueriedAuthorList],
    ) -> bool {
        let is_same = |reply: &QueriedAuthorList| self.is_unchanged(state, mark, reply.list.whose);
        if !state.replication.is_proven_since(mark) || !lists.iter().all(is_same) {
            return false;
        }
        for reply in lists {
            if let Some(list) = &reply.reply {
                reply.list.cache(rows, list.as_deref());
            }
        }
        true
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
        if !state.may_answer(timeline, Some(identity))
            || !self.cache_lists((&state, rows), mark, &fill.lists)
        {
            return;
        }
        let is_same = |row: RowKey| self.is_unchanged(&state, mark, row);
        let variant = fill.cache_key();
        for (observed, kept) in fill.observed_rows(answer) {
            let message = RowKey::message(timeline.id(), observed.id);
            let mut others = observed.joined_rows.iter().flatten();
            if is_same(message) && others.all(|other| is_same(*other)) {
                let link = |other: &Option<RowKey>| {
                    other.map_or(RowLink::NONE, |other| rows.link_to(other))
                };
                let links: Vec<RowLink> = observed.joined_rows.iter().map(link).collect();
                rows.insert(message, variant, kept, &links);
            }
        }
    }

    /// Caches the numbers of authors' messages, and lists of authors. They were requested after `mark`, and a proof has succeeded after them.
    pub fn cache_counts(
        &self,
        timeline: &CachedTimeline,
        identity: &[u8],
        mark: ReplicationMark,
        fill: &CountFill,
    ) {
        let Some(rows) = &self.row_cache else {
            return;
        };
        let state = self.state();
        // With an edge that is gone meanwhile, its author has no number in the reply.
        let has_edges = || {
            let (id, readers) = (timeline.id(), &fill.readers);
            state
                .replication
                .leaves_unchanged(mark, id, readers, Some(&[]))
        };
        if !state.may_answer(timeline, Some(identity))
            || !has_edges()
            || !self.cache_lists((&state, rows), mark, &fill.lists)
        {
            return;
        }
        let is_same = |row: RowKey| self.is_unchanged(&state, mark, row);
        let of = (timeline.id(), fill.cache_key());
        // Rows beside, which are joined by the author.
        let joined = |author: u64| {
            let tables = fill.joined_tables.iter();
            tables.map(move |table| RowKey {
                table: *table,
                id: author,
            })
        };
        let links = |author: u64| -> Vec<RowLink> {
            joined(author).map(|other| rows.link_to(other)).collect()
        };
        for (author, number) in &fill.counts {
            if is_same(RowKey::author(timeline.id(), *author)) && joined(*author).all(is_same) {
                cache_count(rows, of, (*author, *number), &links(*author));
            }
        }
        for (id, author, passes) in &fill.messages {
            let message = RowKey::message(timeline.id(), *id);
            if is_same(message) && joined(*author).all(is_same) {
                let outcome = match passes {
                    true => CachedRow::Passes,
                    false => CachedRow::FilteredOut,
                };
                rows.insert(message, of.1, outcome, &links(*author));
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
