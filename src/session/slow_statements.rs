//! Statements that take long are told of in the log (`log.slow_ms`): how long, and what Headwater did. Neither texts nor values are.
//!
//! A statement takes from its last byte to the end of its reply. Where nothing is to be told, no clock is read for it.

use std::time::{Duration, Instant};

use super::commands::RelayDetails;
use super::feed_decision::FeedDecision;
use super::log_span::log_in;
use super::shared_state::SharedState;
use super::state::Session;
use crate::clock;
use crate::feed::words::StatementWords;
use crate::feeds::{digest, hex_digest};
use crate::timeline::definition::DefinitionId;

/// What is known of the statement that waits, in a session whose slow statements are told of.
#[derive(Debug)]
pub(super) struct SlowStatementTimer {
    threshold: Duration,
    /// When the client's last bytes came.
    received_at: Instant,
    /// For so long the server was asked for the statement.
    server_time: Duration,
}

/// A statement that Headwater has answered.
#[derive(Debug)]
pub(super) struct AnsweredStatement {
    /// What it is.
    pub(super) kind: &'static str,
    /// By what it was answered, in the words of `SHOW HEADWATER WHY FOR`.
    pub(super) answered_from: &'static str,
    /// Whose it is: a definition's or a feed's.
    pub(super) owner: Option<String>,
    /// The number of its form.
    pub(super) digest: Option<u64>,
    /// Rows of the reply, or ids of the call; `None`: they were not counted.
    pub(super) rows: Option<u64>,
    /// Bytes of the reply, where it was one at all.
    pub(super) bytes: Option<usize>,
    /// The error that it ended with.
    pub(super) error: Option<u16>,
}

impl AnsweredStatement {
    pub(super) fn new(kind: &'static str, answered_from: &'static str) -> AnsweredStatement {
        AnsweredStatement {
            kind,
            answered_from,
            owner: None,
            digest: None,
            rows: None,
            bytes: None,
            error: None,
        }
    }
}

/// How long a statement took that is told of.
#[derive(Debug)]
pub(super) struct StatementDuration {
    total: Duration,
    /// Of that, the server was asked for so long.
    server_time: Duration,
}

impl SlowStatementTimer {
    /// Where it is wished for.
    pub(super) fn from_settings(shared: &SharedState) -> Option<SlowStatementTimer> {
        Some(SlowStatementTimer {
            threshold: shared.slow_threshold?,
            received_at: clock::now(),
            server_time: Duration::ZERO,
        })
    }
}

impl Session {
    /// Tells of slow statements from now on as the settings have it.
    pub(super) fn update_slow_timer(&mut self) {
        self.slow_timer = SlowStatementTimer::from_settings(&self.shared);
        if self.slow_timer.is_none()
            && let Some(commands) = self.machine.commands()
        {
            commands.stop_timing();
        }
    }

    /// Bytes of the client have come.
    pub(super) fn note_received(&mut self) {
        let Some(slow) = &mut self.slow_timer else {
            return;
        };
        let now = clock::now();
        (slow.received_at, slow.server_time) = (now, Duration::ZERO);
        if let Some(commands) = self.machine.commands() {
            commands.received(now);
        }
    }

    /// The server is asked for the statement that waits: what [`Self::note_query_answered`] takes.
    pub(super) fn note_query_sent(&self) -> Option<Instant> {
        self.slow_timer.as_ref().map(|_| clock::now())
    }

    /// It has answered.
    pub(super) fn note_query_answered(&mut self, asked: Option<Instant>) {
        if let (Some(slow), Some(asked)) = (&mut self.slow_timer, asked) {
            slow.server_time += clock::since(asked);
        }
    }

    /// Says what the statement is that was relayed just now, for the case that it takes long.
    pub(super) fn note_relayed(
        &mut self,
        kind: &'static str,
        reason: &'static str,
        (of, digest): (Option<String>, Option<u64>),
    ) {
        let Some(slow) = &mut self.slow_timer else {
            return;
        };
        let asked = std::mem::take(&mut slow.server_time);
        if let Some(commands) = self.machine.commands() {
            commands.describe_latest(RelayDetails {
                kind,
                reason,
                owner: of,
                digest,
                query_time: asked,
            });
        }
    }

    /// Headwater has answered the statement that waited: what it took, where that is to be told.
    pub(super) fn take_slow_duration(&mut self) -> Option<StatementDuration> {
        let slow = self.slow_timer.as_mut()?;
        let asked = std::mem::take(&mut slow.server_time);
        let took = clock::since(slow.received_at);
        (took >= slow.threshold).then_some(StatementDuration {
            total: took,
            server_time: asked,
        })
    }

    /// Tells of it.
    pub(super) fn log_slow(&self, took: &StatementDuration, own: &AnsweredStatement) {
        log_in!(
            self.span(),
            INFO,
            took_ms = milliseconds(took.total),
            server_ms = milliseconds(took.server_time),
            kind = own.kind,
            answered_from = own.answered_from,
            of = own.owner.as_deref(),
            digest = own.digest.map(hex_digest),
            rows = own.rows,
            bytes = own.bytes,
            error = own.error,
            "a statement was slow"
        );
    }

    /// The name of a feed and the digest of the statement's form, where they are known and slow statements are told of.
    pub(super) fn feed_and_digest(
        &mut self,
        decision: Option<&FeedDecision>,
    ) -> (Option<String>, Option<u64>) {
        let decision = decision.filter(|_| self.slow_timer.is_some());
        let name = decision
            .and_then(FeedDecision::template)
            .and_then(|template| {
                let feeds = self.shared.feeds.as_ref()?;
                feeds.name_of(template.feed)
            });
        let asked = self.machine.commands().zip(decision);
        let digest = asked.and_then(|(commands, decision)| {
            let words = StatementWords::read(decision.text(commands.capabilities)?)?;
            Some(digest(commands.state.database()?, &words))
        });
        (name, digest)
    }

    /// The server has spoken: relayed commands may have ended.
    pub(super) fn log_slow_replies(&mut self) {
        let Some(slow) = &self.slow_timer else {
            return;
        };
        let took = self.machine.commands().map(|it| it.take_completed());
        let took = took.filter(|took| !took.is_empty());
        let (Some(took), least) = (took, slow.threshold) else {
            return;
        };
        let now = clock::now();
        let since = |moment| now.saturating_duration_since(moment);
        for ended in took {
            let took = since(ended.received);
            if took < least {
                continue;
            }
            let about = ended.details.as_ref();
            let asked = about.map_or(Duration::ZERO, |about| about.query_time);
            log_in!(
                self.span(),
                INFO,
                took_ms = milliseconds(took),
                server_ms = ended.sent.map(|sent| milliseconds(asked + since(sent))),
                kind = about.map_or("other", |about| about.kind),
                answered_from = "server",
                reason = about.map(|about| about.reason).filter(|reason| !reason.is_empty()),
                of = about.and_then(|about| about.owner.as_deref()),
                digest = about.and_then(|about| about.digest).map(hex_digest),
                command = ?ended.command,
                rows = ended.rows,
                error = ended.error,
                "a statement was slow"
            );
        }
    }
}

/// A definition's name, where it is known.
pub(super) fn definition_name(
    shared: &SharedState,
    number: Option<DefinitionId>,
) -> Option<String> {
    let definition = number?.resolve(shared.catalogue.definitions())?;
    Some(definition.name.clone())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
