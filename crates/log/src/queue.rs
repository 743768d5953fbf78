//! Transactions that the stream has told of and that are not yet known to be readable on the server.
//!
//! The log tells of a transaction before the storage engine makes its rows readable: by microseconds, or
//! under semi-synchronous replication by seconds. What is not proven to be readable waits here. Servers
//! commit in the order of the log (the feed steps aside where they need not), so the readable ones are
//! always the first so many of those that wait: a *cut*.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::evidence::{ObservedRows, RowHistory, RowState, TableRowKey, watermark_bounds};
use headwater_timeline::index::{BinlogPosition, TimelineChange, TimelineId};

/// One transaction as the log tells it, with what it did to the tables of timelines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTransaction {
    /// What was received before it.
    pub before: BinlogPosition,
    /// Where it ends in the log.
    pub end: BinlogPosition,
    /// The place (its number) and what became of a row there.
    pub changes: Vec<(TimelineId, TimelineChange)>,
}

/// What was received, and what of it waits.
#[derive(Debug, Default)]
pub struct TransactionQueue {
    received: BinlogPosition,
    waiting: VecDeque<LoggedTransaction>,
    /// The number of the first that waits, counted from the start of the stream.
    first: u64,
    changes: usize,
    /// Every row that what waits has changed.
    rows: HashMap<TableRowKey, RowHistory>,
    /// Tables of which every row may have become anything, and by which transaction.
    lost_tables: VecDeque<(u64, (TimelineId, TimelineChange))>,
}

/// Rows to look at, and what they were after each transaction that waits.
#[derive(Debug, Default)]
pub struct RowProbe {
    first: u64,
    end: u64,
    received: BinlogPosition,
    rows: BTreeMap<TableRowKey, RowHistory>,
    /// How transactions left all their rows, by their numbers: the newest ones, and the oldest.
    outcomes: BTreeMap<u64, BTreeMap<TableRowKey, RowState>>,
}

/// What a look at the rows tells of the cut at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitWatermark {
    /// Transactions with lower numbers are readable from then on.
    pub readable_below: u64,
    /// Each of those below this number that may be hidden left its rows as they were seen: whether it can be read makes no
    /// difference.
    pub indistinguishable_below: u64,
    /// Those from this number on were not readable then; `None` where that is not known of any.
    pub hidden_from: Option<u64>,
}

impl CommitWatermark {
    /// Transactions with lower numbers are readable; of others nothing is known.
    pub fn readable(end: u64) -> CommitWatermark {
        CommitWatermark {
            readable_below: end,
            indistinguishable_below: end,
            hidden_from: None,
        }
    }
}

/// Rows of these transactions are asked for, counted from the newest and from the oldest. As a rule all but the newest few can be
/// read; what lies between those that are asked for is told by the next look.
const NEWEST_PROBED: [usize; 7] = [0, 1, 2, 3, 5, 9, 17];
const OLDEST_PROBED: [usize; 5] = [0, 1, 2, 4, 8];
/// Of so many transactions at each end all rows are asked for, to see whether they are as those left them; so many rows at most.
const PROBED_TRANSACTIONS: usize = 4;
const MAX_PROBED_ROWS: usize = 64;

impl TransactionQueue {
    /// Nothing waits, and everything up to here was received.
    #[must_use]
    pub fn starting_at(received: BinlogPosition) -> TransactionQueue {
        TransactionQueue {
            received,
            ..TransactionQueue::default()
        }
    }

    /// Everything up to here was received.
    pub fn received(&self) -> BinlogPosition {
        self.received
    }

    /// Nothing that matters happened up to here.
    pub fn advance_to(&mut self, to: BinlogPosition) {
        self.received = self.received.max(to);
    }

