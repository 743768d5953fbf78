//! Transactions that the stream has received and that are not yet known to be readable on the server.
//!
//! The log contains a transaction before the storage engine makes its rows readable: by microseconds, or by seconds under
//! semi-synchronous replication. What is not proven readable waits here. Servers commit in log order (the feed is suspended where
//! they need not), so the readable transactions are always a prefix of the pending ones. Its end is the *commit watermark*.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::evidence::{ObservedRows, RowHistory, RowState, TableRowKey, watermark_bounds};
use headwater_timeline::index::{BinlogPosition, TimelineChange, TimelineId};

/// A transaction from the log, with its changes to the tables of timelines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTransaction {
    /// The position received before it.
    pub before: BinlogPosition,
    /// Where it ends in the log.
    pub end: BinlogPosition,
    /// Pairs of a timeline and a row change in it.
    pub changes: Vec<(TimelineId, TimelineChange)>,
}

/// The received position, and the transactions that are not yet known to be readable.
#[derive(Debug, Default)]
pub struct TransactionQueue {
    received: BinlogPosition,
    waiting: VecDeque<LoggedTransaction>,
    /// The number of the first pending transaction, counted from the start of the stream.
    first: u64,
    changes: usize,
    /// Every row that a pending transaction changed.
    rows: HashMap<TableRowKey, RowHistory>,
    /// Tables of which every row may have changed, and the number of the transaction that did it.
    lost_tables: VecDeque<(u64, (TimelineId, TimelineChange))>,
}

/// Rows to probe, and their states after each pending transaction.
#[derive(Debug, Default)]
pub struct RowProbe {
    first: u64,
    end: u64,
    received: BinlogPosition,
    rows: BTreeMap<TableRowKey, RowHistory>,
    /// The newest and the oldest transactions, by number, with the states in which they left all their rows.
    outcomes: BTreeMap<u64, BTreeMap<TableRowKey, RowState>>,
}

/// What a probe proves about which transactions were readable at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitWatermark {
    /// Transactions with lower numbers are readable from then on.
    pub readable_below: u64,
    /// Transactions below this number that may be hidden left their rows as observed: whether they are readable makes no difference.
    pub indistinguishable_below: u64,
    /// Transactions from this number on were not readable then; `None` if that is not known of any.
    pub hidden_from: Option<u64>,
}

impl CommitWatermark {
    /// Transactions below `end` are readable; of others nothing is known.
    pub fn readable(end: u64) -> CommitWatermark {
        CommitWatermark {
            readable_below: end,
            indistinguishable_below: end,
            hidden_from: None,
        }
    }
}

/// Offsets of the probed transactions, from the newest and from the oldest. Usually all but the newest few are readable; the next
/// probe covers what lies between.
const NEWEST_PROBED: [usize; 7] = [0, 1, 2, 3, 5, 9, 17];
const OLDEST_PROBED: [usize; 5] = [0, 1, 2, 4, 8];
/// At each end all rows of this many transactions are probed, to see whether they are as those left them; limited by rows.
const PROBED_TRANSACTIONS: usize = 4;
const MAX_PROBED_ROWS: usize = 64;

impl TransactionQueue {
    /// An empty queue; everything up to `received` was received.
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

    /// Advances the received position, without a relevant change.
    pub fn advance_to(&mut self, to: BinlogPosition) {
        self.received = self.received.max(to);
    }

    /// Adds a received transaction that ends at `end`.
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

    /// True if nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number of pending row changes.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Everything up to here is readable, once the transactions taken before are applied.
    pub fn floor(&self) -> BinlogPosition {
        self.waiting
            .front()
            .map_or(self.received, |next| next.before)
    }

