//! Finds results by the query they belong to.

use super::RelayReason;
use super::queries::CheckQuery;

/// The result of one query: its rows as text (`None` is NULL), or the server's error.
pub type CheckQueryResult = Result<Vec<Vec<Option<Vec<u8>>>>, ServerError>;

/// An error from the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error {code}: {message}")]
pub struct ServerError {
    /// Its number.
    pub code: u16,
    /// Its text.
    pub message: String,
}

#[derive(Clone, Copy)]
pub(super) struct CheckAnswers<'a> {
    all: &'a [CheckQueryResult],
}

#[derive(Clone, Copy)]
pub(super) struct CheckRow<'a> {
    cells: &'a [Option<Vec<u8>>],
}

pub(super) fn rows_of(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<CheckRow<'_>> {
    rows.iter().map(|cells| CheckRow { cells }).collect()
}

impl<'a> CheckAnswers<'a> {
    pub(super) fn new(all: &'a [CheckQueryResult]) -> Self {
        Self { all }
    }

    /// # Errors
    /// [`RelayReason::Failed`] with the server's error, or [`RelayReason::Unanswered`].
    pub(super) fn rows(self, query: CheckQuery) -> Result<Vec<CheckRow<'a>>, RelayReason> {
        match self.all.get(query.index()) {
            Some(Ok(rows)) => Ok(rows_of(rows)),
            Some(Err(error)) => Err(RelayReason::Failed {
                question: query.description(),
                code: error.code,
                message: error.message.clone(),
            }),
            None => Err(RelayReason::Unanswered {
                question: query.description(),
            }),
        }
    }

    /// The first cell of the first row.
    pub(super) fn value(self, query: CheckQuery) -> Result<Option<String>, RelayReason> {
        Ok(self.rows(query)?.first().and_then(|row| row.text(0)))
    }
}

impl<'a> CheckRow<'a> {
    /// `None`: NULL, or no such column.
    pub(super) fn bytes(self, column: usize) -> Option<&'a [u8]> {
        self.cells.get(column)?.as_deref()
    }

    pub(super) fn text(self, column: usize) -> Option<String> {
        self.bytes(column)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn equals(self, column: usize, value: &str) -> bool {
        self.bytes(column) == Some(value.as_bytes())
    }

    /// For column names, which compare without case.
    pub(super) fn equals_ignoring_case(self, column: usize, name: &str) -> bool {
        self.bytes(column)
            .is_some_and(|bytes| bytes.eq_ignore_ascii_case(name.as_bytes()))
    }
}
