//! The newest messages of authors and the follow lists of readers, in memory, kept as the server has them
//! by the changes that it logs.
//!
//! | module | what it is |
//! |---|---|
//! | `item` | what is kept of a message: its id, or its key and its id |
//! | `window`, `follows` | what is known of one author, of one reader |
//! | `loading`, `load` | rows that arrive while changes go on |
//! | `tombstones` | removals that do not say whose message it was |
//! | `page`, `newest`, `descending` | what is answered |
//! | `upkeep` | what is put off: sweeping, freeing, evicting |
//! | `table`, `shard`, `room` | where all that lies, and what it costs |
//!
//! An index is at a *position* in the server's log: all that is known is as it was when the server had written
//! just that far. A *window* is an author's newest messages, all of them from some one on. What is missing is loaded by
//! SQL, which sees a state of the server between the position when it began and the one that it names, `valid_from`;
//! what comes of that is in use once the index itself is there.
mod descending;
mod follows;
mod item;
mod load;
mod loading;
mod newest;
mod page;
mod room;
mod shard;
mod table;
#[cfg(test)]
mod tests;
mod tombstones;
mod upkeep;
mod window;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use follows::Follows;
pub use item::{Item, Keyed};
use loading::Whose;
pub use loading::{AuthorAsk, Comparison, Ticket};
pub use newest::{Newest, Range};
pub use page::{Missing, Page};
use table::Table;
use tombstones::Tombstones;
use upkeep::{Pace, Sweep};
use window::Window;

/// Which of the timelines in memory: a definition in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub usize);

/// A place in the server's binary log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The number of the file.
    pub file: u64,
    /// The offset behind an event.
    pub offset: u64,
}

impl Position {
    /// The name of its file, of a log whose files have this base name.
    #[must_use]
    pub fn file_name(self, base: &str) -> String {
        format!("{base}.{:06}", self.file)
    }

    /// So many bytes are behind an earlier position, at least: how long the files between them are is not known.
    #[must_use]
    pub fn bytes_behind(self, earlier: Position) -> u64 {
        if self.file == earlier.file {
            self.offset.saturating_sub(earlier.offset)
        } else {
            self.offset
        }
    }
}

/// What one row event did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
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
pub struct Index<I: Item = u64> {
    budget: usize,
    position: Position,
    authors: Table<Window<I>>,
    readers: Table<Follows>,
    tombstones: Tombstones<I>,
    sweep: Option<Sweep>,
    pace: Pace,
    /// The number of the last ticket.
    tickets: u64,
    /// Authors whose rows are still to come, by ticket.
    asked: BTreeMap<u64, u64>,
    /// Changes of which it was known already that they cannot have happened so, and the first of them that nobody took.
    contradictions: u64,
    contradicted: Option<Change>,
    /// Loads that wait for the index to reach a position.
    settling: BinaryHeap<Reverse<(Position, Whose)>>,
    /// Authors and readers that made room for others.
    evicted: u64,
}

impl<I: Item> Index<I> {
    /// An empty index that will hold about so many bytes at most.
    #[must_use]
    pub fn new(memory_bytes: usize) -> Self {
        Index {
            budget: memory_bytes,
            position: Position::default(),
            authors: Table::new(memory_bytes),
            readers: Table::new(memory_bytes),
            tombstones: Tombstones::default(),
            sweep: None,
            pace: Pace::default(),
            tickets: 0,
            asked: BTreeMap::new(),
            contradictions: 0,
            contradicted: None,
            settling: BinaryHeap::new(),
            evicted: 0,
        }
    }

    /// From now on it holds about so many bytes at most.
    pub fn set_budget(&mut self, memory_bytes: usize) {
        self.budget = memory_bytes;
        self.shrink();
    }

    /// What is known is the server's state here.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// One transaction happened, or none that matters; the index is at `upto` then.
    pub fn apply(&mut self, changes: &[Change], upto: Position) {
        let mut laid = 0;
        for change in changes {
            match *change {
                Change::Posted { author, key, id } => {
                    let item = I::of(key, id);
                    self.tombstones.own(item, author);
                    self.message(author, item, true);
                }
                Change::Removed {
                    author: Some(author),
                    key,
                    id,
                } => {
                    self.message(author, I::of(key, id), false);
                }
                Change::Removed {
                    author: None, id, ..
                } => {
                    if self.authors.len() > 0 {
                        self.tombstones.lay(id);
                        laid += 1;
                    }
                }
                Change::Followed { reader, author } => self.follow(reader, author, true),
                Change::Unfollowed { reader, author } => self.follow(reader, author, false),
                Change::MessagesLost => self.lose_messages(),
                Change::FollowsLost => self.readers.clear(),
            }
        }
        self.position = upto;
        self.settle();
        self.sweep(laid);
        self.shrink();
    }

