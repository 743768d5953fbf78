//! Lists of authors that were asked of the server: which of a reader's edges count, and whom the reader has blocked. An answer is kept among
//! the rows until the log tells a change of that reader's rows of the list's table.

use headwater_rows::{Kept, Message, Rows, Variant};

/// Under what an answer is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOf {
    /// The reader's rows.
    pub whose: Message,
    /// Which of them.
    pub variant: Variant,
    /// What the list is for.
    pub says: ListSays,
}

/// What a list is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListSays {
    /// Messages of its authors pass, and of these, who ascend, and of nobody else.
    Pass(Vec<u64>),
    /// Messages of its authors do not.
    Blocked,
}

/// Authors of whom a list speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authors {
    /// As the server named them, ascending.
    told: Vec<u64>,
    says: ListSays,
}

/// More authors are not kept of a reader.
pub const MOST: usize = 8_000;

impl ListOf {
    /// What is kept. `None`: nothing. `Some(None)`: that it cannot be.
    #[must_use]
    pub fn look(&self, rows: &Rows) -> Option<Option<Authors>> {
        rows.look(self.whose, self.variant, |kept, _| {
            let Kept::Row(bytes) = kept else {
                return None;
            };
            let numbers = bytes
                .chunks_exact(8)
                .filter_map(|bytes| bytes.first_chunk());
            Some(Authors {
                told: numbers.map(|bytes| u64::from_le_bytes(*bytes)).collect(),
                says: self.says.clone(),
            })
        })
    }

    /// Keeps what the server answered; `None`: that it cannot be kept.
    pub fn keep(&self, rows: &Rows, authors: Option<&[u64]>) {
        if let Some(authors) = authors {
            // Sorted once, and not for each page.
            let authors = self.says.with(authors).told.into_iter();
            let bytes: Vec<u8> = authors.flat_map(u64::to_le_bytes).collect();
            rows.keep(self.whose, self.variant, Kept::Row(&bytes), &[]);
        }
        // Too many: whoever asks next is told so.
        if self.look(rows).is_none() {
            rows.keep(self.whose, self.variant, Kept::FilteredOut, &[]);
        }
    }
}

impl ListSays {
    /// The authors, where the server named these.
    pub(crate) fn with(&self, told: &[u64]) -> Authors {
        let mut told = told.to_vec();
        told.sort_unstable();
        Authors {
            told,
            says: self.clone(),
        }
    }
}

impl Authors {
    /// True where messages of this one pass.
    #[must_use]
    pub fn passes(&self, author: u64) -> bool {
        let is_told = || self.told.binary_search(&author).is_ok();
        match &self.says {
            ListSays::Pass(also) => also.binary_search(&author).is_ok() || is_told(),
            ListSays::Blocked => !is_told(),
        }
    }
}

/// Of these messages those that pass all lists; `authors`: whose the messages are, one by one.
#[must_use]
pub fn passing(lists: &[Authors], messages: &[u64], authors: &[u64]) -> Vec<u64> {
    let each = messages.iter().zip(authors);
    each.filter(|(_, author)| lists.iter().all(|list| list.passes(**author)))
        .map(|(message, _)| *message)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use headwater_timeline::index::PlaceId;

    #[test]
    fn a_list_is_told_until_the_readers_edges_change() {
        let rows = Rows::new(1 << 20);
        let of = |reader| ListOf {
            whose: (PlaceId(70), reader),
            variant: Variant(5),
            says: ListSays::Pass(vec![2]),
        };
        assert_eq!(of(7).look(&rows), None);
        of(7).keep(&rows, Some(&[9, 1]));
        let authors = of(7).look(&rows).unwrap().unwrap();
        assert_eq!(
            [1, 2, 3, 9].map(|author| authors.passes(author)),
            [true, true, false, true]
        );
        let blocked = ListSays::Blocked.with(&[9, 4]);
        assert_eq!(
            [1, 4, 9].map(|author| blocked.passes(author)),
            [true, false, false]
        );
        let ids = [40, 30, 20];
        let own = [authors];
        assert_eq!(passing(&own, &ids, &[9, 3, 2]), [40, 20]);
        let both = [own[0].clone(), blocked];
        assert_eq!(passing(&both, &ids, &[9, 3, 2]), [20]);
        assert_eq!(passing(&[], &ids, &[9, 3, 2]), ids);
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
