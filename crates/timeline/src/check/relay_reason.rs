//! Why calls of a definition are relayed: one sentence each, with a remedy if there is one.

use crate::body::BodyMismatch;

/// Why a timeline, or one form of it, is not accelerated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayReason {
    /// A query of the check failed.
    #[error("the server does not tell {question}: error {code}: {message}")]
    Failed {
        /// What the query requests.
        question: &'static str,
        /// The error's number.
        code: u16,
        /// The error's text.
        message: String,
    },
    /// A query of the check has no result.
    #[error("the server did not answer when asked for {question}")]
    Unanswered {
        /// What the query requests.
        question: &'static str,
    },
    /// The definition names another database.
    #[error(
        "the definition is for another database than `{database}`: leave out its key `database` to serve it in any"
    )]
    OtherDatabase {
        /// The requested database.
        database: String,
    },
    /// A table does not exist.
    #[error("there is no table `{table}`, or the account may not see it")]
    NoTable {
        /// The table's name.
        table: String,
    },
    /// A view, or something else that reads like a table.
    #[error("`{table}` is a {kind}, not a base table of InnoDB")]
    NotBaseTable {
        /// Its name.
        table: String,
        /// The table type that the server reports, or its engine.
        kind: String,
    },
    /// A column does not exist.
    #[error("table `{table}` has no column `{column}`, or the account may not see it")]
    NoColumn {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
    },
    /// A column's type differs from the definition's.
    #[error("column `{table}`.`{column}` is {found}, and the definition's {key} says {expected}")]
    ColumnType {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
        /// Its type on the server.
        found: String,
        /// The definition's type.
        expected: &'static str,
        /// The definition's key.
        key: &'static str,
    },
    /// The message id may be NULL.
    #[error("column `{table}`.`{column}` may be NULL")]
    Nullable {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
    },
    /// No key makes the rows unique.
    #[error(
        "table `{table}` has no primary or unique key on ({columns}), so it may hold a row twice"
    )]
    NotUnique {
        /// The table's name.
        table: String,
        /// The columns that have to be unique.
        columns: String,
    },
    /// An index is missing, without which lookups would read far too much.
    #[error("table `{table}` has no index that starts with ({columns}): CREATE INDEX one")]
    NoIndex {
        /// The table's name.
        table: String,
        /// What the index must start with.
        columns: String,
    },
    /// The procedure's body differs from the known form.
    #[error(transparent)]
    Body(#[from] BodyMismatch),
    /// No account may see the procedure's body.
    #[error(
        "no account here may see the body of procedure {procedure}: give a service account that may (SHOW CREATE PROCEDURE), \
         or set trust_unseen_body = true for timeline {timeline:?}"
    )]
    BodyUnseen {
        /// The procedure's name.
        procedure: String,
        /// The definition's name.
        timeline: String,
    },
    /// The procedure that the bounded one calls does not exist.
    #[error("procedure {procedure} is not there, and the bounded procedure calls it")]
    NoHelper {
        /// The helper's name.
        procedure: String,
    },
    /// The procedure was created under a mode that changes its meaning.
    #[error("procedure {procedure} was made with sql_mode {mode}")]
    SqlMode {
        /// The procedure's name.
        procedure: String,
        /// The mode.
        mode: &'static str,
    },
    /// The procedure runs with its caller's privileges, and only the server knows those.
    #[error("procedure {procedure} is SQL SECURITY INVOKER: it runs with its caller's rights")]
    Invoker {
        /// The procedure's name.
        procedure: String,
    },
    /// Sessions may start with temporary tables.
    #[error(
        "the server's init_connect holds {word}, so a session may start with temporary tables of its own"
    )]
    InitConnect {
        /// The word.
        word: &'static str,
    },
}

impl RelayReason {
    /// True if another account might see what this one does not; then the reason is no verdict on the definition.
    #[must_use]
    pub fn may_lack_privilege(&self) -> bool {
        matches!(
            self,
            RelayReason::Failed { .. }
                | RelayReason::Unanswered { .. }
                | RelayReason::NoTable { .. }
                | RelayReason::NoColumn { .. }
                | RelayReason::NotUnique { .. }
                | RelayReason::NoIndex { .. }
                | RelayReason::BodyUnseen { .. }
        )
    }
}
