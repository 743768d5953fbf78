//! Why a feed's statement was relayed: one name per reason, for counters, logs and readers.

use headwater_feed::NarrowingRefusal;
use headwater_feed::template::RetirementReason;

use crate::call_relay_reason::CallRelayReason;

/// Why a feed's statement was relayed unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeedRelayReason {
    /// Its text.
    Text(NarrowingRefusal),
    /// The session's state.
    Session(CallRelayReason),
    /// The way it is executed.
    Execution,
    /// It is one of several statements that cannot be separated, or an earlier one has effects.
    Several,
    /// Its template is new: its tables are being checked.
    New,
    /// Its feed is not in the settings.
    Suggested,
    /// The server's log is not followed, so memory answers no request.
    LogSuspended,
    /// The feed's check has not ended.
    Unchecked,
    /// The feed's check found an obstacle.
    Refused,
    /// A table that it names does not exist, as far as the service account can see.
    Unseen,
    /// Its template was retired for what was observed.
    Retired(RetirementReason),
    /// The server's column definitions for it are uncertain.
    ColumnsUnsure,
    /// The server's own plan costs less.
    Cheaper,
    /// It names more authors than `limits.list_authors`, or needs rows beyond `limits.candidates`.
    TooMany,
    /// Memory does not have its authors' messages, or not in time.
    NotInMemory,
    /// Its feed is ordered by a TIMESTAMP, or it compares one, and the session's time zone is not a fixed offset.
    TimeZone,
    /// Messages of its page share a key, and nothing else orders them.
    Ties,
    /// So few messages pass its filter that `limits.candidates` did not suffice.
    Filtered,
    /// Its data changed more than once while it ran, or since its transaction began to read.
    Changed,
    /// A narrowed statement failed, warned or returned too much.
    Failed,
}

impl FeedRelayReason {
    /// All reasons other than those of texts and sessions.
    pub const OTHERS: [FeedRelayReason; 20] = [
        FeedRelayReason::Execution,
        FeedRelayReason::Several,
        FeedRelayReason::New,
        FeedRelayReason::Suggested,
        FeedRelayReason::LogSuspended,
        FeedRelayReason::Unchecked,
        FeedRelayReason::Refused,
        FeedRelayReason::Unseen,
        FeedRelayReason::Retired(RetirementReason::Warns),
        FeedRelayReason::Retired(RetirementReason::Columns),
        FeedRelayReason::Retired(RetirementReason::TooLong),
        FeedRelayReason::ColumnsUnsure,
        FeedRelayReason::Cheaper,
        FeedRelayReason::TooMany,
        FeedRelayReason::NotInMemory,
        FeedRelayReason::TimeZone,
        FeedRelayReason::Ties,
        FeedRelayReason::Filtered,
        FeedRelayReason::Changed,
        FeedRelayReason::Failed,
    ];

    /// The session reasons that can bar a feed.
    pub const OF_SESSIONS: [CallRelayReason; 10] = [
        CallRelayReason::InTransaction,
        CallRelayReason::OneShotTransaction,
        CallRelayReason::TableLocks,
        CallRelayReason::OtherDatabase,
        CallRelayReason::Settings,
        CallRelayReason::WaitsForCluster,
        CallRelayReason::TemporaryTables,
        CallRelayReason::LookupDenied,
        CallRelayReason::LookupFailed,
        CallRelayReason::SwitchedOff,
    ];

    /// The number of reasons.
    pub const COUNT: usize = NarrowingRefusal::ALL.len()
        + FeedRelayReason::OF_SESSIONS.len()
        + FeedRelayReason::OTHERS.len();

    /// All of them.
    pub fn all() -> impl Iterator<Item = FeedRelayReason> {
        let texts = NarrowingRefusal::ALL.into_iter().map(FeedRelayReason::Text);
        let sessions = FeedRelayReason::OF_SESSIONS
            .into_iter()
            .map(FeedRelayReason::Session);
        texts.chain(sessions).chain(FeedRelayReason::OTHERS)
    }

    /// True where no statement of the feed is served from memory, in any session.
    #[must_use]
    pub fn is_of_feed(self) -> bool {
        matches!(
            self,
            FeedRelayReason::LogSuspended
                | FeedRelayReason::Unchecked
                | FeedRelayReason::Refused
                | FeedRelayReason::Unseen
        )
    }

