//! What a logged statement means for the tables. It counts as harmless only if that is proved.
//!
//! | module | what it is |
//! |---|---|
//! | `padding` | blanks and comments that every reading mode skips |
//! | `reading_mode` | the ways in which a server may have read the text |
//! | `lexer` | the tokens in one reading mode |
//! | `routed_names` | whether a token may name one of the tables |
//! | `grammar` | what the tokens mean |

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

/// Only the first bytes of a longer statement are read.
const MAX_STATEMENT_BYTES: usize = 8 * 1024 * 1024;
/// Limit over all reading modes together: the more modes, the fewer bytes.
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;
/// Longer texts are not searched for names.
const MAX_SEARCHED_BYTES: usize = 64 * 1024;
/// Shorter texts are read completely in any number of modes.
const MIN_COLLAPSED_BYTES: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedStatementClass {
    /// Starts a transaction, or sets a savepoint.
    Begin,
    Commit,
    Rollback,
    RollbackTo,
    /// Changes neither rows nor definitions of the tables.
    Harmless,
    /// The same, but privileges, views or stored programs may have changed.
    Redefines,
    /// May change the tables' definitions, or empty them.
    Schema,
    /// May change rows without row events.
    Unknown,
    /// Cannot be read with certainty, so it may be about the tables.
    Unreadable,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StatementText<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) is_complete: bool,
    pub(crate) create_select: CreateSelectEffect,
}

/// Whether CREATE TABLE may contain a query that changes other tables: by a function, if it is logged as a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateSelectEffect {
    /// Its event excludes that, or the server refuses such changes.
    Never,
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
    /// Classifies a logged statement that ran in the database `schema`. The log is in row format: no row change is logged as a
    /// statement.
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
        let modes = ReadingMode::applicable_to(text.bytes);
        let mode_count = modes.clone().count();
        let text = text.truncated_to(MAX_TOTAL_BYTES / mode_count.max(1));
        let names = RoutedTableNames { routes, schema };
        let classes = modes.filter_map(|mode| {
            let tokens = LoggedStatementLexer::new(text.bytes, text.is_complete, mode);
            Some(LoggedStatementClass::from_meaning(
                meaning(tokens, &names, text.create_select)?,
                text,
                &names,
            ))
        });
        // If no mode can have been used, the server read it in one that is unknown here.
        classes
            .reduce(LoggedStatementClass::merge)
            .unwrap_or(LoggedStatementClass::Unreadable)
    }

    /// Statements that start or end a transaction: servers write these themselves.
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

    /// Merges two readings of one text: what both mean, or the worse if neither concerns the tables.
    fn merge(self, other: LoggedStatementClass) -> LoggedStatementClass {
        use LoggedStatementClass::{Harmless, Redefines, Unreadable};
        match (self, other) {
            (one, other) if one == other => one,
            (Harmless, Redefines) | (Redefines, Harmless) => Redefines,
            _ => Unreadable,
        }
    }
}
