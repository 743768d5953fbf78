//! Why Headwater did not answer a call: one name per reason, for counters, logs and readers.

use headwater_lookup::LookupError;

/// Why the server itself ran the procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum CallRelayReason {
    /// The session runs with autocommit off.
    AutocommitOff,
    /// A transaction is open: the procedure would read in its snapshot.
    InTransaction,
    /// A one-shot `SET TRANSACTION` may be waiting for the next statement.
    OneShotTransaction,
    /// The client has locked tables.
    TableLocks,
    /// An argument may not be a number (NULL, a fraction, a value that was sent in pieces).
    Arguments,
    /// The session is in another database than the definition's, or in none.
    OtherDatabase,
    /// A session setting that changes what the procedure does is not at its default.
    Settings,
    /// The session's reads wait for the other members of the server's cluster.
    WaitsForCluster,
    /// A temporary table of one of the definition's names hides the real one, or has another form.
    TemporaryTables,
    /// The account may not execute the procedure: the server itself reports it.
    NoExecute,
    /// The procedure's definer lacks a right that its body needs, or does not exist: the server itself reports it.
    DefinerRights,
    /// The definition was not accepted on this server (`headwater serve` logs why).
    Definition,
    /// The definition's check has not ended yet.
    Unchecked,
    /// This session's account may not read the tables.
    LookupDenied,
    /// The server warns of the procedure's text at a session's first call, and only the server has the warnings.
    ParseWarnings,
    /// A lookup failed for another reason (a time limit, locks that Headwater cannot see, ...).
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

impl CallRelayReason {
    /// All reasons, in numeric order.
    pub const ALL: [CallRelayReason; 20] = [
        CallRelayReason::AutocommitOff,
        CallRelayReason::InTransaction,
        CallRelayReason::OneShotTransaction,
        CallRelayReason::TableLocks,
        CallRelayReason::Arguments,
        CallRelayReason::OtherDatabase,
        CallRelayReason::Settings,
        CallRelayReason::WaitsForCluster,
        CallRelayReason::TemporaryTables,
        CallRelayReason::NoExecute,
        CallRelayReason::DefinerRights,
        CallRelayReason::Definition,
        CallRelayReason::Unchecked,
        CallRelayReason::LookupDenied,
        CallRelayReason::ParseWarnings,
        CallRelayReason::LookupFailed,
        CallRelayReason::TooManyIds,
        CallRelayReason::WriteDenied,
        CallRelayReason::SwitchedOff,
        CallRelayReason::Distrusted,
    ];

    /// The label of the counter: lower case, words joined by `_`.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.explanation().0
    }

    /// The label, the meaning and the cure: a line of the table in `docs/counters.md`.
    #[must_use]
    pub fn explanation(self) -> (&'static str, &'static str, &'static str) {
        match self {
            CallRelayReason::AutocommitOff => (
                "autocommit_off",
                "autocommit is off",
                "[switch autocommit on](connecting.md#autocommit)",
            ),
            CallRelayReason::InTransaction => (
                "in_transaction",
                "a transaction is open",
                "[call outside transactions](connecting.md#autocommit)",
            ),
            CallRelayReason::OneShotTransaction => (
                "one_shot_transaction",
                "`SET TRANSACTION` awaits the next statement, or an unreadable statement may have set it",
                "call before `SET TRANSACTION`, or set the session's level",
            ),
            CallRelayReason::TableLocks => (
                "table_locks",
                "the session holds `LOCK TABLES`",
                "`UNLOCK TABLES` first",
            ),
            CallRelayReason::Arguments => (
                "arguments",
                "an argument may not be a number from 0 upwards",
                "pass an integer",
            ),
            CallRelayReason::OtherDatabase => (
                "other_database",
                "the current database is not the definition's",
                "connect with the database or send `USE`; `db.` is not enough",
            ),
            CallRelayReason::Settings => (
                "session_settings",
                "a [setting](calls.md#session-settings) changes what the procedure does",
                "keep defaults; `headwater check` names global deviations",
            ),
            CallRelayReason::WaitsForCluster => (
                "waits_for_cluster",
                "reads wait for other members (`group_replication_consistency`, `wsrep_sync_wait`)",
                "keep the default: [clusters](clusters.md)",
            ),
            CallRelayReason::TemporaryTables => (
                "temporary_tables",
                "a temporary table hides the timeline's, or has another form",
                "rename the temporary table",
            ),
            CallRelayReason::NoExecute => (
                "no_execute_privilege",
                "the account lacks `EXECUTE`",
                "`GRANT EXECUTE ON PROCEDURE ...`",
            ),
            CallRelayReason::DefinerRights => (
                "definer_rights",
                "the definer is gone or lacks rights",
                "grant the rights, or change the definer",
            ),
            CallRelayReason::Definition => (
                "definition_refused",
                "tables or procedures do not match the definition",
                "run `headwater check`",
            ),
            CallRelayReason::Unchecked => (
                "definition_unchecked",
                "the check is unfinished, or no account sees the procedures",
                "create a [service account](service-account.md), or raise `limits.check_ms`",
            ),
            CallRelayReason::LookupDenied => (
                "lookup_denied",
                "not in memory; the account cannot read the tables",
                "create a [service account](service-account.md), or grant `SELECT`",
            ),
            CallRelayReason::ParseWarnings => (
                "parse_warnings",
                "MySQL warns of the procedure's text at first calls",
                "remove the procedure's utf8mb3 collation, or do nothing",
            ),
            CallRelayReason::LookupFailed => (
                "lookup_failed",
                "a time limit or unseen locks; on [Spider](calls.md#spider) a changing follow list or duplicate id",
                "check the server's statement limits",
            ),
            CallRelayReason::TooManyIds => (
                "too_many_ids",
                "the answer exceeds `limits.pending_ids`; on [Spider](calls.md#spider), over 5,000 authors",
                "raise `limits.pending_ids`",
            ),
            CallRelayReason::WriteDenied => (
                "write_denied",
                "the result table was unwritable earlier",
                "`GRANT CREATE TEMPORARY TABLES`",
            ),
            CallRelayReason::SwitchedOff => (
                "switched_off",
                "`accelerate = false` or `--relay-only`",
                "set `accelerate = true`, and start without `--relay-only`",
            ),
            CallRelayReason::Distrusted => (
                "answer_differed",
                "the procedure answered otherwise",
                "[compare the logged answers, then reload](counters.md#after-answer_differed)",
            ),
        }
    }
}

impl From<LookupError> for CallRelayReason {
    fn from(unusable: LookupError) -> CallRelayReason {
        match unusable {
            LookupError::Malformed | LookupError::DuplicateRow | LookupError::FollowsChanging => {
                CallRelayReason::LookupFailed
            }
            LookupError::SeveralMoments => CallRelayReason::Settings,
            LookupError::TooManyIds => CallRelayReason::TooManyIds,
            LookupError::TemporaryTables => CallRelayReason::TemporaryTables,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed_decision::FeedRelayReason;

    /// A cure is also shown without its meaning, in `SHOW HEADWATER STATEMENTS` for example.
    #[test]
    fn a_cure_stands_by_itself() {
        let reasons = CallRelayReason::ALL
            .into_iter()
            .map(CallRelayReason::explanation);
        for (label, _, cure) in
            reasons.chain(FeedRelayReason::all().map(FeedRelayReason::explanation))
        {
            let mut words = cure.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let what = words.find(|word| ["it", "its", "them", "they", "one"].contains(word));
            assert_eq!(what, None, "{label}: {cure}");
        }
    }
}