    /// The label of its counter: lower case, words joined by `_`.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.explanation().0
    }

    /// The label, the meaning and the cure: a line of the table in `docs/feeds.md`.
    #[must_use]
    pub fn explanation(self) -> (&'static str, &'static str, &'static str) {
        match self {
            FeedRelayReason::Text(refused) => of_text(refused),
            FeedRelayReason::Session(reason) => of_session(reason),
            FeedRelayReason::Execution => (
                "execution",
                "it is prepared or executed in a way that cannot be narrowed",
                "see [prepared statements](feeds.md#prepared-statements)",
            ),
            FeedRelayReason::Several => (
                "several",
                "an earlier statement in the command does more than read; or the command has attributes or is compressed",
                "send the statement first or alone",
            ),
            FeedRelayReason::New => (
                "new_template",
                "its form is new, or its tables changed",
                "if the counter keeps growing, raise `limits.templates`",
            ),
            FeedRelayReason::Suggested => (
                "suggested",
                "no `[[feed]]` section describes its feed",
                "set `feeds.auto = \"on\"`, or add the section that the log shows",
            ),
            FeedRelayReason::LogSuspended => (
                "log_not_followed",
                "Headwater does not follow the binary log",
                "see the log and `headwater check`",
            ),
            FeedRelayReason::Refused => (
                "feed_refused",
                "the feed's check failed",
                "run the statements in the log and `SHOW HEADWATER FEEDS`",
            ),
            FeedRelayReason::Unseen => (
                "table_unseen",
                "a table does not exist, or the service account cannot see it",
                "run the `GRANT SELECT` from the log",
            ),
            FeedRelayReason::Unchecked => (
                "feed_unchecked",
                "the feed's check has not ended, or the service account cannot examine the tables",
                "see the log and the [service account](service-account.md)",
            ),
            FeedRelayReason::Retired(RetirementReason::Warns) => (
                "warns",
                "the server warns about statements of this form",
                "cure what `SHOW WARNINGS` reports",
            ),
            FeedRelayReason::Retired(RetirementReason::Columns) => (
                "columns_differ",
                "narrowing changes its column definitions beyond key flags",
                "please report the statement",
            ),
            FeedRelayReason::Retired(RetirementReason::TooLong) => (
                "long_answer",
                "an answer was longer than `limits.tail_bytes`",
                "raise `limits.tail_bytes`, or select less",
            ),
            FeedRelayReason::ColumnsUnsure => (
                "columns_unsure",
                "its column definitions follow the server's plan, which EXPLAIN does not show; or the statement is prepared",
                "see [what follows the plan](feeds.md#why-the-answer-is-the-servers)",
            ),
            FeedRelayReason::Cheaper => (
                "cheaper_directly",
                "relaying statements of this form costs no more",
                "nothing",
            ),
            FeedRelayReason::TooMany => (
                "too_many",
                "it names more authors than `limits.list_authors`, or wants rows beyond `limits.candidates`",
                "raise `limits.list_authors` or `limits.candidates`, or page by cursor",
            ),
            FeedRelayReason::NotInMemory => (
                "not_in_memory",
                "memory lacks its authors' messages, even after `index.wait_ms`",
                "raise `index.memory_bytes`, or set `index.preload`",
            ),
            FeedRelayReason::TimeZone => (
                "time_zone",
                "it uses a TIMESTAMP, and the session's time zone has an hour that comes twice",
                "`SET time_zone = '+00:00'` or another offset",
            ),
            FeedRelayReason::Ties => (
                "ties",
                "messages on or next to its page share a key, so the server chooses their order",
                "add the id: `ORDER BY created_at DESC, id DESC`, or set `ties = \"id\"` in the `[[feed]]` section",
            ),
            FeedRelayReason::Filtered => (
                "filtered",
                "too few messages match within `limits.candidates`",
                "nothing",
            ),
            FeedRelayReason::Changed => (
                "changed_meanwhile",
                "its authors' messages or the reader's follows changed, repeatedly or since its transaction began",
                "keep transactions short",
            ),
            FeedRelayReason::Failed => (
                "narrowed_failed",
                "the narrowed statement failed, warned, or exceeded `limits.tail_bytes`",
                "check the server's statement limits",
            ),
        }
    }
}

