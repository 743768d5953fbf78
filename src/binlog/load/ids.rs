//! Messages whose order is their ids': authors share ranges of them.

use std::collections::BTreeMap;

use super::fill::{AUTHORS, ROWS, Source, no_number};
use crate::binlog::comparisons::Entry;
use crate::binlog::error::BinlogError;
use crate::binlog::memory::Lack;
use crate::binlog::rows::{all, lists};
use crate::index::AuthorAsk;

/// Of an author whose ids lie too densely for a range, or too far apart, so many are asked for at a time.
const IDS: usize = 4_096;

impl Source<'_> {
    /// Loads ids of authors, as far as they are not resident.
    pub(super) async fn ids(&mut self, lacks: &[Lack]) -> Result<(), BinlogError> {
        let asks = self.begin(|memory| memory.begin_ids(lacks));
        // Those that are asked for in the same range go into one statement.
        let spans = *self.place.spans();
        let mut groups: BTreeMap<(u64, Option<u64>), Vec<AuthorAsk>> = BTreeMap::new();
        for (ask, bound) in asks.unwrap_or_default() {
            let from = spans.from(ask.below, bound);
            groups.entry((from, ask.below)).or_default().push(ask);
        }
        let mut open: Vec<AuthorAsk> = Vec::new();
        let mut done = Ok(());
        for ((from, below), mut asks) in groups {
            let expected = usize::try_from(spans.expected(from, below)).unwrap_or(usize::MAX);
            let together = (ROWS / 4 / expected.max(1)).clamp(1, AUTHORS);
            while !asks.is_empty() {
                let rest = asks.split_off(together.min(asks.len()));
                let mut chunk = std::mem::replace(&mut asks, rest);
                if done.is_ok() {
                    done = self.in_range(from, below, &mut chunk).await;
                }
                if done.is_ok() && !chunk.is_empty() {
                    done = self.newest(&mut chunk).await;
                }
                open.append(&mut chunk);
            }
        }
        let mut index = self.place.index_mut();
        for ask in open {
            index.give_up(ask.ticket);
        }
        done
    }

    /// All ids from one on. Leaves the asks where that is too much for one answer.
    async fn in_range(
        &mut self,
        from: u64,
        below: Option<u64>,
        asks: &mut Vec<AuthorAsk>,
    ) -> Result<(), BinlogError> {
        let authors: Vec<u64> = asks.iter().map(|ask| ask.author).collect();
        let query = self.place.tables.range_query(&authors, from, below, ROWS);
        let (rows, end) = self.ask(&query).await?;
        let Some(mut lists) = lists(&rows, ROWS).ok_or_else(no_number)? else {
            return Ok(());
        };
        if below.is_none() {
            let ids = lists.values().map(Vec::len).sum();
            let newest = lists.values().flatten().max().copied();
            let mut spans = self.place.spans();
            spans.found(authors.len(), ids, from, newest.unwrap_or(0));
        }
        let mut index = self.place.index_mut();
        for ask in asks.drain(..) {
            let ids = lists.remove(&ask.author).unwrap_or_default();
            let compared = index.loaded_ids(ask.ticket, ids, Some(from), end);
            self.compared(Entry::Author(ask.author), compared);
        }
        Ok(())
    }

    /// So many ids of each author.
    async fn newest(&mut self, asks: &mut Vec<AuthorAsk>) -> Result<(), BinlogError> {
        while let Some(ask) = asks.pop() {
            let query = self.place.tables.newest_query(ask.author, ask.below, IDS);
            let asked = self.ask(&query).await.and_then(|(rows, end)| {
                let ids = all::<1>(&rows).ok_or_else(no_number)?;
                Ok((ids.into_iter().flatten().collect::<Vec<u64>>(), end))
            });
            let mut index = self.place.index_mut();
            match asked {
                Ok((ids, end)) => {
                    let down_to = (ids.len() < IDS).then_some(0);
                    let compared = index.loaded_ids(ask.ticket, ids, down_to, end);
                    self.compared(Entry::Author(ask.author), compared);
                }
                Err(error) => {
                    index.give_up(ask.ticket);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
