//! A tail whose result table is pending: answered from rows that are kept, or by a statement of ours that goes out in its place, and
//! whose reply is looked at before the client is told.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use headwater_rows::PageSource;
use headwater_rows::template::{TemplateCache, TemplateCaches};

use super::call_decision::{FollowUpPageRequest, FollowUpReply, ServedFollowUp};
use super::feed_statements::page_reply;
use super::knowledge::SharedCallKnowledge;
use super::page_comparison::EnvelopedPage;
use super::session_counters::SessionEvent;
use super::slow_statements::{self, AnsweredStatement};
use super::state::{RequestedPage, Session, SessionEnd};
use crate::binlog::{Binlog, CachedTimeline, ReplicationMark, RowsSection};
use crate::clock;
use crate::statement::FollowUpSelect;
use crate::wire::capability::Capabilities;
use crate::wire::packet::HEADER_BYTES;
use crate::wire::reply::ReplyOutcome;

/// What is kept of replies to tails, for all sessions.
#[derive(Debug)]
pub struct FollowUpTemplates {
    section: RowsSection,
    templates: TemplateCaches,
}

/// Texts of tails whose rows are kept.
const TEMPLATE_CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

impl FollowUpTemplates {
    /// Nothing yet.
    #[must_use]
    pub fn new(section: RowsSection) -> FollowUpTemplates {
        FollowUpTemplates {
            section,
            templates: TemplateCaches::new(TEMPLATE_CAPACITY),
        }
    }

    /// What is kept for this text, about messages of this table; `None`: nothing ever is.
    #[must_use]
    pub fn cached_rows(
        &self,
        database: &str,
        table: &str,
        text: &str,
    ) -> Option<Arc<TemplateCache>> {
        let template = || [database, "\0", text].concat();
        let keeps = self.section.caches(database, table);
        keeps.then(|| self.templates.cache_for(template().as_bytes()))
    }
}

/// Where the messages of a tail are kept, and the moment before it.
pub(super) struct FollowUpLocation {
    binlog: Arc<Binlog>,
    timeline: Arc<CachedTimeline>,
    /// The session's server, which is the one whose log is followed.
    identity: Vec<u8>,
    mark: ReplicationMark,
}

impl Session {
    /// Answers the tail whose packet waits; where the reply could differ from the real join's, the
    /// table is written and the packet goes on as it is.
    pub(super) async fn serve_follow_up(
        &mut self,
        length: usize,
        tail: &FollowUpSelect,
    ) -> Result<(), SessionEnd> {
        let Some(own) = self.served_follow_up(tail) else {
            return self.flush_and_relay(length).await;
        };
        let memory = self.follow_up_location();
        if let Some(memory) = &memory {
            let made = self
                .compared_follow_up_page(&own, memory, (length, tail))
                .await?;
            if let Some(EnvelopedPage {
                page: paged,
                envelope: frame,
            }) = made
            {
                let rows = paged.rows;
                let (mut bytes, outcome) = paged.reply(&frame);
                self.follow_up_answered(length, SessionEvent::FollowUpCached);
                self.log_slow_follow_up("memory", rows, bytes.len(), &outcome);
                return self.reply_in_place(&mut bytes, Some(&outcome));
            }
        }
        let Some((payload, capabilities)) = self.follow_up_statement(&own, length, tail) else {
            return self.flush_and_relay(length).await;
        };
        let limit = self.shared.limits.tail_bytes;
        self.server_was_queried = true;
        let begun = clock::now();
        let asked = self.note_query_sent();
        let mut read = self
            .backend
            .run_command(&payload, capabilities, limit)
            .await?;
        self.note_query_answered(asked);
        let reply = own.judge(read.outcome.as_ref(), read.rows, read.bytes.is_some());
        let Some(bytes) = read
            .bytes
            .as_mut()
            .filter(|_| reply != FollowUpReply::Discard)
        else {
            self.shared.counters.add(SessionEvent::FollowUpRetried);
            return self.flush_and_relay(length).await;
        };
        match &read.outcome {
            Some(ReplyOutcome::Ok(_)) => {
                own.put_flags(bytes, capabilities);
                if let Some(memory) = memory {
                    self.cache_follow_up(&own, tail, memory, bytes, begun);
                }
                self.follow_up_answered(length, SessionEvent::FollowUpVirtual);
            }
            _ => drop(self.client_in.drain(..length)),
        }
        if let Some(outcome) = &read.outcome {
            self.log_slow_follow_up("memory and server", read.rows, bytes.len(), outcome);
        }
        self.reply_in_place(bytes, read.outcome.as_ref())
    }

    /// A tail was answered so.
    fn log_slow_follow_up(
        &mut self,
        from: &'static str,
        rows: u64,
        bytes: usize,
        outcome: &ReplyOutcome,
    ) {
        if let Some(took) = self.take_slow_duration() {
            let pending = self
                .machine
                .commands()
                .and_then(|it| it.tables.pending.as_ref());
            let definition = pending.map(|pending| pending.definition);
            let own = AnsweredStatement {
                owner: slow_statements::definition_name(&self.shared, definition),
                rows: Some(rows),
                bytes: Some(bytes),
                error: outcome.error_code(),
                ..AnsweredStatement::new("tail", from)
            };
            self.log_slow(&took, &own);
        }
    }

