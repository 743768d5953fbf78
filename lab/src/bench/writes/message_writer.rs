//! The messages that the bench writes: like the others, but with a mark for their removal.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::bench::client::{BenchClient, BenchClientError};
use crate::query_path::query_packet;

/// The first part of every written body.
const BODY_MARK: &str = "headwater bench ";
/// Text after the mark, so that bodies are about as long as those of the classic data set.
const WORDS: &str = "bicycle morning letter harbour quiet monday coffee river evening station garden \
     window library people summer sunday market";
/// The newest messages, whose authors write again: busy authors stay busy.
const AUTHOR_SAMPLE: u32 = 4096;

/// Writes messages in the name of the newest messages' authors.
#[derive(Debug)]
pub struct MessageWriter {
    mark: String,
    authors: Vec<u64>,
}

impl MessageWriter {
    /// Reads these authors.
    ///
    /// # Errors
    /// Fails if the query fails.
    pub fn new(direct: &mut BenchClient) -> Result<MessageWriter, BenchClientError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |time| time.as_secs());
        Ok(MessageWriter {
            mark: format!("{BODY_MARK}{seconds}-{}", std::process::id()),
            authors: direct.query_numbers(&format!(
                "SELECT user_id FROM message ORDER BY id DESC LIMIT {AUTHOR_SAMPLE}"
            ))?,
        })
    }

    /// The prefix of this run's bodies.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Positions in the list of authors.
    #[must_use]
    pub fn author_count(&self) -> usize {
        self.authors.len()
    }

    /// The author at a position of the list.
    #[must_use]
    pub fn author(&self, index: usize) -> u64 {
        self.authors.get(index).copied().unwrap_or(1)
    }

    /// An INSERT of a message by this author, as a packet.
    #[must_use]
    pub fn insert(&self, author: u64) -> Vec<u8> {
        query_packet(&format!(
            "INSERT INTO message (user_id,body) VALUES ({author},'{} {WORDS}')",
            self.mark
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_marked_fits_the_column_and_needs_no_escapes() {
        let message_writer = MessageWriter {
            mark: format!("{BODY_MARK}1700000000-4194304"),
            authors: vec![5, 6],
        };
        let packet = message_writer.insert(message_writer.author(1));
        let text = String::from_utf8_lossy(packet.get(5..).unwrap_or_default()).into_owned();
        let body =
            "INSERT INTO message (user_id,body) VALUES (6,'headwater bench 1700000000-4194304 ";
        assert!(text.starts_with(body), "{text}");
        assert!(message_writer.mark.len() + WORDS.len() < 255);
        for special in ['\'', '\\', '%', '_'] {
            assert!(!message_writer.mark.contains(special) && !WORDS.contains(special));
        }
        assert_eq!(
            (message_writer.author_count(), message_writer.author(9)),
            (2, 1)
        );
    }
}
