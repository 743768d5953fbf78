//! The newest messages of authors and the follow lists of readers, in memory, kept as the server has them
//! by the changes that it logs.
//!
//! | module | what it is |
//! |---|---|
//! | `window_item` | what is kept of a message: its id, or its key and its id |
//! | `window`, `follow_list` | what is known of one author, of one reader |
//! | `load_lifecycle`, `entry_load` | rows that arrive while changes go on |
//! | `tombstones` | removals that do not say whose message it was |
//! | `page`, `newest_messages`, `id_sort` | what is answered |
//! | `maintenance` | what is put off: sweeping, freeing, evicting |
//! | `sharded_table`, `shard`, `vec_capacity` | where all that lies, and what it costs |
//!
//! An index is at a *position* in the server's log: all that is known is as it was when the server had written
//! just that far. A *window* is an author's newest messages, all of them from some one on. What is missing is loaded by
//! SQL, which sees a state of the server between the position when it began and the one that it names, `valid_from`;
//! what comes of that is in use once the index itself is there.
mod entry_load;
mod follow_list;
mod id_sort;
mod load_lifecycle;
mod maintenance;
mod newest_messages;
mod page;
mod shard;
mod sharded_table;
#[cfg(test)]
mod tests;
mod tombstones;
mod vec_capacity;
mod window;
mod window_item;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use follow_list::FollowList;
use load_lifecycle::LoadTarget;
pub use load_lifecycle::{AuthorLoadRequest, LoadComparison, LoadTicket};
use maintenance::{SweepPace, TombstoneSweep};
pub use newest_messages::{MessageRange, NewestMessages};
pub use page::{MissingEntries, TimelinePage};
use sharded_table::ShardedTable;
use tombstones::TombstoneSet;
use window::AuthorWindow;
pub use window_item::{KeyedMessage, WindowItem};

/// Which of the timelines in memory: a definition in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimelineId(pub usize);

/// A place in the server's binary log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinlogPosition {
    /// The number of the file.
    pub file: u64,
    /// The offset behind an event.
    pub offset: u64,
}

impl BinlogPosition {
    /// The name of its file, of a log whose files have this base name.
    #[must_use]
    pub fn file_name(self, base: &str) -> String {
        format!("{base}.{:06}", self.file)
    }

    /// So many bytes are behind an earlier position, at least: how long the files between them are is not known.
    #[must_use]
    pub fn bytes_after(self, earlier: BinlogPosition) -> u64 {
        if self.file == earlier.file {
            self.offset.saturating_sub(earlier.offset)
        } else {
            self.offset
        }
    }
}

/// What one row event did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineChange {
    /// A message with this id and author is there now.
    Posted {
        /// Whose it is.
        author: u64,
        /// Its key, where pages are ordered by one; else 0.
        key: u64,
        /// Its id.
        id: u64,
    },
    /// It is gone, or no longer this author's, or has another key.
    Removed {
        /// Whose it was; `None`: the log does not say, and nothing of its key.
        author: Option<u64>,
        /// The key that it had.
        key: u64,
        /// Its id.
        id: u64,
    },
    /// A reader follows an author now.
    Followed {
        /// Who follows.
        reader: u64,
        /// Who is followed.
        author: u64,
    },
    /// A reader does not follow an author any more.
    Unfollowed {
        /// Who followed.
        reader: u64,
        /// Who was followed.
        author: u64,
    },
    /// Messages changed in a way that cannot be told: nothing is known of them any more.
    MessagesLost,
    /// The same of follow lists.
    FollowsLost,
}

/// Windows and follow lists of one timeline in one database.
#[derive(Debug)]
pub struct TimelineIndex<I: WindowItem = u64> {
    budget: usize,
    position: BinlogPosition,
    authors: ShardedTable<AuthorWindow<I>>,
    readers: ShardedTable<FollowList>,
    tombstones: TombstoneSet<I>,
    sweep: Option<TombstoneSweep>,
    sweep_pace: SweepPace,
    /// The number of the last ticket.
    tickets: u64,
    /// Authors whose rows are still to come, by ticket.
    pending_authors: BTreeMap<u64, u64>,
    /// Changes of which it was known already that they cannot have happened so, and the first of them that nobody took.
    contradictions: u64,
    first_contradiction: Option<TimelineChange>,
    /// Loads that wait for the index to reach a position.
    pending_loads: BinaryHeap<Reverse<(BinlogPosition, LoadTarget)>>,
    /// Authors and readers that made room for others.
    evicted: u64,
}

impl<I: WindowItem> TimelineIndex<I> {
    /// An empty index that will hold about so many bytes at most.
    #[must_use]
    pub fn new(memory_bytes: usize) -> Self {
        TimelineIndex {
            budget: memory_bytes,
            position: BinlogPosition::default(),
            authors: ShardedTable::new(memory_bytes),
            readers: ShardedTable::new(memory_bytes),
            tombstones: TombstoneSet::default(),
            sweep: None,
            sweep_pace: SweepPace::default(),
            tickets: 0,
            pending_authors: BTreeMap::new(),
            contradictions: 0,
            first_contradiction: None,
            pending_loads: BinaryHeap::new(),
            evicted: 0,
        }
    }

    /// From now on it holds about so many bytes at most.
    pub fn set_budget(&mut self, memory_bytes: usize) {
        self.budget = memory_bytes;
        self.evict_to_budget();
    }

    /// What is known is the server's state here.
    #[must_use]
    pub fn position(&self) -> BinlogPosition {
        self.position
    }

