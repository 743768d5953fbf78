//! A feed's statement: carries out what the decision needs, and tells the client what it comes to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::{Of, Page};

use super::counts::Event;
use super::kept::{Fill, Paged};
use super::lists::passing;
use super::machine::Part;
use super::narrowing::{
    Feeds, Found, Input, Known, Narrowing, Need, PageWant, Policy, Reply, Told, Want,
};
use super::shared::Shared;
use super::slow::Own;
use super::state::{Ended, NamedFor, Session};
use super::who::log_in;
use crate::binlog::{Named, Wish};
use crate::clock;
use crate::feed::template::Retired;
use crate::feed::words::Words;
use crate::feeds::Met;
use crate::session::narrowing::Why;
use crate::session::narrowing::lessons::Lessons;
use crate::statement::Effects;
use crate::wire::frame::HEADER_BYTES;

/// How often it is looked whether another statement has taught what one waits for.
const LOOK: Duration = Duration::from_millis(5);

/// The packet that waits.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    /// Its bytes, header included.
    pub(super) length: usize,
    /// What it may do where it is relayed.
    pub(super) effects: Effects,
    /// It has more statements than the one that is decided about.
    pub(super) part: Option<Part>,
}

impl Waits {
    /// A packet with one statement.
    pub(super) fn alone(length: usize, effects: Effects) -> Waits {
        Waits {
            length,
            effects,
            part: None,
        }
    }
}

impl From<Part> for Waits {
    fn from(part: Part) -> Waits {
        Waits {
            part: Some(part),
            ..Waits::alone(part.length, part.effects)
        }
    }
}

/// What all sessions know of feeds.
pub(super) struct SharedFeeds<'a> {
    pub(super) shared: &'a Shared,
    /// A statement came, and is not only asked about.
    pub(super) came: bool,
}

impl Feeds for SharedFeeds<'_> {
    fn template(&self, database: &[u8], words: &Words, text: &[u8]) -> Known {
        let Some(feeds) = &self.shared.feeds else {
            return Known::Not(Why::Unchecked, None);
        };
        let epoch = self.shared.catalogue.epoch();
        feeds.template(database, words, text, epoch)
    }

    fn are_aside(&self) -> bool {
        let binlog = self.shared.binlog.as_ref();
        binlog.is_some_and(|binlog| binlog.is_aside())
    }

    fn is_galera(&self) -> bool {
        self.shared.is_galera()
    }

    fn lessons(&self) -> Option<&Lessons> {
        let feeds = self.shared.feeds.as_ref().filter(|_| self.came);
        feeds.map(|feeds| feeds.lessons())
    }
}

/// A page as the client is told it.
pub(super) fn paged(page: Page) -> Paged {
    Paged {
        packets: page.packets,
        rows: page.rows,
        found: page.passed,
    }
}

fn wish(want: &Want) -> Wish {
    Wish {
        readers: want.readers.clone(),
        authors: want.authors.clone(),
        range: want.range,
        untied: want.untied,
    }
}

impl Session {
    /// Answers the feed's statement whose packet waits, or has it go on as it is.
    pub(super) async fn feed(&mut self, length: usize, effects: Effects) -> Result<(), Ended> {
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default().to_vec();
        let decision = Narrowing::new(payload, self.narrowing_policy());
        self.narrow(Waits::alone(length, effects), decision).await
    }

    pub(super) fn narrowing_policy(&self) -> Policy {
        let limits = &self.shared.limits;
        Policy {
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
                    .is_some_and(|it| it.rows().is_some()),
        }
    }

    /// Carries out what a decision about the packet that waits needs.
    pub(super) async fn narrow(
        &mut self,
        waits: Waits,
        mut decision: Narrowing,
    ) -> Result<(), Ended> {
        if let Some(met) = self.meet(&decision) {
            return self.relay_feed(waits, met, Some(&decision));
        }
        let mut input = Input::Begin;
        let begun = clock::now();
        if let Some(commands) = self.machine.commands() {
            commands.asks_for_feed();
        }
        self.note_opening();
        loop {
            let need = {
                let Some(commands) = self.machine.commands() else {
                    return self.pass_client(waits.length);
                };
                let feeds = SharedFeeds {
                    shared: &self.shared,
                    came: true,
                };
                decision.next(input, commands, &feeds, clock::now())
            };
            let learns = match need {
                Need::Run(_) => decision.is_learning(),
                _ => matches!(need, Need::Teach(_)),
            };
            // A hidden table has other columns.
            if learns && !self.proves_trust().await {
                input = Input::Unchanged(false);
                if let Need::Teach(_) = need {
                    return self.relay_feed(waits, Some(Why::Changed), Some(&decision));
                }
                continue;
            }
            input = match need {
                Need::Ask(ask) => Input::Answers(self.ask_aside(&ask).await?),
                Need::Candidates(want) => Input::Candidates(self.candidates(&want).await),
                Need::Page(want) => {
                    let alone = waits.part.is_none();
                    Input::Paged(self.feeds_page(&want, waits.length, alone).await?)
                }
                Need::Run(payload) => Input::Reply(self.run_in_place(&payload).await?),
                Need::Prepare(prepare) => Input::Reply(self.prepare_own(&prepare).await?),
                Need::Unchanged => Input::Unchanged(self.are_unchanged().await),
                Need::Await(awaits) => {
                    let feeds = self.shared.feeds.as_ref();
                    while feeds.is_some_and(|it| awaits.is_on(it.lessons(), clock::now())) {
                        tokio::time::sleep(LOOK).await;
                    }
                    Input::Awaited
                }
                Need::Tell(told) => return self.tell(waits, told, &decision, begun),
                Need::Relay(why) => {
                    let effects = match decision.is_plain() && waits.part.is_none() {
                        true => Effects::NONE,
                        false => waits.effects,
                    };
                    let waits = Waits { effects, ..waits };
                    return self.relay_feed(waits, Some(why), Some(&decision));
                }
                Need::Teach(lesson) => {
                    self.shared.counts.add(Event::FeedLearned);
                    if let Some(template) = decision.template() {
                        template.count("learned");
                    }
                    let statement = decision.statement().unwrap_or_default();
                    let (length, effects) = (waits.length, Effects::NONE);
                    let of = self.feed_of(Some(&decision));
                    let relayed = self.relay_execution(length, effects, statement, Some(lesson));
                    self.note_relayed("feed", "learned", of);
                    return relayed;
                }
            };
        }
    }

