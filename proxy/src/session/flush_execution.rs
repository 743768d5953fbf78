//! Carries out the actions of a [`PendingFlush`].

use std::io;

use super::log_span::log_in;
use super::session_counters::SessionEvent;
use super::state::{Session, SessionEnd};
use crate::backend::QueryBatch;
use headwater_session::call_decision::{INTERNAL_QUERY_LIMITS, INTERRUPTED};
use headwater_session::pending_flush::{
    FlushAction, FlushInput, FlushOutcome, FlushScope, INTERRUPTIONS, PendingFlush,
};
use headwater_sql::contains_ignoring_case;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{Command, query_payload};
use headwater_wire::reply::{ReplyFollower, ReplyOutcome};

impl Session {
    /// Writes the pending ids to the server; with `diagnostics`, also the counts and warnings that the waiting command requests.
    pub(super) async fn flush_pending(&mut self, diagnostics: bool) -> Result<(), SessionEnd> {
        self.replay_found_rows().await?;
        let scope = match diagnostics {
            true => FlushScope::Diagnostics {
                found_rows: contains_ignoring_case(&self.client_in, "FOUND_ROWS"),
            },
            false => FlushScope::Tables,
        };
        if let Some(settled) = self.run_flush(scope, 0).await?
            && settled.written
        {
            self.shared.counters.add(SessionEvent::TableWritten);
        }
        Ok(())
    }

    /// Runs SELECTs on the server that set FOUND_ROWS() as the served ones would have.
    pub(super) async fn replay_found_rows(&mut self) -> Result<(), SessionEnd> {
        let Some(commands) = self.machine.commands() else {
            return Ok(());
        };
        let capabilities = commands.capabilities;
        for select in commands.take_unseen_selects() {
            self.server_was_queried = true;
            let payload = query_payload(select.query().as_bytes(), capabilities);
            self.replay_select(&payload, capabilities).await?;
        }
        Ok(())
    }

    async fn replay_select(
        &mut self,
        payload: &[u8],
        capabilities: Capabilities,
    ) -> Result<(), SessionEnd> {
        // A KILL QUERY that hits it was meant for another statement and counts as having arrived between two.
        for _ in 0..INTERRUPTIONS {
            let read = self.backend.run_command(payload, capabilities, 0).await?;
            let (Some(outcome), Some(commands)) = (read.outcome, self.machine.commands()) else {
                break;
            };
            commands.observe(&outcome);
            match outcome {
                ReplyOutcome::Err(error) if error.code == INTERRUPTED => {}
                ReplyOutcome::Ok(_) => {
                    commands.state.clear_older_conditions();
                    break;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Writes the tables and relays the waiting packet, in one write if that succeeds.
    ///
    /// Only for a statement that can be sent again.
    pub(super) async fn flush_and_relay(&mut self, length: usize) -> Result<(), SessionEnd> {
        let settled = self.run_flush(FlushScope::TablesAtOnce, length).await?;
        match settled {
            Some(FlushOutcome { passed: true, .. }) => {
                self.shared.counters.add(SessionEvent::FollowUpWritten);
                self.client_in.drain(..length);
            }
            _ => self.relay_from_client(length)?,
        }
        if settled.is_some()
            && let Some(commands) = self.machine.commands()
        {
            commands.relay_follow_up();
            self.note_sent();
            self.note_relayed("tail", "", (None, None));
        }
        Ok(())
    }

    /// Flushes what is pending; `length`: of the waiting packet. `None`: nothing is pending.
    async fn run_flush(
        &mut self,
        scope: FlushScope,
        length: usize,
    ) -> Result<Option<FlushOutcome>, SessionEnd> {
        let settling = self
            .machine
            .commands()
            .and_then(|commands| PendingFlush::begin(commands, scope));
        let Some(mut settling) = settling else {
            return Ok(None);
        };
        let mut input = FlushInput::Begin;
        let sent_at = self.note_query_sent();
        loop {
            let Some(commands) = self.machine.commands() else {
                return Ok(None);
            };
            let capabilities = commands.capabilities;
            let need = settling.next(input, commands, self.shared.catalogue.definitions());
            let backend = &mut self.backend;
            input = match need {
                FlushAction::Write(statements) => {
                    let batch = query_batch(&statements, capabilities);
                    FlushInput::Written(
                        backend
                            .query(&batch, capabilities, INTERNAL_QUERY_LIMITS)
                            .await?,
                    )
                }
                FlushAction::WriteAndPass(statements) => {
                    let packet = self.client_in.get(..length).unwrap_or_default();
                    self.server_was_queried = true;
                    let batch = query_batch(&statements, capabilities);
                    let answers = backend.query_then_send(
                        &batch,
                        packet,
                        capabilities,
                        INTERNAL_QUERY_LIMITS,
                    );
                    FlushInput::Written(answers.await?)
                }
                FlushAction::DiscardReply => {
                    let mut reply = ReplyFollower::new(Command::Query, capabilities);
                    backend.read_reply(&mut reply, 0).await?;
                    FlushInput::ReplyDiscarded
                }
                FlushAction::Run(payload) => FlushInput::Ran(
                    backend
                        .run_command(&payload, capabilities, 0)
                        .await?
                        .outcome,
                ),
                FlushAction::Done(settled) => {
                    self.note_query_answered(sent_at);
                    if settled.procedure_ran {
                        self.shared.counters.add(SessionEvent::ProcedureRedone);
                    }
                    if let Some(code) = settled.failed {
                        log_in!(self.span(), DEBUG, code, "writing the result table failed");
                    }
                    return Ok(Some(settled));
                }
                FlushAction::Interrupted => {
                    let error =
                        io::Error::other("the result table's write was interrupted each time");
                    return Err(SessionEnd::ServerClosed(error));
                }
            };
        }
    }
}

fn query_batch(statements: &[String], capabilities: Capabilities) -> QueryBatch {
    let mut batch = QueryBatch::new(capabilities);
    for statement in statements {
        batch.push_query(statement);
    }
    batch
}
