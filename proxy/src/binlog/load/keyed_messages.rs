//! Messages ordered by a key: a number of each author, the newest first.

use std::collections::BTreeMap;

use super::load_source::{AUTHORS_PER_QUERY, LoadSource, ROWS_PER_QUERY, not_a_number};
use crate::binlog::comparisons::ComparedIndexEntry;
use crate::binlog::error::BinlogError;
use crate::binlog::timeline_memory::MissingMessages;
use headwater_log::timeline_tables::NewestMessagesRequest;
use headwater_timeline::index::{AuthorLoadRequest, BinlogPosition, KeyedMessage, WindowItem};
use headwater_timeline::{KeyType, key};
use headwater_wire::resultset::ResultSet;

/// Messages of an author in the first query; each further one asks for as many as there are, up to the most.
const FIRST: usize = 64;
const MOST: usize = 4_096;

impl LoadSource<'_> {
    /// Loads keyed messages of authors, as far as they are not resident.
    pub(super) async fn load_keyed(
        &mut self,
        kind: KeyType,
        missing: &[MissingMessages],
    ) -> Result<(), BinlogError> {
        let requests = self.begin(|memory| memory.begin_keyed(missing));
        let mut requests = requests.unwrap_or_default();
        // If there are few authors, each must contribute more to the page.
        let most = missing.iter().map(|author| author.n).max().unwrap_or(0);
        let share = most.saturating_mul(2) / missing.len().max(1);
        let limit = |request: &AuthorLoadRequest<KeyedMessage>| {
            request.above.max(FIRST).max(share).min(MOST)
        };
        let mut done = Ok(());
        while done.is_ok() && !requests.is_empty() {
            let mut rows = 0;
            let fits = |request: &&AuthorLoadRequest<KeyedMessage>| {
                rows += limit(request);
                rows <= ROWS_PER_QUERY
            };
            let count = requests
                .iter()
                .take(AUTHORS_PER_QUERY)
                .take_while(fits)
                .count();
            let mut chunk = requests.split_off(requests.len() - count.max(1));
            let newest_requests: Vec<NewestMessagesRequest> = chunk
                .iter()
                .map(|request| NewestMessagesRequest {
                    author: request.author,
                    below: request.below,
                    limit: limit(request),
                })
                .collect();
            done = self.load_chunk(kind, &mut chunk, &newest_requests).await;
            requests.append(&mut chunk);
        }
        let mut index = self.timeline.index_mut();
        for request in requests {
            index.cancel_load(request.ticket);
        }
        done
    }

    /// Runs one statement. Leaves the requests that got no reply.
    async fn load_chunk(
        &mut self,
        kind: KeyType,
        requests: &mut Vec<AuthorLoadRequest<KeyedMessage>>,
        newest_requests: &[NewestMessagesRequest],
    ) -> Result<(), BinlogError> {
        let query = self
            .timeline
            .tables
            .newest_keyed_messages_query(newest_requests);
        let query = query.ok_or_else(not_a_number)?;
        let (rows, end) = self.query(&query).await?;
        let mut messages = by_author(kind, &rows).ok_or_else(not_a_number)?;
        for (request, newest) in requests.drain(..).zip(newest_requests) {
            match messages
                .remove(&request.author)
                .unwrap_or_else(|| Some(Vec::new()))
            {
                Some(items) => self.store_keyed(request, items, newest.limit, end),
                None => {
                    self.timeline.index_mut().cancel_load(request.ticket);
                    self.note_negative(ComparedIndexEntry::Author(request.author));
                }
            }
        }
        Ok(())
    }

    fn store_keyed(
        &self,
        request: AuthorLoadRequest<KeyedMessage>,
        items: Vec<KeyedMessage>,
        limit: usize,
        end: BinlogPosition,
    ) {
        let down_to = (items.len() < limit).then_some(KeyedMessage::LEAST);
        let mut index = self.timeline.index_mut();
        let compared = index.loaded_keyed(request.ticket, items, down_to, end);
        drop(index);
        self.record_comparison(ComparedIndexEntry::Author(request.author), compared);
    }
}

/// Messages by author, from rows of author, id and key; `None` for an author with an id below 0. `None`: another cell has no number.
fn by_author(kind: KeyType, rows: &ResultSet) -> Option<BTreeMap<u64, Option<Vec<KeyedMessage>>>> {
    let mut messages: BTreeMap<u64, Option<Vec<KeyedMessage>>> = BTreeMap::new();
    for row in rows.iter() {
        let author = row.u64(0)?;
        let Some(id) = row.u64(1) else {
            messages.insert(author, None);
            continue;
        };
        let key = match row.cell(2) {
            Some(text) => kind.encode_text(text)?,
            None => key::NULL,
        };
        let items = messages.entry(author).or_insert_with(|| Some(Vec::new()));
        if let Some(items) = items {
            items.push(KeyedMessage::from_key_and_id(key, id));
        }
    }
    Some(messages)
}
