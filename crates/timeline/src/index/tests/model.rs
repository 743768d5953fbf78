//! The server's tables and log as the index's counterpart, and the index that follows them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::maintenance::SweepPace;
use super::super::*;
use super::{AuthorHead, at};

/// What the tables hold.
#[derive(Clone, Debug, Default)]
pub(super) struct TablesModel {
    /// Message to author.
    pub(super) messages: BTreeMap<u64, u64>,
    pub(super) follows: BTreeSet<(u64, u64)>,
}

impl TablesModel {
    fn authors(&self, reader: u64) -> Vec<u64> {
        let of = self.follows.range((reader, 0)..=(reader, u64::MAX));
        of.map(|(_, author)| *author).collect()
    }

    fn ids(&self, author: u64, below: Option<u64>) -> Vec<u64> {
        let all = self.messages.iter().rev();
        all.filter(|(id, of)| **of == author && below.is_none_or(|below| **id < below))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The procedure's answer.
    pub(super) fn page(&self, reader: u64, bound: Option<u64>, n: usize) -> TimelinePage {
        let below = bound.and_then(|bound| bound.checked_add(1));
        let authors = self.authors(reader);
        let heads: Vec<AuthorHead> = authors
            .iter()
            .filter_map(|author| {
                let id = *self.ids(*author, below).first()?;
                Some(AuthorHead {
                    author: *author,
                    id,
                })
            })
            .collect();
        let mut top = heads.clone();
        top.sort_by_key(|head| std::cmp::Reverse(head.id));
        top.truncate(n);
        let mut ids: Vec<u64> = top
            .iter()
            .flat_map(|head| self.ids(head.author, below).into_iter().take(n))
            .collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        TimelinePage { ids, heads }
    }
}

impl TablesModel {
    /// The newest messages of these authors in a range.
    pub(super) fn newest(&self, authors: &[u64], range: MessageRange) -> NewestMessages {
        let below = range.upper.and_then(|upper| upper.checked_add(1));
        let of = |author: &u64| {
            let author = *author;
            let ids = self.ids(author, below).into_iter();
            ids.map(move |id| (id, author))
        };
        let all = authors.iter().flat_map(of);
        let mut rows: Vec<(u64, u64)> = all.filter(|(id, _)| *id >= range.lower).collect();
        rows.sort_unstable_by(|a, b| b.cmp(a));
        let all = rows.len() < range.limit;
        rows.truncate(range.limit);
        let (items, authors) = rows.into_iter().unzip();
        NewestMessages {
            items,
            authors,
            complete: all,
        }
    }
}

/// One statement of a transaction.
#[derive(Clone, Debug)]
pub(super) enum TableWrite {
    /// A new message; or, if there is one with this id, it changes its author.
    Post {
        id: u64,
        author: u64,
        named: bool,
    },
    /// Removed, whether it was there or not.
    Remove {
        id: u64,
        named: bool,
    },
    Follow(u64, u64),
    Unfollow(u64, u64),
    /// All messages with ids that are 0 modulo this are gone, out of sight.
    LoseMessages(u64),
    /// The same of one author.
    LoseMessagesOf(u64, u64),
    LoseFollows(u64),
}

enum ModelLoad {
    Reader(LoadTicket, u64),
    Author(AuthorLoadRequest),
}

struct PendingModelLoad {
    request: ModelLoad,
    since: usize,
}

/// A server that is ahead of an index.
pub(super) struct ServerModel {
    pub(super) index: TimelineIndex,
    /// What the tables held at each position.
    history: Vec<TablesModel>,
    /// The changes that led to each position from the one before.
    log: Vec<Vec<TimelineChange>>,
    /// Only what can happen is logged.
    pub(super) truthful: bool,
    /// Of each so many that cannot have happened so.
    untrue: Vec<u64>,
    /// The index's position.
    reached: usize,
    pending_loads: Vec<PendingModelLoad>,
    /// Another server had other rows under the same log.
    drifted: bool,
}

impl ServerModel {
    pub(super) fn new(memory_bytes: usize, start: TablesModel) -> Self {
        let mut index = TimelineIndex::new(memory_bytes);
        index.sweep_pace = SweepPace {
            max_tombstones: 3,
            sweep_within: 6,
            sweep_work: 4,
        };
        ServerModel {
            index,
            history: vec![start],
            log: vec![Vec::new()],
            truthful: false,
            untrue: vec![0],
            reached: 0,
            pending_loads: Vec::new(),
            drifted: false,
        }
    }

    /// The index moves to another server with the same log, whose tables differ by these writes.
    pub(super) fn move_to(&mut self, drift: &[TableWrite]) {
        self.follow_log(usize::MAX);
        self.index.resume_unconfirmed(at(self.reached));
        let tables = &mut self.history[self.reached];
        for write in drift {
            perform(tables, write, &mut Vec::new());
        }
        self.drifted |= !drift.is_empty();
    }

    fn latest(&self) -> usize {
        self.history.len() - 1
    }

    /// The state that the index is to know.
    pub(super) fn now(&self) -> &TablesModel {
        &self.history[self.reached]
    }

    pub(super) fn commit(&mut self, writes: &[TableWrite]) {
        let mut tables = self.history[self.latest()].clone();
        let mut changes = Vec::new();
        let mut untrue = 0;
        for write in writes {
            let mut after = (tables.clone(), changes.clone());
            let false_changes = perform(&mut after.0, write, &mut after.1);
            if self.truthful && false_changes > 0 {
                continue;
            }
            (tables, changes) = after;
            untrue += false_changes;
        }
        self.untrue.push(untrue);
        self.history.push(tables);
        self.log.push(changes);
    }

