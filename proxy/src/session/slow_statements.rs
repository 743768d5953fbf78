//! Logs slow statements (`log.slow_ms`): their time, and what Headwater did. Texts and values are not logged.
//!
//! A statement's time is from its last byte to the end of its reply. No clock is read if nothing is to be logged.

use std::time::{Duration, Instant};

use super::log_span::log_in;
use super::shared_state::SharedState;
use super::state::Session;
use crate::clock;
use crate::feeds::{digest, hex_digest};
use headwater_feed::words::StatementWords;
use headwater_session::commands::RelayDetails;
use headwater_session::feed_decision::FeedDecision;
use headwater_timeline::definition::DefinitionId;

/// Times of the waiting statement, in a session whose slow statements are logged.
#[derive(Debug)]
pub(super) struct SlowStatementTimer {
    threshold: Duration,
    /// Arrival of the client's last bytes.
    received_at: Instant,
    /// The server's time for the statement's internal queries.
    server_time: Duration,
}

/// A statement that Headwater has answered.
#[derive(Debug)]
pub(super) struct AnsweredStatement {
    /// Its kind.
    pub(super) kind: &'static str,
    /// What answered it, in the words of `SHOW HEADWATER WHY FOR`.
    pub(super) answered_from: &'static str,
    /// The name of its definition or feed.
    pub(super) owner: Option<String>,
    /// The digest of its form.
    pub(super) digest: Option<u64>,
    /// Rows of the reply, or ids of the call; `None`: not counted.
    pub(super) rows: Option<u64>,
    /// Bytes of the reply, if it was a single one.
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

/// The time of a slow statement.
#[derive(Debug)]
pub(super) struct StatementDuration {
    total: Duration,
    /// The server's part of it.
    server_time: Duration,
}

impl SlowStatementTimer {
    /// A timer, if the settings request it.
    pub(super) fn from_settings(shared: &SharedState) -> Option<SlowStatementTimer> {
        Some(SlowStatementTimer {
            threshold: shared.slow_threshold?,
            received_at: clock::now(),
            server_time: Duration::ZERO,
        })
    }
}

impl Session {
    /// Applies the current settings.
    pub(super) fn update_slow_timer(&mut self) {
        self.slow_timer = SlowStatementTimer::from_settings(&self.shared);
        if self.slow_timer.is_none()
            && let Some(commands) = self.machine.commands()
        {
            commands.stop_timing();
        }
    }

    /// Notes that bytes of the client have arrived.
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

    /// The start of an internal query, for [`Self::note_query_answered`].
    pub(super) fn note_query_sent(&self) -> Option<Instant> {
        self.slow_timer.as_ref().map(|_| clock::now())
    }

    /// Adds the time of an internal query.
    pub(super) fn note_query_answered(&mut self, sent_at: Option<Instant>) {
        if let (Some(slow), Some(sent_at)) = (&mut self.slow_timer, sent_at) {
            slow.server_time += clock::since(sent_at);
        }
    }

    /// Notes the kind of the statement that was relayed just now, in case it is slow.
    pub(super) fn note_relayed(
        &mut self,
        kind: &'static str,
        reason: &'static str,
        (of, digest): (Option<String>, Option<u64>),
    ) {
        let Some(slow) = &mut self.slow_timer else {
            return;
        };
        let query_time = std::mem::take(&mut slow.server_time);
        if let Some(commands) = self.machine.commands() {
            commands.describe_latest(RelayDetails {
                kind,
                reason,
                owner: of,
                digest,
                query_time,
            });
        }
    }

    /// The time of the statement that Headwater has answered, if it is to be logged.
    pub(super) fn take_slow_duration(&mut self) -> Option<StatementDuration> {
        let slow = self.slow_timer.as_mut()?;
        let server_time = std::mem::take(&mut slow.server_time);
        let took = clock::since(slow.received_at);
        (took >= slow.threshold).then_some(StatementDuration {
            total: took,
            server_time,
        })
    }

    /// Logs it.
    pub(super) fn log_slow(&self, took: &StatementDuration, statement: &AnsweredStatement) {
        log_in!(
            self.span(),
            INFO,
            took_ms = milliseconds(took.total),
            server_ms = milliseconds(took.server_time),
            kind = statement.kind,
            answered_from = statement.answered_from,
            of = statement.owner.as_deref(),
            digest = statement.digest.map(hex_digest),
            rows = statement.rows,
            bytes = statement.bytes,
            error = statement.error,
            "a statement was slow"
        );
    }

    /// The feed's name and the digest of the statement's form, if known and slow statements are logged.
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

    /// The server has sent bytes: logs relayed commands that have ended and were slow.
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
            let query_time = about.map_or(Duration::ZERO, |about| about.query_time);
            log_in!(
                self.span(),
                INFO,
                took_ms = milliseconds(took),
                server_ms = ended.sent.map(|sent| milliseconds(query_time + since(sent))),
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

/// A definition's name, if known.
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
