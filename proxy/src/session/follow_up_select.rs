//! A follow-up SELECT whose result table is pending: answered from cached rows, or by an internal statement in its place, whose reply is
//! examined before the client gets it.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use headwater_rows::PageSource;
use headwater_rows::template::{CacheKeyTable, CacheKeyTables};

use super::feed_statements::page_reply;
use super::knowledge::SharedCallKnowledge;
use super::memory_access::CalledTimeline;
use super::page_comparison::EnvelopedPage;
use super::session_counters::SessionEvent;
use super::slow_statements::{self, AnsweredStatement};
use super::state::{Session, SessionEnd};
use crate::binlog::{Binlog, CachedTimeline, ReplicationMark, RowsSection};
use crate::clock;
use headwater_session::call_decision::{FollowUpPageRequest, FollowUpReply, ServedFollowUp};
use headwater_statement::FollowUpSelect;
use headwater_wire::capability::Capabilities;
use headwater_wire::packet::HEADER_BYTES;
use headwater_wire::reply::ReplyOutcome;

/// The cached rows of follow-up SELECTs, for all sessions.
#[derive(Debug)]
pub struct FollowUpTemplates {
    section: RowsSection,
    templates: CacheKeyTables,
}

/// Texts of follow-up SELECTs whose rows are cached.
const TEMPLATE_CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

impl FollowUpTemplates {
    /// An empty cache.
    #[must_use]
    pub fn new(section: RowsSection) -> FollowUpTemplates {
        FollowUpTemplates {
            section,
            templates: CacheKeyTables::new(TEMPLATE_CAPACITY),
        }
    }

    /// The cached rows for this text, about messages of this table; `None`: its rows are never cached.
    #[must_use]
    pub fn cache_keys(
        &self,
        database: &str,
        table: &str,
        text: &str,
    ) -> Option<Arc<CacheKeyTable>> {
        let template = || [database, "\0", text].concat();
        let keeps = self.section.caches(database, table);
        keeps.then(|| self.templates.cache_for(template().as_bytes()))
    }
}

/// The memory that holds a follow-up SELECT's messages, and the moment before the SELECT.
pub(super) struct FollowUpLocation {
    binlog: Arc<Binlog>,
    timeline: Arc<CachedTimeline>,
    /// The session's server, whose log is followed.
    identity: Vec<u8>,
    mark: ReplicationMark,
}

impl Session {
    /// Serves the waiting follow-up SELECT. If the reply could differ from the real join's, writes the table and relays the packet.
    pub(super) async fn serve_follow_up(
        &mut self,
        length: usize,
        follow_up: &FollowUpSelect,
    ) -> Result<(), SessionEnd> {
        let Some(served) = self.served_follow_up(follow_up) else {
            return self.flush_and_relay(length).await;
        };
        let memory = self.follow_up_location();
        if let Some(memory) = &memory {
            let built = self
                .compared_follow_up_page(&served, memory, (length, follow_up))
                .await?;
            if let Some(EnvelopedPage {
                page: paged,
                envelope: frame,
            }) = built
            {
                let rows = paged.rows;
                let (mut bytes, outcome) = paged.reply(&frame);
                self.follow_up_answered(length, SessionEvent::FollowUpCached);
                self.log_slow_follow_up("memory", rows, bytes.len(), &outcome);
                return self.reply_in_place(&mut bytes, Some(&outcome));
            }
        }
        let Some((payload, capabilities)) = self.follow_up_statement(&served, length, follow_up)
        else {
            return self.flush_and_relay(length).await;
        };
        let begun = clock::now();
        let mut read = self.run_in_place(&payload).await?;
        let reply = served.judge(read.outcome.as_ref(), read.rows, read.bytes.is_some());
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
                served.put_flags(bytes, capabilities);
                if let Some(memory) = memory {
                    self.cache_follow_up(&served, follow_up, memory, bytes, begun);
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

    /// Logs a served follow-up SELECT, if it was slow.
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
            let answered = AnsweredStatement {
                owner: slow_statements::definition_name(&self.shared, definition),
                rows: Some(rows),
                bytes: Some(bytes),
                error: outcome.error_code(),
                ..AnsweredStatement::new("tail", from)
            };
            self.log_slow(&took, &answered);
        }
    }

    /// The follow-up SELECT is answered: consumes its packet, and records its effects on the session.
    fn follow_up_answered(&mut self, length: usize, event: SessionEvent) {
        let text = self.client_in.drain(..length).skip(HEADER_BYTES).collect();
        if let Some(commands) = self.machine.commands()
            && let Some(pending) = &mut commands.tables.pending
        {
            pending.follow_up_answered(text);
        }
        self.shared.counters.add(event);
    }

