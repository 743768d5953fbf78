//! What a statement of the log means for the tables: harmless only where that is proved.
//!
//! | module | what it is |
//! |---|---|
//! | `padding` | what a statement may begin with and be made longer by, and no way of reading depends on |
//! | `reading_mode` | the ways in which a server may have read the text |
//! | `lexer` | its words, in one of them |
//! | `routed_names` | whether a word may name one of the tables |
//! | `grammar` | what the words come to |

mod grammar;
mod lexer;
mod padding;
mod reading_mode;
mod routed_names;
#[cfg(test)]
mod tests;

use self::grammar::{StatementMeaning, UncertaintyScope, meaning};
use self::lexer::LoggedStatementLexer;
use self::reading_mode::ReadingMode;
use self::routed_names::RoutedTableNames;
use super::routes::TableRoutes;

/// Of a longer statement only the first bytes are read.
const MAX_STATEMENT_BYTES: usize = 8 * 1024 * 1024;
/// So many bytes are read at most in all ways together: the more ways, the fewer bytes.
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;
/// In longer texts names are not looked for.
const MAX_SEARCHED_BYTES: usize = 64 * 1024;
/// Shorter texts are read to their end in however many ways.
const MIN_COLLAPSED_BYTES: usize = 16 * 1024;

/// What a statement in the log can mean for the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedStatementClass {
    /// Starts a transaction, or marks a place in it.
    Begin,
    Commit,
    Rollback,
    /// Takes back what the transaction has done since a place in it.
    RollbackTo,
    /// Changes no rows of the tables, and not their form.
    Harmless,
    /// So it is; but rights may be others behind it, or views and stored programs.
    Redefines,
    /// May change their form, or empty them.
    Schema,
    /// May change rows that are not told.
    Unknown,
    /// Cannot be read for certain, so it may be about them.
    Unreadable,
}

/// The text of a statement, as far as it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatementText<'a> {
    pub(crate) bytes: &'a [u8],
    /// Nothing is missing behind.
    pub(crate) is_complete: bool,
    pub(crate) create_select: CreateSelectEffect,
}

/// Whether a statement that makes a table may hold a query by which others change: by a function, where it is logged as a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateSelectEffect {
    /// Its event tells that it does not, or the server refuses such changes.
    Never,
    /// Only where the table is a temporary one.
    Temporary,
    Possible,
}

impl<'a> StatementText<'a> {
    #[cfg(test)]
    pub(crate) fn complete(bytes: &'a [u8]) -> StatementText<'a> {
        StatementText {
            bytes,
            is_complete: true,
            create_select: CreateSelectEffect::Possible,
        }
    }

    /// At most so many of the first bytes.
    fn truncated_to(self, most: usize) -> StatementText<'a> {
        match self.bytes.get(..most) {
            Some(bytes) if bytes.len() < self.bytes.len() => StatementText {
                bytes,
                is_complete: false,
                ..self
            },
            _ => self,
        }
    }
}

impl LoggedStatementClass {
    /// Judges a statement of the log that ran in the database `schema`, where the log is in row format: no row change comes as
    /// a statement.
    pub(crate) fn classify(
        text: StatementText<'_>,
        schema: &[u8],
        routes: &TableRoutes,
    ) -> LoggedStatementClass {
        if let Some(statement) = LoggedStatementClass::classify_transaction_control(text) {
            return statement;
        }
        let without_padding = padding::collapse(text.bytes, MIN_COLLAPSED_BYTES);
        let text = StatementText {
            bytes: &without_padding,
            ..text
        };
        let text = text.truncated_to(MAX_STATEMENT_BYTES);
        let readings = ReadingMode::applicable_to(text.bytes);
        let ways = readings.clone().count();
        let text = text.truncated_to(MAX_TOTAL_BYTES / ways.max(1));
        let names = RoutedTableNames { routes, schema };
        let judged = readings.filter_map(|reading| {
            let tokens = LoggedStatementLexer::new(text.bytes, text.is_complete, reading);
            Some(LoggedStatementClass::from_meaning(
                meaning(tokens, &names, text.create_select)?,
                text,
                &names,
            ))
        });
        // Where nobody can have read it, it was read in a way that is not known here.
        judged
            .reduce(LoggedStatementClass::merge)
            .unwrap_or(LoggedStatementClass::Unreadable)
    }

    /// A statement that starts or ends a transaction: servers write these themselves.
    fn classify_transaction_control(text: StatementText<'_>) -> Option<LoggedStatementClass> {
        match text.bytes {
            b"BEGIN" => return Some(LoggedStatementClass::Begin),
            b"COMMIT" => return Some(LoggedStatementClass::Commit),
            _ => {}
        }
        let mut tokens =
            LoggedStatementLexer::new(text.bytes, text.is_complete, ReadingMode::PLAIN);
        let first = tokens.next()?;
        let next = tokens.next();
        match next {
            _ if first.is_keyword("SAVEPOINT") => Some(LoggedStatementClass::Begin),
            Some(next) if first.is_keyword("ROLLBACK") && next.is_keyword("TO") => {
                Some(LoggedStatementClass::RollbackTo)
            }
            None if first.is_keyword("BEGIN") => Some(LoggedStatementClass::Begin),
            None if first.is_keyword("COMMIT") => Some(LoggedStatementClass::Commit),
            None if first.is_keyword("ROLLBACK") => Some(LoggedStatementClass::Rollback),
            _ => None,
        }
    }

    fn from_meaning(
        meaning: StatementMeaning,
        text: StatementText<'_>,
        names: &RoutedTableNames<'_>,
    ) -> LoggedStatementClass {
        let searched = text.is_complete && text.bytes.len() <= MAX_SEARCHED_BYTES;
        let absent = |absent: bool| {
            if absent {
                LoggedStatementClass::Harmless
            } else {
                LoggedStatementClass::Unreadable
            }
        };
        match meaning {
            StatementMeaning::Harmless => LoggedStatementClass::Harmless,
            StatementMeaning::Redefines => LoggedStatementClass::Redefines,
            StatementMeaning::Tables => LoggedStatementClass::Schema,
            StatementMeaning::Rows => LoggedStatementClass::Unknown,
            StatementMeaning::Unreadable(UncertaintyScope::Nothing) => {
                LoggedStatementClass::Harmless
            }
            StatementMeaning::Unreadable(UncertaintyScope::NewNames) => {
                LoggedStatementClass::Redefines
            }
            StatementMeaning::Unreadable(UncertaintyScope::Tables) => {
                absent(searched && names.no_table_in(text.bytes))
            }
            StatementMeaning::Unreadable(UncertaintyScope::Database) => {
                absent(searched && names.no_database_in(text.bytes))
            }
            StatementMeaning::Unreadable(UncertaintyScope::Anything) => {
                LoggedStatementClass::Unreadable
            }
        }
    }

    /// Two readings of one text: what both say, or the worse where neither says that it is about the tables.
    fn merge(self, other: LoggedStatementClass) -> LoggedStatementClass {
        use LoggedStatementClass::{Harmless, Redefines, Unreadable};
        match (self, other) {
            (one, other) if one == other => one,
            (Harmless, Redefines) | (Redefines, Harmless) => Redefines,
            _ => Unreadable,
        }
    }
}
