//! A feed's statement: carries out what the decision needs, and tells the client what it comes to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::{PagePackets, PageSource};

use super::author_lists::passing_messages;
use super::cached_rows::{CacheFill, CachedPage};
use super::feed_decision::{
    CachedPageRequest, CandidateSet, FeedAction, FeedCandidateRequest, FeedDecision, FeedInput,
    FeedKnowledge, FeedPolicy, FeedReply, InternalReply, TemplateLookup,
};
use super::log_span::log_in;
use super::machine::BatchPart;
use super::session_counters::SessionEvent;
use super::shared_state::SharedState;
use super::slow_statements::AnsweredStatement;
use super::state::{CandidateScope, Session, SessionEnd};
use crate::binlog::{CandidateMessages, CandidateRequest};
use crate::clock;
use crate::feed::template::RetirementReason;
use crate::feed::words::StatementWords;
use crate::feeds::UnmatchedTextKind;
use crate::session::feed_decision::FeedRelayReason;
use crate::session::feed_decision::metadata_samples::MetadataSamples;
use crate::statement::StatementEffects;
use crate::wire::packet::HEADER_BYTES;

/// How often it is looked whether another statement has taught what one waits for.
const SAMPLE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The packet that waits.
#[derive(Clone, Copy)]
pub(super) struct WaitingPacket {
    /// Its bytes, header included.
    pub(super) length: usize,
    /// What it may do where it is relayed.
    pub(super) effects: StatementEffects,
    /// It has more statements than the one that is decided about.
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

/// What all sessions know of feeds.
pub(super) struct SharedFeedKnowledge<'a> {
    pub(super) shared: &'a SharedState,
    /// A statement came, and is not only asked about.
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

/// A page as the client is told it.
pub(super) fn page_reply(page: PagePackets) -> CachedPage {
    CachedPage {
        packets: page.packets,
        rows: page.rows,
        found_rows: page.passed_messages,
    }
}

fn candidate_query(want: &FeedCandidateRequest) -> CandidateRequest {
    CandidateRequest {
        readers: want.readers.clone(),
        authors: want.authors.clone(),
        range: want.range,
        untied: want.untied,
    }
}

impl Session {
    /// Answers the feed's statement whose packet waits, or has it go on as it is.
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

    /// Carries out what a decision about the packet that waits needs.
    pub(super) async fn narrow(
        &mut self,
        waits: WaitingPacket,
        mut decision: FeedDecision,
    ) -> Result<(), SessionEnd> {
        if let Some(met) = self.judge_unnamed(&decision) {
            return self.relay_feed(waits, met, Some(&decision));
        }
        let mut input = FeedInput::Begin;
        let begun = clock::now();
        if let Some(commands) = self.machine.commands() {
            commands.note_feed_query();
        }
        self.note_transaction_start();
        loop {
            let need = {
                let Some(commands) = self.machine.commands() else {
                    return self.relay_from_client(waits.length);
                };
                let feeds = SharedFeedKnowledge {
                    shared: &self.shared,
                    has_arrived: true,
                };
                decision.next(input, commands, &feeds, clock::now())
            };
            let learns = match need {
                FeedAction::Run(_) => decision.is_sampling(),
                _ => matches!(need, FeedAction::RelaySampled(_)),
            };
            // A hidden table has other columns.
            if learns && !self.prove_trust().await {
                input = FeedInput::Unchanged(false);
                if let FeedAction::RelaySampled(_) = need {
                    return self.relay_feed(waits, Some(FeedRelayReason::Changed), Some(&decision));
                }
                continue;
            }
            input = match need {
                FeedAction::Query(ask) => {
                    FeedInput::Answers(self.run_internal_queries(&ask).await?)
                }
                FeedAction::Candidates(want) => FeedInput::Candidates(self.candidates(&want).await),
                FeedAction::Page(want) => {
                    let alone = waits.part.is_none();
                    FeedInput::CachedPage(
                        self.compared_feed_page(&want, waits.length, alone).await?,
                    )
                }
                FeedAction::Run(payload) => FeedInput::Reply(self.run_in_place(&payload).await?),
                FeedAction::Prepare(prepare) => {
                    FeedInput::Reply(self.prepare_internal(&prepare).await?)
                }
                FeedAction::CheckUnchanged => FeedInput::Unchanged(self.are_unchanged().await),
                FeedAction::AwaitSample(awaits) => {
                    let feeds = self.shared.feeds.as_ref();
                    while feeds
                        .is_some_and(|it| awaits.is_pending(it.metadata_samples(), clock::now()))
                    {
                        tokio::time::sleep(SAMPLE_POLL_INTERVAL).await;
                    }
                    FeedInput::SampleAwaited
                }
                FeedAction::Reply(told) => return self.send_reply(waits, told, &decision, begun),
                FeedAction::Relay(why) => {
                    let effects = match decision.is_plain() && waits.part.is_none() {
                        true => StatementEffects::NONE,
                        false => waits.effects,
                    };
                    let waits = WaitingPacket { effects, ..waits };
                    return self.relay_feed(waits, Some(why), Some(&decision));
                }
                FeedAction::RelaySampled(lesson) => {
                    self.shared.counters.add(SessionEvent::FeedSampled);
                    if let Some(template) = decision.template() {
                        template.count_outcome("learned");
                    }
                    let statement = decision.statement().unwrap_or_default();
                    let (length, effects) = (waits.length, StatementEffects::NONE);
                    let of = self.feed_and_digest(Some(&decision));
                    let relayed = self.relay_execution(length, effects, statement, Some(lesson));
                    self.note_relayed("feed", "learned", of);
                    return relayed;
                }
            };
        }
    }