    /// The number of the first pending transaction.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next transaction to be received.
    pub fn end(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// Removes and returns the transactions below `readable`, which are proven readable.
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

    /// The rows to probe for the commit watermark.
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
            // No later statement of the transaction can have undone the last row.
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
        let newest_start = self.waiting.len().saturating_sub(PROBED_TRANSACTIONS);
        let mut outcomes = BTreeMap::new();
        add_outcomes(numbered().take(PROBED_TRANSACTIONS), &mut outcomes);
        let newest: Vec<_> = numbered().skip(newest_start).collect();
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
        let Some(remaining) = room.checked_sub(transaction.changes.len()) else {
            break;
        };
        room = remaining;
        let changes = transaction.changes.iter();
        // If a table is lost, nothing is known of its rows.
        let rows: Option<BTreeMap<TableRowKey, RowState>> = changes
            .map(|change| Some((TableRowKey::changed_by(change)?, RowState::after(&change.1))))
            .collect();
        if let Some(rows) = rows {
            outcomes.insert(number, rows);
        }
    }
}

impl RowProbe {
    /// True if there is no row to probe.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Everything up to here had been received when the probe was built.
    pub fn received(&self) -> BinlogPosition {
        self.received
    }

    /// The rows, by timeline and table.
    pub fn keys(&self) -> impl Iterator<Item = &TableRowKey> {
        self.rows.keys()
    }

    /// Derives the commit watermark from the observed rows; `None` if they contradict each other or what was received: something has
    /// happened since that the stream has not received. `end` is the log's end after the probe.
    ///
    /// A row in the state that a transaction left proves that transaction readable, whatever has happened since. A row in its earlier
    /// state proves nothing unless everything that happened was known: it may have been changed back.
    pub fn evaluate(
        &self,
        observed: &ObservedRows,
        end: BinlogPosition,
    ) -> Option<CommitWatermark> {
        let state_of = |key: &TableRowKey| observed_state(observed, key);
        let rows = self.rows.iter().map(|(key, row)| (row, state_of(key)));
        let (least, most) = watermark_bounds(self.first, self.end, rows)?;
        Some(CommitWatermark {
            readable_below: least,
            indistinguishable_below: self.indistinguishable_below(least, state_of),
            hidden_from: (most < self.end && end <= self.received).then_some(most),
        })
    }

    /// A row in an impossible state: neither as it was before nor as any received transaction left it. Only if the log's end after the
    /// probe was received before the probe was sent: otherwise something may have happened to it that is still to be received.
    pub fn contradiction(
        &self,
        observed: &ObservedRows,
        end: BinlogPosition,
    ) -> Option<TableRowKey> {
        if end > self.received {
            return None;
        }
        let mut rows = self.rows.iter();
        let is_impossible = |(key, row): &(&TableRowKey, &RowHistory)| {
            !row.is_consistent_with(observed_state(observed, key), self.first, self.end)
        };
        rows.find(is_impossible).map(|(key, _)| *key)
    }

    /// See [`CommitWatermark::indistinguishable_below`].
    fn indistinguishable_below(
        &self,
        readable: u64,
        state_of: impl Fn(&TableRowKey) -> RowState,
    ) -> u64 {
        let later_outcomes = self.outcomes.range(readable..);
        let identical = (readable..)
            .zip(later_outcomes)
            .take_while(|(next, (number, rows))| {
                next == *number && rows.iter().all(|(key, state)| *state == state_of(key))
            });
        readable + identical.count() as u64
    }
}

