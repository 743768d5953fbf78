//! An owned call: carries out what the decision needs, and tells the client what it comes to.

use std::time::{Duration, Instant};

use super::asked::Asked;
use super::calls;
use super::counts::Event;
use super::knowledge::SharedKnowledge;
use super::ownership::{Answered, Ask, Checked, Input, Need, Ownership, Policy, Relayed, Source};
use super::reason::Reason;
use super::slow::{self, Own};
use super::state::{Ended, Session};
use super::who::log_in;
use crate::backend::Batch;
use crate::binlog::Likely;
use crate::catalogue::ServiceError;
use crate::clock;
use crate::timeline::DefinitionId;
use crate::wire::command::query_payload;
use crate::wire::frame::{self, HEADER_BYTES};
use crate::wire::response::{ErrPacket, OkPacket};
use crate::wire::resultset::Answer;
use crate::wire::status;

impl Session {
    /// Answers the call whose packet waits, or has the server's procedure answer it.
    pub(super) async fn call(&mut self, asked: Asked) -> Result<(), Ended> {
        let packet = self.client_in.get(HEADER_BYTES..asked.length);
        let payload = packet.unwrap_or_default().to_vec();
        let mut decision = Ownership::new(asked, payload, self.policy());
        let mut memory = Likely::No;
        let mut input = Input::Begin;
        let begun = clock::now();
        loop {
            let Some(need) = self.decide(&mut decision, input) else {
                return Ok(());
            };
            input = match need {
                Need::Ask(ask) => Input::Answers(self.ask_aside(&ask).await?),
                Need::Settle => {
                    self.settle(false).await?;
                    Input::Settled
                }
                Need::Check {
                    definition,
                    database,
                } => Input::Checked(self.check(definition, &database).await),
                Need::Memory(want) => {
                    let (likely, compared) = self.look(want).await;
                    memory = likely;
                    Input::Likely {
                        likely: likely != Likely::No,
                        compared,
                    }
                }
                Need::Page => Input::Page(self.page(memory).await),
                Need::Relay(reason) => return self.relay_call(decision, reason).await,
                Need::Interrupted(error) => return self.interrupt(decision, &error),
                Need::Answer(answered) => return self.answer_call(decision, *answered, begun),
            };
        }
    }

    /// What the decision needs next; `None` where there is no session to decide about.
    pub(super) fn decide(&mut self, decision: &mut Ownership, input: Input) -> Option<Need> {
        let commands = self.machine.commands()?;
        let known = SharedKnowledge::new(&self.shared, &self.definer_rights);
        Some(decision.next(input, commands, &known, clock::now()))
    }

    pub(super) fn policy(&self) -> Policy {
        let shared = &self.shared;
        Policy {
            accelerate: shared.accelerate,
            pending_ids: shared.limits.pending_ids,
            privileges_ttl: shared.privileges_ttl,
            recheck: Duration::from_millis(shared.limits.recheck_ms),
            case: shared.case,
        }
    }

    pub(super) async fn ask_aside(&mut self, ask: &Ask) -> Result<Vec<Answer>, Ended> {
        let Some(commands) = self.machine.commands() else {
            return Ok(Vec::new());
        };
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        for query in &ask.queries {
            batch.query(query);
        }
        self.sent |= ask.reads;
        let asked = self.note_asks();
        let answers = self.backend.ask(&batch, capabilities, ask.limits).await?;
        self.note_heard(asked);
        Ok(answers)
    }

    /// Has the service account check a definition, where there is one that can.
    pub(super) async fn check(&mut self, definition: DefinitionId, database: &[u8]) -> Checked {
        let catalogue = &self.shared.catalogue;
        if catalogue.service.is_none() {
            return Checked::Nobody;
        }
        match catalogue.check_due(definition, database).await {
            Ok(verdict) => Checked::Verdict(verdict),
            Err(ServiceError::Slow(_)) => Checked::Slow,
            Err(error) if error.was_said() => Checked::Nobody,
            Err(error) => {
                log_in!(
                    self.span(),
                    WARN,
                    "{error}; a client session is asked instead"
                );
                Checked::Nobody
            }
        }
    }

