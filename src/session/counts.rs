//! What became of the calls and tails of all sessions: counters only, read by nobody who decides.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::reason::Reason;

/// What became of a call or a tail that was not relayed for a [`Reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// A client connected.
    Session,
    /// A call answered by Headwater.
    CallOwned,
    /// A call answered from memory; one of those answered by Headwater.
    CallFromMemory,
    /// A call whose lookups were interrupted (KILL QUERY, a time limit): the client got that error.
    CallInterrupted,
    /// A tail answered with the ids in the statement.
    TailVirtual,
    /// A tail whose first answer was put aside: a message had gone, or it was too long to hold.
    TailRetried,
    /// The result table was written for a tail.
    TailWritten,
    /// The result table was written before another statement.
    TableWritten,
    /// The real procedure ran in place of writing the result table.
    ProcedureRedone,
}

impl Event {
    const ALL: [(Event, &'static str); 9] = [
        (Event::Session, "sessions"),
        (Event::CallOwned, "calls_owned"),
        (Event::CallFromMemory, "calls_from_memory"),
        (Event::CallInterrupted, "calls_interrupted"),
        (Event::TailVirtual, "tails_virtual"),
        (Event::TailRetried, "tails_retried"),
        (Event::TailWritten, "tails_written"),
        (Event::TableWritten, "tables_written"),
        (Event::ProcedureRedone, "procedures_redone"),
    ];
}

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct Counts {
    events: [AtomicU64; Event::ALL.len()],
    relayed: [AtomicU64; Reason::ALL.len()],
}

impl Counts {
    /// Counts an event.
    pub fn add(&self, event: Event) {
        if let Some(counter) = self.events.get(event as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a call that the server's procedure answered, by its reason.
    pub fn relayed(&self, reason: Reason) {
        if let Some(counter) = self.relayed.get(reason as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often an event was counted.
    #[must_use]
    pub fn of(&self, event: Event) -> u64 {
        self.events
            .get(event as usize)
            .map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Every counter as `name=value`, zeros left out but for sessions and owned calls.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut line = String::new();
        for (event, name) in Event::ALL {
            let value = self.of(event);
            if value > 0 || matches!(event, Event::Session | Event::CallOwned) {
                let _ = write!(line, "{name}={value} ");
            }
        }
        for (reason, counter) in Reason::ALL.iter().zip(&self.relayed) {
            let value = counter.load(Ordering::Relaxed);
            if value > 0 {
                let _ = write!(line, "calls_relayed[{}]={value} ", reason.label());
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
        for (place, (event, _)) in Event::ALL.iter().enumerate() {
            assert_eq!(*event as usize, place);
        }
        for (place, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
    }

    #[test]
    fn the_summary_names_what_was_counted() {
        let counts = Counts::default();
        counts.add(Event::CallOwned);
        counts.relayed(Reason::InTransaction);
        assert_eq!(
            counts.summary(),
            "sessions=0 calls_owned=1 calls_relayed[in_transaction]=1"
        );
    }
}
