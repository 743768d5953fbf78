//! The messages that the bench writes: like the others, but with a mark by which they are found again.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::lab::bench::client::{BenchClient, BenchClientError};
use crate::lab::bench::query_path::query_packet;

/// What the body of every written message begins with.
const BODY_MARK: &str = "headwater bench ";
/// Behind the mark, so that bodies are about as long as those of the classic data set.
const WORDS: &str = "bicycle morning letter harbour quiet monday coffee river evening station garden \
     window library people summer sunday market";
/// Messages whose authors write again: the newest ones, so that who writes much writes much.
const AUTHOR_SAMPLE: u32 = 4096;

/// Writes messages by those who wrote the newest ones.
#[derive(Debug)]
pub struct MessageWriter {
    mark: String,
    authors: Vec<u64>,
}

impl MessageWriter {
    /// Looks who writes.
    ///
    /// # Errors
    /// When the server does not say.
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

    /// What only the bodies of this run begin with.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Places in its list of authors.
    #[must_use]
    pub fn author_count(&self) -> usize {
        self.authors.len()
    }

    /// The author at a place in the list.
    #[must_use]
    pub fn author(&self, place: usize) -> u64 {
        self.authors.get(place).copied().unwrap_or(1)
    }

    /// A message by this author, as a statement's packet.
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
        let pen = MessageWriter {
            mark: format!("{BODY_MARK}1700000000-4194304"),
            authors: vec![5, 6],
        };
        let packet = pen.insert(pen.author(1));
        let text = String::from_utf8_lossy(packet.get(5..).unwrap_or_default()).into_owned();
        let body =
            "INSERT INTO message (user_id,body) VALUES (6,'headwater bench 1700000000-4194304 ";
        assert!(text.starts_with(body), "{text}");
        assert!(pen.mark.len() + WORDS.len() < 255);
        for special in ['\'', '\\', '%', '_'] {
            assert!(!pen.mark.contains(special) && !WORDS.contains(special));
        }
        assert_eq!((pen.author_count(), pen.author(9)), (2, 1));
    }
}
