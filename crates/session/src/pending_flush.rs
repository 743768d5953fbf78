//! Flushes pending ids to the server before another statement can read the tables: a state machine, one action at a time.
//!
//! The ids are written to the server's temporary tables. Where that is denied or fails, the real procedure runs instead: its tables are
//! what the client would have without Headwater, computed a moment later.

use std::collections::VecDeque;

use headwater_timeline::TimelineDefinition;
use headwater_wire::command::query_payload;
use headwater_wire::reply::ReplyOutcome;
use headwater_wire::resultset::QueryReply;

use crate::call_decision::{INTERRUPTED, NO_MORE_ROWS, utf8_is_an_alias};
use crate::call_relay_reason::CallRelayReason;
use crate::commands::CommandPhase;
use crate::result_table::{PendingIds, TableRowCount};
use crate::result_table_write;

/// MySQL (9.7.4) remembers until the next commit that a MEMORY table was written, and warns (6414) of a statement that then writes an
/// InnoDB table; after a procedure it forgets. No transaction is open here: the result table is only pending outside transactions.
const END_OF_WRITE: &str = "COMMIT AND NO CHAIN NO RELEASE";

/// How often an internal statement that a KILL QUERY interrupts is sent again.
pub const INTERRUPTIONS: u32 = 100;

/// What the waiting command can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushScope {
    /// The tables.
    Tables,
    /// Counts and warnings as well: only the real procedure, the real follow-up SELECT and the client's statements since leave these.
    /// `found_rows`: that count survives warnings, but not a statement that causes some.
    Diagnostics {
        /// It may read FOUND_ROWS().
        found_rows: bool,
    },
    /// The tables; it can be sent again, so it goes in the same write as the statements that fill them.
    TablesAtOnce,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub enum FlushAction {
    /// Send these statements: [`FlushInput::Written`].
    Write(Vec<String>),
    /// Send these and the waiting command after them: [`FlushInput::Written`], without the command's reply.
    WriteAndPass(Vec<String>),
    /// Read and drop the reply to the waiting command: [`FlushInput::ReplyDiscarded`].
    DiscardReply,
    /// Run this command and drop its reply: [`FlushInput::Ran`].
    Run(Vec<u8>),
    /// The end.
    Done(FlushOutcome),
    /// The end: every attempt was interrupted.
    Interrupted,
}

