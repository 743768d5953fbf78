//! Recent changes, for comparing two answers that were given at different moments.

use std::collections::VecDeque;

use super::queue::LoggedTransaction;
use headwater_timeline::index::{TimelineChange, TimelineId};

/// How many changes are remembered; a comparison that spans more is inconclusive.
const MAX_REMEMBERED_CHANGES: usize = 100_000;

/// Changes in the order in which they were applied.
#[derive(Debug, Default)]
pub struct RecentChanges {
    next: u64,
    changes: VecDeque<(TimelineId, AffectedUser)>,
}

/// The user whose rows a change affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AffectedUser {
    Author(u64),
    Reader(u64),
    Anyone,
}

impl RecentChanges {
    /// The number that the next change will get.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Records applied transactions.
    pub fn record(&mut self, applied: &[LoggedTransaction]) {
        for (timeline_id, change) in applied.iter().flat_map(|transaction| &transaction.changes) {
            let touched = match *change {
                TimelineChange::Posted { author, .. }
                | TimelineChange::Removed {
                    author: Some(author),
                    ..
                }
                | TimelineChange::MessagesOfAuthorLost { author } => AffectedUser::Author(author),
                TimelineChange::Followed { reader, .. }
                | TimelineChange::Unfollowed { reader, .. }
                | TimelineChange::FollowsChanged { reader } => AffectedUser::Reader(reader),
                TimelineChange::Removed { author: None, .. }
                | TimelineChange::MessagesLost
                | TimelineChange::FollowsLost => AffectedUser::Anyone,
            };
            self.changes.push_back((*timeline_id, touched));
            self.next += 1;
        }
        let over = self.changes.len().saturating_sub(MAX_REMEMBERED_CHANGES);
        self.changes.drain(..over);
    }

    /// True if no change from number `since` on affects what these readers see. `authors`: at least those they follow, ascending, if known.
    pub fn leaves_unchanged(
        &self,
        since: u64,
        timeline_id: TimelineId,
        readers: &[u64],
        authors: Option<&[u64]>,
    ) -> bool {
        let Ok(count) = usize::try_from(self.next.saturating_sub(since)) else {
            return false;
        };
        if count > self.changes.len() {
            return false;
        }
        let mut changes = self.changes.iter().rev().take(count);
        changes.all(|(of, touched)| {
            *of != timeline_id
                || match (touched, authors) {
                    (AffectedUser::Author(author), Some(relevant)) => {
                        relevant.binary_search(author).is_err()
                    }
                    (AffectedUser::Reader(reader), _) => !readers.contains(reader),
                    (AffectedUser::Author(_), None) | (AffectedUser::Anyone, _) => false,
                }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_timeline::index::BinlogPosition;

    fn transaction(timeline_id: TimelineId, change: TimelineChange) -> LoggedTransaction {
        LoggedTransaction {
            before: BinlogPosition::default(),
            end: BinlogPosition::default(),
            changes: vec![(timeline_id, change)],
        }
    }

    #[test]
    fn changes_of_others_spare_a_timeline() {
        let mut recent = RecentChanges::default();
        let since = recent.next_number();
        recent.record(&[
            transaction(
                TimelineId(0),
                TimelineChange::Posted {
                    author: 5,
                    key: 0,
                    id: 1,
                },
            ),
            transaction(
                TimelineId(0),
                TimelineChange::Followed {
                    reader: 8,
                    author: 3,
                },
            ),
            transaction(
                TimelineId(1),
                TimelineChange::Posted {
                    author: 3,
                    key: 0,
                    id: 2,
                },
            ),
        ]);
        assert!(recent.leaves_unchanged(since, TimelineId(0), &[7], Some(&[3, 4])));
        assert!(!recent.leaves_unchanged(since, TimelineId(0), &[7], Some(&[3, 5])));
        assert!(!recent.leaves_unchanged(since, TimelineId(0), &[7], None));
        assert!(!recent.leaves_unchanged(since, TimelineId(0), &[8], Some(&[3, 4])));
        assert!(!recent.leaves_unchanged(since, TimelineId(1), &[7], Some(&[3, 4])));
        assert!(recent.leaves_unchanged(recent.next_number(), TimelineId(0), &[8], None));
    }

    #[test]
    fn a_removal_that_does_not_say_whose_it_was_may_be_anyones() {
        let mut recent = RecentChanges::default();
        recent.record(&[transaction(
            TimelineId(0),
            TimelineChange::Removed {
                author: None,
                key: 0,
                id: 1,
            },
        )]);
        assert!(!recent.leaves_unchanged(0, TimelineId(0), &[7], Some(&[3])));
    }

    #[test]
    fn what_was_forgotten_is_not_taken_for_nothing() {
        let mut recent = RecentChanges::default();
        let change = transaction(
            TimelineId(1),
            TimelineChange::Posted {
                author: 5,
                key: 0,
                id: 1,
            },
        );
        for _ in 0..=MAX_REMEMBERED_CHANGES {
            recent.record(std::slice::from_ref(&change));
        }
        assert_eq!(recent.changes.len(), MAX_REMEMBERED_CHANGES);
        assert!(!recent.leaves_unchanged(0, TimelineId(0), &[7], Some(&[])));
        assert!(recent.leaves_unchanged(1, TimelineId(0), &[7], Some(&[])));
    }
}
