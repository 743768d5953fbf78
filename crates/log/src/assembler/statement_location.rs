//! A logged statement, as messages show it: its kind and position. Never its text, which may contain a password.

use std::fmt;

/// The kind and position of a logged statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementLocation {
    kind: &'static str,
    file: String,
    /// Where its event ends.
    end: u64,
}

/// First words that may be shown.
const STATEMENT_KINDS: [&str; 30] = [
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "COMMIT",
    "CREATE",
    "DELETE",
    "DO",
    "DROP",
    "EXECUTE",
    "FLUSH",
    "GRANT",
    "IMPORT",
    "INSERT",
    "INSTALL",
    "LOAD",
    "OPTIMIZE",
    "RENAME",
    "REPAIR",
    "REPLACE",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "TRUNCATE",
    "UNINSTALL",
    "UPDATE",
    "WITH",
    "XA",
];

impl StatementLocation {
    pub(crate) fn at(text: &[u8], file: String, end: u64) -> StatementLocation {
        let first = text
            .split(|byte| !byte.is_ascii_alphabetic())
            .find(|word| !word.is_empty())
            .unwrap_or_default();
        let kind = STATEMENT_KINDS
            .into_iter()
            .find(|kind| first.eq_ignore_ascii_case(kind.as_bytes()));
        StatementLocation {
            kind: kind.unwrap_or("one of another kind"),
            file,
            end,
        }
    }
}

impl fmt::Display for StatementLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, which ends at {} in {}",
            self.kind, self.end, self.file
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_shown_by_its_kind_and_position() {
        for (text, kind) in [
            ("truncate message", "TRUNCATE"),
            ("/* x */ DROP TABLE t", "one of another kind"),
            ("SET PASSWORD FOR 'a'@'b'='*SECRET'", "SET"),
            ("'secret'", "one of another kind"),
            ("", "one of another kind"),
        ] {
            let logged = StatementLocation::at(text.as_bytes(), "binlog.000007".into(), 1_234);
            let expected = format!("{kind}, which ends at 1234 in binlog.000007");
            assert_eq!(logged.to_string(), expected, "{text}");
        }
    }
}
