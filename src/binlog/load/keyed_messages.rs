//! Messages whose order is a key's: so many of each author, the newest first.

use std::collections::BTreeMap;

use super::load_source::{AUTHORS_PER_QUERY, LoadSource, ROWS_PER_QUERY, not_a_number};
use crate::binlog::comparisons::ComparedIndexEntry;
use crate::binlog::error::BinlogError;
use crate::binlog::row_decoding::numbers;
use crate::binlog::timeline_memory::MissingMessages;
use crate::index::{AuthorLoadRequest, BinlogPosition, KeyedMessage, WindowItem};
use crate::log::timeline_tables::NewestMessagesRequest;
use crate::timeline::{KeyType, key};
use crate::wire::resultset::ResultSet;

/// So many of an author at first; then as many again as there are, up to the most.
const FIRST: usize = 64;
const MOST: usize = 4_096;

impl LoadSource<'_> {
    /// Loads messages of authors with their keys, as far as they are not resident.
    pub(super) async fn load_keyed(
        &mut self,
        kind: KeyType,
        lacks: &[MissingMessages],
    ) -> Result<(), BinlogError> {
        let asks = self.begin(|memory| memory.begin_keyed(lacks));
        let mut asks = asks.unwrap_or_default();
        // Few authors have to make up the page among themselves.
        let most = lacks.iter().map(|lack| lack.n).max().unwrap_or(0);
        let share = most.saturating_mul(2) / lacks.len().max(1);
        let limit =
            |ask: &AuthorLoadRequest<KeyedMessage>| ask.above.max(FIRST).max(share).min(MOST);
        let mut done = Ok(());
        while done.is_ok() && !asks.is_empty() {
            let mut rows = 0;
            let fits = |ask: &&AuthorLoadRequest<KeyedMessage>| {
                rows += limit(ask);
                rows <= ROWS_PER_QUERY
            };
            let count = asks.iter().take(AUTHORS_PER_QUERY).take_while(fits).count();
            let mut chunk = asks.split_off(asks.len() - count.max(1));
            let asked: Vec<NewestMessagesRequest> = chunk
                .iter()
                .map(|ask| NewestMessagesRequest {
                    author: ask.author,
                    below: ask.below,
                    limit: limit(ask),
                })
                .collect();
            done = self.load_chunk(kind, &mut chunk, &asked).await;
            asks.append(&mut chunk);
        }
        let mut index = self.timeline.index_mut();
        for ask in asks {
            index.cancel_load(ask.ticket);
        }
        done
    }

    /// One statement. Leaves the asks that were not answered.
    async fn load_chunk(
        &mut self,
        kind: KeyType,
        asks: &mut Vec<AuthorLoadRequest<KeyedMessage>>,
        asked: &[NewestMessagesRequest],
    ) -> Result<(), BinlogError> {
        let query = self.timeline.tables.newest_keyed_messages_query(asked);
        let query = query.ok_or_else(not_a_number)?;
        let (rows, end) = self.query(&query).await?;
        let mut messages = by_author(kind, &rows).ok_or_else(not_a_number)?;
        for (ask, asked) in asks.drain(..).zip(asked) {
            let items = messages.remove(&ask.author).unwrap_or_default();
            self.store_keyed(ask, items, asked.limit, end);
        }
        Ok(())
    }

    fn store_keyed(
        &self,
        ask: AuthorLoadRequest<KeyedMessage>,
        items: Vec<KeyedMessage>,
        limit: usize,
        end: BinlogPosition,
    ) {
        let down_to = (items.len() < limit).then_some(KeyedMessage::LEAST);
        let mut index = self.timeline.index_mut();
        let compared = index.loaded_keyed(ask.ticket, items, down_to, end);
        drop(index);
        self.record_comparison(ComparedIndexEntry::Author(ask.author), compared);
    }
}

/// Rows of author, id and key. `None`: one of them holds what has no number.
fn by_author(kind: KeyType, rows: &ResultSet) -> Option<BTreeMap<u64, Vec<KeyedMessage>>> {
    let mut messages: BTreeMap<u64, Vec<KeyedMessage>> = BTreeMap::new();
    for row in rows.iter() {
        let [author, id] = numbers::<2>(row)?;
        let key = match row.cell(2) {
            Some(text) => kind.encode_text(text)?,
            None => key::NULL,
        };
        messages
            .entry(author)
            .or_default()
            .push(KeyedMessage::from_key_and_id(key, id));
    }
    Some(messages)
}
