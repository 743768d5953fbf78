//! Why a feed's statement was relayed: one name each, for counters, logs and the reader.

use headwater_feed::NarrowingRefusal;
use headwater_feed::template::RetirementReason;

use crate::call_relay_reason::CallRelayReason;

/// Why a statement of a feed went to the server as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeedRelayReason {
    /// What its text says.
    Text(NarrowingRefusal),
    /// What the session is in.
    Session(CallRelayReason),
    /// How it is executed.
    Execution,
    /// It is one of several statements that cannot be told apart, or one before it acts.
    Several,
    /// Its template was not met before: its tables are looked at.
    New,
    /// It is one of a feed that the settings do not name.
    Suggested,
    /// The server's log is not followed, so that memory answers nothing.
    LogSuspended,
    /// The feed's check has not ended.
    Unchecked,
    /// The feed's check found something in the way.
    Refused,
    /// A table that it names is not there, as far as the service account may see.
    Unseen,
    /// What was seen of its template bars it.
    Retired(RetirementReason),
    /// How the server describes its columns is not certain.
    ColumnsUnsure,
    /// The server's own way costs less.
    Cheaper,
    /// It names more authors than `limits.list_authors`, or wants rows beyond `limits.candidates`.
    TooMany,
    /// Memory has not got its authors' messages, or not in time.
    NotInMemory,
    /// Its feed is ordered by a TIMESTAMP, or it compares one, and the session's time zone is no offset.
    TimeZone,
    /// Messages of its page share a key, and nothing else orders them.
    Ties,
    /// Its filter lets so few messages pass that `limits.candidates` did not suffice.
    Filtered,
    /// Something changed about it while it was asked, more than once, or since its transaction began to read.
    Changed,
    /// A narrowed answer failed, warned or was too long.
    Failed,
}

impl FeedRelayReason {
    /// Every one, but for what texts and sessions say.
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

    /// What a session can be in the way of a feed by.
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

    /// How many there are.
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

    /// True where no statement of the feed is answered from memory, whatever session it comes in.
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

    /// Its label, what it means, and what to do: as a line of the table in `docs/feeds.md`.
    #[must_use]
    pub fn explanation(self) -> (&'static str, &'static str, &'static str) {
        match self {
            FeedRelayReason::Text(refused) => of_text(refused),
            FeedRelayReason::Session(reason) => of_session(reason),
            FeedRelayReason::Execution => (
                "execution",
                "it was prepared under other settings, or is executed with a cursor, long data or attributes, or with variables of which one is neither a whole number nor plain text, or on MySQL with text that is beyond ASCII or was a number or time before, or with a number of more than 15 digits that was another kind before, or has a SELECT in FROM, or its client keeps columns of which more was told than Headwater keeps",
                "prepare the statement behind `SET`",
            ),
            FeedRelayReason::Several => (
                "several",
                "it is one of several statements in a command, and one before it does more than read; or the command has attributes, or is compressed",
                "send the statement first, or alone",
            ),
            FeedRelayReason::New => (
                "new_template",
                "no statement of its form came before, or the tables have changed since: they are looked at",
                "nothing; where the counter grows all the time, raise `limits.templates`",
            ),
            FeedRelayReason::Suggested => (
                "suggested",
                "it is one of a feed that the settings do not name",
                "`feeds.auto = \"on\"`, or paste the section that the log has into the settings file",
            ),
            FeedRelayReason::LogSuspended => (
                "log_not_followed",
                "the server's log is not followed, so that memory answers nothing",
                "what the log says, and `headwater check`",
            ),
            FeedRelayReason::Refused => (
                "feed_refused",
                "the feed's check found something in the way",
                "mend what the log and `SHOW HEADWATER FEEDS` name; both tell the statements",
            ),
            FeedRelayReason::Unseen => (
                "table_unseen",
                "it names a table that is not there, as far as the service account may see",
                "`GRANT SELECT` on the table to the service account: the log has the statement",
            ),
            FeedRelayReason::Unchecked => (
                "feed_unchecked",
                "the feed's check has not ended yet, or the service account cannot look at the tables",
                "look at the log; [the service account](service-account.md)",
            ),
            FeedRelayReason::Retired(RetirementReason::Warns) => (
                "warns",
                "the server warns of statements of this form",
                "mend what the server warns of: `SHOW WARNINGS` behind the statement",
            ),
            FeedRelayReason::Retired(RetirementReason::Columns) => (
                "columns_differ",
                "the server describes the columns of a narrowed statement in another way, not only their keys",
                "nothing; please report the statement",
            ),
            FeedRelayReason::Retired(RetirementReason::TooLong) => (
                "long_answer",
                "an answer was longer than `limits.tail_bytes`",
                "raise `limits.tail_bytes`, or ask for fewer rows or columns",
            ),
            FeedRelayReason::ColumnsUnsure => (
                "columns_unsure",
                "how the server describes the columns follows its plan, since `feeds.columns` is `exact`, or by what the statement shows; and that plan is not known by EXPLAIN, or it is prepared",
                "see [what follows the plan](feeds.md#why-the-answer-is-the-servers); `feeds.columns = \"learned\"`, if a client does not mind key flags",
            ),
            FeedRelayReason::Cheaper => (
                "cheaper_directly",
                "statements of this form, with about as many authors, take no longer as they are",
                "nothing",
            ),
            FeedRelayReason::TooMany => (
                "too_many",
                "it names more authors than `limits.list_authors`, or wants rows beyond `limits.candidates`",
                "raise `limits.list_authors` or `limits.candidates`; page by a cursor in place of OFFSET",
            ),
            FeedRelayReason::NotInMemory => (
                "not_in_memory",
                "memory has not got the messages of its authors, or not within `index.wait_ms`",
                "raise `index.memory_bytes`, or set `index.preload`",
            ),
            FeedRelayReason::TimeZone => (
                "time_zone",
                "its feed is ordered by a TIMESTAMP, or it compares one, and the session's time zone has an hour that comes twice: what comes first in it, or passes, is the server's choice",
                "`SET time_zone = '+00:00'`, or another offset, or order by a DATETIME",
            ),
            FeedRelayReason::Ties => (
                "ties",
                "messages on its page, or beside it, have the same value of the one column that orders them: which comes first is the server's choice",
                "order by the id behind that column: `ORDER BY created_at DESC, id DESC`",
            ),
            FeedRelayReason::Filtered => (
                "filtered",
                "so few messages pass its conditions that `limits.candidates` did not suffice",
                "nothing",
            ),
            FeedRelayReason::Changed => (
                "changed_meanwhile",
                "its authors' messages, or whom the reader follows, changed while it was asked, several times, or since its transaction began",
                "nothing; where transactions are long, commit before",
            ),
            FeedRelayReason::Failed => (
                "narrowed_failed",
                "the narrowed statement failed, warned, or its answer was longer than `limits.tail_bytes`",
                "look at the server's limits on statements",
            ),
        }
    }
}

