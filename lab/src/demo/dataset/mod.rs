//! Users who follow each other and write messages: the classic data set, and any other size.
//!
//! Deterministic: the same [`DatasetSize`], seed included, gives the same rows in the same order on
//! every machine. Streamed: what is held in memory grows with the users, never with the messages.

mod follows;
mod messages;
mod random;
mod weights;

pub use self::follows::{FollowRow, FollowRowIter};
pub use self::messages::{MessageRow, MessageRowIter};

use self::random::SeededRandom;
use self::weights::{WeightSkew, WeightSums};

/// The size of a data set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DatasetSize {
    /// User ids are `1..=users`.
    pub users: u32,
    /// Message ids are `1..=messages`, in the order of time.
    pub messages: u64,
    /// Authors that a reader follows, on average over all users; at most `users - 1` takes effect.
    pub mean_follows: f64,
    /// The random seed; another seed gives other rows of the same shape.
    pub seed: u64,
}

impl DatasetSize {
    /// 10,000 users, 1,000,000 messages, 42.9 follows: the data set of the procedures' first measurements.
    pub const CLASSIC: DatasetSize = DatasetSize {
        users: 10_000,
        messages: 1_000_000,
        mean_follows: 42.9,
        seed: 2008,
    };

    /// Rows of both tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.follows() + self.messages
    }

    /// The number of pairs in the follow table. Exact unless `mean_follows` is near `users`.
    pub fn follows(&self) -> u64 {
        let most = f64::from(self.users.saturating_sub(1));
        let pairs = (f64::from(self.users) * self.mean_follows.clamp(0.0, most)).round();
        // Not negative, and at most the square of a u32.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let pairs = pairs as u64;
        pairs
    }
}

/// Few users do most of the posting, are followed most, or follow most, as in real networks: with
/// these the top tenth writes two thirds of the messages and the busiest of 10,000 users 0.4% of
/// them; 7% of the others follow the most followed one; half of the readers follow fewer
/// than 20.
const POSTING_SKEW: WeightSkew = WeightSkew {
    exponent: 1.3,
    offset: 0.01,
    silent: 0.05,
};
const FOLLOWED_SKEW: WeightSkew = WeightSkew {
    exponent: 0.9,
    offset: 0.01,
    silent: 0.0,
};
const FOLLOWING_SKEW: WeightSkew = WeightSkew {
    exponent: 0.9,
    offset: 0.005,
    silent: 0.02,
};

/// Independent streams of random numbers, so that one table does not depend on another's length.
#[derive(Debug, Clone, Copy)]
enum RandomStream {
    Ranks = 1,
    Follows = 2,
    Messages = 3,
}

/// The rows of one [`DatasetSize`].
#[derive(Debug)]
pub struct Dataset {
    size: DatasetSize,
    /// By user id less one: the weights of posting, being followed, and following.
    posting: WeightSums,
    followed: WeightSums,
    following: WeightSums,
}

impl Dataset {
    /// Ranks the users; takes time and memory in proportion to their number.
    pub fn new(size: DatasetSize) -> Dataset {
        let mut random = SeededRandom::new(size.seed, RandomStream::Ranks);
        let posting = random.permutation(size.users);
        // Those who write much are followed much, but not in the same order.
        let followed = random.shuffled_by(&posting, 0.5);
        let following = random.permutation(size.users);
        Dataset {
            size,
            posting: POSTING_SKEW.weights(&posting),
            followed: FOLLOWED_SKEW.weights(&followed),
            following: FOLLOWING_SKEW.weights(&following),
        }
    }

    /// The size that it was made from.
    pub fn size(&self) -> DatasetSize {
        self.size
    }

