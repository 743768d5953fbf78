//! How long relayed commands take, from their last byte to the end of their reply: noted only where somebody wants to know.

use std::time::{Duration, Instant};

use headwater_wire::command::Command;
use headwater_wire::reply::Outcome;

use super::Commands;
use super::in_flight::InFlight;

/// A command on its way.
#[derive(Debug)]
pub(super) struct Timing {
    came: Instant,
    sent: Option<Instant>,
    about: Option<About>,
}

/// What is known of a command that the server answers.
#[derive(Debug)]
pub struct About {
    /// What it is.
    pub kind: &'static str,
    /// Why the server answers it; empty: nobody else would.
    pub reason: &'static str,
    /// Whose it is: a definition's or a feed's.
    pub of: Option<String>,
    /// The number of its form.
    pub digest: Option<u64>,
    /// For so long the server was asked before it was relayed.
    pub asked: Duration,
}

/// A command that the server has answered.
#[derive(Debug)]
pub struct Took {
    /// Which.
    pub command: Command,
    /// When its last byte had come.
    pub came: Instant,
    /// When it went to the server.
    pub sent: Option<Instant>,
    /// How many rows came back.
    pub rows: u64,
    /// The error that it ended with.
    pub error: Option<u16>,
    /// What was said of it.
    pub about: Option<About>,
}

impl Commands {
    /// Bytes of the client came now: from here on it is noted how long commands take.
    pub fn came(&mut self, now: Instant) {
        self.came = Some(now);
        // More of a long command, or of a file that the server has asked for.
        let passing = self.passing.is_some();
        let longer = match passing {
            true => self.in_flight.back_mut(),
            false => self.in_flight.front_mut().filter(|own| own.wants_a_file()),
        };
        if let Some(timing) = longer.and_then(|own| own.timing.as_mut()) {
            (timing.came, timing.sent) = (now, None);
        }
    }

    /// Nobody wants to know any more.
    pub fn time_none(&mut self) {
        (self.came, self.took) = (None, Vec::new());
    }

    /// Says what the command is that was begun last.
    pub fn explain(&mut self, about: About) {
        let latest = self.in_flight.back_mut();
        if let Some(timing) = latest.and_then(|latest| latest.timing.as_mut()) {
            timing.about = Some(about);
        }
    }

    /// The commands that have been answered since this was asked last.
    pub fn take_took(&mut self) -> Vec<Took> {
        std::mem::take(&mut self.took)
    }

    /// For a command that begins now.
    pub(super) fn timing(&self) -> Option<Box<Timing>> {
        let came = self.came?;
        Some(Box::new(Timing {
            came,
            sent: None,
            about: None,
        }))
    }

    /// A command has ended so.
    pub(super) fn note_took(&mut self, ended: &mut InFlight, outcome: &Outcome) {
        let Some(timing) = ended.timing.take() else {
            return;
        };
        let Timing { came, sent, about } = *timing;
        self.took.push(Took {
            command: ended.command,
            came,
            sent,
            rows: ended.reply.rows(),
            error: outcome.error_code(),
            about,
        });
    }
}

impl InFlight {
    /// The client is sending a file for it.
    fn wants_a_file(&self) -> bool {
        let data = self.client_data.as_ref();
        data.is_some_and(|data| !data.is_done())
    }

    /// It has gone to the server by now.
    pub(super) fn has_gone(&mut self, now: Instant) {
        if let Some(timing) = &mut self.timing {
            timing.sent.get_or_insert(now);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;
    use crate::commands::in_flight::{After, Passing};
    use crate::idle;

    #[test]
    fn commands_are_timed_from_their_last_byte_once_that_is_wished_for() {
        let mut session = idle::session(true);
        session.begin(Command::Query, After::Nothing);
        assert!(session.in_flight.pop_back().unwrap().timing.is_none());
        let came = Instant::now();
        session.came(came);
        session.begin(Command::Query, After::Nothing);
        session.sent(came + Duration::from_millis(2));
        session.explain(About {
            kind: "call",
            reason: "in_transaction",
            of: None,
            digest: None,
            asked: Duration::ZERO,
        });
        // Another one goes behind it.
        session.came(came + Duration::from_millis(5));
        session.begin(Command::Ping, After::Nothing);
        session.sent(came + Duration::from_millis(6));
        let mut ended = session.in_flight.pop_front().unwrap();
        session.note_took(&mut ended, &Outcome::Silent);
        let took = session.take_took();
        let [took] = took.as_slice() else {
            unreachable!("{took:?}");
        };
        assert_eq!((took.command, took.came), (Command::Query, came));
        assert_eq!(took.sent, Some(came + Duration::from_millis(2)));
        assert_eq!(took.about.as_ref().unwrap().reason, "in_transaction");
        assert!(session.take_took().is_empty());
        session.time_none();
        session.begin(Command::Query, After::Nothing);
        assert!(session.in_flight.pop_back().unwrap().timing.is_none());
    }

    #[test]
    fn a_command_that_comes_in_pieces_is_timed_from_the_last_one() {
        let mut session = idle::session(true);
        let came = Instant::now();
        session.came(came);
        session.begin(Command::Query, After::Nothing);
        session.passing = Some(Passing {
            left: 3,
            continued: false,
            answered: true,
            renumber: None,
        });
        session.sent(came);
        let last = came + Duration::from_secs(3);
        session.came(last);
        session.passing = None;
        session.sent(last);
        // What comes behind it is another command.
        session.came(last + Duration::from_secs(1));
        let mut ended = session.in_flight.pop_front().unwrap();
        session.note_took(&mut ended, &Outcome::Silent);
        let took = session.take_took().pop().unwrap();
        assert_eq!((took.came, took.sent), (last, Some(last)));
    }
}
