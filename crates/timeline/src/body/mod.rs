//! Compares a procedure, as `SHOW CREATE PROCEDURE` prints it, with the known form, token by token.
//!
//! Comments, white space, keyword case and back quotes do not matter, and local names are free. A local variable hides a column of
//! its name, so a column that shares a variable's name is a mismatch.

use super::definition::TimelineDefinition;
use headwater_sql::lexer::Lexer;

use matcher::BodyMatcher;
pub use pattern::TimelineRoutine;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod header;
mod matcher;
mod pattern;
mod steps;
#[cfg(test)]
mod tests;

/// Properties of a procedure that matches the known form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcedureBody {
    /// Whose privileges it runs with.
    pub security: SqlSecurity,
    /// The options after the columns of the table that it creates, as tokens.
    pub table_options: String,
}

/// Whose privileges a procedure runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlSecurity {
    /// Those of the account that defined it.
    Definer,
    /// Those of the account that calls it.
    Invoker,
}

/// The first token of a procedure that differs from the known form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("procedure {procedure}, line {line}: expected {expected}, found {found}")]
pub struct BodyMismatch {
    /// The procedure's name.
    pub procedure: String,
    /// The line in the server's text, from 1.
    pub line: usize,
    /// What the known form has there.
    pub expected: String,
    /// What the server's procedure has there.
    pub found: String,
}

/// Compares the text of a `SHOW CREATE PROCEDURE` with the routine's known form.
///
/// # Errors
/// The first token that differs.
pub fn compare(
    definition: &TimelineDefinition,
    routine: TimelineRoutine,
    shown: &[u8],
) -> Result<ProcedureBody, BodyMismatch> {
    let tokens = Lexer::new(shown).collect();
    let mut matcher = BodyMatcher {
        definition,
        routine,
        shown,
        tokens,
        position: 0,
        locals: Vec::new(),
        bound_names: Vec::new(),
        table_options: String::new(),
    };
    let security = matcher.header()?;
    let steps: Vec<_> = routine.steps().collect();
    matcher.steps(&steps)?;
    matcher.accept(|token| token.is_punct(b';'));
    match matcher.peek() {
        None => Ok(ProcedureBody {
            security,
            table_options: matcher.table_options,
        }),
        Some(_) => matcher.fail("the end"),
    }
}