fn of_text(refusal: NarrowingRefusal) -> (&'static str, &'static str, &'static str) {
    let (means, cure) = match refusal {
        NarrowingRefusal::NotUnderstood => (
            "servers or settings may read part of it differently",
            "write the statement plainly: [which statements](feeds.md#which-statements)",
        ),
        NarrowingRefusal::NotPlain => (
            "arithmetic, variables or functions may fail or warn on unread rows",
            "use [functions that cannot fail](feeds.md#functions), no arithmetic or variables",
        ),
        NarrowingRefusal::Locks => ("it locks rows or writes them elsewhere", "nothing"),
        NarrowingRefusal::Hints => (
            "it has hints or `SQL_CALC_FOUND_ROWS`",
            "remove hints and `SQL_CALC_FOUND_ROWS`",
        ),
        NarrowingRefusal::Structure => (
            "it combines SELECTs in a way that is not read, or has HAVING or a window",
            "combine SELECTs as [described](feeds.md#which-statements), or send the page alone",
        ),
        NarrowingRefusal::Grouped => ("it groups, but not by the message id", "nothing"),
        NarrowingRefusal::Order => (
            "it is not in the feed's order, newest first",
            "order by `message.order`, each DESC",
        ),
        NarrowingRefusal::Limit => (
            "it has no LIMIT that is a plain number",
            "add LIMIT and a number",
        ),
        NarrowingRefusal::Authors => (
            "nothing says whose messages it wants",
            "for a feed, set `[feed.follow]`",
        ),
        NarrowingRefusal::Joins => (
            "a join may return several rows for a message",
            "join by a unique key, use EXISTS, or set `ties = \"id\"`",
        ),
        NarrowingRefusal::Types => (
            "it compares different types, or writes a number or date unusually",
            "pass numbers as numbers, dates as `2026-01-31 10:00:00`",
        ),
        NarrowingRefusal::Names => (
            "a name is ambiguous, from another database, or hidden from the service account",
            "`GRANT SELECT` on the tables to the service account",
        ),
        NarrowingRefusal::Count => (
            "it counts something else than the messages of some authors",
            "count as [described](feeds.md#counts), or nothing",
        ),
    };
    (refusal.label(), means, cure)
}

fn of_session(reason: CallRelayReason) -> (&'static str, &'static str, &'static str) {
    let (label, means, cure) = reason.explanation();
    match reason {
        CallRelayReason::TableLocks => (
            label,
            "the session holds `LOCK TABLES`",
            "read the feed outside `LOCK TABLES`",
        ),
        CallRelayReason::InTransaction => (
            label,
            "the open transaction has done more than read, or is SERIALIZABLE",
            "read the feed before writing",
        ),
        CallRelayReason::OneShotTransaction => (
            label,
            "`SET TRANSACTION` is pending, or an unreadable statement may have set it",
            "read the feed first, or set the session's level; COMMIT ends the doubt",
        ),
        CallRelayReason::OtherDatabase => (
            label,
            "the session has no database, just changed it, or prepared the statement in another",
            "connect with the database",
        ),
        CallRelayReason::Settings => (
            label,
            "a session setting changes what the statement does",
            "keep the [default settings](calls.md#session-settings)",
        ),
        CallRelayReason::TemporaryTables => (
            label,
            "a temporary table hides a table of the statement",
            "rename the temporary table",
        ),
        CallRelayReason::LookupDenied => (
            label,
            "the account may not read a table or the author column",
            "`GRANT SELECT` to the session's account",
        ),
        CallRelayReason::LookupFailed => (
            label,
            "a query about the session failed",
            "check the server's statement limits",
        ),
        CallRelayReason::WaitsForCluster => (
            label,
            "the session's reads wait for other cluster members (`group_replication_consistency`, `wsrep_sync_wait`)",
            "keep the default: [clusters](clusters.md)",
        ),
        _ => (label, means, cure),
    }
}

impl From<NarrowingRefusal> for FeedRelayReason {
    fn from(refusal: NarrowingRefusal) -> FeedRelayReason {
        FeedRelayReason::Text(refusal)
    }
}

impl From<CallRelayReason> for FeedRelayReason {
    fn from(reason: CallRelayReason) -> FeedRelayReason {
        FeedRelayReason::Session(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn labels_are_of_one_kind_and_differ() {
        let labels: BTreeSet<&str> = FeedRelayReason::all().map(FeedRelayReason::label).collect();
        assert_eq!(labels.len(), FeedRelayReason::all().count());
        let plain = |label: &&str| {
            let mut letters = label.bytes();
            letters.all(|letter| letter.is_ascii_lowercase() || letter == b'_')
        };
        assert!(labels.iter().all(plain));
    }
}
