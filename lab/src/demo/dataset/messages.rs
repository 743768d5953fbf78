//! The rows of the message table.

use super::Dataset;
use super::random::SeededRandom;

/// One row of the message table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Counted from 1, in the order of time.
    pub id: u64,
    /// The author's id.
    pub author: u32,
    /// ASCII words, 40 to 250 bytes, 140 on average.
    pub body: String,
}

/// Iterates over [`MessageRow`]s, oldest first.
#[derive(Debug)]
pub struct MessageRowIter<'a> {
    dataset: &'a Dataset,
    random: SeededRandom,
    last_id: u64,
}

impl<'a> MessageRowIter<'a> {
    pub(super) fn new(dataset: &'a Dataset, random: SeededRandom) -> MessageRowIter<'a> {
        MessageRowIter {
            dataset,
            random,
            last_id: 0,
        }
    }
}

impl Iterator for MessageRowIter<'_> {
    type Item = MessageRow;

    fn next(&mut self) -> Option<MessageRow> {
        if self.last_id >= self.dataset.size.messages {
            return None;
        }
        let author = self.dataset.posting.draw(&mut self.random)? + 1;
        self.last_id += 1;
        Some(MessageRow {
            id: self.last_id,
            author,
            body: body(&mut self.random),
        })
    }
}

/// 64 of them, so that six random bits choose one; the longest has nine letters.
const WORDS: [&str; 64] = [
    "again", "almost", "another", "autumn", "before", "bicycle", "bread", "bridge", "coffee",
    "colour", "corner", "dinner", "early", "evening", "everyone", "finally", "forest", "found",
    "friday", "garden", "happy", "harbour", "heard", "holiday", "hungry", "island", "kitchen",
    "later", "letter", "library", "lunch", "market", "meeting", "midnight", "monday", "morning",
    "mountain", "music", "nothing", "office", "orange", "paper", "people", "picture", "quiet",
    "rain", "reading", "river", "saturday", "school", "sleepy", "snow", "someone", "station",
    "street", "summer", "sunday", "sunshine", "theatre", "ticket", "today", "train", "walking",
    "window",
];
const MIN_LETTERS: u64 = 40;
const MAX_LETTERS: u64 = 240;

fn body(random: &mut SeededRandom) -> String {
    let letters = MIN_LETTERS + random.below(MAX_LETTERS - MIN_LETTERS);
    let letters = usize::try_from(letters).unwrap_or_default();
    let mut body = String::with_capacity(256);
    // Ten words from one number.
    let mut bits = 0;
    let mut words_left = 0;
    while body.len() < letters {
        if words_left == 0 {
            (bits, words_left) = (random.bits(), 10);
        }
        if !body.is_empty() {
            body.push(' ');
        }
        let choice = usize::try_from(bits & 63).unwrap_or_default();
        body.push_str(WORDS.get(choice).copied().unwrap_or_default());
        (bits, words_left) = (bits >> 6, words_left - 1);
    }
    body
}
