//! What windows hold: ids, or ids with keys.

use std::fmt::Debug;

/// A message in a window. Items sort as pages do, oldest first.
pub trait WindowItem: Copy + Ord + Debug + Send + Sync + 'static {
    /// No item sorts below it.
    const LEAST: Self;
    /// No item sorts above it.
    const GREATEST: Self;

    /// The item of a message; the key counts only if pages are ordered by one.
    fn from_key_and_id(key: u64, id: u64) -> Self;

    /// The message's key; 0 if it has none.
    fn key(self) -> u64;

    /// The message's id.
    fn id(self) -> u64;

    /// Its approximate index if items were evenly spaced in this many steps between two others: at or above the first, below the last.
    fn interpolate(self, first: Self, last: Self, steps: usize) -> usize;
}

/// Pages are ordered by the id alone.
impl WindowItem for u64 {
    const LEAST: u64 = 0;
    const GREATEST: u64 = u64::MAX;

    fn from_key_and_id(_: u64, id: u64) -> u64 {
        id
    }

    fn key(self) -> u64 {
        0
    }

    fn id(self) -> u64 {
        self
    }

    fn interpolate(self, first: u64, last: u64, steps: usize) -> usize {
        let span = u128::from(last.saturating_sub(first).max(1));
        let share = u128::from(self.saturating_sub(first)) * steps as u128 / span;
        usize::try_from(share).unwrap_or(0)
    }
}

/// A message on pages that are ordered by a key, then by the id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyedMessage {
    /// See [`crate::key`].
    pub key: u64,
    /// Its id.
    pub id: u64,
}

impl WindowItem for KeyedMessage {
    const LEAST: KeyedMessage = KeyedMessage { key: 0, id: 0 };
    const GREATEST: KeyedMessage = KeyedMessage {
        key: u64::MAX,
        id: u64::MAX,
    };

    fn from_key_and_id(key: u64, id: u64) -> KeyedMessage {
        KeyedMessage { key, id }
    }

    fn key(self) -> u64 {
        self.key
    }

    fn id(self) -> u64 {
        self.id
    }

    fn interpolate(self, first: KeyedMessage, last: KeyedMessage, steps: usize) -> usize {
        match first.key == last.key {
            true => self.id.interpolate(first.id, last.id, steps),
            false => self.key.interpolate(first.key, last.key, steps),
        }
    }
}