fn of_text(refused: NarrowingRefusal) -> (&'static str, &'static str, &'static str) {
    let (means, cure) = match refused {
        NarrowingRefusal::NotUnderstood => (
            "a part of it is not read alike by all servers and settings",
            "write the statement plainly: [which statements](feeds.md#which-statements)",
        ),
        NarrowingRefusal::NotPlain => (
            "it has arithmetic, variables or functions, which may fail or warn for rows that are not read then",
            "leave arithmetic, variables and functions out of the statement",
        ),
        NarrowingRefusal::Locks => ("it locks rows, or writes them elsewhere", "nothing"),
        NarrowingRefusal::Hints => (
            "it has hints, or asks for more than rows (`SQL_CALC_FOUND_ROWS`)",
            "leave hints and `SQL_CALC_FOUND_ROWS` out",
        ),
        NarrowingRefusal::Structure => (
            "it is made of several SELECTs, or has HAVING or a window",
            "nothing",
        ),
        NarrowingRefusal::Grouped => (
            "it groups by something else than the message's id",
            "nothing",
        ),
        NarrowingRefusal::Order => (
            "it is not ordered as the feed is, newest first",
            "order by `message.order` of the feed, each DESC",
        ),
        NarrowingRefusal::Limit => (
            "it has no LIMIT that is a plain number",
            "end the statement with LIMIT and a number",
        ),
        NarrowingRefusal::Authors => (
            "nothing in it says whose messages are wanted",
            "nothing, where the statement is no feed's; else `[feed.follow]`",
        ),
        NarrowingRefusal::Joins => (
            "a join in it may give several rows for a message",
            "join by a unique key, or use EXISTS",
        ),
        NarrowingRefusal::Types => (
            "it compares values of different kinds, or a number or date that is not written plainly",
            "pass numbers as numbers, dates as `2026-01-31 10:00:00`",
        ),
        NarrowingRefusal::Names => (
            "a name in it is ambiguous, another database's, or of a table that the service account may not see",
            "`GRANT SELECT` on the statement's tables to the service account",
        ),
    };
    (refused.label(), means, cure)
}

fn of_session(reason: CallRelayReason) -> (&'static str, &'static str, &'static str) {
    let (label, means, cure) = reason.explanation();
    match reason {
        CallRelayReason::TableLocks => (
            label,
            means,
            "ask before `LOCK TABLES`, or after `UNLOCK TABLES`",
        ),
        CallRelayReason::InTransaction => (
            label,
            "the transaction that is open has done more than read, or reads under SERIALIZABLE",
            "ask before the transaction writes",
        ),
        CallRelayReason::OneShotTransaction => (
            label,
            means,
            "ask before `SET TRANSACTION`, or set the level for the session; COMMIT ends the doubt",
        ),
        CallRelayReason::OtherDatabase => (
            label,
            "the session has no current database, or another one than it had a moment ago, or where the statement was prepared",
            "connect with the database",
        ),
        CallRelayReason::Settings => (
            label,
            "a session setting changes what a statement does",
            "leave the session's settings at their defaults: [which](calls.md#session-settings)",
        ),
        CallRelayReason::TemporaryTables => (
            label,
            "a temporary table hides a table of the statement",
            "name the temporary table otherwise",
        ),
        CallRelayReason::LookupDenied => (
            label,
            "the account may not read a table of the statement, or the column of authors",
            "`GRANT SELECT` on the table to the session's account",
        ),
        CallRelayReason::LookupFailed => (
            label,
            "a question about the session failed",
            "look at the server's limits on statements",
        ),
        _ => (label, means, cure),
    }
}

impl From<NarrowingRefusal> for FeedRelayReason {
    fn from(refused: NarrowingRefusal) -> FeedRelayReason {
        FeedRelayReason::Text(refused)
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
