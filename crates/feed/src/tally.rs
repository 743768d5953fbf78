//! Statements that went by, counted by what they have in common: where they come from does not matter.

use std::collections::HashMap;
use std::time::Duration;

use crate::shown::shown;

/// More different statements are not kept.
const MOST: usize = 2_000;

/// A statement that was seen, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The database that was current.
    pub database: Option<String>,
    /// One of its texts.
    pub text: String,
    /// The same as people may read it.
    pub shown: String,
    /// It was prepared by the protocol, and executed.
    pub prepared: bool,
    /// How often it was seen.
    pub times: u64,
    /// How long all of them took together.
    pub total: Duration,
    /// How many rows the server read for them, where it says so.
    pub read: Option<u64>,
    /// How many rows it sent.
    pub sent: u64,
}

impl Seen {
    /// How long one took, on average.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let times = u32::try_from(self.times.max(1)).unwrap_or(u32::MAX);
        self.total / times
    }
}

/// What a statement has in common with others: its database, how it is shown, and whether it was prepared.
type Key = (Option<String>, String, bool);

/// One that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The database that was current.
    pub database: Option<&'a [u8]>,
    /// Its text.
    pub text: &'a [u8],
    /// It was prepared by the protocol, and executed.
    pub prepared: bool,
    /// How long it took.
    pub took: Duration,
    /// How many rows came back.
    pub rows: u64,
}

/// Counts statements as they go by.
#[derive(Debug, Default)]
pub struct Tally {
    all: HashMap<Key, Seen>,
    left_out: u64,
}

impl Tally {
    /// One has ended.
    pub fn add(&mut self, ended: Ended<'_>) {
        let database = ended
            .database
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let key = (database, shown(ended.text), ended.prepared);
        if self.all.len() >= MOST && !self.all.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let (database, shown, prepared) = key.clone();
        let seen = self.all.entry(key).or_insert_with(|| Seen {
            database,
            text: String::from_utf8_lossy(ended.text).into_owned(),
            shown,
            prepared,
            ..Seen::default()
        });
        seen.times += 1;
        seen.total = seen.total.saturating_add(ended.took);
        seen.sent = seen.sent.saturating_add(ended.rows);
    }

    /// Statements that were not counted, since there were too many different ones.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// All that were counted, the most time first.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        let mut all: Vec<Seen> = self.all.values().cloned().collect();
        all.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.shown.cmp(&b.shown)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ended<'a>(database: &'a str, text: &'a str, took: Duration) -> Ended<'a> {
        Ended {
            database: Some(database.as_bytes()),
            text: text.as_bytes(),
            prepared: false,
            took,
            rows: 20,
        }
    }

    #[test]
    fn statements_are_counted_by_what_they_have_in_common() {
        let mut tally = Tally::default();
        for (database, text, took) in [
            ("app", "SELECT a FROM t WHERE b IN (1, 2)", MS),
            ("app", "SELECT  a FROM t WHERE b IN (3)", 3 * MS),
            ("app", "SELECT a FROM t WHERE c IN (3)", 9 * MS),
            ("other", "SELECT a FROM t WHERE b IN (1)", MS),
        ] {
            tally.add(ended(database, text, took));
        }
        let seen = tally.seen();
        let told: Vec<_> = seen
            .iter()
            .map(|seen| (seen.times, seen.mean(), seen.sent, &*seen.shown))
            .collect();
        assert_eq!(
            told,
            [
                (1, 9 * MS, 20, "SELECT a FROM t WHERE c IN (...)"),
                (2, 2 * MS, 40, "SELECT a FROM t WHERE b IN (...)"),
                (1, MS, 20, "SELECT a FROM t WHERE b IN (...)"),
            ]
        );
        assert!(
            seen.iter()
                .any(|seen| seen.text == "SELECT a FROM t WHERE b IN (1, 2)")
        );
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut tally = Tally::default();
        for number in 0..MOST + 10 {
            let text = format!("SELECT a{number}x FROM t");
            tally.add(ended("app", &text, MS));
            tally.add(ended("app", &text, MS));
        }
        assert_eq!((tally.seen().len(), tally.left_out()), (MOST, 20));
    }
}
