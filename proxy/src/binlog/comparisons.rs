//! Compares memory from another server, or from an earlier run of this one, with the rows that are there now.
//!
//! No call is served from such memory before its rows were loaded. A difference means that two servers with the same log have different
//! rows: a replica had skipped a transaction, or a server lost what its log still has.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use headwater_timeline::index::LoadComparison;

#[derive(Clone, Copy, Debug)]
pub(super) enum ComparedIndexEntry {
    Reader(u64),
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

#[derive(Debug, Default)]
pub(super) struct ComparisonCounters {
    equal: AtomicU64,
    different: AtomicU64,
}

impl ComparisonCounters {
    /// Counts a comparison. Logs the differences numbered 1, 10, 100 and so on.
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

    /// Numbers of equal and of different entries.
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