    /// One transaction happened, or none that matters; the index is at `upto` then.
    pub fn apply(&mut self, changes: &[TimelineChange], upto: BinlogPosition) {
        let mut laid = 0;
        for change in changes {
            match *change {
                TimelineChange::Posted { author, key, id } => {
                    let item = I::from_key_and_id(key, id);
                    self.tombstones.assign_owner(item, author);
                    self.apply_message(author, item, true);
                }
                TimelineChange::Removed {
                    author: Some(author),
                    key,
                    id,
                } => {
                    self.apply_message(author, I::from_key_and_id(key, id), false);
                }
                TimelineChange::Removed {
                    author: None, id, ..
                } => {
                    if self.authors.len() > 0 {
                        self.tombstones.insert(id);
                        laid += 1;
                    }
                }
                TimelineChange::Followed { reader, author } => {
                    self.apply_follow(reader, author, true)
                }
                TimelineChange::Unfollowed { reader, author } => {
                    self.apply_follow(reader, author, false)
                }
                TimelineChange::MessagesLost => self.invalidate_messages(),
                TimelineChange::FollowsLost => self.readers.clear(),
            }
        }
        self.position = upto;
        self.complete_loads();
        self.continue_sweep(laid);
        self.evict_to_budget();
    }

    fn apply_message(&mut self, author: u64, item: I, present: bool) {
        // Under a tombstone a window may hold what is not there any more.
        let unsure = self.tombstones.contains(item.id());
        let fits = self.authors.edit(author, |window| {
            let contradicts = !unsure && window.contradicts(item, present);
            (window.apply_change(item, present), contradicts)
        });
        if let Some((_, true)) = fits {
            let (key, id) = (item.key(), item.id());
            self.record_contradiction(match present {
                true => TimelineChange::Posted { author, key, id },
                false => TimelineChange::Removed {
                    author: Some(author),
                    key,
                    id,
                },
            });
        }
        if let Some((false, _)) = fits {
            self.abandon_author_load(author);
        }
    }

    fn apply_follow(&mut self, reader: u64, author: u64, present: bool) {
        let fits = self.readers.edit(reader, |list| {
            let contradicts = list.contradicts(author, present);
            (list.apply_change(author, present), contradicts)
        });
        if let Some((_, true)) = fits {
            self.record_contradiction(match present {
                true => TimelineChange::Followed { reader, author },
                false => TimelineChange::Unfollowed { reader, author },
            });
        }
        if let Some((false, _)) = fits {
            self.readers.remove(reader);
        }
    }

    fn record_contradiction(&mut self, change: TimelineChange) {
        self.contradictions += 1;
        self.first_contradiction.get_or_insert(change);
    }

    /// A change that cannot have happened to what was known: something came that was there, or went that was not. Told once.
    pub fn take_contradiction(&mut self) -> Option<TimelineChange> {
        self.first_contradiction.take()
    }

    /// How many changes there were of that kind.
    #[must_use]
    pub fn contradiction_count(&self) -> u64 {
        self.contradictions
    }

    fn invalidate_messages(&mut self) {
        self.authors.clear();
        self.tombstones.clear();
        self.sweep = None;
        self.pending_authors.clear();
    }

    /// Everything is void, loads under way as well.
    pub fn clear(&mut self) {
        self.invalidate_messages();
        self.readers.clear();
        self.pending_loads.clear();
    }

    /// Everything is void, and what comes may stand anywhere: a server's log may begin anew as well.
    pub fn reset(&mut self) {
        self.clear();
        self.position = BinlogPosition::default();
    }

    /// The log goes on elsewhere: what is known stays as it is, loads that are not valid yet are void.
    pub fn suspend(&mut self) {
        self.authors.remove_loading();
        self.readers.remove_loading();
        self.pending_authors.clear();
        self.pending_loads.clear();
    }

    /// What is known is the server's state here, in a log whose positions have nothing to do with those before. Behind [`Self::suspend`].
    pub fn resume(&mut self, position: BinlogPosition) {
        self.suspend();
        self.position = position;
    }

    /// The same, where what is known is of another server, or of another run of this one: nothing is answered by it. What is asked for is
    /// loaded, and compared with what was known.
    pub fn resume_unconfirmed(&mut self, position: BinlogPosition) {
        self.resume(position);
        let tombstones = &self.tombstones;
        self.authors.for_each(|window| {
            window.purge(tombstones);
            window.mark_unconfirmed();
        });
        self.readers.for_each(FollowList::mark_unconfirmed);
        // What was removed there may be here.
        self.tombstones.clear();
        self.sweep = None;
    }

    /// True when the reader's follow list is resident and may be used: its page is likely to be there.
    #[must_use]
    pub fn has_reader(&self, reader: u64) -> bool {
        let list = self.readers.get(reader);
        list.is_some_and(|list| list.authors_at(self.position).is_some())
    }

    /// Whom a reader follows, if that is here.
    #[must_use]
    pub fn follow_list(&self, reader: u64) -> Option<Vec<u64>> {
        let list = self.readers.get(reader)?;
        Some(list.authors_at(self.position)?.to_vec())
    }

    /// Bytes of everything in memory, used or not.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.authors.bytes() + self.readers.bytes() + self.maintenance_bytes()
    }

    /// True when what is loaded now may soon be evicted again.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        self.bytes() > self.budget / 8 * 7
    }

    /// How many follow lists are here.
    #[must_use]
    pub fn reader_count(&self) -> usize {
        self.readers.len()
    }

    /// How many windows are here.
    #[must_use]
    pub fn author_count(&self) -> usize {
        self.authors.len()
    }

    /// How many authors and readers have made room for others so far.
    #[must_use]
    pub fn evicted_count(&self) -> u64 {
        self.evicted
    }

    /// How many messages are in the windows.
    #[must_use]
    pub fn message_count(&self) -> usize {
        self.authors.item_count()
    }

    /// How many authors are in the follow lists.
    #[must_use]
    pub fn follow_count(&self) -> usize {
        self.readers.item_count()
    }
}
