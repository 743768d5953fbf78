//! Statements of feeds: carries out the actions of their decision, and answers the client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::{PagePackets, PageSource};

use super::log_span::log_in;
use super::session_counters::SessionEvent;
use super::shared_state::SharedState;
use super::slow_statements::AnsweredStatement;
use super::state::{CandidateScope, Session, SessionEnd};
use crate::binlog::{CandidateMessages, CandidateRequest};
use crate::clock;
use crate::feeds::UnmatchedTextKind;
use headwater_feed::template::RetirementReason;
use headwater_feed::words::StatementWords;
use headwater_session::author_lists::passing_messages;
use headwater_session::cached_rows::{CacheFill, CachedPage};
use headwater_session::feed_decision::FeedRelayReason;
use headwater_session::feed_decision::metadata_samples::MetadataSamples;
use headwater_session::feed_decision::{
    CachedPageRequest, CandidateSet, FeedAction, FeedCandidateRequest, FeedDecision, FeedInput,
    FeedKnowledge, FeedPolicy, FeedReply, InternalReply, TemplateLookup,
};
use headwater_session::machine::BatchPart;
use headwater_statement::StatementEffects;
use headwater_wire::packet::HEADER_BYTES;

/// Interval of polling whether another statement has sampled the metadata that this one needs.
const SAMPLE_POLL_INTERVAL: Duration = Duration::from_millis(5);

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

