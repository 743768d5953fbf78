//! Why a call was not answered by Headwater: one name each, for counters, logs and the reader.

use headwater_lookup::Unusable;

/// Why the server's own procedure ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Reason {
    /// The session runs with autocommit off.
    AutocommitOff,
    /// A transaction is open: the procedure would read in its snapshot.
    InTransaction,
    /// A one-shot `SET TRANSACTION` may be waiting for the next statement.
    OneShotTransaction,
    /// The client has locked tables.
    TableLocks,
    /// An argument is not certainly a number (NULL, a fraction, a value that was sent in pieces).
    Arguments,
    /// The session is in another database than the definition's, or in none.
    OtherDatabase,
    /// A session setting that changes what the procedure does is not at its default.
    Settings,
    /// A temporary table of one of the definition's names hides the real one, or has another form.
    TemporaryTables,
    /// The account may not execute the procedure: the server says so itself.
    NoExecute,
    /// The definition was not accepted on this server (`headwater serve` logs why).
    Definition,
    /// The definition's check has not ended yet.
    Unchecked,
    /// This session's account may not read the tables.
    LookupDenied,
    /// The server warns of the procedure's text where a session calls it first, and only it can say how.
    ParseWarnings,
    /// A lookup failed in another way (a time limit, locks taken out of sight, ...).
    LookupFailed,
    /// The answer would exceed `limits.pending_ids`.
    TooManyIds,
    /// Writing the result table was denied or failed earlier in this session.
    WriteDenied,
    /// Acceleration is switched off (`accelerate = false`).
    SwitchedOff,
    /// An answer differed from the procedure's (`shadow.rate`); the log holds both.
    Distrusted,
}

impl Reason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Reason; 18] = [
        Reason::AutocommitOff,
        Reason::InTransaction,
        Reason::OneShotTransaction,
        Reason::TableLocks,
        Reason::Arguments,
        Reason::OtherDatabase,
        Reason::Settings,
        Reason::TemporaryTables,
        Reason::NoExecute,
        Reason::Definition,
        Reason::Unchecked,
        Reason::LookupDenied,
        Reason::ParseWarnings,
        Reason::LookupFailed,
        Reason::TooManyIds,
        Reason::WriteDenied,
        Reason::SwitchedOff,
        Reason::Distrusted,
    ];

    /// The label of the counter: lower case, words joined by `_`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Reason::AutocommitOff => "autocommit_off",
            Reason::InTransaction => "in_transaction",
            Reason::OneShotTransaction => "one_shot_transaction",
            Reason::TableLocks => "table_locks",
            Reason::Arguments => "arguments",
            Reason::OtherDatabase => "other_database",
            Reason::Settings => "session_settings",
            Reason::TemporaryTables => "temporary_tables",
            Reason::NoExecute => "no_execute_privilege",
            Reason::Definition => "definition_refused",
            Reason::Unchecked => "definition_unchecked",
            Reason::LookupDenied => "lookup_denied",
            Reason::ParseWarnings => "parse_warnings",
            Reason::LookupFailed => "lookup_failed",
            Reason::TooManyIds => "too_many_ids",
            Reason::WriteDenied => "write_denied",
            Reason::SwitchedOff => "switched_off",
            Reason::Distrusted => "answer_differed",
        }
    }
}

impl From<Unusable> for Reason {
    fn from(unusable: Unusable) -> Reason {
        match unusable {
            Unusable::Malformed => Reason::LookupFailed,
            Unusable::TooManyIds => Reason::TooManyIds,
            Unusable::TemporaryTables => Reason::TemporaryTables,
        }
    }
}
