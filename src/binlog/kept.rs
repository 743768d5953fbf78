//! Rows that are kept: filled by what the server said, forgotten by what its log tells, and pages made of them.
//!
//! A row is forgotten when the log tells that its message has changed, before that may be readable. What the server said of a message is
//! kept if no change of it had been told that might not have been readable then, and none has been told since.

use std::sync::Arc;

use headwater_rows::{Link, Message, Rows};
use headwater_session::kept::Fill;

use super::feed::{Named, Wish};
use super::place::Place;
use super::{Binlog, Mark, State};
use crate::index::{Change, PlaceId, Position};
use crate::log::edits::Edits;

/// So often a page is put together anew where the log tells something meanwhile.
const TRIES: usize = 3;
/// Answers of which rows are kept once a proof has come: so many at a time, each as long as `limits.tail_bytes` at most.
pub(super) const FILLS: usize = 64;

impl Binlog {
    /// The rows that are kept, if any are.
    #[must_use]
    pub fn rows(&self) -> Option<&Arc<Rows>> {
        self.rows.as_ref()
    }

    /// What is made of a page's messages and of their rows, all of one moment; with `proves`, of one that is no earlier than this question.
    pub async fn kept_page<T>(
        &self,
        place: &Place,
        identity: &[u8],
        wish: &Wish,
        proves: bool,
        make: impl Fn(&Named) -> Option<T>,
    ) -> Option<T> {
        let make = || {
            let (named, _) = wish.of(&place.index()).ok()?;
            make(&named)
        };
        self.of_one_moment(place, identity, proves, make).await
    }

    /// What is made of rows that are kept, all of one moment; with `proves`, of one that is no earlier than this question.
    pub async fn of_one_moment<T>(
        &self,
        place: &Place,
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
    fn version_of(&self, place: &Place, identity: &[u8]) -> Option<u64> {
        let state = self.state();
        state
            .may_answer(place, Some(identity))
            .then(|| state.following.version())
    }

    /// Keeps what an answer of this server says of messages, which it was asked for behind the mark, and behind which a proof has come.
    pub fn keep(&self, place: &Place, identity: &[u8], mark: Mark, fill: &Fill, answer: &[u8]) {
        let Some(rows) = &self.rows else {
            return;
        };
        let state = self.state();
        // In another stream the table may be another one.
        if !state.may_answer(place, Some(identity)) || !state.following.is_proven_since(mark) {
            return;
        }
        let following = &state.following;
        let is_same = |row: Message| following.tells_of(row.0) && following.has_kept(mark, row);
        if !fill.lists.iter().all(|asked| is_same(asked.list.whose)) {
            return;
        }
        for asked in &fill.lists {
            if let Some(told) = &asked.told {
                asked.list.keep(rows, told.as_deref());
            }
        }
        let variant = fill.variant();
        for (told, kept) in fill.told(answer) {
            let message = (place.number(), told.id);
            let mut others = told.made_of.iter().flatten();
            if following.has_kept(mark, message) && others.all(|other| is_same(*other)) {
                let link =
                    |other: &Option<Message>| other.map_or(Link::NONE, |other| rows.link(other));
                let links: Vec<Link> = told.made_of.iter().map(link).collect();
                rows.keep(message, variant, kept, &links);
            }
        }
    }

    /// Keeps what an answer says of messages, once a proof that is begun from now on has come. Nobody waits for that, and where many
    /// others do already, it is let go.
    pub fn keep_later(
        self: &Arc<Self>,
        place: Arc<Place>,
        identity: Vec<u8>,
        mark: Mark,
        fill: Fill,
        answer: Vec<u8>,
    ) {
        let Ok(turn) = Arc::clone(&self.fills).try_acquire_owned() else {
            return;
        };
        let binlog = Arc::clone(self);
        tokio::spawn(async move {
            if binlog.prove().await {
                binlog.keep(&place, &identity, mark, &fill, &answer);
            }
            drop(turn);
        });
    }

    /// The stream has told of a transaction. Rows that it changed are forgotten before it can be known to be readable.
    pub(super) fn receive(
        &self,
        state: &mut State,
        end: Position,
        changes: Vec<(PlaceId, Change)>,
        edits: &Edits,
    ) {
        self.forget(edits);
        state.following.push(end, changes, edits);
    }

    /// The log has told of changes of these rows.
    pub(super) fn forget(&self, edits: &Edits) {
        let Some(rows) = &self.rows else {
            return;
        };
        edits.rows().for_each(|row| rows.forget(row));
        edits.all().for_each(|place| rows.forget_all(place));
    }
}
