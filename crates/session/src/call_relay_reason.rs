//! Why a call was not answered by Headwater: one name each, for counters, logs and the reader.

use headwater_lookup::LookupError;

/// Why the server's own procedure ran.
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
    /// An argument is not certainly a number (NULL, a fraction, a value that was sent in pieces).
    Arguments,
    /// The session is in another database than the definition's, or in none.
    OtherDatabase,
    /// A session setting that changes what the procedure does is not at its default.
    Settings,
    /// The session's reads wait for the other members of the server's cluster.
    WaitsForCluster,
    /// A temporary table of one of the definition's names hides the real one, or has another form.
    TemporaryTables,
    /// The account may not execute the procedure: the server says so itself.
    NoExecute,
    /// The procedure's definer lacks a right that its body needs, or is gone: the server says so itself.
    DefinerRights,
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

impl CallRelayReason {
    /// Every reason, in the order of their numbers.
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

    /// Its label, what it means, and what to do: as a line of the table in `docs/counters.md`.
    #[must_use]
    pub fn explanation(self) -> (&'static str, &'static str, &'static str) {
        match self {
            CallRelayReason::AutocommitOff => (
                "autocommit_off",
                "the session has autocommit off",
                "switch autocommit on: [how](connecting.md#autocommit)",
            ),
            CallRelayReason::InTransaction => (
                "in_transaction",
                "a transaction is open",
                "call outside transactions; see [autocommit](connecting.md#autocommit)",
            ),
            CallRelayReason::OneShotTransaction => (
                "one_shot_transaction",
                "a `SET TRANSACTION` waits for the next statement, or a statement that Headwater could not read may have set one",
                "call before `SET TRANSACTION`, or set the level for the session",
            ),
            CallRelayReason::TableLocks => (
                "table_locks",
                "the session holds `LOCK TABLES`",
                "call before `LOCK TABLES`, or after `UNLOCK TABLES`",
            ),
            CallRelayReason::Arguments => (
                "arguments",
                "a parameter or a user variable is not certainly a number from 0 upwards",
                "pass an integer",
            ),
            CallRelayReason::OtherDatabase => (
                "other_database",
                "the session is in another database than the definition's, or in none",
                "connect with the database, or send `USE` before the call; `db.` in front of the procedure is not enough",
            ),
            CallRelayReason::Settings => (
                "session_settings",
                "a session setting changes what the procedure does",
                "leave the session's settings at their defaults; `headwater check` names those with which sessions begin",
            ),
            CallRelayReason::WaitsForCluster => (
                "waits_for_cluster",
                "the session's reads wait for the other members of the cluster (`group_replication_consistency` is `BEFORE` or `BEFORE_AND_AFTER`; `wsrep_sync_wait` has 1 in it)",
                "leave that setting at the default where reads need not wait: [clusters](clusters.md)",
            ),
            CallRelayReason::TemporaryTables => (
                "temporary_tables",
                "a temporary table hides a table of the timeline, or has another form",
                "name the temporary table otherwise",
            ),
            CallRelayReason::NoExecute => (
                "no_execute_privilege",
                "the account may not execute the procedure",
                "`GRANT EXECUTE ON PROCEDURE ...`",
            ),
            CallRelayReason::DefinerRights => (
                "definer_rights",
                "the procedure's definer may not do what the procedure does, or is gone; the server says the same",
                "give the definer the rights, or create the procedure with another definer",
            ),
            CallRelayReason::Definition => (
                "definition_refused",
                "the check found tables or procedures that are not as the definition says",
                "run `headwater check`; the log says the same",
            ),
            CallRelayReason::Unchecked => (
                "definition_unchecked",
                "the check has not ended yet, or no account may see the procedures' bodies",
                "with a service account: wait; where the counter grows, raise `limits.check_ms`. Without: [create a service account](service-account.md)",
            ),
            CallRelayReason::LookupDenied => (
                "lookup_denied",
                "the account may not read the tables, and memory could not answer",
                "set up the [service account](service-account.md), or grant `SELECT`",
            ),
            CallRelayReason::ParseWarnings => (
                "parse_warnings",
                "MySQL warns of the procedure's text at a session's first call",
                "take the utf8mb3 collation out of the procedure, or do nothing: once a session",
            ),
            CallRelayReason::LookupFailed => (
                "lookup_failed",
                "a lookup failed in another way (a time limit, locks out of sight; on [Spider](lookups.md#spider) a follow list that changes all the time, or an id that is there twice)",
                "look at the server's limits on statements",
            ),
            CallRelayReason::TooManyIds => (
                "too_many_ids",
                "the answer has more ids than `limits.pending_ids`; or on [Spider](lookups.md#spider) a reader follows more than 5,000 authors",
                "raise `limits.pending_ids`",
            ),
            CallRelayReason::WriteDenied => (
                "write_denied",
                "the result table could not be written earlier in this session",
                "`GRANT CREATE TEMPORARY TABLES` on the database",
            ),
            CallRelayReason::SwitchedOff => (
                "switched_off",
                "`accelerate = false` or `--relay-only`",
                "set `accelerate = true`, and start without `--relay-only`",
            ),
            CallRelayReason::Distrusted => (
                "answer_differed",
                "a compared answer differed from the procedure's",
                "read both answers in the log; see below; then send SIGHUP",
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

    /// A cure is told without what it means: in `SHOW HEADWATER STATEMENTS`, for example.
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