    /// A transaction was received that ends here.
    pub fn push(&mut self, end: BinlogPosition, changes: Vec<(TimelineId, TimelineChange)>) {
        self.changes += changes.len();
        let number = self.end();
        for change in &changes {
            match TableRowKey::changed_by(change) {
                Some(key) => {
                    let before = || RowHistory::starting_as(RowState::before(&change.1));
                    let row = self.rows.entry(key).or_insert_with(before);
                    row.record(number, RowState::after(&change.1));
                }
                None => self.lost_tables.push_back((number, *change)),
            }
        }
        self.waiting.push_back(LoggedTransaction {
            before: self.received,
            end,
            changes,
        });
        self.advance_to(end);
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
    pub fn floor(&self) -> BinlogPosition {
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
    pub fn take_readable(&mut self, readable: u64) -> Vec<LoggedTransaction> {
        let count = usize::try_from(readable.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let taken: Vec<LoggedTransaction> = self
            .waiting
            .drain(..count.min(self.waiting.len()))
            .collect();
        self.first += taken.len() as u64;
        for change in taken.iter().flat_map(|taken| &taken.changes) {
            self.changes -= 1;
            if let Some(key) = TableRowKey::changed_by(change)
                && let Entry::Occupied(mut row) = self.rows.entry(key)
                && !row.get_mut().forget_before(self.first)
            {
                row.remove();
            }
        }
        while self
            .lost_tables
            .front()
            .is_some_and(|(number, _)| *number < self.first)
        {
            self.lost_tables.pop_front();
        }
        taken
    }

    /// Which rows to look at to learn the cut.
    pub fn row_probe(&self) -> RowProbe {
        let outcomes = self.outcomes();
        let mut keys: BTreeSet<TableRowKey> = outcomes
            .values()
            .flat_map(BTreeMap::keys)
            .copied()
            .collect();
        let last = self.waiting.len().saturating_sub(1);
        let newest = NEWEST_PROBED
            .iter()
            .filter_map(|back| last.checked_sub(*back));
        for at in newest.chain(OLDEST_PROBED) {
            let Some(transaction) = self.waiting.get(at) else {
                continue;
            };
            // The last row is the one that a later statement of the transaction cannot have undone.
            keys.extend(
                transaction
                    .changes
                    .iter()
                    .rev()
                    .find_map(TableRowKey::changed_by),
            );
        }
        RowProbe {
            first: self.first,
            end: self.end(),
            received: self.received,
            rows: keys
                .into_iter()
                .filter_map(|key| self.row_history(key))
                .collect(),
            outcomes,
        }
    }

    fn row_history(&self, key: TableRowKey) -> Option<(TableRowKey, RowHistory)> {
        let row = self.rows.get(&key)?;
        let lost = self
            .lost_tables
            .iter()
            .filter(|(_, lost)| key.is_lost_with(lost));
        Some((key, row.with_unknowns(lost.map(|(number, _)| *number))))
    }

    fn outcomes(&self) -> BTreeMap<u64, BTreeMap<TableRowKey, RowState>> {
        let numbered = || (self.first..).zip(&self.waiting);
        let behind = self.waiting.len().saturating_sub(PROBED_TRANSACTIONS);
        let mut outcomes = BTreeMap::new();
        add_outcomes(numbered().take(PROBED_TRANSACTIONS), &mut outcomes);
        let newest: Vec<_> = numbered().skip(behind).collect();
        add_outcomes(newest.into_iter().rev(), &mut outcomes);
        outcomes
    }
}

fn add_outcomes<'a>(
    transactions: impl Iterator<Item = (u64, &'a LoggedTransaction)>,
    outcomes: &mut BTreeMap<u64, BTreeMap<TableRowKey, RowState>>,
) {
    let mut room = MAX_PROBED_ROWS;
    for (number, transaction) in transactions {
        let Some(left) = room.checked_sub(transaction.changes.len()) else {
            break;
        };
        room = left;
        let changes = transaction.changes.iter();
        // Where a table is lost, nothing is known of its rows.
        let rows: Option<BTreeMap<TableRowKey, RowState>> = changes
            .map(|change| Some((TableRowKey::changed_by(change)?, RowState::after(&change.1))))
            .collect();
        if let Some(rows) = rows {
            outcomes.insert(number, rows);
        }
    }
}

impl RowProbe {
    /// True when there is no row to look at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Everything up to here had been received when it was put.
    pub fn received(&self) -> BinlogPosition {
        self.received
    }

    /// The rows, by place and table.
    pub fn keys(&self) -> impl Iterator<Item = &TableRowKey> {
        self.rows.keys()
    }

    /// What the rows tell that were found; `None` when they contradict each other or what was received: something has
    /// happened since that the stream has not told of yet. `end` is where the log ended after they were seen.
    ///
    /// That a row is as a transaction left it proves that one readable, whatever has happened since. That it is as it
    /// was before proves nothing unless all that had happened was known: it may have been changed back.
    pub fn evaluate(&self, found: &ObservedRows, end: BinlogPosition) -> Option<CommitWatermark> {
        let seen = |key: &TableRowKey| observed_state(found, key);
        let rows = self.rows.iter().map(|(key, row)| (row, seen(key)));
        let (least, most) = watermark_bounds(self.first, self.end, rows)?;
        Some(CommitWatermark {
            readable_below: least,
            indistinguishable_below: self.indistinguishable_below(least, seen),
            hidden_from: (most < self.end && end <= self.received).then_some(most),
        })
    }

    /// A row that is as it cannot be, whatever of what was received can be read by now: neither as it was before nor as any
    /// transaction left it. Only where the log's end behind the look was received before the question was put: else something may
    /// have happened to it that is still to be told.
    pub fn contradiction(&self, found: &ObservedRows, end: BinlogPosition) -> Option<TableRowKey> {
        if end > self.received {
            return None;
        }
        let mut rows = self.rows.iter();
        let is_impossible = |(key, row): &(&TableRowKey, &RowHistory)| {
            !row.is_consistent_with(observed_state(found, key), self.first, self.end)
        };
        rows.find(is_impossible).map(|(key, _)| *key)
    }

    /// See [`CommitWatermark::indistinguishable_below`].
    fn indistinguishable_below(
        &self,
        readable: u64,
        seen: impl Fn(&TableRowKey) -> RowState,
    ) -> u64 {
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
fn observed_state(found: &ObservedRows, key: &TableRowKey) -> RowState {
    found.get(key).copied().unwrap_or(RowState::Absent)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::evidence::MessageAttributes;
    use crate::transaction_script::{
        ScriptedChange, ScriptedRows, TIMELINE, execute, observe, observed_state,
    };
    use proptest::option;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(offset: u64) -> BinlogPosition {
        BinlogPosition { file: 1, offset }
    }

    /// An author's, where the id alone orders.
    fn of(author: u64) -> RowState {
        RowState::Present(Some(MessageAttributes { author, key: 0 }))
    }

    #[test]
    fn what_waits_holds_the_floor_down() {
        let mut queue = TransactionQueue::starting_at(at(4));
        queue.advance_to(at(10));
        assert_eq!(queue.floor(), at(10));
        queue.push(
            at(20),
            vec![(
                TIMELINE,
                TimelineChange::Posted {
                    author: 1,
                    key: 0,
                    id: 1,
                },
            )],
        );
        queue.advance_to(at(30));
        assert_eq!((queue.floor(), queue.received()), (at(10), at(30)));
        assert_eq!(queue.take_readable(1).len(), 1);
        assert_eq!(queue.floor(), at(30));
    }

    #[test]
    fn a_message_that_is_there_proves_its_transaction_and_those_before() {
        let mut queue = TransactionQueue::starting_at(at(4));
        for id in 1..=3 {
            queue.push(
                at(10 * id),
                vec![(
                    TIMELINE,
                    TimelineChange::Posted {
                        author: 7,
                        key: 0,
                        id,
                    },
                )],
            );
        }
        let question = queue.row_probe();
        let found = |ids: &[u64]| -> ObservedRows {
            ids.iter()
                .map(|id| (TableRowKey::message(TIMELINE, *id), of(7)))
                .collect()
        };
        let cut = |found| {
            question
                .evaluate(&found, at(30))
                .map(|cut| (cut.readable_below, cut.hidden_from))
        };
        assert_eq!(cut(found(&[])), Some((0, Some(0))));
        assert_eq!(cut(found(&[1])), Some((1, Some(1))));
        // Of what was not received yet nothing is told.
        assert_eq!(cut(found(&[1, 2, 3])), Some((3, None)));
        // Out of the log's order: nothing is proven.
        assert_eq!(cut(found(&[3])), None);
        // The log had gone on: the message may have been there and be gone again.
        let cut = question.evaluate(&found(&[1]), at(31)).unwrap();
        assert_eq!((cut.readable_below, cut.hidden_from), (1, None));
    }

    #[test]
    fn a_row_that_is_neither_as_before_nor_as_after_is_a_contradiction() {
        let mut queue = TransactionQueue::starting_at(at(4));
        queue.push(
            at(10),
            vec![(
                TIMELINE,
                TimelineChange::Posted {
                    author: 7,
                    key: 0,
                    id: 1,
                },
            )],
        );
        queue.push(
            at(20),
            vec![(
                TIMELINE,
                TimelineChange::Posted {
                    author: 7,
                    key: 0,
                    id: 2,
                },
            )],
        );
        let question = queue.row_probe();
        let key = |id| TableRowKey::message(TIMELINE, id);
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
        let mut queue = TransactionQueue::starting_at(at(4));
        let (reader, author) = (1, 2);
        queue.push(
            at(10),
            vec![(TIMELINE, TimelineChange::Followed { reader, author })],
        );
        queue.push(
            at(20),
            vec![(TIMELINE, TimelineChange::Unfollowed { reader, author })],
        );
        queue.push(
            at(30),
            vec![(TIMELINE, TimelineChange::Followed { reader, author })],
        );
        let found = ObservedRows::from([(
            TableRowKey::follow(TIMELINE, reader, author),
            RowState::Present(None),
        )]);
        let cut = queue.row_probe().evaluate(&found, at(30)).unwrap();
        assert_eq!((cut.readable_below, cut.hidden_from), (1, None));
    }

    /// The rows that the first so many transactions changed.
    fn told_rows(all: &[Vec<(TimelineId, TimelineChange)>], count: usize) -> BTreeSet<TableRowKey> {
        all.iter()
            .take(count)
            .flatten()
            .filter_map(TableRowKey::changed_by)
            .collect()
    }

    /// With `binlog_row_image=MINIMAL` the log does not say whose message it was.
    #[test]
    fn a_message_that_moves_from_an_author_untold_is_applied_once_it_is_seen_moved() {
        let mut queue = TransactionQueue::starting_at(at(4));
        let (id, author) = (10, 7);
        let moved = [
            TimelineChange::Removed {
                author: None,
                key: 0,
                id,
            },
            TimelineChange::Posted { author, key: 0, id },
        ];
        queue.push(at(10), moved.map(|change| (TIMELINE, change)).to_vec());
        let question = queue.row_probe();
        let seen = |author| {
            let found = ObservedRows::from([(TableRowKey::message(TIMELINE, id), of(author))]);
            let cut = question.evaluate(&found, at(10)).unwrap();
            (
                cut.readable_below,
                cut.indistinguishable_below,
                cut.hidden_from,
            )
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
                        (0u64..6, option::of(0u64..5)).prop_map(|(id, author)| ScriptedChange::Toggle(id, author)),
                        (0u64..6, option::of(0u64..5)).prop_map(|(id, author)| ScriptedChange::Move(id, author)),
                        (0u64..4).prop_map(ScriptedChange::ToggleFollow),
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
            let mut rows = ScriptedRows::new();
            let mut states = vec![rows.clone()];
            for transaction in &acts {
                let mut changes = Vec::new();
                for one in transaction {
                    execute(one, minimal, &mut rows, &mut changes);
                }
                all.push(changes);
                states.push(rows.clone());
            }
            // The stream has told only some of it when the question is put.
            let told_of = told_of.min(acts.len());
            let cut = cut.min(acts.len());
            let taken = taken.min(cut.min(told_of) as u64);
            let mut queue = TransactionQueue::starting_at(at(4));
            for (number, changes) in all.iter().cloned().enumerate().take(told_of) {
                queue.push(at(number as u64 + 5), changes);
            }
            queue.take_readable(taken);
            let question = queue.row_probe();
            let rows = observe(&states[cut], question.keys());
            // The log's end behind the look is nowhere before the cut.
            let end = at(cut.max(1) as u64 + 4);
            prop_assert_eq!(question.contradiction(&rows, end), None);
            let Some(told) = question.evaluate(&rows, end) else {
                prop_assert!(cut > told_of);
                return Ok(());
            };
            prop_assert!(told.readable_below <= cut as u64);
            prop_assert!(told.hidden_from.is_none_or(|hidden| cut as u64 <= hidden));
            prop_assert!(told.readable_below >= taken);
            // What may be applied beyond that makes no difference, however much of it can be read by then.
            let alike = usize::try_from(told.indistinguishable_below).unwrap();
            for key in told_rows(&all, alike) {
                let applied = observed_state(&states[alike], &key);
                prop_assert!((cut..alike).all(|cut| observed_state(&states[cut], &key) == applied));
            }
        }
    }
}
