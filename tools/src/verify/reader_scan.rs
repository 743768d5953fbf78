//! Iterates over readers: the ids of a column, all of them in batches, or a sample spread over its range.

use std::collections::VecDeque;

use super::compared_side::ComparedSide;
use super::flags::ReaderSelection;
use headwater_proxy::account::AccountError;
use headwater_sql::quoted;
use headwater_wire::resultset::{ResultRow, ResultSet};

/// Ids per query.
const IDS_PER_QUERY: usize = 1_000;

/// The column of the readers' ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReaderColumn {
    pub(super) database: String,
    pub(super) table: String,
    pub(super) name: String,
}

/// Iterates over the ids of a column, each once, ascending.
#[derive(Debug)]
pub(super) struct ReaderScan {
    column: ReaderColumn,
    strategy: ScanStrategy,
    /// How many there will be, as far as known.
    pub(super) total: u64,
    last: Option<i128>,
}

#[derive(Debug)]
enum ScanStrategy {
    /// All ids; `next` holds those fetched and not yet returned.
    All {
        next: VecDeque<i128>,
        ended: bool,
    },
    /// The id at or above each of evenly spaced points between the lowest and the highest.
    Spread {
        low: i128,
        high: i128,
        at: u64,
    },
    List(VecDeque<i128>),
}

impl ReaderScan {
    pub(super) async fn begin(
        column: ReaderColumn,
        readers: &ReaderSelection,
        server: &mut ComparedSide,
    ) -> Result<ReaderScan, AccountError> {
        let mut scan = ReaderScan {
            column,
            strategy: ScanStrategy::All {
                next: VecDeque::new(),
                ended: false,
            },
            total: 0,
            last: None,
        };
        match readers {
            ReaderSelection::All => scan.total = scan.count(server).await?,
            ReaderSelection::Count(count) => scan.spread_over_range(*count, server).await?,
            ReaderSelection::Share(share) => {
                let all = scan.count(server).await?;
                scan.spread_over_range(part(all, *share), server).await?;
            }
            ReaderSelection::List(ids) => {
                scan.total = u64::try_from(ids.len()).unwrap_or(u64::MAX);
                scan.strategy = ScanStrategy::List(ids.iter().copied().collect());
            }
        }
        Ok(scan)
    }

    pub(super) async fn next(
        &mut self,
        server: &mut ComparedSide,
    ) -> Result<Option<i128>, AccountError> {
        let id = match &mut self.strategy {
            ScanStrategy::List(ids) => ids.pop_front(),
            ScanStrategy::All { next, ended } => {
                if next.is_empty() && !*ended {
                    let above = match self.last {
                        Some(last) => format!("> {last}"),
                        None => "IS NOT NULL".to_owned(),
                    };
                    let fetched = ids(&server
                        .rows(&self.column.ids_query(&above, IDS_PER_QUERY))
                        .await?);
                    *ended = fetched.len() < IDS_PER_QUERY;
                    next.extend(fetched);
                }
                next.pop_front()
            }
            ScanStrategy::Spread { low, high, at } => {
                if *at >= self.total {
                    return Ok(None);
                }
                let wide = (*high - *low).saturating_mul(i128::from(*at));
                let place = *low + wide / i128::from(self.total.max(1));
                let from = self.last.map_or(place, |last| place.max(last + 1));
                *at += 1;
                let query = self.column.ids_query(&format!(">= {from}"), 1);
                ids(&server.rows(&query).await?).first().copied()
            }
        };
        self.last = id.or(self.last);
        Ok(id)
    }

    async fn count(&self, server: &mut ComparedSide) -> Result<u64, AccountError> {
        let ReaderColumn { name, .. } = &self.column;
        let count = format!(
            "SELECT COUNT(DISTINCT {}) FROM {}",
            quoted(name),
            self.column.table()
        );
        let rows = server.rows(&count).await?;
        Ok(rows.row(0).and_then(|row| row.u64(0)).unwrap_or(0))
    }

    async fn spread_over_range(
        &mut self,
        count: u64,
        server: &mut ComparedSide,
    ) -> Result<(), AccountError> {
        let name = quoted(&self.column.name);
        let ends = format!(
            "SELECT MIN({name}), MAX({name}) FROM {}",
            self.column.table()
        );
        let rows = server.rows(&ends).await?;
        let end = |at| rows.row(0).and_then(|row| id(row, at));
        if let (Some(low), Some(high)) = (end(0), end(1)) {
            // No more than the range can hold.
            let most = u64::try_from(high - low + 1).unwrap_or(u64::MAX);
            self.total = count.min(most);
            self.strategy = ScanStrategy::Spread {
                low,
                high: high + 1,
                at: 0,
            };
        }
        Ok(())
    }
}

impl ReaderColumn {
    fn table(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.table))
    }

    /// The query for ids that meet a condition.
    pub(super) fn ids_query(&self, above: &str, limit: usize) -> String {
        let name = quoted(&self.name);
        format!(
            "SELECT DISTINCT {name} FROM {} WHERE {name} {above} ORDER BY {name} LIMIT {limit}",
            self.table()
        )
    }

    /// The query for the values of another column beside this id.
    pub(super) fn other_column_query(&self, other: &str, id: i128, limit: usize) -> String {
        let (name, other) = (quoted(&self.name), quoted(other));
        format!(
            "SELECT DISTINCT {other} FROM {} WHERE {name} = {id} AND {other} IS NOT NULL ORDER BY {other} LIMIT {limit}",
            self.table()
        )
    }
}

pub(super) fn ids(rows: &ResultSet) -> Vec<i128> {
    rows.iter().filter_map(|row| id(row, 0)).collect()
}

fn id(row: ResultRow<'_>, at: usize) -> Option<i128> {
    std::str::from_utf8(row.cell(at)?).ok()?.parse().ok()
}

/// At least one, if there is any.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A number of readers times a share of 1 at most, rounded up.
fn part(all: u64, share: f64) -> u64 {
    ((all as f64 * share).ceil() as u64).min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up() {
        assert_eq!(part(0, 0.5), 0);
        assert_eq!(part(1, 0.01), 1);
        assert_eq!(part(1_000, 0.05), 50);
        assert_eq!(part(7, 1.0), 7);
    }

    #[test]
    fn ids_are_asked_for_by_an_index_from_the_last_one_on() {
        let column = ReaderColumn {
            database: "app".into(),
            table: "follower".into(),
            name: "user_id".into(),
        };
        assert_eq!(
            column.ids_query("> 7", 2),
            "SELECT DISTINCT `user_id` FROM `app`.`follower` WHERE `user_id` > 7 ORDER BY `user_id` LIMIT 2"
        );
    }
}
