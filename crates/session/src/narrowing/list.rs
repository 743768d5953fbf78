//! Which of a reader's authors count, where the statement says more of its edges: when the server is asked, and what it says.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_rows::Message;
use headwater_wire::resultset::Answer;

use super::{Found, Wishes};
use crate::chosen::{Authors, ListOf, MOST};

/// Which of a reader's authors count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The reader's edges.
    pub edges: Message,
    /// The statement that asks for them, up to the reader's number.
    pub query: Arc<str>,
    /// What the answer depends on beside that.
    pub key: Arc<[u8]>,
    /// Authors who count in any case, ascending.
    pub also: Vec<u64>,
}

impl List {
    /// Who counts, where the server said this; `None`: too many.
    pub(crate) fn with(&self, told: Option<&[u64]>) -> Option<Authors> {
        told.map(|told| Authors::of_both(told, &self.also))
    }

    /// Under what it is kept in a stream of the log.
    #[must_use]
    pub fn of(&self, template: &Template, generation: u64) -> ListOf {
        let key = [
            &generation.to_le_bytes()[..],
            &self.key,
            b"\0list\0",
            self.query.as_bytes(),
        ];
        ListOf {
            edges: self.edges,
            variant: template.kept.number(&key.concat()),
            also: self.also.clone(),
        }
    }
}

impl Wishes {
    /// The question which authors count, where that is not known and was not asked.
    pub(super) fn asks(&self, template: &Template, found: &Found) -> Option<String> {
        let list = self.keeping.as_ref()?.list.as_ref()?;
        let (_, reader) = list.edges;
        let open = found.listed.is_none() && self.told.is_none();
        let asks = open && template.kept.is_worth_asking();
        asks.then(|| format!("{}{reader} LIMIT {}", list.query, MOST + 1))
    }

    /// Takes in the answer. Without one no rows are kept of this statement.
    pub(super) fn take_list(&mut self, answer: Option<Answer>) {
        let told = match answer {
            Some(Answer::Rows(rows)) => {
                // Whoever is not named is no author.
                let named = rows.iter().filter(|row| row.cell(0).is_some());
                named.map(|row| row.u64(0)).collect::<Option<Vec<u64>>>()
            }
            _ => None,
        };
        match told {
            Some(authors) => self.told = Some(Some(authors).filter(|it| it.len() <= MOST)),
            None => self.keeping = None,
        }
    }
}
