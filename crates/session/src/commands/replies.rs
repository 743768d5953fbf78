//! The server's replies: how far each has come, and what its end means for what is known of the session.

use headwater_wire::frame::{self, Header};
use headwater_wire::reply::{Event, LocalData, Outcome, Reply};
use headwater_wire::status;

use super::Commands;
use super::in_flight::{After, Served};
use crate::frames::Renumbered;
use crate::legs::refusal;
use crate::narrowing::Lesson;
use crate::rights::denies_definer;
use crate::standing::{Standing, Transaction};

impl Commands {
    /// How many of the waiting bytes go to the client.
    pub(crate) fn server(&mut self, input: &[u8]) -> Served {
        let mut passed = 0;
        while let Some(rest) = input.get(passed..).filter(|rest| !rest.is_empty()) {
            if passed > 0 && self.renumbered != Renumbered::Nobodys {
                break;
            }
            let meet = self.frames.meet();
            let Some(front) = self.in_flight.front_mut() else {
                // The server speaks unasked only to say good-bye (WIRE: wait_timeout, KILL).
                return Served::Pass(input.len());
            };
            if meet && !front.begun {
                break;
            }
            if front.authenticates() && self.agreed.is_mixed() {
                let Some(packet) = frame::whole(rest) else {
                    break;
                };
                match self.agreed.obstacle(packet) {
                    Some(why) if passed == 0 => {
                        let seq = Header::parse(rest).map_or(2, |header| header.seq);
                        return Served::Refuse(refusal(front.told_number(seq), why));
                    }
                    Some(_) => break,
                    None => {}
                }
            }
            if front.renumber.is_some() && passed > 0 {
                break;
            }
            let step = front.reply.feed(rest);
            front.spoken |= step.consumed > 0;
            if let Some(Event::Unfollowable) = step.event
                && self.renumbered != Renumbered::Nobodys
            {
                return front.unfollowable(self.renumbered);
            }
            let own = front
                .renumber
                .as_mut()
                .map(|renumber| renumber.renumbered(rest.get(..step.consumed).unwrap_or_default()));
            passed += step.consumed;
            front.heard(self.renumbered, step.event.as_ref());
            match step.event {
                None if step.consumed == 0 => break,
                None | Some(Event::ClientAuth) => {}
                Some(Event::ClientData) => front.client_data = Some(LocalData::new()),
                Some(Event::Done(outcome)) => {
                    if let Some(mut ended) = self.in_flight.pop_front() {
                        self.note_took(&mut ended, &outcome);
                        if let Some(noted) = ended.noted {
                            self.note_ended(*noted, &outcome, ended.reply.rows());
                        }
                        self.end(ended.after, outcome, &mut ended.reply);
                    }
                }
                Some(Event::Unfollowable) => return Served::Unfollowable,
            }
            if let Some(own) = own.filter(|own| !own.is_empty()) {
                return Served::Replace(passed, own);
            }
        }
        Served::Pass(passed)
    }

    /// The number of an error that can be told in the place of a reply, as things stand: one is due, and nothing of it has been told. `waits`:
    /// a command has come that was not passed on.
    #[must_use]
    pub fn owes(&self, waits: bool) -> Option<u8> {
        // Who counts otherwise is told nothing.
        if self.passing.is_some() || self.renumbered != Renumbered::Nobodys || self.frames.meet() {
            return None;
        }
        match self.in_flight.front() {
            Some(front) => {
                let fit = !front.spoken && !front.continues && front.client_data.is_none();
                (fit && !front.authenticates() && front.renumber.is_none()).then_some(1)
            }
            None => match self.told {
                Some(told) => Some(told.wrapping_add(1)),
                None => waits.then_some(1),
            },
        }
    }

    /// The reply that comes now, where its bytes go to the client as they are.
    fn relayed_reply(&mut self) -> Option<&mut Reply> {
        let front = self.in_flight.front_mut()?;
        let as_it_is = self.renumbered == Renumbered::Nobodys && front.renumber.is_none();
        as_it_is.then_some(&mut front.reply)
    }

