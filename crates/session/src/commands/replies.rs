//! The server's replies: the progress of each, and what its end changes in the known session state.

use headwater_wire::packet::{self, PacketHeader};
use headwater_wire::reply::{LocalInfileFollower, ReplyEvent, ReplyFollower, ReplyOutcome};
use headwater_wire::status;

use super::CommandPhase;
use super::in_flight::{ReplyCompletion, ReplyStep};
use crate::compression_frames::RenumberedSide;
use crate::definer_rights::denies_definer;
use crate::feed_decision::MetadataSample;
use crate::session_state::{SessionState, TransactionState};
use crate::tls_policy::refusal;

impl CommandPhase {
    /// The step for the bytes that wait from the server.
    pub(crate) fn server(&mut self, input: &[u8]) -> ReplyStep {
        let mut passed = 0;
        while let Some(rest) = input.get(passed..).filter(|rest| !rest.is_empty()) {
            if passed > 0 && self.renumbered_side != RenumberedSide::Neither {
                break;
            }
            let meet = self.compression_frames.both_compressed();
            let Some(front) = self.in_flight.front_mut() else {
                // Without a command the server sends only its farewell (WIRE: wait_timeout, KILL).
                return ReplyStep::Pass(input.len());
            };
            if meet && !front.shift_known {
                break;
            }
            if front.authenticates() && self.agreed.is_mixed() {
                let Some(packet) = packet::complete_payload(rest) else {
                    break;
                };
                match self.agreed.obstacle(packet) {
                    Some(reason) if passed == 0 => {
                        let seq = PacketHeader::parse(rest).map_or(2, |header| header.seq);
                        return ReplyStep::Refuse(refusal(front.client_sequence(seq), reason));
                    }
                    Some(_) => break,
                    None => {}
                }
            }
            if front.renumber.is_some() && passed > 0 {
                break;
            }
            let step = front.reply.feed(rest);
            front.reply_started |= step.consumed > 0;
            if let Some(ReplyEvent::Unfollowable) = step.event
                && self.renumbered_side != RenumberedSide::Neither
            {
                return front.unfollowable_reply(self.renumbered_side);
            }
            let renumbered = front
                .renumber
                .as_mut()
                .map(|renumber| renumber.rewritten(rest.get(..step.consumed).unwrap_or_default()));
            passed += step.consumed;
            front.server_spoke(self.renumbered_side, step.event.as_ref());
            match step.event {
                None if step.consumed == 0 => break,
                None | Some(ReplyEvent::ClientAuth) => {}
                Some(ReplyEvent::ClientData) => {
                    front.client_data = Some(LocalInfileFollower::new())
                }
                Some(ReplyEvent::Done(outcome)) => {
                    if let Some(mut ended) = self.in_flight.pop_front() {
                        self.note_completed(&mut ended, &outcome);
                        if let Some(watched) = ended.watched {
                            self.note_ended(*watched, &outcome, ended.reply.rows());
                        }
                        self.complete_reply(ended.completion, outcome, &mut ended.reply);
                    }
                }
                Some(ReplyEvent::Unfollowable) => return ReplyStep::Unfollowable,
            }
            if let Some(renumbered) = renumbered.filter(|own| !own.is_empty()) {
                return ReplyStep::Replace(passed, renumbered);
            }
        }
        ReplyStep::Pass(passed)
    }

    /// The sequence number of an error that can replace a reply now: one is due, and none of it was sent. `waits`: a command has come that
    /// was not relayed.
    #[must_use]
    pub fn pending_error_sequence(&self, waits: bool) -> Option<u8> {
        // A client that counts differently gets no error.
        if self.partial_packet.is_some()
            || self.renumbered_side != RenumberedSide::Neither
            || self.compression_frames.both_compressed()
        {
            return None;
        }
        match self.in_flight.front() {
            Some(front) => {
                let fit = !front.reply_started && !front.continues && front.client_data.is_none();
                (fit && !front.authenticates() && front.renumber.is_none()).then_some(1)
            }
            None => match self.packets_sent {
                Some(packets_sent) => Some(packets_sent.wrapping_add(1)),
                None => waits.then_some(1),
            },
        }
    }

    /// The next reply, if its bytes go to the client unchanged.
    fn relayed_reply(&mut self) -> Option<&mut ReplyFollower> {
        let front = self.in_flight.front_mut()?;
        let as_it_is = self.renumbered_side == RenumberedSide::Neither && front.renumber.is_none();
        as_it_is.then_some(&mut front.reply)
    }

    /// How many of the server's next bytes may go to the client unread.
    pub fn row_bytes_ahead(&mut self) -> usize {
        self.relayed_reply()
            .map_or(0, |reply| reply.skippable_row_bytes())
    }

