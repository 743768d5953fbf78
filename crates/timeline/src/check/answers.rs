//! Reads the answers by the question they belong to.

use super::Reason;
use super::queries::Question;

/// The answer to one query: its rows as text (`None` is NULL), or the server's error.
pub type Answered = Result<Vec<Vec<Option<Vec<u8>>>>, ServerError>;

/// An error that the server gave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error {code}: {message}")]
pub struct ServerError {
    /// Its number.
    pub code: u16,
    /// Its text.
    pub message: String,
}

#[derive(Clone, Copy)]
pub(super) struct Answers<'a> {
    all: &'a [Answered],
}

#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    cells: &'a [Option<Vec<u8>>],
}

/// The rows of one answer.
pub(super) fn rows_of(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<Row<'_>> {
    rows.iter().map(|cells| Row { cells }).collect()
}

impl<'a> Answers<'a> {
    pub(super) fn new(all: &'a [Answered]) -> Self {
        Self { all }
    }

    /// # Errors
    /// [`Reason::Failed`] with what the server said, or [`Reason::Unanswered`].
    pub(super) fn rows(self, question: Question) -> Result<Vec<Row<'a>>, Reason> {
        match self.all.get(question.at()) {
            Some(Ok(rows)) => Ok(rows_of(rows)),
            Some(Err(error)) => Err(Reason::Failed {
                question: question.about(),
                code: error.code,
                message: error.message.clone(),
            }),
            None => Err(Reason::Unanswered {
                question: question.about(),
            }),
        }
    }

    /// The first cell of the first row.
    pub(super) fn value(self, question: Question) -> Result<Option<String>, Reason> {
        Ok(self.rows(question)?.first().and_then(|row| row.text(0)))
    }
}

impl<'a> Row<'a> {
    /// `None`: NULL, or there is no such column.
    pub(super) fn bytes(self, column: usize) -> Option<&'a [u8]> {
        self.cells.get(column)?.as_deref()
    }

    pub(super) fn text(self, column: usize) -> Option<String> {
        self.bytes(column)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn is(self, column: usize, value: &str) -> bool {
        self.bytes(column) == Some(value.as_bytes())
    }

    /// For names of columns, which compare without case.
    pub(super) fn named(self, column: usize, name: &str) -> bool {
        self.bytes(column)
            .is_some_and(|bytes| bytes.eq_ignore_ascii_case(name.as_bytes()))
    }
}
