//! Transactions that the stream has told of and that are not yet known to be readable on the server.
//!
//! The log tells of a transaction before the storage engine makes its rows readable: by microseconds, or
//! under semi-synchronous replication by seconds. What is not proven to be readable waits here. Servers
//! commit in the order of the log (the feed steps aside where they need not), so the readable ones are
//! always the first so many of those that wait: a *cut*.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::evidence::{Found, History, Key, State, cuts};
use headwater_timeline::index::{Change, PlaceId, Position};

/// One transaction as the log tells it, with what it did to the tables of timelines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What was received before it.
    pub before: Position,
    /// Where it ends in the log.
    pub end: Position,
    /// The place (its number) and what became of a row there.
    pub changes: Vec<(PlaceId, Change)>,
}

/// What was received, and what of it waits.
#[derive(Debug, Default)]
pub struct Queue {
    received: Position,
    waiting: VecDeque<Transaction>,
    /// The number of the first that waits, counted from the start of the stream.
    first: u64,
    changes: usize,
    /// Every row that what waits has changed.
    rows: HashMap<Key, History>,
    /// Tables of which every row may have become anything, and by which transaction.
    lost: VecDeque<(u64, (PlaceId, Change))>,
}

/// Rows to look at, and what they were after each transaction that waits.
#[derive(Debug, Default)]
pub struct Question {
    first: u64,
    end: u64,
    received: Position,
    rows: BTreeMap<Key, History>,
    /// How transactions left all their rows, by their numbers: the newest ones, and the oldest.
    outcomes: BTreeMap<u64, BTreeMap<Key, State>>,
}

/// What a look at the rows tells of the cut at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Transactions with lower numbers are readable from then on.
    pub readable: u64,
    /// Each of those below this number that may be hidden left its rows as they were seen: whether it can be read makes no
    /// difference.
    pub alike: u64,
    /// Those from this number on were not readable then; `None` where that is not known of any.
    pub hidden: Option<u64>,
}

impl Cut {
    /// Transactions with lower numbers are readable; of others nothing is known.
    pub fn readable(end: u64) -> Cut {
        Cut {
            readable: end,
            alike: end,
            hidden: None,
        }
    }
}

/// Rows of these transactions are asked for, counted from the newest and from the oldest. As a rule all but the newest few can be
/// read; what lies between those that are asked for is told by the next look.
const NEWEST: [usize; 7] = [0, 1, 2, 3, 5, 9, 17];
const OLDEST: [usize; 5] = [0, 1, 2, 4, 8];
/// Of so many transactions at each end all rows are asked for, to see whether they are as those left them; so many rows at most.
const ASKED: usize = 4;
const ASKED_ROWS: usize = 64;

impl Queue {
    /// Nothing waits, and everything up to here was received.
    #[must_use]
    pub fn starting_at(received: Position) -> Queue {
        Queue {
            received,
            ..Queue::default()
        }
    }

    /// Everything up to here was received.
    pub fn received(&self) -> Position {
        self.received
    }

    /// Nothing that matters happened up to here.
    pub fn pass(&mut self, to: Position) {
        self.received = self.received.max(to);
    }

    /// A transaction was received that ends here.
    pub fn push(&mut self, end: Position, changes: Vec<(PlaceId, Change)>) {
        self.changes += changes.len();
        let number = self.end();
        for change in &changes {
            match Key::of(change) {
                Some(key) => {
                    let before = || History::from(State::before(&change.1));
                    let row = self.rows.entry(key).or_insert_with(before);
                    row.note(number, State::after(&change.1));
                }
                None => self.lost.push_back((number, *change)),
            }
        }
        self.waiting.push_back(Transaction {
            before: self.received,
            end,
            changes,
        });
        self.pass(end);
    }

    /// True when nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many row changes wait.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Up to here everything is known to be readable, once what waits before it was taken.
    pub fn floor(&self) -> Position {
        self.waiting
            .front()
            .map_or(self.received, |next| next.before)
    }

