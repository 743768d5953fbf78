//! A tail whose result table is pending: answered from rows that are kept, or by a statement of ours that goes out in its place, and
//! whose reply is looked at before the client is told.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use headwater_rows::Of;
use headwater_rows::template::{KeptRows, Templates};

use super::counts::Event;
use super::feed::paged;
use super::knowledge::SharedKnowledge;
use super::overlooked::Made;
use super::ownership::{OwnTail, TailReply, TailWant};
use super::slow::{self, Own};
use super::state::{Ended, Session, Wanted};
use crate::binlog::{Binlog, Mark, Place, RowsSection};
use crate::clock;
use crate::statement::Tail;
use crate::wire::capability::Capabilities;
use crate::wire::frame::HEADER_BYTES;
use crate::wire::reply::Outcome;

/// What is kept of replies to tails, for all sessions.
#[derive(Debug)]
pub struct Tails {
    section: RowsSection,
    templates: Templates,
}

/// Texts of tails whose rows are kept.
const TEXTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

impl Tails {
    /// Nothing yet.
    #[must_use]
    pub fn new(section: RowsSection) -> Tails {
        Tails {
            section,
            templates: Templates::new(TEXTS),
        }
    }

    /// What is kept for this text, about messages of this table; `None`: nothing ever is.
    #[must_use]
    pub fn rows_of(&self, database: &str, table: &str, text: &str) -> Option<Arc<KeptRows>> {
        let template = || [database, "\0", text].concat();
        let keeps = self.section.keeps(database, table);
        keeps.then(|| self.templates.of(template().as_bytes()))
    }
}

/// Where the messages of a tail are kept, and the moment before it.
pub(super) struct Memory {
    binlog: Arc<Binlog>,
    place: Arc<Place>,
    /// The session's server, which is the one whose log is followed.
    identity: Vec<u8>,
    mark: Mark,
}

impl Session {
    /// Answers the tail whose packet waits; where the reply could differ from the real join's, the
    /// table is written and the packet goes on as it is.
    pub(super) async fn tail(&mut self, length: usize, tail: &Tail) -> Result<(), Ended> {
        let Some(own) = self.own_tail(tail) else {
            return self.settle_and_pass(length).await;
        };
        let memory = self.memory_of_tail();
        if let Some(memory) = &memory {
            let made = self.tails_page(&own, memory, (length, tail)).await?;
            if let Some(Made { paged, frame }) = made {
                let rows = paged.rows;
                let (mut bytes, outcome) = paged.reply(&frame);
                self.tail_is_answered(length, Event::TailKept);
                self.note_tail("memory", rows, bytes.len(), &outcome);
                return self.tell_in_place(&mut bytes, Some(&outcome));
            }
        }
        let Some((payload, capabilities)) = self.statement_of(&own, length, tail) else {
            return self.settle_and_pass(length).await;
        };
        let limit = self.shared.limits.tail_bytes;
        self.sent = true;
        let begun = clock::now();
        let asked = self.note_asks();
        let mut read = self.backend.run(&payload, capabilities, limit).await?;
        self.note_heard(asked);
        let reply = own.judge(read.outcome.as_ref(), read.rows, read.bytes.is_some());
        let Some(bytes) = read.bytes.as_mut().filter(|_| reply != TailReply::PutAside) else {
            self.shared.counts.add(Event::TailRetried);
            return self.settle_and_pass(length).await;
        };
        match &read.outcome {
            Some(Outcome::Ok(_)) => {
                own.put_flags(bytes, capabilities);
                if let Some(memory) = memory {
                    self.keep_tail(&own, tail, memory, bytes, begun);
                }
                self.tail_is_answered(length, Event::TailVirtual);
            }
            _ => drop(self.client_in.drain(..length)),
        }
        if let Some(outcome) = &read.outcome {
            self.note_tail("memory and server", read.rows, bytes.len(), outcome);
        }
        self.tell_in_place(bytes, read.outcome.as_ref())
    }

    /// A tail was answered so.
    fn note_tail(&mut self, from: &'static str, rows: u64, bytes: usize, outcome: &Outcome) {
        if let Some(took) = self.took_long() {
            let pending = self
                .machine
                .commands()
                .and_then(|it| it.tables.pending.as_ref());
            let definition = pending.map(|pending| pending.definition);
            let own = Own {
                of: slow::definition(&self.shared, definition),
                rows: Some(rows),
                bytes: Some(bytes),
                error: outcome.error_code(),
                ..Own::new("tail", from)
            };
            self.tell_slow(&took, &own);
        }
    }