    /// Meets a statement that names no feed's messages. `None`: it names some; else it is relayed, and this is why if it would be one of
    /// a feed that nobody named.
    fn meet(&mut self, decision: &Narrowing) -> Option<Option<Why>> {
        let feeds = Arc::clone(self.shared.feeds.as_ref()?);
        let commands = self.machine.commands()?;
        let text = decision.text(commands.capabilities)?;
        if feeds.are_named(text) {
            return None;
        }
        let database = commands.standing.database();
        let met = database.map(|database| feeds.meet(database, text));
        Some(match met {
            Some(Met::Suggested) => Some(Why::Suggested),
            Some(Met::Unseen(_)) => Some(Why::Unseen),
            Some(Met::Unknown) | None => None,
        })
    }

    /// What is sent now may open a transaction's snapshot: notes what memory knew before it.
    pub(super) fn note_opening(&mut self) {
        if self.shared.has_feeds()
            && let Some(commands) = self.machine.commands()
            && commands.standing.takes_opening()
        {
            self.opened = self.shared.binlog.as_ref().and_then(|binlog| binlog.mark());
        }
    }

    pub(super) async fn candidates(&mut self, want: &Want) -> Result<Found, Why> {
        self.named_for = None;
        self.named(want).await.ok_or(Why::NotInMemory)?
    }

    async fn named(&mut self, want: &Want) -> Option<Result<Found, Why>> {
        let feeds = self.shared.feeds.as_ref()?;
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let place = feeds.place(want.template.feed, &want.template.database)?;
        let standing = &self.machine.commands()?.standing;
        let identity = standing.server()?.to_vec();
        let snapshot = standing.reads_a_snapshot();
        let wish = wish(want);
        let candidates = binlog.candidates(&place, &identity, &wish).await?;
        let found = Found {
            ids: candidates.named.ids,
            all: candidates.named.all,
            tied: candidates.named.tied,
            authors: candidates.authors.len(),
            written_by: candidates.named.authors,
            listed: want
                .lists
                .iter()
                .map(|list| {
                    let list = list.of(&want.template, candidates.mark.generation());
                    list.look(binlog.rows()?)
                })
                .collect(),
            generation: candidates.mark.generation(),
        };
        let (readers, authors) = (wish.readers, candidates.authors);
        let mark = match snapshot {
            // Candidates of now are those of the snapshot if nothing has changed since before it.
            true => {
                let opened = self.opened?;
                if !binlog.has_spared(&place, opened, &readers, &authors) {
                    return Some(Err(Why::Changed));
                }
                opened
            }
            false => candidates.mark,
        };
        self.named_for = Some(NamedFor {
            place,
            readers,
            authors,
            mark,
        });
        Some(Ok(found))
    }