    fn answer_call(
        &mut self,
        decision: Ownership,
        answered: Answered,
        begun: Instant,
    ) -> Result<(), Ended> {
        let (asked, payload) = decision.into_asked();
        let call = &answered.call;
        let answer = calls::Answer::from(answered.source);
        let watched = &self.shared.watched;
        self.shared.counts.answered(Some(call.definition), answer);
        watched.call_took(answer, clock::since(begun));
        watched.hot.add(call.definition, call.reader);
        self.proved_call = answered.source == Source::Memory;
        if self.proved_call {
            self.sent = false;
        }
        if answered.ran {
            self.shared.counts.add(Event::CallRun);
        }
        self.compare(&answered);
        if let Some(took) = self.took_long() {
            let ids = answered.owned.pending.ids.as_ref();
            let own = Own {
                of: slow::definition(&self.shared, Some(call.definition)),
                rows: ids.map(|ids| ids.len() as u64),
                ..Own::new("call", answer.name())
            };
            self.tell_slow(&took, &own);
        }
        let owned = answered.owned;
        let mut ok = OkPacket {
            affected_rows: owned.affected_rows,
            status: owned.status,
            warnings: owned.pending.warnings,
            ..OkPacket::default()
        };
        self.client_in.drain(..asked.length);
        let frames = self.frames_before_last();
        let (mut bytes, mut packet) = (Vec::new(), Vec::new());
        let mut goes_on = false;
        if let Some(commands) = self.machine.commands() {
            commands.tables.pending = Some(Box::new(owned.pending));
            if let Some(rest) = asked.dress.rest(&payload) {
                ok.status |= status::MORE_RESULTS;
                goes_on = true;
                // It comes next, as a command of its own whose reply continues this one.
                let rest = query_payload(rest, commands.capabilities);
                self.client_in.splice(..0, frame::opening(&rest));
            }
            ok.write(commands.capabilities, &mut bytes);
            let seq = commands.owned_call(&asked.dress).wrapping_add(frames);
            frame::encode(seq, &bytes, &mut packet);
        }
        // In frames, replies would be told apart otherwise than the server tells them.
        if goes_on && !self.client.is_compressed() {
            self.ahead.append(&mut packet);
            return Ok(());
        }
        self.tell_client(&packet)
    }

    async fn relay_call(&mut self, decision: Ownership, reason: Reason) -> Result<(), Ended> {
        let (asked, payload) = decision.into_asked();
        let definition = self.definition_of(&asked);
        self.shared.counts.relayed(definition, reason);
        log_in!(
            self.span(),
            DEBUG,
            reason = reason.label(),
            "a call is relayed"
        );
        self.advise(reason);
        // Its OK packet may count the rows it deletes.
        self.settle(false).await?;
        let Some(commands) = self.machine.commands() else {
            return self.pass_client(asked.length);
        };
        let known = SharedKnowledge::new(&self.shared, &self.definer_rights);
        let relayed = Relayed::new(&asked.wanted, &commands.standing, &known);
        let own = commands.relay_call(&asked.dress, &payload, relayed.effects);
        commands.standing.procedure_relayed(relayed.refused);
        self.relayed = relayed.known;
        if self.slow.is_some() {
            let of = slow::definition(&self.shared, definition);
            self.note_relayed("call", reason.label(), (of, None));
        }
        let Some(own) = own else {
            return self.pass_client(asked.length);
        };
        let length = own.len();
        self.client_in.splice(..asked.length, own);
        self.pass_client(length)
    }

    /// Whose call it is, as far as that is known.
    pub(super) fn definition_of(&mut self, asked: &Asked) -> Option<DefinitionId> {
        let database = self.machine.commands()?.standing.database();
        let definitions = self.shared.catalogue.definitions();
        let (definition, ..) = asked.wanted.place(definitions, database)?;
        Some(definition)
    }

    /// Says what an operator would otherwise learn from a counter only.
    fn advise(&mut self, reason: Reason) {
        if matches!(reason, Reason::AutocommitOff | Reason::InTransaction)
            && let Some(commands) = self.machine.commands()
            && commands.standing.autocommit_is_off()
        {
            let account = self.machine.account().unwrap_or_default();
            let advice = &self.shared.advice;
            advice.autocommit_is_off(account, || self.span());
        }
    }

    fn interrupt(&mut self, decision: Ownership, error: &ErrPacket) -> Result<(), Ended> {
        let (asked, _) = decision.into_asked();
        self.client_in.drain(..asked.length);
        let definition = self.definition_of(&asked);
        let counts = &self.shared.counts;
        counts.answered(definition, calls::Answer::Interrupted);
        if let Some(took) = self.took_long() {
            let own = Own {
                of: slow::definition(&self.shared, definition),
                error: Some(error.code),
                ..Own::new("call", calls::Answer::Lookups.name())
            };
            self.tell_slow(&took, &own);
        }
        let (mut bytes, mut packet) = (Vec::new(), Vec::new());
        error.write(&mut bytes);
        frame::encode(1, &bytes, &mut packet);
        let frames = self.frames_before_last();
        if let Some(commands) = self.machine.commands() {
            commands.standing.observe_error();
            commands.numbered(&mut packet, frames);
        }
        self.tell_client(&packet)
    }
}