/// The result of an action.
#[derive(Debug)]
pub enum FlushInput {
    /// Nothing yet.
    Begin,
    /// The replies to the statements.
    Written(Vec<QueryReply>),
    /// The reply was read.
    ReplyDiscarded,
    /// The command's outcome.
    Ran(Option<ReplyOutcome>),
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushOutcome {
    /// The tables were written.
    pub written: bool,
    /// The waiting command was sent to the server.
    pub passed: bool,
    /// The procedure ran.
    pub procedure_ran: bool,
    /// Writing failed with this error, or with 0 for another cause.
    pub failed: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum FlushStage {
    Writing,
    /// In one write with the waiting command.
    WritingAtOnce,
    Running,
}

/// A flush of pending ids to the server.
#[derive(Debug)]
pub struct PendingFlush {
    pending: Box<PendingIds>,
    scope: FlushScope,
    stage: FlushStage,
    statements: usize,
    runs: VecDeque<Vec<u8>>,
    interruptions: u32,
    outcome: FlushOutcome,
}

impl PendingFlush {
    /// Takes the pending ids; `None` where there are none.
    pub fn begin(commands: &mut CommandPhase, scope: FlushScope) -> Option<PendingFlush> {
        let overrules = commands.clears_older_conditions();
        let mut pending = commands.tables.pending.take()?;
        if overrules {
            pending.forget_overruled();
        }
        Some(PendingFlush {
            pending,
            scope,
            stage: FlushStage::Running,
            statements: 0,
            runs: VecDeque::new(),
            interruptions: 0,
            outcome: FlushOutcome::default(),
        })
    }

    /// Takes the last action's result, and returns the next action.
    pub fn next(
        &mut self,
        input: FlushInput,
        commands: &mut CommandPhase,
        definitions: &[TimelineDefinition],
    ) -> FlushAction {
        match input {
            FlushInput::Begin => match self.scope {
                FlushScope::TablesAtOnce => {
                    self.stage = FlushStage::WritingAtOnce;
                    FlushAction::WriteAndPass(self.statements(commands, definitions))
                }
                FlushScope::Diagnostics { .. } if self.pending.follow_up.is_none() => {
                    self.run_calls(commands)
                }
                _ => self.write(commands, definitions),
            },
            FlushInput::ReplyDiscarded => self.write(commands, definitions),
            FlushInput::Written(answers) => self.take_written(&answers, commands, definitions),
            FlushInput::Ran(outcome) => {
                if let Some(outcome) = outcome {
                    commands.observe(&outcome);
                    if let ReplyOutcome::Err(error) = outcome
                        && is_interruption(error.code)
                    {
                        return self.retry(commands, definitions);
                    }
                }
                self.runs.pop_front();
                self.interruptions = 0;
                self.next_run()
            }
        }
    }

    fn write(
        &mut self,
        commands: &CommandPhase,
        definitions: &[TimelineDefinition],
    ) -> FlushAction {
        self.stage = FlushStage::Writing;
        FlushAction::Write(self.statements(commands, definitions))
    }

    /// The statements that write the tables; none where they cannot be written.
    fn statements(
        &mut self,
        commands: &CommandPhase,
        definitions: &[TimelineDefinition],
    ) -> Vec<String> {
        let Some(definition) = self.pending.definition.resolve(definitions) else {
            self.statements = 0;
            return Vec::new();
        };
        let tables = &commands.tables;
        let mut all = result_table_write::write_statements(
            definition,
            &self.pending,
            tables.result,
            tables.heads,
        );
        if !commands.server.mariadb {
            all.push(END_OF_WRITE.to_owned());
        }
        self.statements = all.len();
        all
    }

    fn take_written(
        &mut self,
        answers: &[QueryReply],
        commands: &mut CommandPhase,
        definitions: &[TimelineDefinition],
    ) -> FlushAction {
        let failure = answers.iter().find_map(|answer| match answer {
            QueryReply::Ok(_) => None,
            QueryReply::Err(error) => Some(error.code),
            QueryReply::Rows(_) => Some(0),
        });
        let complete = answers.len() == self.statements && self.statements > 0;
        match failure.or((!complete).then_some(0)) {
            None => {
                if let Some(ids) = &self.pending.ids {
                    commands.tables.result = TableRowCount::Counted(ids.len() as u64);
                }
                if let Some(heads) = &self.pending.heads {
                    commands.tables.heads = TableRowCount::Counted(heads.len() as u64);
                }
                self.outcome.written = true;
                self.outcome.passed = matches!(self.stage, FlushStage::WritingAtOnce);
                self.replay_statements()
            }
            // A KILL QUERY that hits an internal statement was meant for another one: handle it as if it came between two.
            Some(code) if is_interruption(code) => {
                commands.tables.invalidate();
                match self.stage {
                    FlushStage::WritingAtOnce => FlushAction::DiscardReply,
                    _ => self.retry(commands, definitions),
                }
            }
            Some(code) => {
                // One failure is enough: this session's calls are relayed from now on.
                commands.state.relay_all(CallRelayReason::WriteDenied);
                self.outcome.failed = Some(code);
                match self.stage {
                    FlushStage::WritingAtOnce => FlushAction::DiscardReply,
                    _ => self.run_calls(commands),
                }
            }
        }
    }

    fn retry(
        &mut self,
        commands: &CommandPhase,
        definitions: &[TimelineDefinition],
    ) -> FlushAction {
        self.interruptions += 1;
        if self.interruptions >= INTERRUPTIONS {
            return FlushAction::Interrupted;
        }
        match self.stage {
            FlushStage::Running => self.next_run(),
            FlushStage::Writing | FlushStage::WritingAtOnce => self.write(commands, definitions),
        }
    }

    /// Runs the client's own call on the server, after the calls before it.
    fn run_calls(&mut self, commands: &mut CommandPhase) -> FlushAction {
        self.outcome.procedure_ran = true;
        commands.tables.invalidate();
        let earlier = self.pending.earlier_calls.iter().map(|(_, call)| call);
        self.runs
            .extend(earlier.chain([&self.pending.call]).cloned());
        // The server parsed the text when the right was proved, and gives no warnings now.
        if let FlushScope::Diagnostics { found_rows: false } = self.scope
            && self.pending.warnings > 0
        {
            let again = utf8_is_an_alias(self.pending.warnings);
            let payload = query_payload(again.as_bytes(), commands.capabilities);
            self.runs.push_back(payload);
        }
        self.replay_statements()
    }

    /// After the tables, repeats the statements that left the requested counts and warnings.
    fn replay_statements(&mut self) -> FlushAction {
        if let FlushScope::Diagnostics { .. } = self.scope {
            let spared = self.pending.replayable.iter().map(|spared| &spared.packet);
            let answered = self.pending.follow_up.iter().chain(spared);
            self.runs
                .extend(answered.chain(&self.pending.count_reset).cloned());
        }
        self.stage = FlushStage::Running;
        self.interruptions = 0;
        self.next_run()
    }

    fn next_run(&self) -> FlushAction {
        match self.runs.front() {
            Some(payload) => FlushAction::Run(payload.clone()),
            None => FlushAction::Done(self.outcome),
        }
    }
}

/// True for KILL QUERY; MariaDB has another error where it interrupts a procedure at its cursor.
fn is_interruption(code: u16) -> bool {
    code == INTERRUPTED || code == NO_MORE_ROWS
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