    /// Meets a statement that names no feed's messages. `None`: it names some; else it is relayed, and this is why if it would be one of
    /// a feed that nobody named.
    fn judge_unnamed(&mut self, decision: &FeedDecision) -> Option<Option<FeedRelayReason>> {
        let feeds = Arc::clone(self.shared.feeds.as_ref()?);
        let commands = self.machine.commands()?;
        let text = decision.text(commands.capabilities)?;
        if feeds.names_feed_messages(text) {
            return None;
        }
        let database = commands.state.database();
        let met = database.map(|database| feeds.classify_unmatched(database, text));
        Some(match met {
            Some(UnmatchedTextKind::Suggested) => Some(FeedRelayReason::Suggested),
            Some(UnmatchedTextKind::Unseen(_)) => Some(FeedRelayReason::Unseen),
            Some(UnmatchedTextKind::Unknown) | None => None,
        })
    }

    /// What is sent now may open a transaction's snapshot: notes what memory knew before it.
    pub(super) fn note_transaction_start(&mut self) {
        if self.shared.has_feeds()
            && let Some(commands) = self.machine.commands()
            && commands.state.take_snapshot_opening()
        {
            self.transaction_mark = self.shared.binlog.as_ref().and_then(|binlog| binlog.mark());
        }
    }

    pub(super) async fn candidates(
        &mut self,
        want: &FeedCandidateRequest,
    ) -> Result<CandidateSet, FeedRelayReason> {
        self.candidate_scope = None;
        self.find_candidates(want)
            .await
            .ok_or(FeedRelayReason::NotInMemory)?
    }

    async fn find_candidates(
        &mut self,
        want: &FeedCandidateRequest,
    ) -> Option<Result<CandidateSet, FeedRelayReason>> {
        let feeds = self.shared.feeds.as_ref()?;
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let place = feeds.cached_timeline(want.template.feed, &want.template.database)?;
        let standing = &self.machine.commands()?.state;
        let identity = standing.server()?.to_vec();
        let snapshot = standing.reads_a_snapshot();
        let wish = candidate_query(want);
        let candidates = binlog.candidates(&place, &identity, &wish).await?;
        let found = CandidateSet {
            ids: candidates.messages.ids,
            exhaustive: candidates.messages.is_complete,
            tied: candidates.messages.ends_before_tie,
            authors: candidates.authors.len(),
            written_by: candidates.messages.authors,
            author_lists: want
                .lists
                .iter()
                .map(|list| {
                    let list = list.cache_key(&want.template, candidates.mark.generation());
                    list.lookup(binlog.row_cache()?)
                })
                .collect(),
            generation: candidates.mark.generation(),
        };
        let (readers, authors) = (wish.readers, candidates.authors);
        let mark = match snapshot {
            // Candidates of now are those of the snapshot if nothing has changed since before it.
            true => {
                let opened = self.transaction_mark?;
                if !binlog.is_unchanged_since(&place, opened, &readers, &authors) {
                    return Some(Err(FeedRelayReason::Changed));
                }
                opened
            }
            false => candidates.mark,
        };
        self.candidate_scope = Some(CandidateScope {
            timeline: place,
            readers,
            authors,
            mark,
        });
        Some(Ok(found))
    }