    /// The tail is answered, and its packet gone: what it leaves behind is the session's.
    fn tail_is_answered(&mut self, length: usize, event: Event) {
        let text = self.client_in.drain(..length).skip(HEADER_BYTES).collect();
        if let Some(commands) = self.machine.commands()
            && let Some(pending) = &mut commands.tables.pending
        {
            pending.answered(text);
        }
        self.shared.counts.add(event);
    }

    /// Where messages of the call before the tail are kept, if it was looked for there.
    fn memory_of_tail(&mut self) -> Option<Memory> {
        self.shared
            .tails
            .as_ref()
            .filter(|_| !self.distrusts_rows())?;
        let commands = self.machine.commands()?;
        let definition = commands.tables.pending.as_ref()?.definition;
        let Wanted { place, want, .. } = self.wanted.as_ref()?;
        let same = want.definition == definition
            && commands.standing.database() == Some(&want.database[..]);
        let binlog = self.shared.binlog.as_ref().filter(|_| same)?;
        // One that reads what is not committed has none.
        let identity = commands.standing.server()?.to_vec();
        let mark = binlog.mark_of(place, &identity)?;
        Some(Memory {
            binlog: Arc::clone(binlog),
            place: Arc::clone(place),
            identity,
            mark,
        })
    }

    /// The page made of rows that are kept, if all of them are.
    pub(super) async fn kept_tail(&mut self, own: &OwnTail, memory: &Memory) -> Option<Made> {
        let Memory {
            binlog,
            place,
            identity,
            mark,
        } = memory;
        let ttl = self.shared.privileges_ttl;
        let commands = self.machine.commands()?;
        let want = own.page_want(commands, mark.generation(), ttl, clock::now())?;
        let TailWant { variant, frame } = want;
        let rows = binlog.rows()?;
        let of = Of {
            place: place.number(),
            variant,
            referred: &[],
        };
        let part = (0, own.limit);
        let mut page = None;
        // Where one is missing, nothing is proved for it.
        if rows.has_page(of, &own.ids, own.whole, part) {
            let make = || {
                let front = (frame.head.clone(), frame.sequence);
                rows.page(of, &own.ids, own.whole, part, front)
            };
            let proves = !self.is_proved() && binlog.must_prove(self.sent);
            let proves = proves || self.is_to_be_trusted();
            page = binlog.of_one_moment(place, identity, proves, make).await;
            page = page.filter(|_| self.is_trusted(proves));
        }
        own.tried(page.is_some());
        let paged = paged(page?);
        Some(Made { paged, frame })
    }

    /// True where what waits is the rest of a command whose call was answered from memory just now: that was proved to be fresh behind
    /// the command, and the server has been asked nothing since.
    fn is_proved(&mut self) -> bool {
        let rest = self.machine.commands().is_some_and(|it| it.goes_on_now());
        rest && self.proved_call && !self.sent
    }

    /// Keeps what the server's reply says of messages.
    fn keep_tail(
        &mut self,
        own: &OwnTail,
        tail: &Tail,
        memory: Memory,
        reply: &[u8],
        begun: Instant,
    ) {
        let generation = memory.mark.generation();
        let Some(commands) = self.machine.commands() else {
            return;
        };
        // It may be another table's.
        if commands.standing.trusts() {
            return;
        }
        if let Some(fill) = own.fill(tail, reply, commands, generation, begun) {
            let Memory {
                binlog,
                place,
                identity,
                mark,
            } = memory;
            binlog.keep_later(place, identity, mark, fill, reply.to_vec());
        }
    }

    /// Tells the client the reply to a statement of ours, as one to its own, whose packet is gone by now.
    pub(super) fn tell_in_place(
        &mut self,
        bytes: &mut [u8],
        outcome: Option<&Outcome>,
    ) -> Result<(), Ended> {
        let frames = self.frames_before_last();
        if let Some(commands) = self.machine.commands() {
            commands.numbered(bytes, frames);
            match outcome {
                Some(Outcome::Ok(ok)) => commands.standing.observe(ok),
                _ => commands.standing.observe_error(),
            }
        }
        self.tell_client(bytes)
    }

    /// What is needed to answer the tail that waits.
    fn own_tail(&mut self, tail: &Tail) -> Option<OwnTail> {
        let commands = self.machine.commands()?;
        let known = SharedKnowledge::new(&self.shared, &self.definer_rights);
        OwnTail::new(tail, commands, &known)
    }

    /// The statement of ours in the place of the tail that waits.
    pub(super) fn statement_of(
        &mut self,
        own: &OwnTail,
        length: usize,
        tail: &Tail,
    ) -> Option<(Vec<u8>, Capabilities)> {
        let capabilities = self.machine.commands()?.capabilities;
        let packet = self.client_in.get(HEADER_BYTES..length)?;
        Some((own.statement(tail, packet, capabilities)?, capabilities))
    }
}
