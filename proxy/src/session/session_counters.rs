//! Counters of the calls and follow-up SELECTs of all sessions. No decision reads them.
//!
//! The tables here and in [`headwater_session::call_relay_reason`] are the only list of their names and meanings; `docs/counters.md` repeats it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::call_counters::{CallAnswer, CallCounters};
use crate::counter_definition::{CounterDefinition, counter};
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_session::feed_decision::FeedRelayReason;
use headwater_timeline::definition::DefinitionId;

/// An outcome of a call or a follow-up SELECT, other than relayed for a [`CallRelayReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum SessionEvent {
    /// A client connected.
    Session,
    /// A call answered by Headwater.
    CallServed,
    /// A call answered from memory; one of those answered by Headwater.
    CallFromMemory,
    /// A call answered with the result of the server's procedure, which proves its definer's rights; one of those answered by Headwater.
    CallRunForRights,
    /// A call whose lookups were interrupted (KILL QUERY, a time limit): the client got that error.
    CallInterrupted,
    /// A follow-up SELECT answered with the ids in the statement.
    FollowUpVirtual,
    /// A follow-up SELECT answered from cached rows.
    FollowUpCached,
    /// A follow-up SELECT whose first answer was discarded: a message was gone, or it was too long to hold.
    FollowUpRetried,
    /// The result table was written for a follow-up SELECT.
    FollowUpWritten,
    /// The result table was written before another statement.
    TableWritten,
    /// The real procedure ran in place of writing the result table.
    ProcedureRedone,
    /// A feed's statement was narrowed to candidates.
    FeedNarrowed,
    /// A feed's statement was answered from cached rows.
    FeedCached,
    /// A feed's statement was sent unchanged, and its answer sampled.
    FeedSampled,
    /// A session ended because its client did not read its bytes in time.
    ClientStalled,
    /// A client left before it had logged in.
    LoginCut,
    /// A login broke off in a way that the server counts as an error of this host; one of those that were cut.
    LoginError,
}

/// Calls that the server's procedure answered: one counter for each [`CallRelayReason`], whose label is written in brackets.
pub const RELAYED: CounterDefinition = counter("calls_relayed", "calls relayed, by reason (below)");

/// Relayed SELECTs of feeds: one counter for each [`FeedRelayReason`].
pub const FEEDS_RELAYED: CounterDefinition = counter(
    "feeds_relayed",
    "feed SELECTs relayed, by [reason](feeds.md#why-a-statement-was-relayed)",
);

/// Counted while the server's log is followed, if there is memory.
pub const UNREADABLE: CounterDefinition = counter(
    "statements_unreadable",
    "unreadable binary log statements; each is logged and empties memory",
);

/// Counted as [`UNREADABLE`].
pub const CONTRADICTIONS: CounterDefinition = counter(
    "memory_contradictions",
    "rows that contradict the binary log (`sql_log_bin = 0`); each empties memory",
);

/// Counted as [`UNREADABLE`].
pub const DIFFERENT_ROWS: CounterDefinition = counter(
    "memory_different",
    "lists in memory that differed on a new primary or restarted server; none was used",
);

impl SessionEvent {
    /// Every event with its counter, in the order of their numbers.
    pub const ALL: [(SessionEvent, CounterDefinition); 17] = [
        (
            SessionEvent::Session,
            counter("sessions", "client connections"),
        ),
        (
            SessionEvent::CallServed,
            counter("calls_owned", "calls that Headwater answered"),
        ),
        (
            SessionEvent::CallFromMemory,
            counter("calls_from_memory", "of these, answered from memory"),
        ),
        (
            SessionEvent::CallRunForRights,
            counter(
                "calls_run_for_rights",
                "of `calls_owned`, run by the server to prove definer rights",
            ),
        ),
        (
            SessionEvent::CallInterrupted,
            counter(
                "calls_interrupted",
                "calls whose lookups were interrupted (`KILL QUERY`, time limit); clients got the error",
            ),
        ),
        (
            SessionEvent::FollowUpVirtual,
            counter(
                "tails_virtual",
                "follow-up queries answered without a result table",
            ),
        ),
        (
            SessionEvent::FollowUpCached,
            counter("tails_kept", "follow-up queries answered from cached rows"),
        ),
        (
            SessionEvent::FollowUpRetried,
            counter(
                "tails_retried",
                "first answers discarded: message gone, or `limits.tail_bytes` exceeded",
            ),
        ),
        (
            SessionEvent::FollowUpWritten,
            counter(
                "tails_written",
                "result tables written for follow-up queries",
            ),
        ),
        (
            SessionEvent::TableWritten,
            counter(
                "tables_written",
                "result tables written before other statements",
            ),
        ),
        (
            SessionEvent::ProcedureRedone,
            counter(
                "procedures_redone",
                "procedure runs because the result table was unwritable",
            ),
        ),
        (
            SessionEvent::FeedNarrowed,
            counter("feeds_narrowed", "feed SELECTs answered with candidates"),
        ),
        (
            SessionEvent::FeedCached,
            counter("feeds_kept", "feed SELECTs answered from cached rows"),
        ),
        (
            SessionEvent::FeedSampled,
            counter(
                "feeds_learned",
                "feed SELECTs relayed to learn columns and cost",
            ),
        ),
        (
            SessionEvent::ClientStalled,
            counter(
                "clients_stalled",
                "sessions closed because clients did not read (`limits.stalled_ms`, `limits.last_words_ms`)",
            ),
        ),
        (
            SessionEvent::LoginCut,
            counter("logins_cut", "logins abandoned or refused"),
        ),
        (
            SessionEvent::LoginError,
            counter(
                "login_errors",
                "of these, counted by the server towards `max_connect_errors`",
            ),
        ),
    ];
}

