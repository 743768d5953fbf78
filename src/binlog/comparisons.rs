//! What memory knows from another server, or from another run of the same one, beside the rows that are there now.
//!
//! Nothing is answered by it before its rows were loaded. What differs tells an operator that two servers with the same log have other
//! rows: a replica had skipped a transaction, or a server lost what its log still has.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::LoadComparison;

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum ComparedIndexEntry {
    /// Whom a reader follows.
    Reader(u64),
    /// An author's newest messages.
    Author(u64),
}

impl fmt::Display for ComparedIndexEntry {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComparedIndexEntry::Reader(reader) => write!(to, "whom reader {reader} follows"),
            ComparedIndexEntry::Author(author) => write!(to, "the messages of author {author}"),
        }
    }
}

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct ComparisonCounters {
    equal: AtomicU64,
    different: AtomicU64,
}

impl ComparisonCounters {
    /// Takes one in. The first difference is logged, then each tenth, each hundredth, and so on.
    pub(super) fn record(
        &self,
        database: &str,
        entry: ComparedIndexEntry,
        compared: LoadComparison,
    ) {
        match compared {
            LoadComparison::None => {}
            LoadComparison::Equal => {
                self.equal.fetch_add(1, Ordering::Relaxed);
            }
            LoadComparison::Different => {
                let count = self.different.fetch_add(1, Ordering::Relaxed) + 1;
                if is_power_of_ten(count) {
                    tracing::warn!(
                        "the server has other rows than the one that memory was filled beside, under the same log: {entry} in {database} \
                         differ ({count} differences so far). Its own rows are answered. Compare the two servers: a replica had skipped \
                         transactions or took writes that were not logged, or a server lost some in a crash"
                    );
                }
            }
        }
    }

    /// How many were equal, and how many were not.
    pub(super) fn counts(&self) -> [u64; 2] {
        [&self.equal, &self.different].map(|count| count.load(Ordering::Relaxed))
    }
}

fn is_power_of_ten(count: u64) -> bool {
    let mut power = count;
    while power >= 10 && power.is_multiple_of(10) {
        power /= 10;
    }
    power == 1
}

#[cfg(test)]
mod tests {
    use super::is_power_of_ten;

    #[test]
    fn powers_of_ten_are_said() {
        let said: Vec<u64> = (0..=1_000)
            .filter(|count| is_power_of_ten(*count))
            .collect();
        assert_eq!(said, [1, 10, 100, 1_000]);
    }
}