    /// The tail is answered, and its packet gone: what it leaves behind is the session's.
    fn follow_up_answered(&mut self, length: usize, event: SessionEvent) {
        let text = self.client_in.drain(..length).skip(HEADER_BYTES).collect();
        if let Some(commands) = self.machine.commands()
            && let Some(pending) = &mut commands.tables.pending
        {
            pending.follow_up_answered(text);
        }
        self.shared.counters.add(event);
    }

    /// Where messages of the call before the tail are kept, if it was looked for there.
    fn follow_up_location(&mut self) -> Option<FollowUpLocation> {
        self.shared
            .follow_ups
            .as_ref()
            .filter(|_| !self.distrusts_rows())?;
        let commands = self.machine.commands()?;
        let definition = commands.tables.pending.as_ref()?.definition;
        let RequestedPage {
            timeline: place,
            request: want,
            ..
        } = self.requested_page.as_ref()?;
        let same =
            want.definition == definition && commands.state.database() == Some(&want.database[..]);
        let binlog = self.shared.binlog.as_ref().filter(|_| same)?;
        // One that reads what is not committed has none.
        let identity = commands.state.server()?.to_vec();
        let mark = binlog.mark_of(place, &identity)?;
        Some(FollowUpLocation {
            binlog: Arc::clone(binlog),
            timeline: Arc::clone(place),
            identity,
            mark,
        })
    }

    /// The page made of rows that are kept, if all of them are.
    pub(super) async fn cached_follow_up(
        &mut self,
        own: &ServedFollowUp,
        memory: &FollowUpLocation,
    ) -> Option<EnvelopedPage> {
        let FollowUpLocation {
            binlog,
            timeline: place,
            identity,
            mark,
        } = memory;
        let ttl = self.shared.privileges_ttl;
        let commands = self.machine.commands()?;
        let want = own.page_request(commands, mark.generation(), ttl, clock::now())?;
        let FollowUpPageRequest {
            cache_key: variant,
            envelope: frame,
        } = want;
        let rows = binlog.row_cache()?;
        let of = PageSource {
            timeline_id: place.id(),
            cache_key: variant,
            joined_tables: &[],
        };
        let part = (0, own.limit);
        let mut page = None;
        // Where one is missing, nothing is proved for it.
        if rows.has_page(of, &own.ids, own.whole, part) {
            let make = || {
                let front = (frame.head_packets.clone(), frame.sequence);
                rows.page(of, &own.ids, own.whole, part, front)
            };
            let proves = !self.is_proved() && binlog.must_prove(self.server_was_queried);
            let proves = proves || self.relies_on_trust();
            page = binlog
                .read_consistently(place, identity, proves, make)
                .await;
            page = page.filter(|_| self.confirm_trust(proves));
        }
        own.note_page_attempt(page.is_some());
        let paged = page_reply(page?);
        Some(EnvelopedPage {
            page: paged,
            envelope: frame,
        })
    }

    /// True where what waits is the rest of a command whose call was answered from memory just now: that was proved to be fresh behind
    /// the command, and the server has been asked nothing since.
    fn is_proved(&mut self) -> bool {
        let rest = self
            .machine
            .commands()
            .is_some_and(|it| it.continues_command());
        rest && self.call_was_proved && !self.server_was_queried
    }

    /// Keeps what the server's reply says of messages.
    fn cache_follow_up(
        &mut self,
        own: &ServedFollowUp,
        tail: &FollowUpSelect,
        memory: FollowUpLocation,
        reply: &[u8],
        begun: Instant,
    ) {
        let generation = memory.mark.generation();
        let Some(commands) = self.machine.commands() else {
            return;
        };
        // It may be another table's.
        if commands.state.assumes_no_functions() {
            return;
        }
        if let Some(fill) = own.cache_fill(tail, reply, commands, generation, begun) {
            let FollowUpLocation {
                binlog,
                timeline: place,
                identity,
                mark,
            } = memory;
            binlog.cache_rows_later(place, identity, mark, fill, reply.to_vec());
        }
    }

    /// Tells the client the reply to a statement of ours, as one to its own, whose packet is gone by now.
    pub(super) fn reply_in_place(
        &mut self,
        bytes: &mut [u8],
        outcome: Option<&ReplyOutcome>,
    ) -> Result<(), SessionEnd> {
        let frames = self.frames_before_last();
        if let Some(commands) = self.machine.commands() {
            commands.numbered(bytes, frames);
            match outcome {
                Some(ReplyOutcome::Ok(ok)) => commands.state.observe(ok),
                _ => commands.state.observe_error(),
            }
        }
        self.send_to_client(bytes)
    }

    /// What is needed to answer the tail that waits.
    fn served_follow_up(&mut self, tail: &FollowUpSelect) -> Option<ServedFollowUp> {
        let commands = self.machine.commands()?;
        let known = SharedCallKnowledge::new(&self.shared, &self.definer_rights);
        ServedFollowUp::new(tail, commands, &known)
    }

    /// The statement of ours in the place of the tail that waits.
    pub(super) fn follow_up_statement(
        &mut self,
        own: &ServedFollowUp,
        length: usize,
        tail: &FollowUpSelect,
    ) -> Option<(Vec<u8>, Capabilities)> {
        let capabilities = self.machine.commands()?.capabilities;
        let packet = self.client_in.get(HEADER_BYTES..length)?;
        Some((own.statement(tail, packet, capabilities)?, capabilities))
    }
}