    /// All follows, ordered by reader, then author.
    pub fn follows(&self) -> FollowRowIter<'_> {
        FollowRowIter::new(
            self,
            SeededRandom::new(self.size.seed, RandomStream::Follows),
        )
    }

    /// All messages, oldest first, authors interleaved.
    pub fn messages(&self) -> MessageRowIter<'_> {
        MessageRowIter::new(
            self,
            SeededRandom::new(self.size.seed, RandomStream::Messages),
        )
    }
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::unwrap_used
)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn small(users: u32, messages: u64, mean_follows: f64) -> DatasetSize {
        DatasetSize {
            users,
            messages,
            mean_follows,
            seed: 1,
        }
    }

    #[test]
    fn the_classic_set_has_the_classic_shape() {
        let dataset = Dataset::new(DatasetSize {
            messages: 200_000,
            ..DatasetSize::CLASSIC
        });
        let (mut following, mut followed) = (vec![0_u32; 10_001], vec![0_u32; 10_001]);
        let mut pairs = 0;
        for FollowRow { reader, author } in dataset.follows() {
            following[reader as usize] += 1;
            followed[author as usize] += 1;
            pairs += 1;
        }
        assert_eq!(pairs, 429_000);
        following.sort_unstable();
        followed.sort_unstable();
        assert!((15..25).contains(&following[5_000]), "{}", following[5_000]);
        assert!(following[10_000] > 500, "{}", following[10_000]);
        assert!(
            (500..1_000).contains(&followed[10_000]),
            "{}",
            followed[10_000]
        );

        let mut written = vec![0_u32; 10_001];
        for message in dataset.messages() {
            written[message.author as usize] += 1;
        }
        written.sort_unstable();
        let top_tenth: u32 = written[9_001..].iter().sum();
        assert!((120_000..150_000).contains(&top_tenth), "{top_tenth}");
        assert_eq!(written[500], 0, "some users never write");
    }

    #[test]
    fn the_same_seed_gives_the_same_rows_and_another_one_gives_others() {
        let rows = |seed| {
            let dataset = Dataset::new(DatasetSize {
                seed,
                ..small(50, 40, 5.0)
            });
            let follows: Vec<_> = dataset.follows().collect();
            let messages: Vec<_> = dataset.messages().collect();
            (follows, messages)
        };
        assert_eq!(rows(7), rows(7));
        assert_ne!(rows(7).0, rows(8).0);
        assert_ne!(rows(7).1, rows(8).1);
    }

    #[test]
    fn the_first_rows_of_the_classic_set_never_change() {
        let dataset = Dataset::new(DatasetSize::CLASSIC);
        let follows: Vec<_> = dataset.follows().take(3).collect();
        let authors = [6, 10, 18];
        assert_eq!(
            follows,
            authors.map(|author| FollowRow { reader: 1, author })
        );
        let message = dataset.messages().nth(1_000).unwrap();
        let body = "lunch rain market mountain corner kitchen mountain found";
        let row = (message.id, message.author, message.body.as_str());
        assert_eq!(row, (1_001, 1_605, body));
    }

    #[test]
    fn no_user_follows_itself_or_an_author_twice_at_any_size() {
        for (users, mean) in [
            (0, 3.0),
            (1, 3.0),
            (2, 1.0),
            (7, 6.0),
            (40, 30.0),
            (300, 0.0),
        ] {
            let dataset = Dataset::new(small(users, 5, mean));
            let pairs: Vec<_> = dataset.follows().collect();
            let distinct: BTreeSet<_> = pairs.iter().map(|f| (f.reader, f.author)).collect();
            assert_eq!(distinct.len(), pairs.len(), "{users} users");
            for FollowRow { reader, author } in pairs {
                assert!(
                    reader != author && (1..=users).contains(&author),
                    "{reader} {author}"
                );
            }
            let messages = dataset.messages().count();
            assert_eq!(messages, if users == 0 { 0 } else { 5 });
        }
    }

    #[test]
    fn messages_fit_the_column() {
        for message in Dataset::new(small(10, 2_000, 1.0)).messages() {
            assert!((1..=255).contains(&message.body.len()), "{message:?}");
        }
    }
}