    pub(super) fn follow_log(&mut self, steps: usize) {
        for _ in 0..steps.min(self.latest() - self.reached) {
            self.reached += 1;
            self.index.apply(&self.log[self.reached], at(self.reached));
            assert_eq!(self.index.position(), at(self.reached));
            // No possible change is counted as a contradiction.
            let untrue: u64 = self.untrue[..=self.reached].iter().sum();
            assert!(self.index.contradiction_count() <= untrue);
        }
    }

    pub(super) fn begin_reader(&mut self, reader: u64) {
        if let Some(ticket) = self.index.begin_reader_load(reader) {
            let wanted = ModelLoad::Reader(ticket, reader);
            self.ask(wanted);
        }
    }

    pub(super) fn begin_author(&mut self, author: u64, bound: Option<u64>, n: usize) {
        if let Some(ask) = self.index.begin_author_load(author, bound, n) {
            assert_eq!(ask.author, author);
            self.ask(ModelLoad::Author(ask));
        }
    }

    fn ask(&mut self, wanted: ModelLoad) {
        let since = self.reached;
        self.pending_loads.push(PendingModelLoad {
            request: wanted,
            since,
        });
    }

    pub(super) fn loads(&self) -> usize {
        self.pending_loads.len()
    }

    /// A load ends, having read the tables somewhere between its beginning and now.
    pub(super) fn finish(&mut self, which: usize, moment: usize, later: usize, limit: usize) {
        if self.pending_loads.is_empty() {
            return;
        }
        let load = self.pending_loads.remove(which % self.pending_loads.len());
        let read_at = load.since + moment % (self.latest() - load.since + 1);
        let valid_from = at(read_at + later % (self.latest() - read_at + 1));
        let tables = &self.history[read_at];
        let compared = match load.request {
            ModelLoad::Reader(ticket, reader) => {
                let rows = tables.authors(reader);
                self.index.accept_reader_rows(ticket, rows, valid_from)
            }
            ModelLoad::Author(ask) => {
                let mut rows = tables.ids(ask.author, ask.below);
                let down_to = if later.is_multiple_of(2) {
                    // A number of them; then all there are, or down to the last one.
                    let complete = rows.len() < limit;
                    rows.truncate(limit);
                    complete.then_some(0)
                } else {
                    // All in a range.
                    let from = rows.get(limit).copied().unwrap_or(0);
                    rows.retain(|id| *id >= from);
                    Some(from)
                };
                self.index
                    .accept_author_rows(ask.ticket, rows, down_to, valid_from)
            }
        };
        assert!(self.drifted || compared != LoadComparison::Different);
    }

    pub(super) fn give_up(&mut self, which: usize) {
        if self.pending_loads.is_empty() {
            return;
        }
        match self
            .pending_loads
            .remove(which % self.pending_loads.len())
            .request
        {
            ModelLoad::Reader(ticket, _) => self.index.abandon_load(ticket),
            ModelLoad::Author(ask) => self.index.abandon_load(ask.ticket),
        }
    }

    /// Begins the loads that a page lacks.
    pub(super) fn begin(
        &mut self,
        reader: u64,
        bound: Option<u64>,
        n: usize,
        missing: &MissingEntries,
    ) {
        if missing.reader {
            self.begin_reader(reader);
        }
        for author in &missing.authors {
            self.begin_author(*author, bound, n);
        }
    }
}

/// Returns how many of the changes cannot have happened so.
fn perform(tables: &mut TablesModel, write: &TableWrite, changes: &mut Vec<TimelineChange>) -> u64 {
    let mut untrue = false;
    let mut remove = |tables: &mut TablesModel, id, named: bool| {
        let owner = tables.messages.remove(&id);
        untrue |= owner.is_none();
        // Of one that is not there it may say anything.
        let author = owner.or(Some(id % 5)).filter(|_| named);
        changes.push(TimelineChange::Removed { author, key: 0, id });
    };
    match *write {
        TableWrite::Post { id, author, named } => {
            if tables
                .messages
                .get(&id)
                .is_some_and(|owner| *owner != author)
            {
                remove(tables, id, named);
            }
            untrue |= tables.messages.insert(id, author).is_some();
            changes.push(TimelineChange::Posted { author, key: 0, id });
        }
        TableWrite::Remove { id, named } => remove(tables, id, named),
        TableWrite::Follow(reader, author) => {
            untrue |= !tables.follows.insert((reader, author));
            changes.push(TimelineChange::Followed { reader, author });
        }
        TableWrite::Unfollow(reader, author) => {
            untrue |= !tables.follows.remove(&(reader, author));
            changes.push(TimelineChange::Unfollowed { reader, author });
        }
        TableWrite::LoseMessages(modulus) => {
            tables.messages.retain(|id, _| id % modulus != 0);
            changes.push(TimelineChange::MessagesLost);
        }
        TableWrite::LoseMessagesOf(author, modulus) => {
            tables
                .messages
                .retain(|id, owner| *owner != author || id % modulus != 0);
            changes.push(TimelineChange::MessagesOfAuthorLost { author });
        }
        TableWrite::LoseFollows(modulus) => {
            tables.follows.retain(|(_, author)| author % modulus != 0);
            changes.push(TimelineChange::FollowsLost);
        }
    }
    u64::from(untrue)
}