    pub(super) async fn run_in_place(
        &mut self,
        payload: &[u8],
    ) -> Result<InternalReply, SessionEnd> {
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Ok(InternalReply {
                bytes: None,
                rows: 0,
                outcome: None,
            });
        };
        let limit = self.shared.limits.tail_bytes;
        self.server_was_queried = true;
        let asked = self.note_query_sent();
        let read = self
            .backend
            .run_command(payload, capabilities, limit)
            .await?;
        self.note_query_answered(asked);
        Ok(InternalReply {
            bytes: read.bytes,
            rows: read.rows,
            outcome: read.outcome,
        })
    }

    async fn are_unchanged(&mut self) -> bool {
        let Some(named_for) = self.candidate_scope.take() else {
            return false;
        };
        let Some(binlog) = self.shared.binlog.clone() else {
            return false;
        };
        let CandidateScope {
            timeline: place,
            readers,
            authors,
            mark,
        } = named_for;
        let unchanged = binlog.unchanged(&place, mark, &readers, &authors).await;
        let unchanged = unchanged && self.confirm_trust(true);
        self.proved_since = unchanged.then_some((place, mark));
        unchanged
    }

    /// A page of rows that are kept. Where one is missing among those that were named already, nothing is proved for it.
    pub(super) async fn cached_page(&mut self, want: &CachedPageRequest) -> Option<CachedPage> {
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let rows = Arc::clone(binlog.row_cache()?);
        let place = Arc::clone(&self.candidate_scope.as_ref()?.timeline);
        let identity = self.machine.commands()?.state.server()?.to_vec();
        let of = PageSource {
            timeline_id: place.id(),
            cache_key: want.cache_key,
            joined_tables: &want.joined_tables,
        };
        let part = (want.offset, want.limit);
        let authors = want.lists.as_ref().map(|(_, authors)| &**authors);
        let own_of = |ids: &[u64], authors: &[u64]| match &want.lists {
            None => Some(None),
            Some((lists, _)) => {
                let lists = lists.iter().map(|list| list.lookup(&rows)?);
                let lists: Vec<_> = lists.collect::<Option<_>>()?;
                Some(Some(passing_messages(&lists, ids, authors)))
            }
        };
        let own = own_of(&want.named, authors.unwrap_or_default())?;
        let own = own.as_deref().unwrap_or(&want.named);
        if !rows.has_page(of, own, want.exhaustive, part) {
            return None;
        }
        let frame = &want.envelope;
        let make = |named: &CandidateMessages| {
            let front = (frame.head_packets.clone(), frame.sequence);
            let own = own_of(&named.ids, &named.authors)?;
            let own = own.as_deref().unwrap_or(&named.ids);
            rows.page(of, own, named.is_complete, part, front)
        };
        let wish = candidate_query(&want.candidates);
        let proves = binlog.must_prove(self.server_was_queried) || self.relies_on_trust();
        let page = binlog.cached_page(&place, &identity, &wish, proves, make);
        let page = page.await?;
        self.confirm_trust(proves).then(|| page_reply(page))
    }

    /// Keeps what an answer says of messages, behind its proof.
    fn cache_reply(&mut self, fill: &CacheFill, answer: &[u8]) {
        let proved = self.proved_since.take();
        let standing = self.machine.commands().map(|it| &it.state);
        if let (Some((place, mark)), Some(binlog)) = (proved, &self.shared.binlog)
            && let Some(identity) = standing.and_then(|standing| standing.server())
        {
            binlog.cache_rows(&place, identity, mark, fill, answer);
        }
    }

    fn send_reply(
        &mut self,
        waits: WaitingPacket,
        told: FeedReply,
        decision: &FeedDecision,
        begun: Instant,
    ) -> Result<(), SessionEnd> {
        let FeedReply {
            mut bytes,
            outcome,
            narrowed,
            from_cache: kept,
            fill,
        } = told;
        if let Some(fill) = &fill {
            self.cache_reply(fill, &bytes);
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
        let (event, what, from) = match (kept, narrowed) {
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
            let own = AnsweredStatement {
                owner: of,
                digest,
                bytes: Some(bytes.len()),
                error: outcome.error_code(),
                ..AnsweredStatement::new("feed", from)
            };
            self.log_slow(&took, &own);
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
        // Before the packet goes, by which an execution is known.
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
