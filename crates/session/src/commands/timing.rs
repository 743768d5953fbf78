//! Times relayed commands from their last byte to the end of their reply, only where a consumer wants it.

use std::time::{Duration, Instant};

use headwater_wire::command::Command;
use headwater_wire::reply::ReplyOutcome;

use super::CommandPhase;
use super::in_flight::InFlightCommand;

#[derive(Debug)]
pub(super) struct CommandTiming {
    received: Instant,
    sent: Option<Instant>,
    details: Option<RelayDetails>,
}

/// Details of a relayed command.
#[derive(Debug)]
pub struct RelayDetails {
    /// The kind of command.
    pub kind: &'static str,
    /// Why it was relayed; empty: Headwater answers none of its kind.
    pub reason: &'static str,
    /// Its definition's or feed's name.
    pub owner: Option<String>,
    /// The digest of its text's form.
    pub digest: Option<u64>,
    /// How long internal queries took before it was relayed.
    pub query_time: Duration,
}

/// A relayed command that has ended.
#[derive(Debug)]
pub struct CompletedCommand {
    /// The command.
    pub command: Command,
    /// When its last byte had come.
    pub received: Instant,
    /// When it went to the server.
    pub sent: Option<Instant>,
    /// How many rows came back.
    pub rows: u64,
    /// The server's error, if it ended with one.
    pub error: Option<u16>,
    /// Its details, if they were recorded.
    pub details: Option<RelayDetails>,
}

impl CommandPhase {
    /// Bytes of the client came now: commands are timed from here on.
    pub fn received(&mut self, now: Instant) {
        self.received_at = Some(now);
        // More of a long command, or of a local file that the server requested.
        let passing = self.partial_packet.is_some();
        let longer = match passing {
            true => self.in_flight.back_mut(),
            false => self
                .in_flight
                .front_mut()
                .filter(|own| own.expects_local_file()),
        };
        if let Some(timing) = longer.and_then(|own| own.timing.as_mut()) {
            (timing.received, timing.sent) = (now, None);
        }
    }

    /// Stops timing commands.
    pub fn stop_timing(&mut self) {
        (self.received_at, self.completed) = (None, Vec::new());
    }

    /// Records the details of the last command that began.
    pub fn describe_latest(&mut self, details: RelayDetails) {
        let latest = self.in_flight.back_mut();
        if let Some(timing) = latest.and_then(|latest| latest.timing.as_mut()) {
            timing.details = Some(details);
        }
    }

    /// The commands that ended since the last call.
    pub fn take_completed(&mut self) -> Vec<CompletedCommand> {
        std::mem::take(&mut self.completed)
    }

    pub(super) fn timing(&self) -> Option<Box<CommandTiming>> {
        let received_at = self.received_at?;
        Some(Box::new(CommandTiming {
            received: received_at,
            sent: None,
            details: None,
        }))
    }

    pub(super) fn note_completed(&mut self, ended: &mut InFlightCommand, outcome: &ReplyOutcome) {
        let Some(timing) = ended.timing.take() else {
            return;
        };
        let CommandTiming {
            received: came,
            sent,
            details: about,
        } = *timing;
        self.completed.push(CompletedCommand {
            command: ended.command,
            received: came,
            sent,
            rows: ended.reply.rows(),
            error: outcome.error_code(),
            details: about,
        });
    }
}

impl InFlightCommand {
    fn expects_local_file(&self) -> bool {
        let data = self.client_data.as_ref();
        data.is_some_and(|data| !data.is_done())
    }

    pub(super) fn mark_sent(&mut self, now: Instant) {
        if let Some(timing) = &mut self.timing {
            timing.sent.get_or_insert(now);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;
    use crate::commands::in_flight::{PartialPacket, ReplyCompletion};
    use crate::idle_session;

    #[test]
    fn commands_are_timed_from_their_last_byte_once_that_is_wished_for() {
        let mut session = idle_session::session(true);
        session.begin(Command::Query, ReplyCompletion::Nothing);
        assert!(session.in_flight.pop_back().unwrap().timing.is_none());
        let came = Instant::now();
        session.received(came);
        session.begin(Command::Query, ReplyCompletion::Nothing);
        session.sent(came + Duration::from_millis(2));
        session.describe_latest(RelayDetails {
            kind: "call",
            reason: "in_transaction",
            owner: None,
            digest: None,
            query_time: Duration::ZERO,
        });
        // Another command follows.
        session.received(came + Duration::from_millis(5));
        session.begin(Command::Ping, ReplyCompletion::Nothing);
        session.sent(came + Duration::from_millis(6));
        let mut ended = session.in_flight.pop_front().unwrap();
        session.note_completed(&mut ended, &ReplyOutcome::Silent);
        let took = session.take_completed();
        let [took] = took.as_slice() else {
            unreachable!("{took:?}");
        };
        assert_eq!((took.command, took.received), (Command::Query, came));
        assert_eq!(took.sent, Some(came + Duration::from_millis(2)));
        assert_eq!(took.details.as_ref().unwrap().reason, "in_transaction");
        assert!(session.take_completed().is_empty());
        session.stop_timing();
        session.begin(Command::Query, ReplyCompletion::Nothing);
        assert!(session.in_flight.pop_back().unwrap().timing.is_none());
    }

    #[test]
    fn a_command_that_comes_in_pieces_is_timed_from_the_last_one() {
        let mut session = idle_session::session(true);
        let came = Instant::now();
        session.received(came);
        session.begin(Command::Query, ReplyCompletion::Nothing);
        session.partial_packet = Some(PartialPacket {
            remaining: 3,
            continued: false,
            has_reply: true,
            renumber: None,
        });
        session.sent(came);
        let last = came + Duration::from_secs(3);
        session.received(last);
        session.partial_packet = None;
        session.sent(last);
        // What comes next is another command.
        session.received(last + Duration::from_secs(1));
        let mut ended = session.in_flight.pop_front().unwrap();
        session.note_completed(&mut ended, &ReplyOutcome::Silent);
        let took = session.take_completed().pop().unwrap();
        assert_eq!((took.received, took.sent), (last, Some(last)));
    }
}