    pub(super) async fn run_in_place(&mut self, payload: &[u8]) -> Result<Reply, Ended> {
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Ok(Reply {
                bytes: None,
                rows: 0,
                outcome: None,
            });
        };
        let limit = self.shared.limits.tail_bytes;
        self.sent = true;
        let asked = self.note_asks();
        let read = self.backend.run(payload, capabilities, limit).await?;
        self.note_heard(asked);
        Ok(Reply {
            bytes: read.bytes,
            rows: read.rows,
            outcome: read.outcome,
        })
    }

    async fn are_unchanged(&mut self) -> bool {
        let Some(named_for) = self.named_for.take() else {
            return false;
        };
        let Some(binlog) = self.shared.binlog.clone() else {
            return false;
        };
        let NamedFor {
            place,
            readers,
            authors,
            mark,
        } = named_for;
        let unchanged = binlog.unchanged(&place, mark, &readers, &authors).await;
        let unchanged = unchanged && self.is_trusted(true);
        self.proved_since = unchanged.then_some((place, mark));
        unchanged
    }

    /// A page of rows that are kept. Where one is missing among those that were named already, nothing is proved for it.
    pub(super) async fn kept_page(&mut self, want: &PageWant) -> Option<Paged> {
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let rows = Arc::clone(binlog.rows()?);
        let place = Arc::clone(&self.named_for.as_ref()?.place);
        let identity = self.machine.commands()?.standing.server()?.to_vec();
        let of = Of {
            place: place.number(),
            variant: want.variant,
            referred: &want.referred,
        };
        let part = (want.offset, want.limit);
        let authors = want.lists.as_ref().map(|(_, authors)| &**authors);
        let own_of = |ids: &[u64], authors: &[u64]| match &want.lists {
            None => Some(None),
            Some((lists, _)) => {
                let lists = lists.iter().map(|list| list.look(&rows)?);
                let lists: Vec<_> = lists.collect::<Option<_>>()?;
                Some(Some(passing(&lists, ids, authors)))
            }
        };
        let own = own_of(&want.named, authors.unwrap_or_default())?;
        let own = own.as_deref().unwrap_or(&want.named);
        if !rows.has_page(of, own, want.all, part) {
            return None;
        }
        let frame = &want.frame;
        let make = |named: &Named| {
            let front = (frame.head.clone(), frame.sequence);
            let own = own_of(&named.ids, &named.authors)?;
            let own = own.as_deref().unwrap_or(&named.ids);
            rows.page(of, own, named.all, part, front)
        };
        let wish = wish(&want.want);
        let proves = binlog.must_prove(self.sent) || self.is_to_be_trusted();
        let page = binlog.kept_page(&place, &identity, &wish, proves, make);
        let page = page.await?;
        self.is_trusted(proves).then(|| paged(page))
    }

    /// Keeps what an answer says of messages, behind its proof.
    fn keep(&mut self, fill: &Fill, answer: &[u8]) {
        let proved = self.proved_since.take();
        let standing = self.machine.commands().map(|it| &it.standing);
        if let (Some((place, mark)), Some(binlog)) = (proved, &self.shared.binlog)
            && let Some(identity) = standing.and_then(|standing| standing.server())
        {
            binlog.keep(&place, identity, mark, fill, answer);
        }
    }

    fn tell(
        &mut self,
        waits: Waits,
        told: Told,
        decision: &Narrowing,
        begun: Instant,
    ) -> Result<(), Ended> {
        let Told {
            mut bytes,
            outcome,
            narrowed,
            kept,
            fill,
        } = told;
        if let Some(fill) = &fill {
            self.keep(fill, &bytes);
        }
        let promised = match waits.part {
            None => None,
            Some(part) => match self.promise(&mut bytes, &outcome) {
                Some(packets) => Some((part, packets)),
                None => {
                    let long = Why::Retired(Retired::Long);
                    return self.relay_feed(waits, Some(long), Some(decision));
                }
            },
        };
        let (event, what, from) = match (kept, narrowed) {
            (true, _) => (Event::FeedKept, "kept", "memory"),
            (false, true) => (Event::FeedNarrowed, "narrowed", "memory and server"),
            (false, false) => (Event::FeedLearned, "learned", "server"),
        };
        self.shared.counts.add(event);
        let took = clock::since(begun);
        self.shared.watched.statement_took(what, took);
        if let Some(template) = decision.template() {
            template.count(what);
        }
        if let Some(took) = self.took_long() {
            let (of, digest) = self.feed_of(Some(decision));
            let own = Own {
                of,
                digest,
                bytes: Some(bytes.len()),
                error: outcome.error_code(),
                ..Own::new("feed", from)
            };
            self.tell_slow(&took, &own);
        }
        if let Some((part, packets)) = promised {
            return self.tell_first(part, &mut bytes, &outcome, packets);
        }
        self.client_in.drain(..waits.length);
        self.tell_in_place(&mut bytes, Some(&outcome))
    }

    pub(super) fn relay_feed(
        &mut self,
        waits: Waits,
        why: Option<Why>,
        decision: Option<&Narrowing>,
    ) -> Result<(), Ended> {
        let Waits {
            length, effects, ..
        } = waits;
        if let Some(why) = why {
            self.shared.counts.feed_relayed(why);
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
        let of = self.feed_of(decision.filter(|_| why.is_some()));
        let reason = why.map_or("", Why::label);
        let kind = if why.is_some() { "feed" } else { "other" };
        if let Some(statement) = decision.and_then(Narrowing::statement) {
            let relayed = self.relay_execution(length, effects, statement, None);
            self.note_relayed(kind, reason, of);
            return relayed;
        }
        if let Some(commands) = self.machine.commands() {
            commands.relay_feed(effects);
        }
        self.note_relayed(kind, reason, of);
        self.pass_client(length)
    }
}
