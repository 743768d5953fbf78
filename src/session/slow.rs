//! Statements that take long are told of in the log (`log.slow_ms`): how long, and what Headwater did. Neither texts nor values are.
//!
//! A statement takes from its last byte to the end of its reply. Where nothing is to be told, no clock is read for it.

use std::time::{Duration, Instant};

use super::commands::About;
use super::narrowing::Narrowing;
use super::shared::Shared;
use super::state::Session;
use super::who::log_in;
use crate::clock;
use crate::feed::words::Words;
use crate::feeds::{digest, in_letters};
use crate::timeline::definition::DefinitionId;

/// What is known of the statement that waits, in a session whose slow statements are told of.
#[derive(Debug)]
pub(super) struct Slow {
    least: Duration,
    /// When the client's last bytes came.
    came: Instant,
    /// For so long the server was asked for the statement.
    asked: Duration,
}

/// A statement that Headwater has answered.
#[derive(Debug)]
pub(super) struct Own {
    /// What it is.
    pub(super) kind: &'static str,
    /// By what it was answered, in the words of `SHOW HEADWATER WHY FOR`.
    pub(super) answered_from: &'static str,
    /// Whose it is: a definition's or a feed's.
    pub(super) of: Option<String>,
    /// The number of its form.
    pub(super) digest: Option<u64>,
    /// Rows of the reply, or ids of the call; `None`: they were not counted.
    pub(super) rows: Option<u64>,
    /// Bytes of the reply, where it was one at all.
    pub(super) bytes: Option<usize>,
    /// The error that it ended with.
    pub(super) error: Option<u16>,
}

impl Own {
    pub(super) fn new(kind: &'static str, answered_from: &'static str) -> Own {
        Own {
            kind,
            answered_from,
            of: None,
            digest: None,
            rows: None,
            bytes: None,
            error: None,
        }
    }
}

/// How long a statement took that is told of.
#[derive(Debug)]
pub(super) struct Took {
    took: Duration,
    /// Of that, the server was asked for so long.
    asked: Duration,
}

impl Slow {
    /// Where it is wished for.
    pub(super) fn of(shared: &Shared) -> Option<Slow> {
        Some(Slow {
            least: shared.slow?,
            came: clock::now(),
            asked: Duration::ZERO,
        })
    }
}

impl Session {
    /// Tells of slow statements from now on as the settings have it.
    pub(super) fn tell_slow_ones(&mut self) {
        self.slow = Slow::of(&self.shared);
        if self.slow.is_none()
            && let Some(commands) = self.machine.commands()
        {
            commands.time_none();
        }
    }

    /// Bytes of the client have come.
    pub(super) fn note_came(&mut self) {
        let Some(slow) = &mut self.slow else {
            return;
        };
        let now = clock::now();
        (slow.came, slow.asked) = (now, Duration::ZERO);
        if let Some(commands) = self.machine.commands() {
            commands.came(now);
        }
    }

    /// The server is asked for the statement that waits: what [`Self::note_heard`] takes.
    pub(super) fn note_asks(&self) -> Option<Instant> {
        self.slow.as_ref().map(|_| clock::now())
    }

    /// It has answered.
    pub(super) fn note_heard(&mut self, asked: Option<Instant>) {
        if let (Some(slow), Some(asked)) = (&mut self.slow, asked) {
            slow.asked += clock::since(asked);
        }
    }

    /// Says what the statement is that was relayed just now, for the case that it takes long.
    pub(super) fn note_relayed(
        &mut self,
        kind: &'static str,
        reason: &'static str,
        (of, digest): (Option<String>, Option<u64>),
    ) {
        let Some(slow) = &mut self.slow else {
            return;
        };
        let asked = std::mem::take(&mut slow.asked);
        if let Some(commands) = self.machine.commands() {
            commands.explain(About {
                kind,
                reason,
                of,
                digest,
                asked,
            });
        }
    }

    /// Headwater has answered the statement that waited: what it took, where that is to be told.
    pub(super) fn took_long(&mut self) -> Option<Took> {
        let slow = self.slow.as_mut()?;
        let asked = std::mem::take(&mut slow.asked);
        let took = clock::since(slow.came);
        (took >= slow.least).then_some(Took { took, asked })
    }

    /// Tells of it.
    pub(super) fn tell_slow(&self, took: &Took, own: &Own) {
        log_in!(
            self.span(),
            INFO,
            took_ms = milliseconds(took.took),
            server_ms = milliseconds(took.asked),
            kind = own.kind,
            answered_from = own.answered_from,
            of = own.of.as_deref(),
            digest = own.digest.map(in_letters),
            rows = own.rows,
            bytes = own.bytes,
            error = own.error,
            "a statement was slow"
        );
    }

    /// The name of a feed and the digest of the statement's form, where they are known and slow statements are told of.
    pub(super) fn feed_of(
        &mut self,
        decision: Option<&Narrowing>,
    ) -> (Option<String>, Option<u64>) {
        let decision = decision.filter(|_| self.slow.is_some());
        let name = decision.and_then(Narrowing::template).and_then(|template| {
            let feeds = self.shared.feeds.as_ref()?;
            feeds.name_of(template.feed)
        });
        let asked = self.machine.commands().zip(decision);
        let digest = asked.and_then(|(commands, decision)| {
            let words = Words::read(decision.text(commands.capabilities)?)?;
            Some(digest(commands.standing.database()?, &words))
        });
        (name, digest)
    }

    /// The server has spoken: relayed commands may have ended.
    pub(super) fn note_slow(&mut self) {
        let Some(slow) = &self.slow else {
            return;
        };
        let took = self.machine.commands().map(|it| it.take_took());
        let took = took.filter(|took| !took.is_empty());
        let (Some(took), least) = (took, slow.least) else {
            return;
        };
        let now = clock::now();
        let since = |moment| now.saturating_duration_since(moment);
        for ended in took {
            let took = since(ended.came);
            if took < least {
                continue;
            }
            let about = ended.about.as_ref();
            let asked = about.map_or(Duration::ZERO, |about| about.asked);
            log_in!(
                self.span(),
                INFO,
                took_ms = milliseconds(took),
                server_ms = ended.sent.map(|sent| milliseconds(asked + since(sent))),
                kind = about.map_or("other", |about| about.kind),
                answered_from = "server",
                reason = about.map(|about| about.reason).filter(|reason| !reason.is_empty()),
                of = about.and_then(|about| about.of.as_deref()),
                digest = about.and_then(|about| about.digest).map(in_letters),
                command = ?ended.command,
                rows = ended.rows,
                error = ended.error,
                "a statement was slow"
            );
        }
    }
}

/// A definition's name, where it is known.
pub(super) fn definition(shared: &Shared, number: Option<DefinitionId>) -> Option<String> {
    let definition = number?.of(shared.catalogue.definitions())?;
    Some(definition.name.clone())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
