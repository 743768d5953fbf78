//! The newest messages of authors and the follow lists of readers, in memory, kept current by the changes that the server logs.
//!
//! | module | what it is |
//! |---|---|
//! | `window_item` | what is cached of a message: its id, or its key and its id |
//! | `window`, `follow_list` | what is known of one author, of one reader |
//! | `load_lifecycle`, `entry_load` | rows that arrive while changes continue |
//! | `tombstones` | removals without the message's author |
//! | `page`, `newest_messages`, `id_sort` | what is served |
//! | `maintenance` | deferred work: sweeping, freeing, evicting |
//! | `sharded_table`, `shard`, `vec_capacity` | storage, and its cost in memory |
//!
//! An index is at a *position* in the server's log: everything in it is the server's state at exactly that position. A *window* holds
//! an author's newest messages, all of them from some message on. Missing rows are loaded by SQL, which sees a state of the server
//! between the position at its start and the position that it reports, `valid_from`. They are used once the index is at `valid_from`.
mod entry_load;
mod follow_list;
mod id_sort;
mod load_lifecycle;
mod maintenance;
mod newest_messages;
mod page;
mod shard;
mod sharded_table;
mod table_id;
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
pub use table_id::{RowKey, TableId};
use tombstones::TombstoneSet;
use window::AuthorWindow;
pub use window_item::{KeyedMessage, WindowItem};

/// Identifies a cached timeline: a definition in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimelineId(pub usize);

/// A position in the server's binary log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinlogPosition {
    /// The number of the file.
    pub file: u64,
    /// The offset after an event.
    pub offset: u64,
}

impl BinlogPosition {
    /// The name of its file, in a log whose files have this base name.
    #[must_use]
    pub fn file_name(self, base: &str) -> String {
        format!("{base}.{:06}", self.file)
    }

    /// At least how many bytes after an earlier position it is: the lengths of the files between them are unknown.
    #[must_use]
    pub fn bytes_after(self, earlier: BinlogPosition) -> u64 {
        if self.file == earlier.file {
            self.offset.saturating_sub(earlier.offset)
        } else {
            self.offset
        }
    }
}

/// The change of one row event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineChange {
    /// A message with this id and author now exists.
    Posted {
        /// Its author.
        author: u64,
        /// Its key if pages are ordered by one, else 0.
        key: u64,
        /// Its id.
        id: u64,
    },
    /// The message is gone, or has another author or another key.
    Removed {
        /// Its author; `None`: the log contains neither the author nor the key.
        author: Option<u64>,
        /// Its former key.
        key: u64,
        /// Its id.
        id: u64,
    },
    /// A reader now follows an author.
    Followed {
        /// The reader.
        reader: u64,
        /// The author.
        author: u64,
    },
    /// A reader no longer follows an author.
    Unfollowed {
        /// The reader.
        reader: u64,
        /// The author.
        author: u64,
    },
    /// A reader's follows changed, where the table may hold a pair twice: one row more or less says nothing about the list.
    FollowsChanged {
        /// The reader.
        reader: u64,
    },
    /// An author's messages changed in a way that memory cannot hold: what it knows of them is void.
    MessagesOfAuthorLost {
        /// The author.
        author: u64,
    },
    /// Messages changed in an unknown way: everything known of them is void.
    MessagesLost,
    /// The same for follow lists.
    FollowsLost,
}

/// The windows and follow lists of one timeline in one database.
#[derive(Debug)]
pub struct TimelineIndex<I: WindowItem = u64> {
    budget: usize,
    position: BinlogPosition,
    authors: ShardedTable<AuthorWindow<I>>,
    readers: ShardedTable<FollowList>,
    tombstones: TombstoneSet<I>,
    sweep: Option<TombstoneSweep>,
    sweep_pace: SweepPace,
    /// The last ticket's number.
    tickets: u64,
    /// Authors whose rows have not arrived, by ticket.
    pending_authors: BTreeMap<u64, u64>,
    /// How many changes contradict what was known, and the first of them that is not taken yet.
    contradictions: u64,
    first_contradiction: Option<TimelineChange>,
    /// Loads that wait for the index to reach a position.
    pending_loads: BinaryHeap<Reverse<(BinlogPosition, LoadTarget)>>,
    /// How many authors and readers were evicted.
    evicted: u64,
}

impl<I: WindowItem> TimelineIndex<I> {
    /// An empty index with a budget of about this many bytes.
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

    /// Changes the budget to about this many bytes, and evicts down to it.
    pub fn set_budget(&mut self, memory_bytes: usize) {
        self.budget = memory_bytes;
        self.evict_to_budget();
    }