    fn message(&mut self, author: u64, item: I, present: bool) {
        // Under a tombstone a window may hold what is not there any more.
        let unsure = self.tombstones.covers(item.id());
        let fits = self.authors.edit(author, |window| {
            let contradicts = !unsure && window.contradicts(item, present);
            (window.change(item, present), contradicts)
        });
        if let Some((_, true)) = fits {
            let (key, id) = (item.key(), item.id());
            self.contradict(match present {
                true => Change::Posted { author, key, id },
                false => Change::Removed {
                    author: Some(author),
                    key,
                    id,
                },
            });
        }
        if let Some((false, _)) = fits {
            self.give_up_author(author);
        }
    }

    fn follow(&mut self, reader: u64, author: u64, present: bool) {
        let fits = self.readers.edit(reader, |list| {
            let contradicts = list.contradicts(author, present);
            (list.change(author, present), contradicts)
        });
        if let Some((_, true)) = fits {
            self.contradict(match present {
                true => Change::Followed { reader, author },
                false => Change::Unfollowed { reader, author },
            });
        }
        if let Some((false, _)) = fits {
            self.readers.remove(reader);
        }
    }

    fn contradict(&mut self, change: Change) {
        self.contradictions += 1;
        self.contradicted.get_or_insert(change);
    }

    /// A change that cannot have happened to what was known: something came that was there, or went that was not. Told once.
    pub fn take_contradiction(&mut self) -> Option<Change> {
        self.contradicted.take()
    }

    /// How many changes there were of that kind.
    #[must_use]
    pub fn contradictions(&self) -> u64 {
        self.contradictions
    }

    fn lose_messages(&mut self) {
        self.authors.clear();
        self.tombstones.clear();
        self.sweep = None;
        self.asked.clear();
    }

    /// Everything is void, loads under way as well.
    pub fn clear(&mut self) {
        self.lose_messages();
        self.readers.clear();
        self.settling.clear();
    }

    /// Everything is void, and what comes may stand anywhere: a server's log may begin anew as well.
    pub fn begin_anew(&mut self) {
        self.clear();
        self.position = Position::default();
    }

    /// The log goes on elsewhere: what is known stays as it is, loads that are not valid yet are void.
    pub fn leave(&mut self) {
        self.authors.remove_loading();
        self.readers.remove_loading();
        self.asked.clear();
        self.settling.clear();
    }

    /// What is known is the server's state here, in a log whose positions have nothing to do with those before. Behind [`Self::leave`].
    pub fn resume(&mut self, position: Position) {
        self.leave();
        self.position = position;
    }

    /// The same, where what is known is of another server, or of another run of this one: nothing is answered by it. What is asked for is
    /// loaded, and compared with what was known.
    pub fn resume_unconfirmed(&mut self, position: Position) {
        self.resume(position);
        let tombstones = &self.tombstones;
        self.authors.each(|window| {
            window.purge(tombstones);
            window.unconfirm();
        });
        self.readers.each(Follows::unconfirm);
        // What was removed there may be here.
        self.tombstones.clear();
        self.sweep = None;
    }

    /// True when the reader's follow list is resident and may be used: its page is likely to be there.
    #[must_use]
    pub fn has_reader(&self, reader: u64) -> bool {
        let list = self.readers.get(reader);
        list.is_some_and(|list| list.view(self.position).is_some())
    }

    /// Whom a reader follows, if that is here.
    #[must_use]
    pub fn follows(&self, reader: u64) -> Option<Vec<u64>> {
        let list = self.readers.get(reader)?;
        Some(list.view(self.position)?.to_vec())
    }

    /// Bytes of everything in memory, used or not.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.authors.bytes() + self.readers.bytes() + self.upkeep_bytes()
    }

    /// True when what is loaded now may soon be evicted again.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        self.bytes() > self.budget / 8 * 7
    }

    /// How many follow lists are here.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers.len()
    }

    /// How many windows are here.
    #[must_use]
    pub fn authors(&self) -> usize {
        self.authors.len()
    }

    /// How many authors and readers have made room for others so far.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// How many messages are in the windows.
    #[must_use]
    pub fn ids(&self) -> usize {
        self.authors.items()
    }

    /// How many authors are in the follow lists.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.readers.items()
    }
}
