//! What has changed lately: for comparisons of two answers that were not given at one moment.

use std::collections::VecDeque;

use super::queue::Transaction;
use headwater_timeline::index::{Change, PlaceId};

/// Changes that are remembered; a comparison that takes longer is not sure.
const MOST: usize = 100_000;

/// Changes in the order in which they were applied.
#[derive(Debug, Default)]
pub struct Recent {
    next: u64,
    changes: VecDeque<(PlaceId, Touched)>,
}

/// Whose rows a change touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touched {
    Author(u64),
    Reader(u64),
    Anyone,
}

impl Recent {
    /// The number that the next change gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes in what was applied.
    pub fn note(&mut self, applied: &[Transaction]) {
        for (place, change) in applied.iter().flat_map(|transaction| &transaction.changes) {
            let touched = match *change {
                Change::Posted { author, .. }
                | Change::Removed {
                    author: Some(author),
                    ..
                } => Touched::Author(author),
                Change::Followed { reader, .. } | Change::Unfollowed { reader, .. } => {
                    Touched::Reader(reader)
                }
                Change::Removed { author: None, .. }
                | Change::MessagesLost
                | Change::FollowsLost => Touched::Anyone,
            };
            self.changes.push_back((*place, touched));
            self.next += 1;
        }
        let over = self.changes.len().saturating_sub(MOST);
        self.changes.drain(..over);
    }

    /// True if no change from this number on was about what these readers see. `authors`: theirs and others, ascending, where they are
    /// known.
    pub fn spared(
        &self,
        since: u64,
        place: PlaceId,
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
            *of != place
                || match (touched, authors) {
                    (Touched::Author(author), Some(own)) => own.binary_search(author).is_err(),
                    (Touched::Reader(reader), _) => !readers.contains(reader),
                    (Touched::Author(_), None) | (Touched::Anyone, _) => false,
                }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_timeline::index::Position;

    fn transaction(place: PlaceId, change: Change) -> Transaction {
        Transaction {
            before: Position::default(),
            end: Position::default(),
            changes: vec![(place, change)],
        }
    }

    #[test]
    fn changes_of_others_spare_a_timeline() {
        let mut recent = Recent::default();
        let since = recent.next();
        recent.note(&[
            transaction(
                PlaceId(0),
                Change::Posted {
                    author: 5,
                    key: 0,
                    id: 1,
                },
            ),
            transaction(
                PlaceId(0),
                Change::Followed {
                    reader: 8,
                    author: 3,
                },
            ),
            transaction(
                PlaceId(1),
                Change::Posted {
                    author: 3,
                    key: 0,
                    id: 2,
                },
            ),
        ]);
        assert!(recent.spared(since, PlaceId(0), &[7], Some(&[3, 4])));
        assert!(!recent.spared(since, PlaceId(0), &[7], Some(&[3, 5])));
        assert!(!recent.spared(since, PlaceId(0), &[7], None));
        assert!(!recent.spared(since, PlaceId(0), &[8], Some(&[3, 4])));
        assert!(!recent.spared(since, PlaceId(1), &[7], Some(&[3, 4])));
        assert!(recent.spared(recent.next(), PlaceId(0), &[8], None));
    }

    #[test]
    fn a_removal_that_does_not_say_whose_it_was_may_be_anyones() {
        let mut recent = Recent::default();
        recent.note(&[transaction(
            PlaceId(0),
            Change::Removed {
                author: None,
                key: 0,
                id: 1,
            },
        )]);
        assert!(!recent.spared(0, PlaceId(0), &[7], Some(&[3])));
    }

    #[test]
    fn what_was_forgotten_is_not_taken_for_nothing() {
        let mut recent = Recent::default();
        let change = transaction(
            PlaceId(1),
            Change::Posted {
                author: 5,
                key: 0,
                id: 1,
            },
        );
        for _ in 0..=MOST {
            recent.note(std::slice::from_ref(&change));
        }
        assert_eq!(recent.changes.len(), MOST);
        assert!(!recent.spared(0, PlaceId(0), &[7], Some(&[])));
        assert!(recent.spared(1, PlaceId(0), &[7], Some(&[])));
    }
}
