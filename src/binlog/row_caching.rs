//! Rows that are kept: filled by what the server said, forgotten by what its log tells, and pages made of them.
//!
//! A row is forgotten when the log tells that its message has changed, before that may be readable. What the server said of a message is
//! kept if no change of it had been told that might not have been readable then, and none has been told since.

use std::sync::Arc;

use headwater_rows::{MessageKey, RowCache, RowLink};
use headwater_session::cached_rows::CacheFill;

use super::cached_timeline::CachedTimeline;
use super::candidates::{CandidateMessages, CandidateRequest};
use super::{Binlog, BinlogState, ReplicationMark};
use crate::index::{BinlogPosition, TimelineChange, TimelineId};
use crate::log::edits::RowEdits;

/// So often a page is put together anew where the log tells something meanwhile.
const TRIES: usize = 3;
/// Answers of which rows are kept once a proof has come: so many at a time, each as long as `limits.tail_bytes` at most.
pub(super) const MAX_PENDING_FILLS: usize = 64;

impl Binlog {
    /// The rows that are kept, if any are.
    #[must_use]
    pub fn row_cache(&self) -> Option<&Arc<RowCache>> {
        self.row_cache.as_ref()
    }

    /// What is made of a page's messages and of their rows, all of one moment; with `proves`, of one that is no earlier than this question.
    pub async fn cached_page<T>(
        &self,
        place: &CachedTimeline,
        identity: &[u8],
        wish: &CandidateRequest,
        proves: bool,
        make: impl Fn(&CandidateMessages) -> Option<T>,
    ) -> Option<T> {
        let make = || {
            let (named, _) = wish.newest_messages(&place.index()).ok()?;
            make(&named)
        };
        self.read_consistently(place, identity, proves, make).await
    }

    /// What is made of rows that are kept, all of one moment; with `proves`, of one that is no earlier than this question.
    pub async fn read_consistently<T>(
        &self,
        place: &CachedTimeline,
        identity: &[u8],
        proves: bool,
        make: impl Fn() -> Option<T>,
    ) -> Option<T> {
        if proves && !self.prove().await {
            return None;
        }
        for _ in 0..TRIES {
            let before = self.version_of(place, identity)?;
            let made = make()?;
            if self.version_of(place, identity)? == before {
                return Some(made);
            }
        }
        None
    }

    /// A number that is another one once anything was received, applied or lost; `None`: this place is not answered from memory.
    fn version_of(&self, place: &CachedTimeline, identity: &[u8]) -> Option<u64> {
        let state = self.state();
        state
            .may_answer(place, Some(identity))
            .then(|| state.following.version())
    }

    /// Keeps what an answer of this server says of messages, which it was asked for behind the mark, and behind which a proof has come.
    pub fn cache_rows(
        &self,
        place: &CachedTimeline,
        identity: &[u8],
        mark: ReplicationMark,
        fill: &CacheFill,
        answer: &[u8],
    ) {
        let Some(rows) = &self.row_cache else {
            return;
        };
        let state = self.state();
        // In another stream the table may be another one.
        if !state.may_answer(place, Some(identity)) || !state.following.is_proven_since(mark) {
            return;
        }
        let following = &state.following;
        let is_same =
            |row: MessageKey| following.is_streamed(row.0) && following.is_row_unchanged(mark, row);
        if !fill.lists.iter().all(|asked| is_same(asked.list.whose)) {
            return;
        }
        for asked in &fill.lists {
            if let Some(told) = &asked.reply {
                asked.list.cache(rows, told.as_deref());
            }
        }
        let variant = fill.cache_key();
        for (told, kept) in fill.observed_rows(answer) {
            let message = (place.id(), told.id);
            let mut others = told.joined_rows.iter().flatten();
            if following.is_row_unchanged(mark, message) && others.all(|other| is_same(*other)) {
                let link = |other: &Option<MessageKey>| {
                    other.map_or(RowLink::NONE, |other| rows.link_to(other))
                };
                let links: Vec<RowLink> = told.joined_rows.iter().map(link).collect();
                rows.insert(message, variant, kept, &links);
            }
        }
    }

    /// Keeps what an answer says of messages, once a proof that is begun from now on has come. Nobody waits for that, and where many
    /// others do already, it is let go.
    pub fn cache_rows_later(
        self: &Arc<Self>,
        place: Arc<CachedTimeline>,
        identity: Vec<u8>,
        mark: ReplicationMark,
        fill: CacheFill,
        answer: Vec<u8>,
    ) {
        let Ok(turn) = Arc::clone(&self.fill_permits).try_acquire_owned() else {
            return;
        };
        let binlog = Arc::clone(self);
        tokio::spawn(async move {
            if binlog.prove().await {
                binlog.cache_rows(&place, &identity, mark, &fill, &answer);
            }
            drop(turn);
        });
    }

    /// The stream has told of a transaction. Rows that it changed are forgotten before it can be known to be readable.
    pub(super) fn receive(
        &self,
        state: &mut BinlogState,
        end: BinlogPosition,
        changes: Vec<(TimelineId, TimelineChange)>,
        edits: &RowEdits,
    ) {
        self.invalidate_rows(edits);
        state.following.push(end, changes, edits);
    }

    /// The log has told of changes of these rows.
    pub(super) fn invalidate_rows(&self, edits: &RowEdits) {
        let Some(rows) = &self.row_cache else {
            return;
        };
        edits.rows().for_each(|row| rows.invalidate(row));
        edits
            .whole_timelines()
            .for_each(|place| rows.invalidate_timeline(place));
    }
}
