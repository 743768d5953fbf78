//! Before anything else may look, pending ids are written to the server's temporary tables.
//!
//! When that is denied or fails, the real procedure runs in their place. Its tables are what the
//! client would have had without Headwater, computed a moment later.

use super::counts::Event;
use super::ownership::{ASK_LIMITS, INTERRUPTED, utf8_is_an_alias};
use super::reason::Reason;
use super::result_table::{Pending, Rows};
use super::state::{Ended, Session};
use super::who::log_in;
use super::write;
use crate::backend::Batch;
use crate::sql::holds;
use crate::wire::command::{Command, query_payload};
use crate::wire::reply::{Outcome, Reply};
use crate::wire::resultset::Answer;

/// MySQL (9.7.4) remembers until the next commit that a MEMORY table was written, and has a warning
/// (6414) for a statement that then writes an InnoDB table; behind a procedure it forgets.
/// Nothing is open here that could be committed: the result table is only pending outside transactions.
const END_OF_WRITE: &str = "COMMIT AND NO CHAIN NO RELEASE";

/// So often a statement of ours may meet a KILL QUERY and is sent again.
const INTERRUPTIONS: usize = 100;

impl Session {
    /// Puts what is pending on the server. With `diagnostics`, by the real procedure, or with the
    /// real tail behind it, and with what the client had answered since: only those leave the counts
    /// and warnings behind which the waiting command asks for.
    pub(super) async fn settle(&mut self, diagnostics: bool) -> Result<(), Ended> {
        let succeeded = self
            .machine
            .commands()
            .is_some_and(|commands| commands.succeeded());
        let Some(mut pending) = self.take_pending() else {
            return Ok(());
        };
        if succeeded {
            pending.forget_overruled();
        }
        if (!diagnostics || pending.tail.is_some()) && self.write(&pending).await? {
            self.shared.counts.add(Event::TableWritten);
        } else {
            self.redo(&pending).await?;
            // The server has parsed the text at the right's proof, and has nothing to say of it now.
            if diagnostics && pending.warnings > 0 && !self.asks_for_found_rows() {
                self.warn_again(pending.warnings).await?;
            }
        }
        if diagnostics {
            let spared = pending.spared.iter().map(|spared| &spared.packet);
            for answered in pending.tail.iter().chain(spared) {
                self.run_aside(answered).await?;
            }
            if let Some(command) = &pending.aside {
                self.run_aside(command).await?;
            }
        }
        Ok(())
    }

    /// Writes the tables and passes the waiting packet on, in one write.
    ///
    /// Only for a statement that can be sent again: if the tables cannot be written, its reply is
    /// put aside, the real procedure runs, and the packet is sent once more.
    pub(super) async fn settle_and_pass(&mut self, length: usize) -> Result<(), Ended> {
        let Some(pending) = self.take_pending() else {
            return self.pass_client(length);
        };
        let batch = self.write_batch(&pending);
        let packet = self.client_in.get(..length).unwrap_or_default().to_vec();
        let Some(commands) = self.machine.commands() else {
            return self.pass_client(length);
        };
        let capabilities = commands.capabilities;
        self.sent = true;
        let answers = self
            .backend
            .ask_before(&batch, &packet, capabilities, ASK_LIMITS)
            .await?;
        if let Some(true) = self.take_written(&pending, &answers, batch.count()) {
            self.shared.counts.add(Event::TailWritten);
            self.client_in.drain(..length);
        } else {
            let mut reply = Reply::new(Command::Query, capabilities);
            self.backend.read_reply(&mut reply, 0).await?;
            if !self.write(&pending).await? {
                self.redo(&pending).await?;
            }
            self.pass_client(length)?;
        }
        if let Some(commands) = self.machine.commands() {
            commands.relay_tail();
        }
        Ok(())
    }

    /// Writes the tables; false when that is denied or fails. A KILL QUERY that meets a statement of
    /// ours was meant for another one: it is as if it had come between two.
    async fn write(&mut self, pending: &Pending) -> Result<bool, Ended> {
        for _ in 0..INTERRUPTIONS {
            let batch = self.write_batch(pending);
            let answers = self.ask(&batch).await?;
            if let Some(written) = self.take_written(pending, &answers, batch.count()) {
                return Ok(written);
            }
        }
        Err(interrupted_for_good())
    }

