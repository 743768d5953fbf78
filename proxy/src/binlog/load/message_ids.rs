//! Messages ordered by id: authors share ranges of ids.

use std::collections::BTreeMap;

use super::load_source::{AUTHORS_PER_QUERY, LoadSource, ROWS_PER_QUERY, not_a_number};
use crate::binlog::comparisons::ComparedIndexEntry;
use crate::binlog::error::BinlogError;
use crate::binlog::row_decoding::{all_numbers, number_lists};
use crate::binlog::timeline_memory::MissingMessages;
use headwater_timeline::index::AuthorLoadRequest;

/// Ids per query for an author whose ids are too dense for a range, or too far apart.
const IDS_PER_AUTHOR: usize = 4_096;

impl LoadSource<'_> {
    /// Loads ids of authors, as far as they are not resident.
    pub(super) async fn load_ids(
        &mut self,
        missing: &[MissingMessages],
    ) -> Result<(), BinlogError> {
        let requests = self.begin(|memory| memory.begin_ids(missing));
        // Requests of the same range share a statement.
        let spans = *self.timeline.spans();
        let mut groups: BTreeMap<(u64, Option<u64>), Vec<AuthorLoadRequest>> = BTreeMap::new();
        for (request, bound) in requests.unwrap_or_default() {
            let from = spans.range_start(request.below, bound);
            groups
                .entry((from, request.below))
                .or_default()
                .push(request);
        }
        let mut open: Vec<AuthorLoadRequest> = Vec::new();
        let mut done = Ok(());
        for ((from, below), mut asks) in groups {
            let expected = usize::try_from(spans.expected_ids(from, below)).unwrap_or(usize::MAX);
            let together = (ROWS_PER_QUERY / 4 / expected.max(1)).clamp(1, AUTHORS_PER_QUERY);
            while !asks.is_empty() {
                let rest = asks.split_off(together.min(asks.len()));
                let mut chunk = std::mem::replace(&mut asks, rest);
                if done.is_ok() {
                    done = self.load_range(from, below, &mut chunk).await;
                }
                if done.is_ok() && !chunk.is_empty() {
                    done = self.load_newest(&mut chunk).await;
                }
                open.append(&mut chunk);
            }
        }
        let mut index = self.timeline.index_mut();
        for request in open {
            index.cancel_load(request.ticket);
        }
        done
    }

    /// Loads all ids from one on. Leaves the requests if that is too much for one reply.
    async fn load_range(
        &mut self,
        from: u64,
        below: Option<u64>,
        requests: &mut Vec<AuthorLoadRequest>,
    ) -> Result<(), BinlogError> {
        let authors: Vec<u64> = requests.iter().map(|request| request.author).collect();
        let query = self
            .timeline
            .tables
            .message_range_query(&authors, from, below, ROWS_PER_QUERY);
        let (rows, end) = self.query(&query).await?;
        let Some(mut read) = number_lists(&rows, ROWS_PER_QUERY).ok_or_else(not_a_number)? else {
            return Ok(());
        };
        let lists = &mut read.lists;
        if below.is_none() {
            let ids = lists.values().map(Vec::len).sum();
            let newest = lists.values().flatten().max().copied();
            let mut spans = self.timeline.spans();
            spans.record(authors.len(), ids, from, newest.unwrap_or(0));
        }
        let mut index = self.timeline.index_mut();
        for request in requests.drain(..) {
            if read.negative.contains(&request.author) {
                index.cancel_load(request.ticket);
                self.note_negative(ComparedIndexEntry::Author(request.author));
                continue;
            }
            let ids = lists.remove(&request.author).unwrap_or_default();
            let compared = index.loaded_ids(request.ticket, ids, Some(from), end);
            self.record_comparison(ComparedIndexEntry::Author(request.author), compared);
        }
        Ok(())
    }

    /// Loads the newest ids of each author, up to a limit.
    async fn load_newest(
        &mut self,
        requests: &mut Vec<AuthorLoadRequest>,
    ) -> Result<(), BinlogError> {
        while let Some(request) = requests.pop() {
            let query = self.timeline.tables.newest_messages_query(
                request.author,
                request.below,
                IDS_PER_AUTHOR,
            );
            let reply = self.query(&query).await;
            let mut index = self.timeline.index_mut();
            match reply {
                Ok((rows, end)) => {
                    let Some(ids) = all_numbers::<1>(&rows) else {
                        index.cancel_load(request.ticket);
                        self.note_negative(ComparedIndexEntry::Author(request.author));
                        continue;
                    };
                    let ids: Vec<u64> = ids.into_iter().flatten().collect();
                    let down_to = (ids.len() < IDS_PER_AUTHOR).then_some(0);
                    let compared = index.loaded_ids(request.ticket, ids, down_to, end);
                    self.record_comparison(ComparedIndexEntry::Author(request.author), compared);
                }
                Err(error) => {
                    index.cancel_load(request.ticket);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