fn observed_state(rows: &ObservedRows, key: &TableRowKey) -> RowState {
    rows.get(key).copied().unwrap_or(RowState::Absent)
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

    /// A message of this author, without a sort key.
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
        let probe = queue.row_probe();
        let observed = |ids: &[u64]| -> ObservedRows {
            ids.iter()
                .map(|id| (TableRowKey::message(TIMELINE, *id), of(7)))
                .collect()
        };
        let watermark = |found| {
            probe
                .evaluate(&found, at(30))
                .map(|cut| (cut.readable_below, cut.hidden_from))
        };
        assert_eq!(watermark(observed(&[])), Some((0, Some(0))));
        assert_eq!(watermark(observed(&[1])), Some((1, Some(1))));
        // Of later transactions nothing is known.
        assert_eq!(watermark(observed(&[1, 2, 3])), Some((3, None)));
        // Not in log order: nothing is proven.
        assert_eq!(watermark(observed(&[3])), None);
        // The log has advanced: the message may have been inserted and removed again.
        let watermark = probe.evaluate(&observed(&[1]), at(31)).unwrap();
        assert_eq!((watermark.readable_below, watermark.hidden_from), (1, None));
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
        let probe = queue.row_probe();
        let key = |id| TableRowKey::message(TIMELINE, id);
        let contradiction = |rows: &[(u64, u64)], end| {
            let observed = rows.iter().map(|(id, author)| (key(*id), of(*author)));
            probe.contradiction(&observed.collect(), at(end))
        };
        assert_eq!(contradiction(&[(1, 8)], 20), Some(key(1)));
        // It may have been logged meanwhile, and not been received.
        assert_eq!(contradiction(&[(1, 8)], 21), None);
        // Each is as it was before or after: one read view of MariaDB may show that, and the next one will not.
        assert_eq!(contradiction(&[(2, 7)], 20), None);
        assert_eq!(contradiction(&[(1, 7), (2, 7)], 20), None);
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
        let observed = ObservedRows::from([(
            TableRowKey::follow(TIMELINE, reader, author),
            RowState::Present(None),
        )]);
        let watermark = queue.row_probe().evaluate(&observed, at(30)).unwrap();
        assert_eq!((watermark.readable_below, watermark.hidden_from), (1, None));
    }

    /// The rows that the first `count` transactions changed.
    fn changed_rows(
        all: &[Vec<(TimelineId, TimelineChange)>],
        count: usize,
    ) -> BTreeSet<TableRowKey> {
        all.iter()
            .take(count)
            .flatten()
            .filter_map(TableRowKey::changed_by)
            .collect()
    }

    /// With `binlog_row_image=MINIMAL` the log does not contain the message's author.
    #[test]
    fn a_message_that_moves_from_an_unlogged_author_is_applied_once_it_is_observed() {
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
        let probe = queue.row_probe();
        let bounds_for = |author| {
            let observed = ObservedRows::from([(TableRowKey::message(TIMELINE, id), of(author))]);
            let watermark = probe.evaluate(&observed, at(10)).unwrap();
            (
                watermark.readable_below,
                watermark.indistinguishable_below,
                watermark.hidden_from,
            )
        };
        // It may have had the same author before: that proves nothing, and makes no difference.
        assert_eq!(bounds_for(7), (0, 1, None));
        assert_eq!(bounds_for(6), (0, 0, Some(0)));
    }

    proptest! {
        /// Whatever happened to the rows, the true watermark is within the derived bounds.
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
            // The stream has received only some of it when the probe is sent.
            let told_of = told_of.min(acts.len());
            let cut = cut.min(acts.len());
            let taken = taken.min(cut.min(told_of) as u64);
            let mut queue = TransactionQueue::starting_at(at(4));
            for (number, changes) in all.iter().cloned().enumerate().take(told_of) {
                queue.push(at(number as u64 + 5), changes);
            }
            queue.take_readable(taken);
            let probe = queue.row_probe();
            let rows = observe(&states[cut], probe.keys());
            // The log's end after the probe is never before the watermark.
            let end = at(cut.max(1) as u64 + 4);
            prop_assert_eq!(probe.contradiction(&rows, end), None);
            let Some(watermark) = probe.evaluate(&rows, end) else {
                prop_assert!(cut > told_of);
                return Ok(());
            };
            prop_assert!(watermark.readable_below <= cut as u64);
            prop_assert!(watermark.hidden_from.is_none_or(|hidden| cut as u64 <= hidden));
            prop_assert!(watermark.readable_below >= taken);
            // What may be applied beyond that makes no difference, however much of it is readable by then.
            let alike = usize::try_from(watermark.indistinguishable_below).unwrap();
            for key in changed_rows(&all, alike) {
                let applied = observed_state(&states[alike], &key);
                prop_assert!((cut..alike).all(|cut| observed_state(&states[cut], &key) == applied));
            }
        }
    }
}