fn candidate_query(request: &FeedCandidateRequest) -> CandidateRequest {
    CandidateRequest {
        readers: request.readers.clone(),
        authors: request.authors.clone(),
        range: request.range,
        untied: request.untied,
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
            if learns && !self.prove_no_functions().await {
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
                FeedAction::Candidates(request) => {
                    FeedInput::Candidates(self.candidates(&request).await)
                }
                FeedAction::Page(request) => {
                    let alone = waits.part.is_none();
                    FeedInput::CachedPage(
                        self.compared_feed_page(&request, waits.length, alone)
                            .await?,
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
                FeedAction::Reply(reply) => return self.send_reply(waits, reply, &decision, begun),
                FeedAction::Relay(why) => {
                    let effects = match decision.is_plain() && waits.part.is_none() {
                        true => StatementEffects::NONE,
                        false => waits.effects,
                    };
                    let waits = WaitingPacket { effects, ..waits };
                    return self.relay_feed(waits, Some(why), Some(&decision));
                }
                FeedAction::RelaySampled(sample) => {
                    self.shared.counters.add(SessionEvent::FeedSampled);
                    if let Some(template) = decision.template() {
                        template.count_outcome("learned");
                    }
                    let statement = decision.statement().unwrap_or_default();
                    let (length, effects) = (waits.length, StatementEffects::NONE);
                    let of = self.feed_and_digest(Some(&decision));
                    let relayed = self.relay_execution(length, effects, statement, Some(sample));
                    self.note_relayed("feed", "learned", of);
                    return relayed;
                }
            };
        }
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

    pub(super) async fn candidates(
        &mut self,
        request: &FeedCandidateRequest,
    ) -> Result<CandidateSet, FeedRelayReason> {
        self.candidate_scope = None;
        self.find_candidates(request)
            .await
            .ok_or(FeedRelayReason::NotInMemory)?
    }

    async fn find_candidates(
        &mut self,
        request: &FeedCandidateRequest,
    ) -> Option<Result<CandidateSet, FeedRelayReason>> {
        let feeds = self.shared.feeds.as_ref()?;
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let timeline = feeds.cached_timeline(request.template.feed, &request.template.database)?;
        let state = &self.machine.commands()?.state;
        let identity = state.server()?.to_vec();
        let snapshot = state.reads_a_snapshot();
        let candidate_request = candidate_query(request);
        let candidates = binlog
            .candidates(&timeline, &identity, &candidate_request)
            .await?;
        let candidate_set = CandidateSet {
            ids: candidates.messages.ids,
            exhaustive: candidates.messages.is_complete,
            tied: candidates.messages.ends_before_tie,
            authors: candidates.authors.len(),
            written_by: candidates.messages.authors,
            author_lists: request
                .lists
                .iter()
                .map(|list| {
                    let list = list.cache_key(&request.template, candidates.mark.generation());
                    list.lookup(binlog.row_cache()?)
                })
                .collect(),
            generation: candidates.mark.generation(),
        };
        let (readers, authors) = (candidate_request.readers, candidates.authors);
        let mark = match snapshot {
            // Current candidates are valid for the snapshot if nothing has changed since before it.
            true => {
                let opened = self.transaction_mark?;
                if !binlog.is_unchanged_since(&timeline, opened, &readers, &authors) {
                    return Some(Err(FeedRelayReason::Changed));
                }
                opened
            }
            false => candidates.mark,
        };
        self.candidate_scope = Some(CandidateScope {
            timeline,
            readers,
            authors,
            mark,
        });
        Some(Ok(candidate_set))
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
        let sent_at = self.note_query_sent();
        let read = self
            .backend
            .run_command(payload, capabilities, limit)
            .await?;
        self.note_query_answered(sent_at);
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
            timeline,
            readers,
            authors,
            mark,
        } = named_for;
        let unchanged = binlog.unchanged(&timeline, mark, &readers, &authors).await;
        let unchanged = unchanged && self.confirm_no_functions(true);
        self.proved_since = unchanged.then_some((timeline, mark));
        unchanged
    }

    /// A page of cached rows. If a row is missing among those already named, skips the freshness proof.
    pub(super) async fn cached_page(&mut self, request: &CachedPageRequest) -> Option<CachedPage> {
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let rows = Arc::clone(binlog.row_cache()?);
        let timeline = Arc::clone(&self.candidate_scope.as_ref()?.timeline);
        let identity = self.machine.commands()?.state.server()?.to_vec();
        let of = PageSource {
            timeline_id: timeline.id(),
            cache_key: request.cache_key,
            joined_tables: &request.joined_tables,
        };
        let part = (request.offset, request.limit);
        let authors = request.lists.as_ref().map(|(_, authors)| &**authors);
        let listed_ids_of = |ids: &[u64], authors: &[u64]| match &request.lists {
            None => Some(None),
            Some((lists, _)) => {
                let lists = lists.iter().map(|list| list.lookup(&rows)?);
                let lists: Vec<_> = lists.collect::<Option<_>>()?;
                Some(Some(passing_messages(&lists, ids, authors)))
            }
        };
        let listed_ids = listed_ids_of(&request.named, authors.unwrap_or_default())?;
        let listed_ids = listed_ids.as_deref().unwrap_or(&request.named);
        if !rows.has_page(of, listed_ids, request.exhaustive, part) {
            return None;
        }
        let frame = &request.envelope;
        let make = |named: &CandidateMessages| {
            let front = (frame.head_packets.clone(), frame.sequence);
            let listed_ids = listed_ids_of(&named.ids, &named.authors)?;
            let listed_ids = listed_ids.as_deref().unwrap_or(&named.ids);
            rows.page(of, listed_ids, named.is_complete, part, front)
        };
        let candidate_request = candidate_query(&request.candidates);
        let proves = binlog.must_prove(self.server_was_queried) || self.assumes_no_functions();
        let page = binlog.cached_page(&timeline, &identity, &candidate_request, proves, make);
        let page = page.await?;
        self.confirm_no_functions(proves).then(|| page_reply(page))
    }

    /// Caches the rows of an answer, after its proof.
    fn cache_reply(&mut self, fill: &CacheFill, answer: &[u8]) {
        let proved = self.proved_since.take();
        let state = self.machine.commands().map(|it| &it.state);
        if let (Some((timeline, mark)), Some(binlog)) = (proved, &self.shared.binlog)
            && let Some(identity) = state.and_then(|standing| standing.server())
        {
            binlog.cache_rows(&timeline, identity, mark, fill, answer);
        }
    }

    fn send_reply(
        &mut self,
        waits: WaitingPacket,
        reply: FeedReply,
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