    /// The number that the first one has which waits.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next one will have.
    pub fn end(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// Takes those that are proven to be readable: all with lower numbers than this one.
    pub fn take(&mut self, readable: u64) -> Vec<Transaction> {
        let count = usize::try_from(readable.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let taken: Vec<Transaction> = self
            .waiting
            .drain(..count.min(self.waiting.len()))
            .collect();
        self.first += taken.len() as u64;
        for change in taken.iter().flat_map(|taken| &taken.changes) {
            self.changes -= 1;
            if let Some(key) = Key::of(change)
                && let Entry::Occupied(mut row) = self.rows.entry(key)
                && !row.get_mut().forget_before(self.first)
            {
                row.remove();
            }
        }
        while self
            .lost
            .front()
            .is_some_and(|(number, _)| *number < self.first)
        {
            self.lost.pop_front();
        }
        taken
    }

    /// Which rows to look at to learn the cut.
    pub fn question(&self) -> Question {
        let outcomes = self.outcomes();
        let mut keys: BTreeSet<Key> = outcomes
            .values()
            .flat_map(BTreeMap::keys)
            .copied()
            .collect();
        let last = self.waiting.len().saturating_sub(1);
        let newest = NEWEST.iter().filter_map(|back| last.checked_sub(*back));
        for at in newest.chain(OLDEST) {
            let Some(transaction) = self.waiting.get(at) else {
                continue;
            };
            // The last row is the one that a later statement of the transaction cannot have undone.
            keys.extend(transaction.changes.iter().rev().find_map(Key::of));
        }
        Question {
            first: self.first,
            end: self.end(),
            received: self.received,
            rows: keys.into_iter().filter_map(|key| self.row(key)).collect(),
            outcomes,
        }
    }

    fn row(&self, key: Key) -> Option<(Key, History)> {
        let row = self.rows.get(&key)?;
        let lost = self.lost.iter().filter(|(_, lost)| key.is_lost_with(lost));
        Some((key, row.with_unknowns(lost.map(|(number, _)| *number))))
    }

    fn outcomes(&self) -> BTreeMap<u64, BTreeMap<Key, State>> {
        let numbered = || (self.first..).zip(&self.waiting);
        let behind = self.waiting.len().saturating_sub(ASKED);
        let mut outcomes = BTreeMap::new();
        add_outcomes(numbered().take(ASKED), &mut outcomes);
        let newest: Vec<_> = numbered().skip(behind).collect();
        add_outcomes(newest.into_iter().rev(), &mut outcomes);
        outcomes
    }
}

fn add_outcomes<'a>(
    transactions: impl Iterator<Item = (u64, &'a Transaction)>,
    outcomes: &mut BTreeMap<u64, BTreeMap<Key, State>>,
) {
    let mut room = ASKED_ROWS;
    for (number, transaction) in transactions {
        let Some(left) = room.checked_sub(transaction.changes.len()) else {
            break;
        };
        room = left;
        let changes = transaction.changes.iter();
        // Where a table is lost, nothing is known of its rows.
        let rows: Option<BTreeMap<Key, State>> = changes
            .map(|change| Some((Key::of(change)?, State::after(&change.1))))
            .collect();
        if let Some(rows) = rows {
            outcomes.insert(number, rows);
        }
    }
}

impl Question {
    /// True when there is no row to look at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Everything up to here had been received when it was put.
    pub fn received(&self) -> Position {
        self.received
    }

    /// The rows, by place and table.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.rows.keys()
    }

    /// What the rows tell that were found; `None` when they contradict each other or what was received: something has
    /// happened since that the stream has not told of yet. `end` is where the log ended after they were seen.
    ///
    /// That a row is as a transaction left it proves that one readable, whatever has happened since. That it is as it
    /// was before proves nothing unless all that had happened was known: it may have been changed back.
    pub fn judge(&self, found: &Found, end: Position) -> Option<Cut> {
        let seen = |key: &Key| seen(found, key);
        let rows = self.rows.iter().map(|(key, row)| (row, seen(key)));
        let (least, most) = cuts(self.first, self.end, rows)?;
        Some(Cut {
            readable: least,
            alike: self.alike(least, seen),
            hidden: (most < self.end && end <= self.received).then_some(most),
        })
    }

    /// A row that is as it cannot be, whatever of what was received can be read by now: neither as it was before nor as any
    /// transaction left it. Only where the log's end behind the look was received before the question was put: else something may
    /// have happened to it that is still to be told.
    pub fn contradiction(&self, found: &Found, end: Position) -> Option<Key> {
        if end > self.received {
            return None;
        }
        let mut rows = self.rows.iter();
        let is_impossible =
            |(key, row): &(&Key, &History)| !row.fits(seen(found, key), self.first, self.end);
        rows.find(is_impossible).map(|(key, _)| *key)
    }

    /// See [`Cut::alike`].
    fn alike(&self, readable: u64, seen: impl Fn(&Key) -> State) -> u64 {
        let behind = self.outcomes.range(readable..);
        let alike = (readable..)
            .zip(behind)
            .take_while(|(next, (number, rows))| {
                next == *number && rows.iter().all(|(key, state)| *state == seen(key))
            });
        readable + alike.count() as u64
    }
}

/// What a row is by those that were found.
fn seen(found: &Found, key: &Key) -> State {
    found.get(key).copied().unwrap_or(State::Absent)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::evidence::Message;
    use crate::script::{Act, PLACE, Rows, act, all_found, found};
    use proptest::option;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(offset: u64) -> Position {
        Position { file: 1, offset }
    }

    /// An author's, where the id alone orders.
    fn of(author: u64) -> State {
        State::Present(Some(Message { author, key: 0 }))
    }

    #[test]
    fn what_waits_holds_the_floor_down() {
        let mut queue = Queue::starting_at(at(4));
        queue.pass(at(10));
        assert_eq!(queue.floor(), at(10));
        queue.push(
            at(20),
            vec![(
                PLACE,
                Change::Posted {
                    author: 1,
                    key: 0,
                    id: 1,
                },
            )],
        );
        queue.pass(at(30));
        assert_eq!((queue.floor(), queue.received()), (at(10), at(30)));
        assert_eq!(queue.take(1).len(), 1);
        assert_eq!(queue.floor(), at(30));
    }

    #[test]
    fn a_message_that_is_there_proves_its_transaction_and_those_before() {
        let mut queue = Queue::starting_at(at(4));
        for id in 1..=3 {
            queue.push(
                at(10 * id),
                vec![(
                    PLACE,
                    Change::Posted {
                        author: 7,
                        key: 0,
                        id,
                    },
                )],
            );
        }
        let question = queue.question();
        let found = |ids: &[u64]| -> Found {
            ids.iter()
                .map(|id| (Key::message(PLACE, *id), of(7)))
                .collect()
        };
        let cut = |found| {
            question
                .judge(&found, at(30))
                .map(|cut| (cut.readable, cut.hidden))
        };
        assert_eq!(cut(found(&[])), Some((0, Some(0))));
        assert_eq!(cut(found(&[1])), Some((1, Some(1))));
        // Of what was not received yet nothing is told.
        assert_eq!(cut(found(&[1, 2, 3])), Some((3, None)));
        // Out of the log's order: nothing is proven.
        assert_eq!(cut(found(&[3])), None);
        // The log had gone on: the message may have been there and be gone again.
        let cut = question.judge(&found(&[1]), at(31)).unwrap();
        assert_eq!((cut.readable, cut.hidden), (1, None));
    }

    #[test]
    fn a_row_that_is_neither_as_before_nor_as_after_is_a_contradiction() {
        let mut queue = Queue::starting_at(at(4));
        queue.push(
            at(10),
            vec![(
                PLACE,
                Change::Posted {
                    author: 7,
                    key: 0,
                    id: 1,
                },
            )],
        );
        queue.push(
            at(20),
            vec![(
                PLACE,
                Change::Posted {
                    author: 7,
                    key: 0,
                    id: 2,
                },
            )],
        );
        let question = queue.question();
        let key = |id| Key::message(PLACE, id);
        let told = |rows: &[(u64, u64)], end| {
            let found = rows.iter().map(|(id, author)| (key(*id), of(*author)));
            question.contradiction(&found.collect(), at(end))
        };
        assert_eq!(told(&[(1, 8)], 20), Some(key(1)));
        // It may have been told of meanwhile, and not been received.
        assert_eq!(told(&[(1, 8)], 21), None);
        // Each is as it was before or after: a read view of MariaDB may show them so, and the next one will not.
        assert_eq!(told(&[(2, 7)], 20), None);
        assert_eq!(told(&[(1, 7), (2, 7)], 20), None);
    }

    #[test]
    fn a_follow_that_came_and_went_and_came_proves_its_first_coming_only() {
        let mut queue = Queue::starting_at(at(4));
        let (reader, author) = (1, 2);
        queue.push(at(10), vec![(PLACE, Change::Followed { reader, author })]);
        queue.push(at(20), vec![(PLACE, Change::Unfollowed { reader, author })]);
        queue.push(at(30), vec![(PLACE, Change::Followed { reader, author })]);
        let found = Found::from([(Key::follow(PLACE, reader, author), State::Present(None))]);
        let cut = queue.question().judge(&found, at(30)).unwrap();
        assert_eq!((cut.readable, cut.hidden), (1, None));
    }

    /// The rows that the first so many transactions changed.
    fn told_rows(all: &[Vec<(PlaceId, Change)>], count: usize) -> BTreeSet<Key> {
        all.iter()
            .take(count)
            .flatten()
            .filter_map(Key::of)
            .collect()
    }

    /// With `binlog_row_image=MINIMAL` the log does not say whose message it was.
    #[test]
    fn a_message_that_moves_from_an_author_untold_is_applied_once_it_is_seen_moved() {
        let mut queue = Queue::starting_at(at(4));
        let (id, author) = (10, 7);
        let moved = [
            Change::Removed {
                author: None,
                key: 0,
                id,
            },
            Change::Posted { author, key: 0, id },
        ];
        queue.push(at(10), moved.map(|change| (PLACE, change)).to_vec());
        let question = queue.question();
        let seen = |author| {
            let found = Found::from([(Key::message(PLACE, id), of(author))]);
            let cut = question.judge(&found, at(10)).unwrap();
            (cut.readable, cut.alike, cut.hidden)
        };
        // It may have been the same author's before: that proves nothing, and makes no difference.
        assert_eq!(seen(7), (0, 1, None));
        assert_eq!(seen(6), (0, 0, Some(0)));
    }

    proptest! {
        /// Whatever the rows went through, the true cut is never outside what they are taken to tell.
        #[test]
        fn the_true_cut_is_within(
            acts in proptest::collection::vec(
                proptest::collection::vec(
                    prop_oneof![
                        (0u64..6, option::of(0u64..5)).prop_map(|(id, author)| Act::Toggle(id, author)),
                        (0u64..6, option::of(0u64..5)).prop_map(|(id, author)| Act::Move(id, author)),
                        (0u64..4).prop_map(Act::Edge),
                    ],
                    1..4,
                ),
                0..40,
            ),
            minimal: bool,
            cut in 0usize..41,
            told_of in 0usize..41,
            taken in 0u64..10,
        ) {
            let mut all = Vec::new();
            let mut rows = Rows::new();
            let mut states = vec![rows.clone()];
            for transaction in &acts {
                let mut changes = Vec::new();
                for one in transaction {
                    act(one, minimal, &mut rows, &mut changes);
                }
                all.push(changes);
                states.push(rows.clone());
            }
            // The stream has told only some of it when the question is put.
            let told_of = told_of.min(acts.len());
            let cut = cut.min(acts.len());
            let taken = taken.min(cut.min(told_of) as u64);
            let mut queue = Queue::starting_at(at(4));
            for (number, changes) in all.iter().cloned().enumerate().take(told_of) {
                queue.push(at(number as u64 + 5), changes);
            }
            queue.take(taken);
            let question = queue.question();
            let rows = all_found(&states[cut], question.keys());
            // The log's end behind the look is nowhere before the cut.
            let end = at(cut.max(1) as u64 + 4);
            prop_assert_eq!(question.contradiction(&rows, end), None);
            let Some(told) = question.judge(&rows, end) else {
                prop_assert!(cut > told_of);
                return Ok(());
            };
            prop_assert!(told.readable <= cut as u64);
            prop_assert!(told.hidden.is_none_or(|hidden| cut as u64 <= hidden));
            prop_assert!(told.readable >= taken);
            // What may be applied beyond that makes no difference, however much of it can be read by then.
            let alike = usize::try_from(told.alike).unwrap();
            for key in told_rows(&all, alike) {
                let applied = found(&states[alike], &key);
                prop_assert!((cut..alike).all(|cut| found(&states[cut], &key) == applied));
            }
        }
    }
}
