//! A sample of users with the seeds' distributions: each user's follows and messages.

use crate::demo::dataset::{Dataset, DatasetSize};

/// Messages a user has, on average, as in the classic data set.
const MESSAGES_EACH: u64 = 100;

/// The sample. Its users represent all users.
#[derive(Clone, Debug)]
pub struct UserSample {
    /// The authors that each reader follows, by the reader's number.
    pub follows: Vec<Vec<u64>>,
    /// Each author's message ids, ascending, by the author's number.
    pub messages: Vec<Vec<u64>>,
    /// The author of each message: a draw from it is weighted by writes.
    pub message_authors: Vec<u32>,
    /// The author of each follow: a draw from it is weighted by followers.
    pub follow_authors: Vec<u32>,
}

impl UserSample {
    /// Draws so many users; the same seed gives the same ones.
    #[must_use]
    pub fn new(users: u32, seed: u64) -> UserSample {
        let size = DatasetSize {
            users,
            messages: u64::from(users).saturating_mul(MESSAGES_EACH),
            seed,
            ..DatasetSize::CLASSIC
        };
        let dataset = Dataset::new(size);
        let length = users as usize + 1;
        let (mut follows, mut messages) = (vec![Vec::new(); length], vec![Vec::new(); length]);
        let (mut written, mut followed) = (Vec::new(), Vec::new());
        for follow in dataset.follows() {
            followed.push(follow.author);
            if let Some(list) = follows.get_mut(follow.reader as usize) {
                list.push(u64::from(follow.author));
            }
        }
        for message in dataset.messages() {
            written.push(message.author);
            if let Some(list) = messages.get_mut(message.author as usize) {
                list.push(message.id);
            }
        }
        UserSample {
            follows,
            messages,
            message_authors: written,
            follow_authors: followed,
        }
    }

    /// The number of users.
    #[must_use]
    pub fn users(&self) -> usize {
        self.follows.len().saturating_sub(1)
    }

    /// The authors that a reader follows.
    #[must_use]
    pub fn follows_of(&self, reader: u64) -> &[u64] {
        at(&self.follows, reader)
    }

    /// An author's messages.
    #[must_use]
    pub fn messages_of(&self, author: u64) -> &[u64] {
        at(&self.messages, author)
    }
}

fn at(lists: &[Vec<u64>], number: u64) -> &[u64] {
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    lists.get(index).map_or(&[], Vec::as_slice)
}

/// splitmix64: small, and the same on every machine.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0 to `end` - 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A uniformly drawn element.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = self.below(from.len() as u64);
        from.get(usize::try_from(index).unwrap_or(0))
    }

    /// Uniform from 0 to just below 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
