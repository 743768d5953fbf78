//! Which of a reader's authors count, where the statement says more of its edges than whose they are: the server was asked, and its answer
//! is kept among the rows until the log tells a change of that reader's edges.

use headwater_rows::{Kept, Message, Rows, Variant};

/// Under what an answer is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOf {
    /// The reader's edges.
    pub edges: Message,
    /// Which of them count.
    pub variant: Variant,
    /// Authors who count in any case, ascending.
    pub also: Vec<u64>,
}

/// Authors who count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authors(Vec<u64>);

/// More authors are not kept of a reader.
pub const MOST: usize = 8_000;

impl ListOf {
    /// What is kept. `None`: nothing. `Some(None)`: that there are too many.
    #[must_use]
    pub fn look(&self, rows: &Rows) -> Option<Option<Authors>> {
        rows.look(self.edges, self.variant, |kept, _| {
            let Kept::Row(bytes) = kept else {
                return None;
            };
            let numbers = bytes
                .chunks_exact(8)
                .filter_map(|bytes| bytes.first_chunk());
            let told: Vec<u64> = numbers.map(|bytes| u64::from_le_bytes(*bytes)).collect();
            Some(Authors::of_both(&told, &self.also))
        })
    }

    /// Keeps what the server answered; `None`: too many.
    pub fn keep(&self, rows: &Rows, authors: Option<&[u64]>) {
        if let Some(authors) = authors {
            let bytes: Vec<u8> = authors
                .iter()
                .flat_map(|author| author.to_le_bytes())
                .collect();
            rows.keep(self.edges, self.variant, Kept::Row(&bytes), &[]);
        }
        // Too many to be kept: whoever asks next is told so.
        if self.look(rows).is_none() {
            rows.keep(self.edges, self.variant, Kept::FilteredOut, &[]);
        }
    }
}

impl Authors {
    pub(crate) fn of_both(told: &[u64], also: &[u64]) -> Authors {
        let mut authors = [told, also].concat();
        authors.sort_unstable();
        Authors(authors)
    }

    /// True for one of them.
    #[must_use]
    pub fn have(&self, author: u64) -> bool {
        self.0.binary_search(&author).is_ok()
    }

    /// Of these messages those that are theirs; `authors`: whose the messages are, one by one.
    #[must_use]
    pub fn of(&self, messages: &[u64], authors: &[u64]) -> Vec<u64> {
        let each = messages.iter().zip(authors);
        each.filter(|(_, author)| self.have(**author))
            .map(|(message, _)| *message)
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use headwater_timeline::index::PlaceId;

    #[test]
    fn a_list_is_told_until_the_readers_edges_change() {
        let rows = Rows::new(1 << 20);
        let of = |reader| ListOf {
            edges: (PlaceId(70), reader),
            variant: Variant(5),
            also: vec![2],
        };
        assert_eq!(of(7).look(&rows), None);
        of(7).keep(&rows, Some(&[9, 1]));
        let authors = of(7).look(&rows).unwrap().unwrap();
        assert_eq!(
            [1, 2, 3, 9].map(|author| authors.have(author)),
            [true, true, false, true]
        );
        assert_eq!(authors.of(&[40, 30, 20], &[9, 3, 2]), [40, 20]);
        assert_eq!(of(8).look(&rows), None);
        of(8).keep(&rows, None);
        assert_eq!(of(8).look(&rows), Some(None));
        // Longer than is kept.
        of(9).keep(&rows, Some(&[1; MOST]));
        assert_eq!(of(9).look(&rows), Some(None));
        rows.forget((PlaceId(70), 7));
        assert_eq!(of(7).look(&rows), None);
    }
}