/// Counters since the start of the process.
#[derive(Debug)]
pub struct SessionCounters {
    events: [AtomicU64; SessionEvent::ALL.len()],
    calls: CallCounters,
    feeds_relayed: [AtomicU64; FeedRelayReason::COUNT],
}

impl Default for SessionCounters {
    fn default() -> SessionCounters {
        SessionCounters {
            events: Default::default(),
            calls: CallCounters::default(),
            feeds_relayed: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl SessionCounters {
    /// The counters of calls, by definition.
    #[must_use]
    pub fn calls(&self) -> &CallCounters {
        &self.calls
    }

    /// Counts an event.
    pub fn add(&self, event: SessionEvent) {
        if let Some(counter) = self.events.get(event as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a served call.
    pub fn answered(&self, definition: Option<DefinitionId>, answer: CallAnswer) {
        self.calls.answered(definition, answer);
        match answer {
            CallAnswer::Interrupted => return self.add(SessionEvent::CallInterrupted),
            CallAnswer::Memory => self.add(SessionEvent::CallFromMemory),
            CallAnswer::Lookups | CallAnswer::Procedure => {}
        }
        self.add(SessionEvent::CallServed);
    }

    /// Counts a relayed call, by its reason.
    pub fn relayed(&self, definition: Option<DefinitionId>, reason: CallRelayReason) {
        self.calls.relayed(definition, reason);
    }

    /// Counts a feed's relayed statement, by its reason.
    pub fn feed_relayed(&self, why: FeedRelayReason) {
        let mut counters = FeedRelayReason::all().zip(&self.feeds_relayed);
        if let Some((_, counter)) = counters.find(|(reason, _)| *reason == why) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Numbers of relayed feed statements, in the order of [`FeedRelayReason::all`].
    #[must_use]
    pub fn feeds_relayed(&self) -> [u64; FeedRelayReason::COUNT] {
        std::array::from_fn(|at| {
            let counter = self.feeds_relayed.get(at);
            counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
        })
    }

    /// The count of an event.
    #[must_use]
    pub fn count_of(&self, event: SessionEvent) -> u64 {
        self.events
            .get(event as usize)
            .map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Every counter as `name=value`, without zeros except for sessions and served calls.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut line = String::new();
        for (event, counter) in SessionEvent::ALL {
            let value = self.count_of(event);
            if value > 0 || matches!(event, SessionEvent::Session | SessionEvent::CallServed) {
                let _ = write!(line, "{}={value} ", counter.name);
            }
        }
        for reason in CallRelayReason::ALL {
            let value = self.calls.relayed_for(reason);
            if value > 0 {
                let _ = write!(line, "{}[{}]={value} ", RELAYED.name, reason.label());
            }
        }
        for (why, counter) in FeedRelayReason::all().zip(&self.feeds_relayed) {
            let value = counter.load(Ordering::Relaxed);
            if value > 0 {
                let _ = write!(line, "{}[{}]={value} ", FEEDS_RELAYED.name, why.label());
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_and_reason_has_the_place_of_its_number() {
        for (place, (event, _)) in SessionEvent::ALL.iter().enumerate() {
            assert_eq!(*event as usize, place);
        }
        for (place, reason) in CallRelayReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
    }

    #[test]
    fn the_summary_names_what_was_counted() {
        let counts = SessionCounters::default();
        counts.add(SessionEvent::CallServed);
        counts.relayed(None, CallRelayReason::InTransaction);
        assert_eq!(
            counts.summary(),
            "sessions=0 calls_owned=1 calls_relayed[in_transaction]=1"
        );
    }
}