    /// How many of the server's next bytes may go to the client unseen.
    pub fn row_ahead(&mut self) -> usize {
        self.relayed_reply().map_or(0, |reply| reply.row_ahead())
    }

    /// So many of them did.
    pub fn row_passed(&mut self, bytes: usize) {
        if let Some(reply) = self.relayed_reply() {
            reply.row_passed(bytes);
        }
    }

    /// Takes in how the reply to an own command ended.
    pub fn observe(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Ok(ok) => self.standing.observe(ok),
            Outcome::Err(_) => self.standing.observe_error(),
            Outcome::Prepared(_) | Outcome::Silent | Outcome::Text => {}
        }
    }

    /// True once after a command that may have changed a definition has ended.
    pub fn take_definition_touched(&mut self) -> bool {
        std::mem::take(&mut self.definition_touched)
    }

    /// True once after a relayed call was denied for want of its procedure's definer's rights.
    pub fn take_definer_denied(&mut self) -> bool {
        std::mem::take(&mut self.definer_denied)
    }

    /// An execution that is learned from, once after it has ended.
    pub fn take_lesson(&mut self) -> Option<Lesson> {
        self.lesson.take().map(|lesson| *lesson)
    }

    fn end(&mut self, after: After, outcome: Outcome, reply: &mut Reply) {
        self.definition_touched |= std::mem::take(&mut self.touching);
        if reply.responses() > 1 {
            // Only those behind the last statement are counted in it.
            self.standing.may_hold_conditions();
        }
        let told = reply.take_columns();
        if let After::Executed(statement, lesson) = after {
            self.prepared.heard(statement, told);
            if let (Some(mut lesson), Outcome::Ok(ok)) = (lesson, &outcome) {
                let columns = self.prepared.told(statement).cloned();
                lesson.hear(ok, columns, reply.behind_columns());
                self.lesson = Some(lesson);
            }
            if let Outcome::Err(_) = outcome {
                self.prepared.failed(statement);
            }
            return self.observe(&outcome);
        }
        match outcome {
            Outcome::Ok(ok) => {
                let ends = ok.status & status::IN_TRANS == 0
                    && self.standing.transaction() == Transaction::Open;
                // What was sent behind it may set the next one's.
                if ends && self.in_flight.is_empty() {
                    self.standing.one_shot_ended();
                }
                match after {
                    After::Nothing => {}
                    After::ProcedureCall(_) | After::TransactionEnded
                        // What was sent behind it may set the next one's.
                        if ok.status & status::IN_TRANS == 0 && self.in_flight.is_empty() =>
                    {
                        self.standing.one_shot_ended();
                    }
                    After::ProcedureCall(_) | After::TransactionEnded => {}
                    After::InitDb(database) => self.standing.enter(Some(database)),
                    After::Login {
                        database,
                        account,
                        certain,
                    } => {
                        self.standing = Standing::new(database);
                        if !certain {
                            self.standing.doubt_database();
                        }
                        if let Some(account) = account {
                            self.account = account;
                        }
                    }
                    After::Named(name, call) => self.prepared.name(name, *call),
                    After::NamedFeed(name, feed) => {
                        let (feed, effects) = *feed;
                        self.prepared.name_feed(name, feed, effects);
                    }
                    After::MultiStatements(on) => self.multi_statements = on,
                    After::Prepared(_) | After::Executed(..) => {}
                }
                self.standing.observe(&ok);
            }
            Outcome::Err(error) => {
                match after {
                    After::Login { .. } => self.standing = Standing::new(None),
                    After::ProcedureCall(statement) => {
                        self.definer_denied |= denies_definer(error.code);
                        if let Some(statement) = statement {
                            self.prepared.failed(statement);
                        }
                    }
                    _ => {}
                }
                self.standing.observe_error();
            }
            Outcome::Prepared(prepared) => {
                if prepared.warnings != 0 {
                    self.standing.may_hold_conditions();
                }
                if let After::Prepared(text) = after {
                    self.prepared.insert(*text, prepared, told);
                }
            }
            Outcome::Silent | Outcome::Text => {}
        }
    }
}