    async fn warn_again(&mut self, times: u16) -> Result<(), Ended> {
        let Some(commands) = self.machine.commands() else {
            return Ok(());
        };
        let statement = utf8_is_an_alias(times);
        let payload = query_payload(statement.as_bytes(), commands.capabilities);
        self.run_aside(&payload).await
    }

    /// That count outlives warnings, and not a statement that gives rise to some.
    fn asks_for_found_rows(&self) -> bool {
        holds(&self.client_in, "FOUND_ROWS")
    }

    fn take_pending(&mut self) -> Option<Box<Pending>> {
        self.machine.commands()?.tables.pending.take()
    }

    /// The statements that write the tables; none when there is nothing to write them by.
    fn write_batch(&mut self, pending: &Pending) -> Batch {
        let Some(commands) = self.machine.commands() else {
            return Batch::default();
        };
        let mut batch = Batch::new(commands.capabilities);
        let tables = &commands.tables;
        let Some(definition) = pending.definition.of(self.shared.catalogue.definitions()) else {
            return batch;
        };
        for statement in write::statements(definition, pending, tables.result, tables.heads) {
            batch.query(&statement);
        }
        if !commands.server.mariadb {
            batch.query(END_OF_WRITE);
        }
        batch
    }

    async fn ask(&mut self, batch: &Batch) -> Result<Vec<Answer>, Ended> {
        let Some(commands) = self.machine.commands() else {
            return Ok(Vec::new());
        };
        let capabilities = commands.capabilities;
        Ok(self.backend.ask(batch, capabilities, ASK_LIMITS).await?)
    }

    /// True when every statement succeeded; what the tables hold now is noted. `None` when one was
    /// interrupted.
    fn take_written(
        &mut self,
        pending: &Pending,
        answers: &[Answer],
        expected: usize,
    ) -> Option<bool> {
        let commands = self.machine.commands()?;
        let failure = answers.iter().find_map(|answer| match answer {
            Answer::Ok(_) => None,
            Answer::Err(error) => Some(error.code),
            Answer::Rows(_) => Some(0),
        });
        if failure.is_some_and(is_interruption) {
            commands.tables.disturb();
            return None;
        }
        if failure.is_some() || answers.len() != expected || expected == 0 {
            log_in!(
                self.span(),
                DEBUG,
                code = failure,
                "writing the result table failed"
            );
            // Once is enough to know: this session's calls are relayed from now on.
            let commands = self.machine.commands()?;
            commands.standing.bar(Reason::WriteDenied);
            return Some(false);
        }
        if let Some(ids) = &pending.ids {
            commands.tables.result = Rows::Counted(ids.len() as u64);
        }
        if let Some(heads) = &pending.heads {
            commands.tables.heads = Rows::Counted(heads.len() as u64);
        }
        Some(true)
    }

    /// Runs the client's own call on the server, behind those that it came after.
    async fn redo(&mut self, pending: &Pending) -> Result<(), Ended> {
        self.shared.counts.add(Event::ProcedureRedone);
        let Some(commands) = self.machine.commands() else {
            return Ok(());
        };
        commands.tables.disturb();
        let earlier = pending.before.iter().map(|(_, call)| call);
        for call in earlier.chain([&pending.call]) {
            self.run_aside(call).await?;
        }
        Ok(())
    }

    /// Runs a command of the client's and swallows its reply; again if that was interrupted.
    async fn run_aside(&mut self, payload: &[u8]) -> Result<(), Ended> {
        for _ in 0..INTERRUPTIONS {
            if !self.run_aside_once(payload).await? {
                return Ok(());
            }
        }
        Err(interrupted_for_good())
    }

    /// True when it was interrupted.
    async fn run_aside_once(&mut self, payload: &[u8]) -> Result<bool, Ended> {
        let Some(commands) = self.machine.commands() else {
            return Ok(false);
        };
        let capabilities = commands.capabilities;
        let read = self.backend.run(payload, capabilities, 0).await?;
        if let (Some(commands), Some(outcome)) = (self.machine.commands(), read.outcome) {
            commands.observe(&outcome);
            if let Outcome::Err(error) = outcome {
                return Ok(is_interruption(error.code));
            }
        }
        Ok(false)
    }
}

/// KILL QUERY; MariaDB has another error (1329) where it met a procedure at its cursor.
fn is_interruption(code: u16) -> bool {
    const NO_MORE_ROWS: u16 = 1329;
    code == INTERRUPTED || code == NO_MORE_ROWS
}

fn interrupted_for_good() -> Ended {
    Ended::Server(std::io::Error::other(
        "the result table's write was interrupted each time",
    ))
}
