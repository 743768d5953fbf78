//! What a statement of the log means for the tables: harmless only where that is proved.
//!
//! | module | what it is |
//! |---|---|
//! | `padding` | what a statement may begin with and be made longer by, and no way of reading depends on |
//! | `reading` | the ways in which a server may have read the text |
//! | `lexer` | its words, in one of them |
//! | `names` | whether a word may name one of the tables |
//! | `grammar` | what the words come to |

mod grammar;
mod lexer;
mod names;
mod padding;
mod reading;
#[cfg(test)]
mod tests;

use self::grammar::{Meaning, Scope, meaning};
use self::lexer::Lexer;
use self::names::Names;
use self::reading::Reading;
use super::routes::Routes;

/// Of a longer statement only the first bytes are read.
const LONGEST: usize = 8 * 1024 * 1024;
/// So many bytes are read at most in all ways together: the more ways, the fewer bytes.
const MOST_READ: usize = 16 * 1024 * 1024;
/// In longer texts names are not looked for.
const MOST_SEARCHED: usize = 64 * 1024;
/// Shorter texts are read to their end in however many ways.
const READ_IN_ALL_WAYS: usize = 16 * 1024;

/// What a statement in the log can mean for the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
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
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    /// Nothing is missing behind.
    pub(crate) whole: bool,
    pub(crate) selects: Selects,
}

/// Whether a statement that makes a table may hold a query by which others change: by a function, where it is logged as a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selects {
    /// Its event tells that it does not, or the server refuses such changes.
    Never,
    /// Only where the table is a temporary one.
    Temporary,
    Perhaps,
}

impl<'a> Text<'a> {
    #[cfg(test)]
    pub(crate) fn whole(bytes: &'a [u8]) -> Text<'a> {
        Text {
            bytes,
            whole: true,
            selects: Selects::Perhaps,
        }
    }

    /// At most so many of the first bytes.
    fn within(self, most: usize) -> Text<'a> {
        match self.bytes.get(..most) {
            Some(bytes) if bytes.len() < self.bytes.len() => Text {
                bytes,
                whole: false,
                ..self
            },
            _ => self,
        }
    }
}

impl Statement {
    /// Judges a statement of the log that ran in the database `schema`, where the log is in row format: no row change comes as
    /// a statement.
    pub(crate) fn judge(text: Text<'_>, schema: &[u8], routes: &Routes) -> Statement {
        if let Some(statement) = Statement::of_transactions(text) {
            return statement;
        }
        let without_padding = padding::taken_out(text.bytes, READ_IN_ALL_WAYS);
        let text = Text {
            bytes: &without_padding,
            ..text
        };
        let text = text.within(LONGEST);
        let readings = Reading::all(text.bytes);
        let ways = readings.clone().count();
        let text = text.within(MOST_READ / ways.max(1));
        let names = Names { routes, schema };
        let judged = readings.filter_map(|reading| {
            let tokens = Lexer::new(text.bytes, text.whole, reading);
            Some(Statement::of(
                meaning(tokens, &names, text.selects)?,
                text,
                &names,
            ))
        });
        // Where nobody can have read it, it was read in a way that is not known here.
        judged
            .reduce(Statement::or)
            .unwrap_or(Statement::Unreadable)
    }

    /// A statement that starts or ends a transaction: servers write these themselves.
    fn of_transactions(text: Text<'_>) -> Option<Statement> {
        match text.bytes {
            b"BEGIN" => return Some(Statement::Begin),
            b"COMMIT" => return Some(Statement::Commit),
            _ => {}
        }
        let mut tokens = Lexer::new(text.bytes, text.whole, Reading::PLAIN);
        let first = tokens.next()?;
        let next = tokens.next();
        match next {
            _ if first.is("SAVEPOINT") => Some(Statement::Begin),
            Some(next) if first.is("ROLLBACK") && next.is("TO") => Some(Statement::RollbackTo),
            None if first.is("BEGIN") => Some(Statement::Begin),
            None if first.is("COMMIT") => Some(Statement::Commit),
            None if first.is("ROLLBACK") => Some(Statement::Rollback),
            _ => None,
        }
    }

    fn of(meaning: Meaning, text: Text<'_>, names: &Names<'_>) -> Statement {
        let searched = text.whole && text.bytes.len() <= MOST_SEARCHED;
        let absent = |absent: bool| {
            if absent {
                Statement::Harmless
            } else {
                Statement::Unreadable
            }
        };
        match meaning {
            Meaning::Harmless => Statement::Harmless,
            Meaning::Redefines => Statement::Redefines,
            Meaning::Tables => Statement::Schema,
            Meaning::Rows => Statement::Unknown,
            Meaning::Unsure(Scope::Nothing) => Statement::Harmless,
            Meaning::Unsure(Scope::NewNames) => Statement::Redefines,
            Meaning::Unsure(Scope::Tables) => absent(searched && names.no_table_in(text.bytes)),
            Meaning::Unsure(Scope::Database) => {
                absent(searched && names.no_database_in(text.bytes))
            }
            Meaning::Unsure(Scope::Anything) => Statement::Unreadable,
        }
    }

    /// Two readings of one text: what both say, or the worse where neither says that it is about the tables.
    fn or(self, other: Statement) -> Statement {
        use Statement::{Harmless, Redefines, Unreadable};
        match (self, other) {
            (one, other) if one == other => one,
            (Harmless, Redefines) | (Redefines, Harmless) => Redefines,
            _ => Unreadable,
        }
    }
}
