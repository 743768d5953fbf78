//! What a SET statement sets for the next transaction only: `SET TRANSACTION` without a scope, and `SET @@transaction_isolation`.
//!
//! The same variable without the two `@`, or with a scope, is the session's: `SET transaction_isolation = ...`,
//! `SET SESSION transaction_isolation = ...`, `SET @@SESSION.transaction_isolation = ...`. Rules: MySQL 9.7's manual ("SET TRANSACTION"),
//! and MariaDB 10.11, whose `sys_vars.cc` has the same.

use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};

/// What is set for the next transaction only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextTransaction {
    Unchanged,
    /// It reads committed data without locks, or as the session's own level does.
    Snapshot,
    /// Something else, or an unknown text.
    Other,
}

/// Words after which a variable, or TRANSACTION, is not the next transaction's.
const SCOPES: [&str; 5] = ["SESSION", "LOCAL", "GLOBAL", "PERSIST", "PERSIST_ONLY"];
const VARIABLES: [&str; 4] = [
    "TRANSACTION_ISOLATION",
    "TRANSACTION_READ_ONLY",
    "TX_ISOLATION",
    "TX_READ_ONLY",
];

impl NextTransaction {
    /// For a statement that begins with SET.
    pub(crate) fn of(text: &[u8]) -> NextTransaction {
        let mut tokens = Lexer::new(text).peekable();
        tokens.next();
        let scoped = tokens.next_if(is_scope).is_some();
        if tokens
            .next_if(|token| token.is_word("TRANSACTION"))
            .is_some()
        {
            return match scoped {
                true => NextTransaction::Unchanged,
                false => parse_characteristics(tokens),
            };
        }
        match scan_assignments(tokens, scoped) {
            Some(()) => NextTransaction::Unchanged,
            None => NextTransaction::Other,
        }
    }
}

/// For the words after SET TRANSACTION.
fn parse_characteristics<'a>(tokens: impl Iterator<Item = SqlToken<'a>>) -> NextTransaction {
    const SNAPSHOTS: [&[&str]; 4] = [
        &["ISOLATION", "LEVEL", "READ", "COMMITTED"],
        &["ISOLATION", "LEVEL", "REPEATABLE", "READ"],
        &["READ", "ONLY"],
        &["READ", "WRITE"],
    ];
    let all: Vec<SqlToken<'_>> = tokens.collect();
    let all = match all.split_last() {
        Some((last, before)) if last.is_punct(b';') => before,
        _ => &all,
    };
    let matches_words = |words: &&[&str], clause: &[SqlToken<'_>]| {
        let mut pairs = words.iter().zip(clause);
        words.len() == clause.len() && pairs.all(|(word, token)| token.is_word(word))
    };
    let mut clauses = all.split(|token| token.is_punct(b','));
    match clauses.all(|characteristic| {
        SNAPSHOTS
            .iter()
            .any(|words| matches_words(words, characteristic))
    }) {
        true => NextTransaction::Snapshot,
        false => NextTransaction::Other,
    }
}

/// Scans the assignments one by one. `None`: one may be the next transaction's. `scoped`: a scope precedes the first.
fn scan_assignments<'a>(
    mut tokens: std::iter::Peekable<impl Iterator<Item = SqlToken<'a>>>,
    mut scoped: bool,
) -> Option<()> {
    loop {
        scoped |= tokens.next_if(is_scope).is_some();
        let mut signs = 0;
        while tokens.next_if(|token| token.is_punct(b'@')).is_some() {
            signs += 1;
        }
        let name = tokens.next()?;
        let after_dot = tokens
            .next_if(|token| token.is_punct(b'.'))
            .and_then(|_| tokens.next());
        let (scoped_here, name) = match after_dot {
            Some(variable) => (is_scope(&name), variable),
            None => (false, name),
        };
        let name = name.unquoted()?;
        let is_transaction_variable = VARIABLES
            .iter()
            .any(|candidate| name.eq_ignore_ascii_case(candidate.as_bytes()));
        if is_transaction_variable && signs == 2 && !scoped && !scoped_here {
            return None;
        }
        // A name without a value is a statement of its own: SET TRANSACTION.
        let sign = tokens.next()?;
        let assigns = sign.is_punct(b'=')
            || sign.is_punct(b':') && tokens.next().is_some_and(|next| next.is_punct(b'='));
        if !assigns {
            return None;
        }
        let mut depth = 0_usize;
        loop {
            let Some(token) = tokens.next() else {
                return Some(());
            };
            match token.kind {
                TokenKind::Opaque => return None,
                TokenKind::Punct(b'(') => depth += 1,
                TokenKind::Punct(b')') => depth = depth.checked_sub(1)?,
                TokenKind::Punct(b',') if depth == 0 => break,
                _ => {}
            }
        }
        scoped = false;
    }
}

fn is_scope(token: &SqlToken<'_>) -> bool {
    SCOPES.iter().any(|scope| token.is_word(scope))
}

#[cfg(test)]
mod tests {
    use super::NextTransaction::{Other, Snapshot, Unchanged};
    use super::*;

    #[test]
    fn what_has_no_scope_is_the_next_transactions() {
        for (text, next) in [
            ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", Snapshot),
            (
                "set transaction isolation level repeatable read, read only;",
                Snapshot,
            ),
            ("SET TRANSACTION READ WRITE", Snapshot),
            ("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", Other),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", Other),
            (
                "SET TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
                Other,
            ),
            ("SET TRANSACTION", Other),
            ("SET TRANSACTION READ ONLY WITH", Other),
            ("SET SESSION TRANSACTION READ ONLY", Unchanged),
            (
                "SET LOCAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                Unchanged,
            ),
            ("SET GLOBAL TRANSACTION READ WRITE", Unchanged),
            (
                "SET @@SESSION.transaction_isolation = 'READ-COMMITTED'",
                Unchanged,
            ),
            ("SET @@session.`tx_isolation` = 2", Unchanged),
            ("SET @@LOCAL.tx_read_only := ON", Unchanged),
            ("SET SESSION transaction_isolation = DEFAULT", Unchanged),
            (
                "SET transaction_isolation = \"REPEATABLE-READ\", autocommit=1",
                Unchanged,
            ),
            ("SET `tx_isolation` = 'SERIALIZABLE'", Unchanged),
            ("SET @old = @@transaction_isolation", Unchanged),
            (
                "SET @@autocommit = IF(1, @@tx_isolation = 'x', 0)",
                Unchanged,
            ),
            ("SET @@transaction_isolation = 'READ-COMMITTED'", Other),
            ("SET @@`tx_isolation` = 1", Other),
            ("SET autocommit = 0, @@transaction_read_only = 1", Other),
            ("SET SESSION sql_mode = '', @@tx_isolation = 1", Other),
            ("SET autocommit = 0, TRANSACTION READ ONLY", Other),
            ("SET tx_isolation = '\\a'", Other),
            ("SET", Other),
        ] {
            assert_eq!(NextTransaction::of(text.as_bytes()), next, "{text}");
        }
    }
}
