//! A page in an app's memory, whatever its source.

use std::cmp::Reverse;

use super::StrategyError;
use crate::bench::client::BenchClient;
use crate::query_path::{PAGE_ROWS, query_packet};
use headwater_wire::cursor::PacketCursor;

/// Messages on a page.
pub const MESSAGES_PER_PAGE: usize = PAGE_ROWS as usize;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMessage {
    /// Its id, which stands for its time.
    pub id: u64,
    /// Who wrote it.
    pub author: u64,
    /// Its body.
    pub body: Vec<u8>,
}

/// Messages, and a buffer for the payloads of their rows.
#[derive(Debug, Default)]
pub struct MessagePage {
    /// Newest first after [`MessagePage::trim`].
    pub rows: Vec<PageMessage>,
    buffer: Vec<u8>,
}

impl MessagePage {
    /// Runs a SELECT with the columns id, author and body, and appends the messages.
    ///
    /// # Errors
    /// Fails if the statement fails, or its columns are others.
    pub fn query(&mut self, client: &mut BenchClient, select: &str) -> Result<(), StrategyError> {
        client.query(&query_packet(select), &mut self.buffer)?;
        let mut cursor = PacketCursor::new(&self.buffer);
        while !cursor.is_empty() {
            let mut number = || parse_number(cursor.lenenc_bytes().ok()?);
            let (id, author) = (number(), number());
            let body = cursor.lenenc_bytes().ok();
            let (Some(id), Some(author), Some(body)) = (id, author, body) else {
                return Err(StrategyError::UnexpectedRow);
            };
            let body = body.to_vec();
            self.rows.push(PageMessage { id, author, body });
        }
        Ok(())
    }

    /// Reduces the messages to the newest page up to this id, without duplicates.
    pub fn trim(&mut self, bound: Option<u64>) {
        self.rows
            .retain(|row| bound.is_none_or(|bound| row.id <= bound));
        self.rows.sort_unstable_by_key(|row| Reverse(row.id));
        self.rows.dedup_by_key(|row| row.id);
        self.rows.truncate(MESSAGES_PER_PAGE);
    }
}

fn parse_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The values of one column.
///
/// # Errors
/// Fails if the statement fails.
pub fn query_column(client: &mut BenchClient, select: &str) -> Result<Vec<Vec<u8>>, StrategyError> {
    let mut rows = Vec::new();
    client.query(&query_packet(select), &mut rows)?;
    let mut cursor = PacketCursor::new(&rows);
    let mut values = Vec::new();
    while !cursor.is_empty() {
        values.push(
            cursor
                .lenenc_bytes()
                .map_err(|_| StrategyError::UnexpectedRow)?
                .to_vec(),
        );
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u64) -> PageMessage {
        PageMessage {
            id,
            author: 1,
            body: Vec::new(),
        }
    }

    #[test]
    fn a_page_is_the_newest_below_its_bound() {
        let mut page = MessagePage::default();
        page.rows.extend([3, 50, 7, 50, 9].map(row));
        page.rows.extend((100..130).map(row));
        page.trim(Some(102));
        let ids: Vec<_> = page.rows.iter().map(|row| row.id).collect();
        assert_eq!(ids, [102, 101, 100, 50, 9, 7, 3]);
        page.rows.extend((200..230).map(row));
        page.trim(None);
        assert_eq!(page.rows.len(), MESSAGES_PER_PAGE);
        assert_eq!(page.rows.first().map(|row| row.id), Some(229));
    }
}
