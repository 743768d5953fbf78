//! Statements of feeds: carries out the actions of their decision, and answers the client.

use std::sync::Arc;
use std::time::Instant;

use headwater_rows::PagePackets;

use super::decision_driver::{DecisionPurpose, FeedOutcome};
use super::log_span::log_in;
use super::memory_access::ProofMoment;
use super::session_counters::SessionEvent;
use super::shared_state::SharedState;
use super::slow_statements::AnsweredStatement;
use super::state::{Session, SessionEnd};
use crate::clock;
use crate::feeds::UnmatchedTextKind;
use headwater_feed::template::RetirementReason;
use headwater_feed::words::StatementWords;
use headwater_session::account_rights::AccountRights;
use headwater_session::cached_rows::CachedPage;
use headwater_session::feed_decision::FeedRelayReason;
use headwater_session::feed_decision::metadata_samples::MetadataSamples;
use headwater_session::feed_decision::{
    FeedDecision, FeedKnowledge, FeedPolicy, FeedReply, TemplateLookup,
};
use headwater_session::machine::BatchPart;
use headwater_sql::page_words::{begins_count, has_page_words};
use headwater_statement::StatementEffects;
use headwater_wire::packet::HEADER_BYTES;

/// The waiting packet.
#[derive(Clone, Copy)]
pub(super) struct WaitingPacket {
    /// Its length in bytes, header included.
    pub(super) length: usize,
    /// Its effects if it is relayed.
    pub(super) effects: StatementEffects,
    /// The statement's position, if the packet has several.
    pub(super) part: Option<BatchPart>,
}

impl WaitingPacket {
    /// A packet with one statement.
    pub(super) fn single(length: usize, effects: StatementEffects) -> WaitingPacket {
        WaitingPacket {
            length,
            effects,
            part: None,
        }
    }
}

impl From<BatchPart> for WaitingPacket {
    fn from(part: BatchPart) -> WaitingPacket {
        WaitingPacket {
            part: Some(part),
            ..WaitingPacket::single(part.length, part.effects)
        }
    }
}

/// Shared knowledge of feeds.
pub(super) struct SharedFeedKnowledge<'a> {
    pub(super) shared: &'a SharedState,
    /// True if the statement arrived; false if it is only explained.
    pub(super) has_arrived: bool,
}

impl FeedKnowledge for SharedFeedKnowledge<'_> {
    fn template(&self, database: &[u8], words: &StatementWords, text: &[u8]) -> TemplateLookup {
        let Some(feeds) = &self.shared.feeds else {
            return TemplateLookup::Unserved(FeedRelayReason::Unchecked, None);
        };
        let epoch = self.shared.catalogue.epoch();
        feeds.template(database, words, text, epoch)
    }

    fn account_rights(&self) -> &AccountRights {
        &self.shared.account_rights
    }

    fn are_suspended(&self) -> bool {
        let binlog = self.shared.binlog.as_ref();
        binlog.is_some_and(|binlog| binlog.is_suspended())
    }

    fn is_galera(&self) -> bool {
        self.shared.is_galera()
    }

    fn metadata_samples(&self) -> Option<&MetadataSamples> {
        let feeds = self.shared.feeds.as_ref().filter(|_| self.has_arrived);
        feeds.map(|feeds| feeds.metadata_samples())
    }
}

/// The page in the client's form.
pub(super) fn page_reply(page: PagePackets) -> CachedPage {
    CachedPage {
        packets: page.packets,
        rows: page.rows,
        found_rows: page.passed_messages,
    }
}

