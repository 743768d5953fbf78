//! Statements that went by, counted by what they have in common: where they come from does not matter.

use std::collections::HashMap;
use std::time::Duration;

use crate::normalization::normalized_text;

/// More different statements are not kept.
const MOST_STATEMENTS: usize = 2_000;

/// A statement that was seen, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementStats {
    /// The database that was current.
    pub database: Option<String>,
    /// One of its texts.
    pub text: String,
    /// The same as people may read it.
    pub normalized_text: String,
    /// It was prepared by the protocol, and executed.
    pub prepared: bool,
    /// How often it was seen.
    pub times: u64,
    /// How long all of them took together.
    pub total: Duration,
    /// How many rows the server read for them, where it says so.
    pub rows_read: Option<u64>,
    /// How many rows it sent.
    pub rows_sent: u64,
}

impl StatementStats {
    /// How long one took, on average.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let times = u32::try_from(self.times.max(1)).unwrap_or(u32::MAX);
        self.total / times
    }
}

/// What a statement has in common with others: its database, how it is shown, and whether it was prepared.
type StatementStatsKey = (Option<String>, String, bool);

/// One that has ended.
#[derive(Clone, Copy, Debug)]
pub struct CompletedStatement<'a> {
    /// The database that was current.
    pub database: Option<&'a [u8]>,
    /// Its text.
    pub text: &'a [u8],
    /// It was prepared by the protocol, and executed.
    pub prepared: bool,
    /// How long it took.
    pub duration: Duration,
    /// How many rows came back.
    pub rows: u64,
}

/// Counts statements as they go by.
#[derive(Debug, Default)]
pub struct StatementTally {
    by_key: HashMap<StatementStatsKey, StatementStats>,
    uncounted: u64,
}

impl StatementTally {
    /// One has ended.
    pub fn add(&mut self, ended: CompletedStatement<'_>) {
        let database = ended
            .database
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let key = (database, normalized_text(ended.text), ended.prepared);
        if self.by_key.len() >= MOST_STATEMENTS && !self.by_key.contains_key(&key) {
            self.uncounted += 1;
            return;
        }
        let (database, shown, prepared) = key.clone();
        let seen = self.by_key.entry(key).or_insert_with(|| StatementStats {
            database,
            text: String::from_utf8_lossy(ended.text).into_owned(),
            normalized_text: shown,
            prepared,
            ..StatementStats::default()
        });
        seen.times += 1;
        seen.total = seen.total.saturating_add(ended.duration);
        seen.rows_sent = seen.rows_sent.saturating_add(ended.rows);
    }

    /// Statements that were not counted, since there were too many different ones.
    #[must_use]
    pub fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// All that were counted, the most time first.
    #[must_use]
    pub fn statements(&self) -> Vec<StatementStats> {
        let mut all: Vec<StatementStats> = self.by_key.values().cloned().collect();
        all.sort_by(|a, b| {
            b.total
                .cmp(&a.total)
                .then_with(|| a.normalized_text.cmp(&b.normalized_text))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ended<'a>(database: &'a str, text: &'a str, took: Duration) -> CompletedStatement<'a> {
        CompletedStatement {
            database: Some(database.as_bytes()),
            text: text.as_bytes(),
            prepared: false,
            duration: took,
            rows: 20,
        }
    }

    #[test]
    fn statements_are_counted_by_what_they_have_in_common() {
        let mut tally = StatementTally::default();
        for (database, text, took) in [
            ("app", "SELECT a FROM t WHERE b IN (1, 2)", MS),
            ("app", "SELECT  a FROM t WHERE b IN (3)", 3 * MS),
            ("app", "SELECT a FROM t WHERE c IN (3)", 9 * MS),
            ("other", "SELECT a FROM t WHERE b IN (1)", MS),
        ] {
            tally.add(ended(database, text, took));
        }
        let seen = tally.statements();
        let told: Vec<_> = seen
            .iter()
            .map(|seen| {
                (
                    seen.times,
                    seen.mean(),
                    seen.rows_sent,
                    &*seen.normalized_text,
                )
            })
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
        let mut tally = StatementTally::default();
        for number in 0..MOST_STATEMENTS + 10 {
            let text = format!("SELECT a{number}x FROM t");
            tally.add(ended("app", &text, MS));
            tally.add(ended("app", &text, MS));
        }
        assert_eq!(
            (tally.statements().len(), tally.uncounted()),
            (MOST_STATEMENTS, 20)
        );
    }
}