    /// This many bytes went to the client unread.
    pub fn row_bytes_passed(&mut self, bytes: usize) {
        if let Some(reply) = self.relayed_reply() {
            reply.skip_row_bytes(bytes);
        }
    }

    /// Takes the outcome of an internal command.
    pub fn observe(&mut self, outcome: &ReplyOutcome) {
        match outcome {
            ReplyOutcome::Ok(ok) => self.state.observe(ok),
            ReplyOutcome::Err(_) => self.state.observe_error(),
            ReplyOutcome::Prepared(_) | ReplyOutcome::Silent | ReplyOutcome::Text => {}
        }
    }

    /// True once after a command that may have changed a definition has ended.
    pub fn take_definition_touched(&mut self) -> bool {
        std::mem::take(&mut self.definition_touched)
    }

    /// True once after a relayed call failed because its procedure's definer lacked a right.
    pub fn take_definer_denied(&mut self) -> bool {
        std::mem::take(&mut self.definer_denied)
    }

    /// The metadata sample of an execution that has ended, once.
    pub fn take_metadata_sample(&mut self) -> Option<MetadataSample> {
        self.metadata_sample.take().map(|lesson| *lesson)
    }

    fn complete_reply(
        &mut self,
        completion: ReplyCompletion,
        outcome: ReplyOutcome,
        reply: &mut ReplyFollower,
    ) {
        self.definition_touched |= std::mem::take(&mut self.may_touch_definition);
        if reply.responses() > 1 {
            // The reply counts only the warnings of the last statement.
            self.state.may_hold_conditions();
        }
        let sent_columns = reply.take_columns();
        if let ReplyCompletion::Executed(statement, lesson) = completion {
            self.prepared.receive_columns(statement, sent_columns);
            if let (Some(mut lesson), ReplyOutcome::Ok(ok)) = (lesson, &outcome) {
                let columns = self.prepared.cached_columns(statement).cloned();
                lesson.receive(ok, columns, reply.status_after_columns());
                self.metadata_sample = Some(lesson);
            }
            if let ReplyOutcome::Err(_) = outcome {
                self.prepared.failed(statement);
            }
            return self.observe(&outcome);
        }
        match outcome {
            ReplyOutcome::Ok(ok) => {
                let ends_transaction = ok.status & status::IN_TRANS == 0
                    && self.state.transaction() == TransactionState::Open;
                // A command sent after it may set the next transaction's.
                if ends_transaction && self.in_flight.is_empty() {
                    self.state.one_shot_ended();
                }
                match completion {
                    ReplyCompletion::Nothing => {}
                    ReplyCompletion::ProcedureCall(_) | ReplyCompletion::TransactionEnded
                        // A command sent after it may set the next transaction's.
                        if ok.status & status::IN_TRANS == 0 && self.in_flight.is_empty() =>
                    {
                        self.state.one_shot_ended();
                    }
                    ReplyCompletion::ProcedureCall(_) | ReplyCompletion::TransactionEnded => {}
                    ReplyCompletion::InitDb(database) => self.state.enter(Some(database)),
                    ReplyCompletion::Login {
                        database,
                        account,
                        certain,
                    } => {
                        let login = self.state.login_began().filter(|_| account.is_none());
                        self.state = SessionState::new(database);
                        self.state.login_began_at(login);
                        if !certain {
                            self.state.doubt_database();
                        }
                        if let Some(account) = account {
                            self.account = account;
                        }
                    }
                    ReplyCompletion::NamedCall(name, call) => self.prepared.name(name, *call),
                    ReplyCompletion::NamedFeed(name, feed) => {
                        let (feed, effects) = *feed;
                        self.prepared.name_feed(name, feed, effects);
                    }
                    ReplyCompletion::MultiStatements(on) => self.multi_statements = on,
                    ReplyCompletion::Prepared(_) | ReplyCompletion::Executed(..) => {}
                }
                self.state.observe(&ok);
            }
            ReplyOutcome::Err(error) => {
                match completion {
                    ReplyCompletion::Login { .. } => self.state = SessionState::new(None),
                    ReplyCompletion::ProcedureCall(statement) => {
                        self.definer_denied |= denies_definer(error.code);
                        if let Some(statement) = statement {
                            self.prepared.failed(statement);
                        }
                    }
                    _ => {}
                }
                self.state.observe_error();
            }
            ReplyOutcome::Prepared(prepared) => {
                if prepared.warnings != 0 {
                    self.state.may_hold_conditions();
                }
                if let ReplyCompletion::Prepared(text) = completion {
                    self.prepared.insert(*text, prepared, sent_columns);
                }
            }
            ReplyOutcome::Silent | ReplyOutcome::Text => {}
        }
    }
}