impl Session {
    /// Serves the waiting feed statement, or relays it.
    pub(super) async fn serve_feed(
        &mut self,
        length: usize,
        effects: StatementEffects,
    ) -> Result<(), SessionEnd> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default().to_vec();
        let decision = FeedDecision::new(payload, self.feed_policy());
        self.narrow(WaitingPacket::single(length, effects), decision)
            .await
    }

    pub(super) fn feed_policy(&self) -> FeedPolicy {
        let limits = &self.shared.limits;
        FeedPolicy {
            accelerate: self.shared.accelerate,
            list_authors: limits.list_authors,
            candidates: limits.candidates,
            privileges_ttl: self.shared.privileges_ttl,
            always: self.shared.narrow_always,
            exact: self.shared.exact_columns,
            rows: !self.distrusts_rows()
                && self
                    .shared
                    .binlog
                    .as_ref()
                    .is_some_and(|it| it.row_cache().is_some()),
        }
    }

    /// Carries out the actions of a decision about the waiting packet.
    pub(super) async fn narrow(
        &mut self,
        waits: WaitingPacket,
        mut decision: FeedDecision,
    ) -> Result<(), SessionEnd> {
        if let Some(relay_reason) = self.classify_unmatched(&decision) {
            return self.relay_feed(waits, relay_reason, Some(&decision));
        }
        let begun = clock::now();
        if let Some(commands) = self.machine.commands() {
            commands.note_feed_query();
        }
        self.note_transaction_start();
        let comparable = waits.part.is_none().then_some(waits.length);
        match self
            .drive_feed(&mut decision, DecisionPurpose::Serve, comparable)
            .await?
        {
            FeedOutcome::Replied(reply, proof) => {
                self.send_reply(waits, reply, proof, &decision, begun)
            }
            FeedOutcome::Relayed {
                reason,
                runs_functions,
            } => {
                if let Some(commands) = self.machine.commands()
                    && commands.recall_earlier_selects(waits.effects)
                {
                    self.replay_found_rows().await?;
                }
                let is_plain = decision.is_plain() && waits.part.is_none() && !runs_functions;
                let effects = match is_plain {
                    true => StatementEffects::NONE,
                    false => waits.effects,
                };
                let waits = WaitingPacket { effects, ..waits };
                let reason = Some(reason).filter(|_| self.is_of_feed(&decision));
                self.relay_feed(waits, reason, Some(&decision))
            }
            FeedOutcome::RelayedSampled(sample) => {
                self.shared.counters.add(SessionEvent::FeedSampled);
                if let Some(template) = decision.template() {
                    template.count_outcome("learned");
                }
                let statement = decision.statement().unwrap_or_default();
                let (length, effects) = (waits.length, StatementEffects::NONE);
                let of = self.feed_and_digest(Some(&decision));
                let relayed = self.relay_execution(length, effects, statement, Some(sample));
                self.note_relayed("feed", "learned", of);
                relayed
            }
            FeedOutcome::LoginPending
            | FeedOutcome::Cached
            | FeedOutcome::Narrowed
            | FeedOutcome::Sampled => self.relay_from_client(waits.length),
        }
    }

    /// False: only a list of values, or groups, made the statement look like one of a feed.
    fn is_of_feed(&mut self, decision: &FeedDecision) -> bool {
        let capabilities = self.machine.commands().map(|it| it.capabilities);
        let text = capabilities.and_then(|capabilities| decision.text(capabilities));
        let is_like = |text: &[u8]| begins_count(text) || has_page_words(text);
        text.is_none_or(is_like)
    }

    /// Handles a statement that names no known feed's messages. `None`: it names some. Else it is relayed; the inner value is the reason,
    /// if it would belong to a feed that no setting names.
    fn classify_unmatched(&mut self, decision: &FeedDecision) -> Option<Option<FeedRelayReason>> {
        let feeds = Arc::clone(self.shared.feeds.as_ref()?);
        let commands = self.machine.commands()?;
        let text = decision.text(commands.capabilities)?;
        if feeds.names_feed_messages(text) {
            return None;
        }
        // No feed is found by its counts, or by rows that are named by their ids.
        if begins_count(text) || !has_page_words(text) {
            return Some(None);
        }
        let database = commands.state.database();
        let kind = database.map(|database| feeds.classify_unmatched(database, text));
        Some(match kind {
            Some(UnmatchedTextKind::Suggested) => Some(FeedRelayReason::Suggested),
            Some(UnmatchedTextKind::Unseen(_)) => Some(FeedRelayReason::Unseen),
            Some(UnmatchedTextKind::Unknown) | None => None,
        })
    }

    /// The next statement may open a transaction's snapshot: notes memory's state before it.
    pub(super) fn note_transaction_start(&mut self) {
        if self.shared.has_feeds()
            && let Some(commands) = self.machine.commands()
            && commands.state.take_snapshot_opening()
        {
            self.transaction_mark = self.shared.binlog.as_ref().and_then(|binlog| binlog.mark());
        }
    }

    fn send_reply(
        &mut self,
        waits: WaitingPacket,
        reply: FeedReply,
        proof: Option<ProofMoment>,
        decision: &FeedDecision,
        begun: Instant,
    ) -> Result<(), SessionEnd> {
        let FeedReply {
            mut bytes,
            outcome,
            narrowed,
            from_cache,
            fill,
        } = reply;
        if let Some((fill, proof)) = fill.zip(proof) {
            self.cache_reply(&fill, &bytes, &proof);
        }
        let promised = match waits.part {
            None => None,
            Some(part) => match self.mark_more_results(&mut bytes, &outcome) {
                Some(packets) => Some((part, packets)),
                None => {
                    let long = FeedRelayReason::Retired(RetirementReason::TooLong);
                    return self.relay_feed(waits, Some(long), Some(decision));
                }
            },
        };
        let (event, what, from) = match (from_cache, narrowed) {
            (true, _) => (SessionEvent::FeedCached, "kept", "memory"),
            (false, true) => (SessionEvent::FeedNarrowed, "narrowed", "memory and server"),
            (false, false) => (SessionEvent::FeedSampled, "learned", "server"),
        };
        self.shared.counters.add(event);
        let took = clock::since(begun);
        self.shared.measurements.record_statement(what, took);
        if let Some(template) = decision.template() {
            template.count_outcome(what);
        }
        if let Some(took) = self.take_slow_duration() {
            let (of, digest) = self.feed_and_digest(Some(decision));
            let answered = AnsweredStatement {
                owner: of,
                digest,
                bytes: Some(bytes.len()),
                error: outcome.error_code(),
                ..AnsweredStatement::new("feed", from)
            };
            self.log_slow(&took, &answered);
        }
        if let Some((part, packets)) = promised {
            return self.send_first_reply(part, &mut bytes, &outcome, packets);
        }
        self.client_in.drain(..waits.length);
        self.reply_in_place(&mut bytes, Some(&outcome))
    }

    pub(super) fn relay_feed(
        &mut self,
        waits: WaitingPacket,
        why: Option<FeedRelayReason>,
        decision: Option<&FeedDecision>,
    ) -> Result<(), SessionEnd> {
        let WaitingPacket {
            length, effects, ..
        } = waits;
        if let Some(why) = why {
            self.shared.counters.feed_relayed(why);
            if let Some(decision) = decision {
                decision.count(why.label());
            }
            log_in!(
                self.span(),
                DEBUG,
                reason = why.label(),
                "a feed's statement is relayed"
            );
        }
        // Before the packet is relayed, which resolves the execution's statement.
        let of = self.feed_and_digest(decision.filter(|_| why.is_some()));
        let reason = why.map_or("", FeedRelayReason::label);
        let kind = if why.is_some() { "feed" } else { "other" };
        if let Some(statement) = decision.and_then(FeedDecision::statement) {
            let relayed = self.relay_execution(length, effects, statement, None);
            self.note_relayed(kind, reason, of);
            return relayed;
        }
        if let Some(commands) = self.machine.commands() {
            commands.relay_feed(effects);
        }
        self.note_relayed(kind, reason, of);
        self.relay_from_client(length)
    }
}
