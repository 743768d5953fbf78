//! Messages whose order is a key's: so many of each author, the newest first.

use std::collections::BTreeMap;

use super::fill::{AUTHORS, ROWS, Source, no_number};
use crate::binlog::comparisons::Entry;
use crate::binlog::error::BinlogError;
use crate::binlog::memory::Lack;
use crate::binlog::rows::numbers;
use crate::index::{AuthorAsk, Item, Keyed, Position};
use crate::log::tables::KeyedAsk;
use crate::timeline::{KeyType, key};
use crate::wire::resultset::Rows;

/// So many of an author at first; then as many again as there are, up to the most.
const FIRST: usize = 64;
const MOST: usize = 4_096;

impl Source<'_> {
    /// Loads messages of authors with their keys, as far as they are not resident.
    pub(super) async fn keyed(&mut self, kind: KeyType, lacks: &[Lack]) -> Result<(), BinlogError> {
        let asks = self.begin(|memory| memory.begin_keyed(lacks));
        let mut asks = asks.unwrap_or_default();
        // Few authors have to make up the page among themselves.
        let most = lacks.iter().map(|lack| lack.n).max().unwrap_or(0);
        let share = most.saturating_mul(2) / lacks.len().max(1);
        let limit = |ask: &AuthorAsk<Keyed>| ask.above.max(FIRST).max(share).min(MOST);
        let mut done = Ok(());
        while done.is_ok() && !asks.is_empty() {
            let mut rows = 0;
            let fits = |ask: &&AuthorAsk<Keyed>| {
                rows += limit(ask);
                rows <= ROWS
            };
            let count = asks.iter().take(AUTHORS).take_while(fits).count();
            let mut chunk = asks.split_off(asks.len() - count.max(1));
            let asked: Vec<KeyedAsk> = chunk
                .iter()
                .map(|ask| KeyedAsk {
                    author: ask.author,
                    below: ask.below,
                    limit: limit(ask),
                })
                .collect();
            done = self.some(kind, &mut chunk, &asked).await;
            asks.append(&mut chunk);
        }
        let mut index = self.place.index_mut();
        for ask in asks {
            index.give_up(ask.ticket);
        }
        done
    }

    /// One statement. Leaves the asks that were not answered.
    async fn some(
        &mut self,
        kind: KeyType,
        asks: &mut Vec<AuthorAsk<Keyed>>,
        asked: &[KeyedAsk],
    ) -> Result<(), BinlogError> {
        let query = self.place.tables.newest_keyed_query(asked);
        let query = query.ok_or_else(no_number)?;
        let (rows, end) = self.ask(&query).await?;
        let mut messages = by_author(kind, &rows).ok_or_else(no_number)?;
        for (ask, asked) in asks.drain(..).zip(asked) {
            let items = messages.remove(&ask.author).unwrap_or_default();
            self.keep(ask, items, asked.limit, end);
        }
        Ok(())
    }

    fn keep(&self, ask: AuthorAsk<Keyed>, items: Vec<Keyed>, limit: usize, end: Position) {
        let down_to = (items.len() < limit).then_some(Keyed::LEAST);
        let mut index = self.place.index_mut();
        let compared = index.loaded_keyed(ask.ticket, items, down_to, end);
        drop(index);
        self.compared(Entry::Author(ask.author), compared);
    }
}

/// Rows of author, id and key. `None`: one of them holds what has no number.
fn by_author(kind: KeyType, rows: &Rows) -> Option<BTreeMap<u64, Vec<Keyed>>> {
    let mut messages: BTreeMap<u64, Vec<Keyed>> = BTreeMap::new();
    for row in rows.iter() {
        let [author, id] = numbers::<2>(row)?;
        let key = match row.cell(2) {
            Some(text) => kind.of_told(text)?,
            None => key::NULL,
        };
        messages.entry(author).or_default().push(Keyed::of(key, id));
    }
    Some(messages)
}