    /// The log position whose server state the index holds.
    #[must_use]
    pub fn position(&self) -> BinlogPosition {
        self.position
    }

    /// Applies one transaction, or none that matters; the index is at `upto` then.
    pub fn apply(&mut self, changes: &[TimelineChange], upto: BinlogPosition) {
        let mut new_tombstones = 0;
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
                        new_tombstones += 1;
                    }
                }
                TimelineChange::Followed { reader, author } => {
                    self.apply_follow(reader, author, true)
                }
                TimelineChange::Unfollowed { reader, author } => {
                    self.apply_follow(reader, author, false)
                }
                TimelineChange::FollowsChanged { reader } => self.readers.remove(reader),
                TimelineChange::MessagesOfAuthorLost { author } => {
                    self.abandon_author_load(author);
                    self.authors.remove(author);
                }
                TimelineChange::MessagesLost => self.invalidate_messages(),
                TimelineChange::FollowsLost => self.readers.clear(),
            }
        }
        self.position = upto;
        self.complete_loads();
        self.continue_sweep(new_tombstones);
        self.evict_to_budget();
    }

    fn apply_message(&mut self, author: u64, item: I, present: bool) {
        // Under a tombstone, a window may hold an item that is already gone.
        let is_uncertain = self.tombstones.contains(item.id());
        let outcome = self.authors.edit(author, |window| {
            let contradicts = !is_uncertain && window.contradicts(item, present);
            (window.apply_change(item, present), contradicts)
        });
        if let Some((_, true)) = outcome {
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
        if let Some((false, _)) = outcome {
            self.abandon_author_load(author);
        }
    }

    fn apply_follow(&mut self, reader: u64, author: u64, present: bool) {
        let outcome = self.readers.edit(reader, |list| {
            let contradicts = list.contradicts(author, present);
            (list.apply_change(author, present), contradicts)
        });
        if let Some((_, true)) = outcome {
            self.record_contradiction(match present {
                true => TimelineChange::Followed { reader, author },
                false => TimelineChange::Unfollowed { reader, author },
            });
        }
        if let Some((false, _)) = outcome {
            self.readers.remove(reader);
        }
    }

    fn record_contradiction(&mut self, change: TimelineChange) {
        self.contradictions += 1;
        self.first_contradiction.get_or_insert(change);
    }

    /// Takes a change that contradicts what was known: an item came that existed, or went that did not. Each is reported once.
    pub fn take_contradiction(&mut self) -> Option<TimelineChange> {
        self.first_contradiction.take()
    }

    /// How many changes contradicted what was known.
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

    /// Voids everything, pending loads as well.
    pub fn clear(&mut self) {
        self.invalidate_messages();
        self.readers.clear();
        self.pending_loads.clear();
    }

    /// Voids everything, the position as well: a server's log may start anew, so the next position may be any.
    pub fn reset(&mut self) {
        self.clear();
        self.position = BinlogPosition::default();
    }

    /// The log continues elsewhere: entries stay valid, but loads that are not valid yet are void.
    pub fn suspend(&mut self) {
        self.authors.remove_loading();
        self.readers.remove_loading();
        self.pending_authors.clear();
        self.pending_loads.clear();
    }

    /// Continues after [`Self::suspend`]: entries are the server's state at this position, in a log with unrelated positions.
    pub fn resume(&mut self, position: BinlogPosition) {
        self.suspend();
        self.position = position;
    }

    /// The same if the entries are from another server, or from an earlier run of this one: they serve nothing. Requested entries are
    /// loaded, and compared with the old ones.
    pub fn resume_unconfirmed(&mut self, position: BinlogPosition) {
        self.resume(position);
        let tombstones = &self.tombstones;
        self.authors.for_each(|window| {
            window.purge(tombstones);
            window.mark_unconfirmed();
        });
        self.readers.for_each(FollowList::mark_unconfirmed);
        // An item removed on that server may exist on this one.
        self.tombstones.clear();
        self.sweep = None;
    }

    /// True if the reader's follow list is in memory and valid: its page is likely to be there too.
    #[must_use]
    pub fn has_reader(&self, reader: u64) -> bool {
        let list = self.readers.get(reader);
        list.is_some_and(|list| list.authors_at(self.position).is_some())
    }

    /// The authors that a reader follows, if they are in memory.
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

    /// True if entries loaded now may soon be evicted again.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        self.bytes() > self.budget / 8 * 7
    }

    /// How many follow lists are in memory.
    #[must_use]
    pub fn reader_count(&self) -> usize {
        self.readers.len()
    }

    /// How many windows are in memory.
    #[must_use]
    pub fn author_count(&self) -> usize {
        self.authors.len()
    }

    /// How many authors and readers were evicted so far.
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