    /// The memory of the messages of the preceding call, if the call requested it.
    fn follow_up_location(&mut self) -> Option<FollowUpLocation> {
        self.shared
            .follow_ups
            .as_ref()
            .filter(|_| !self.distrusts_rows())?;
        let commands = self.machine.commands()?;
        let definition = commands.tables.pending.as_ref()?.definition;
        let CalledTimeline {
            definition: called,
            database,
            timeline,
        } = self.called_timeline.as_ref()?;
        let same = *called == definition && commands.state.database() == Some(&database[..]);
        let binlog = self.shared.binlog.as_ref().filter(|_| same)?;
        // A session that reads uncommitted rows has none.
        let identity = commands.state.server()?.to_vec();
        let mark = binlog.mark_of(timeline, &identity)?;
        Some(FollowUpLocation {
            binlog: Arc::clone(binlog),
            timeline: Arc::clone(timeline),
            identity,
            mark,
        })
    }

    /// The page of cached rows, if all of them are cached.
    pub(super) async fn cached_follow_up(
        &mut self,
        served: &ServedFollowUp,
        memory: &FollowUpLocation,
    ) -> Option<EnvelopedPage> {
        let FollowUpLocation {
            binlog,
            timeline,
            identity,
            mark,
        } = memory;
        let rights = (&self.shared.account_rights, self.shared.privileges_ttl);
        let commands = self.machine.commands()?;
        let page_request =
            served.page_request(commands, mark.generation(), rights, clock::now())?;
        let FollowUpPageRequest {
            cache_key: variant,
            envelope: frame,
        } = page_request;
        let rows = binlog.row_cache()?;
        let of = PageSource {
            timeline_id: timeline.id(),
            cache_key: variant,
            joined_tables: &[],
        };
        let part = (0, served.limit);
        let mut page = None;
        // If a row is missing, skip the freshness proof.
        if rows.has_page(of, &served.ids, served.whole, part) {
            let make = || {
                let front = (frame.head_packets.clone(), frame.sequence);
                rows.page(of, &served.ids, served.whole, part, front)
            };
            let proves = !self.is_proved() && binlog.must_prove(self.server_was_queried);
            let proves = proves || self.assumes_no_functions();
            page = binlog
                .read_consistently(timeline, identity, proves, make)
                .await;
            page = page.filter(|_| self.confirm_no_functions(proves));
        }
        served.note_page_attempt(page.is_some());
        let paged = page_reply(page?);
        Some(EnvelopedPage {
            page: paged,
            envelope: frame,
        })
    }

    /// True if the waiting SELECT is the remainder of a command whose call was just answered from memory, with a proof after the command
    /// began, and the server has been sent nothing since.
    fn is_proved(&mut self) -> bool {
        let rest = self
            .machine
            .commands()
            .is_some_and(|it| it.continues_command());
        rest && self.call_was_proved && !self.server_was_queried
    }

    /// Caches the rows of the server's reply.
    fn cache_follow_up(
        &mut self,
        served: &ServedFollowUp,
        follow_up: &FollowUpSelect,
        memory: FollowUpLocation,
        reply: &[u8],
        begun: Instant,
    ) {
        let generation = memory.mark.generation();
        let Some(commands) = self.machine.commands() else {
            return;
        };
        let rights = (&self.shared.account_rights, self.shared.privileges_ttl);
        // It may be another table's.
        if commands.state.assumes_no_functions() {
            return;
        }
        if let Some(fill) =
            served.cache_fill(follow_up, reply, (commands, rights), generation, begun)
        {
            let FollowUpLocation {
                binlog,
                timeline,
                identity,
                mark,
            } = memory;
            binlog.cache_rows_later(timeline, identity, mark, fill, reply.to_vec());
        }
    }

    /// Sends the client the reply to an internal statement as the reply to its own, whose packet is consumed already.
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

    /// Everything needed to serve the waiting follow-up SELECT.
    fn served_follow_up(&mut self, follow_up: &FollowUpSelect) -> Option<ServedFollowUp> {
        let commands = self.machine.commands()?;
        let known = SharedCallKnowledge::new(&self.shared, &self.definer_rights);
        ServedFollowUp::new(follow_up, commands, &known)
    }

    /// The internal statement that replaces the waiting follow-up SELECT.
    pub(super) fn follow_up_statement(
        &mut self,
        served: &ServedFollowUp,
        length: usize,
        follow_up: &FollowUpSelect,
    ) -> Option<(Vec<u8>, Capabilities)> {
        let capabilities = self.machine.commands()?.capabilities;
        let packet = self.client_in.get(HEADER_BYTES..length)?;
        Some((
            served.statement(follow_up, packet, capabilities)?,
            capabilities,
        ))
    }
}
