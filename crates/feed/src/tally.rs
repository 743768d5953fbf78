//! Counts completed statements by what they have in common. Where they come from does not matter.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::normalization::normalized_text;
use crate::words::{ListKind, StatementWords, WordKind};

/// Most different statements that are counted.
const MOST_STATEMENTS: usize = 2_000;

/// Of fewer texts, a literal that stays the same says nothing.
const LEAST_TIMES: u64 = 3;

/// Statements that have the same key, and their cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementStats {
    /// The default database.
    pub database: Option<String>,
    /// One of its texts.
    pub text: String,
    /// The text without its values.
    pub normalized_text: String,
    /// It was prepared by the protocol, and executed.
    pub prepared: bool,
    /// How many other statements had been seen when it came first.
    pub first_seen: usize,
    /// The number of executions.
    pub times: u64,
    /// The time of all of them together.
    pub total: Duration,
    /// The number of rows that the server read for them, if it reports that.
    pub rows_read: Option<u64>,
    /// The number of rows that it sent.
    pub rows_sent: u64,
    /// Words whose literal was not the same in all texts.
    pub varying: BTreeSet<usize>,
}

impl StatementStats {
    /// The mean time of one.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let times = u32::try_from(self.times.max(1)).unwrap_or(u32::MAX);
        self.total / times
    }

    /// Words that were the same literal each time, where others varied, as parameters do.
    #[must_use]
    pub fn constants(&self) -> BTreeSet<usize> {
        let Some(words) = StatementWords::read(self.text.as_bytes()) else {
            return BTreeSet::new();
        };
        let has_varied = !self.varying.is_empty() && self.times >= LEAST_TIMES;
        if !has_varied && words.parameters == 0 {
            return BTreeSet::new();
        }
        let words = words.words.iter().enumerate();
        let literals = words.filter(|(_, word)| {
            word.kind.is_literal()
                && !matches!(
                    word.kind,
                    WordKind::Parameter | WordKind::List(ListKind::Parameters)
                )
        });
        let all: BTreeSet<usize> = literals.map(|(at, _)| at).collect();
        &all - &self.varying
    }

    /// Notes which literals of another text differ.
    fn compare(&mut self, text: &[u8]) {
        let own = self.text.as_bytes();
        if own == text {
            return;
        }
        let (Some(words), Some(others)) = (StatementWords::read(own), StatementWords::read(text))
        else {
            return;
        };
        if words.words.len() != others.words.len() {
            return;
        }
        for (at, word) in words.words.iter().enumerate() {
            if word.kind.is_literal() && words.text(at, own) != others.text(at, text) {
                self.varying.insert(at);
            }
        }
    }
}

/// What statements have in common: the database, the normalized text, and whether they were prepared.
type StatementStatsKey = (Option<String>, String, bool);

/// A statement that has ended.
#[derive(Clone, Copy, Debug)]
pub struct CompletedStatement<'a> {
    /// The default database.
    pub database: Option<&'a [u8]>,
    /// Its text.
    pub text: &'a [u8],
    /// It was prepared by the protocol, and executed.
    pub prepared: bool,
    /// The time that it took.
    pub duration: Duration,
    /// The number of rows returned.
    pub rows: u64,
}

/// Counts statements as they end.
#[derive(Debug, Default)]
pub struct StatementTally {
    by_key: HashMap<StatementStatsKey, StatementStats>,
    uncounted: u64,
}

impl StatementTally {
    /// Counts one that has ended.
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
        let first_seen = self.by_key.len();
        let stats = self.by_key.entry(key).or_insert_with(|| StatementStats {
            database,
            text: String::from_utf8_lossy(ended.text).into_owned(),
            normalized_text: shown,
            prepared,
            first_seen,
            ..StatementStats::default()
        });
        stats.compare(ended.text);
        stats.times += 1;
        stats.total = stats.total.saturating_add(ended.duration);
        stats.rows_sent = stats.rows_sent.saturating_add(ended.rows);
    }

    /// The number of statements that were not counted, because there were too many different ones.
    #[must_use]
    pub fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// All that were counted, those of the most time first.
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
        let statements = tally.statements();
        let summaries: Vec<_> = statements
            .iter()
            .map(|stats| {
                (
                    stats.times,
                    stats.mean(),
                    stats.rows_sent,
                    &*stats.normalized_text,
                )
            })
            .collect();
        assert_eq!(
            summaries,
            [
                (1, 9 * MS, 20, "SELECT a FROM t WHERE c IN (...)"),
                (2, 2 * MS, 40, "SELECT a FROM t WHERE b IN (...)"),
                (1, MS, 20, "SELECT a FROM t WHERE b IN (...)"),
            ]
        );
        assert!(
            statements
                .iter()
                .any(|stats| stats.text == "SELECT a FROM t WHERE b IN (1, 2)")
        );
    }

    #[test]
    fn literals_that_never_vary_are_told_from_those_that_do() {
        let mut tally = StatementTally::default();
        let constants = |tally: &StatementTally| {
            let statements = tally.statements();
            let found = statements.first().map(StatementStats::constants);
            found.unwrap_or_default().len()
        };
        for (reader, expected) in [(7, 0), (8, 0), (7, 2)] {
            let text = format!(
                "SELECT 'a' FROM t WHERE kind = 'user' AND reader = {reader} AND b IN (1, {reader})"
            );
            tally.add(ended("app", &text, MS));
            assert_eq!(constants(&tally), expected, "{text}");
        }
        let mut tally = StatementTally::default();
        let text = "SELECT a FROM t WHERE deleted = 0 AND reader = ?";
        tally.add(ended("app", text, MS));
        assert_eq!(constants(&tally), 1);
        // Where nothing varies, nothing is known.
        let mut tally = StatementTally::default();
        for _ in 0..5 {
            tally.add(ended("app", "SELECT a FROM t WHERE reader = 7", MS));
        }
        assert_eq!(constants(&tally), 0);
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
