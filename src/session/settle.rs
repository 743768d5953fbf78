//! Before anything else may look, pending ids are written to the server's temporary tables.
//!
//! When that is denied or fails, the real procedure runs in their place. Its tables are what the
//! client would have had without Headwater, computed a moment later.

use super::counts::Event;
use super::driver::{Ended, Session};
use super::owned::ASK_LIMITS;
use super::reason::Reason;
use super::result_table::{Pending, Rows};
use crate::backend::Batch;
use crate::source::write;
use crate::wire::command::Command;
use crate::wire::frame;
use crate::wire::reply::Reply;
use crate::wire::resultset::Answer;

/// MySQL (9.7.4) remembers until the next commit that a MEMORY table was written, and has a warning
/// (6414) for a statement that then writes an InnoDB table; behind a procedure it forgets.
/// Nothing is open here that could be committed: the result table is only pending outside transactions.
const END_OF_WRITE: &str = "COMMIT AND NO CHAIN NO RELEASE";

impl Session {
    /// Puts what is pending on the server. With `diagnostics`, by the real procedure, or with the
    /// real tail behind it: only those leave the counts and warnings behind which the waiting
    /// command asks for.
    pub(super) async fn settle(&mut self, diagnostics: bool) -> Result<(), Ended> {
        let Some(pending) = self.take_pending() else {
            return Ok(());
        };
        let (batch, heads) = self.write_batch(&pending);
        let mut written = false;
        if !diagnostics || pending.tail.is_some() {
            let answers = self.ask(&batch).await?;
            written = self.take_written(&pending, &answers, heads);
        }
        if written {
            self.shared.counts.add(Event::TableWritten);
        } else {
            self.redo(&pending).await?;
        }
        match &pending.tail {
            Some(tail) if diagnostics => self.run_aside(tail).await,
            _ => Ok(()),
        }
    }

    /// As [`Self::settle`], before a call is relayed: its OK packet may count the rows it deletes.
    pub(super) async fn settle_quietly(&mut self) -> Result<(), Ended> {
        self.settle(false).await
    }

    /// Writes the tables and passes the waiting packet on, in one write.
    ///
    /// Only for a statement that can be sent again: if the tables cannot be written, its reply is
    /// put aside, the real procedure runs, and the packet is sent once more.
    pub(super) async fn settle_and_pass(&mut self, length: usize) -> Result<(), Ended> {
        let Some(pending) = self.take_pending() else {
            return self.pass_client(length);
        };
        let (batch, heads) = self.write_batch(&pending);
        let packet = self.client_in.get(..length).unwrap_or_default().to_vec();
        let Some(commands) = self.machine.commands() else {
            return self.pass_client(length);
        };
        let capabilities = commands.capabilities;
        let answers = self
            .backend
            .ask_before(&batch, &packet, capabilities, ASK_LIMITS)
            .await?;
        if self.take_written(&pending, &answers, heads) {
            self.shared.counts.add(Event::TailWritten);
            self.client_in.drain(..length);
        } else {
            let mut reply = Reply::new(Command::Query, capabilities);
            self.backend.read_reply(&mut reply, 0).await?;
            self.redo(&pending).await?;
            self.pass_client(length)?;
        }
        if let Some(commands) = self.machine.commands() {
            commands.relay_tail();
        }
        Ok(())
    }

    fn take_pending(&mut self) -> Option<Box<Pending>> {
        self.machine.commands()?.tables.pending.take()
    }

    /// The statements, and how many of them are about the result table.
    fn write_batch(&mut self, pending: &Pending) -> (Batch, usize) {
        let Some(commands) = self.machine.commands() else {
            return (Batch::default(), 0);
        };
        let mut batch = Batch::new(commands.capabilities);
        let tables = &commands.tables;
        let Some(definition) = self.shared.catalogue.definitions().get(pending.definition) else {
            return (batch, 0);
        };
        for statement in write::statements(definition, pending, tables.result, tables.heads) {
            batch.query(&statement);
        }
        if !commands.server.mariadb {
            batch.query(END_OF_WRITE);
        }
        let count = batch.count();
        (batch, count)
    }

    async fn ask(&mut self, batch: &Batch) -> Result<Vec<Answer>, Ended> {
        let Some(commands) = self.machine.commands() else {
            return Ok(Vec::new());
        };
        let capabilities = commands.capabilities;
        Ok(self.backend.ask(batch, capabilities, ASK_LIMITS).await?)
    }

    /// True when every statement succeeded; what the tables hold now is noted.
    fn take_written(&mut self, pending: &Pending, answers: &[Answer], expected: usize) -> bool {
        let Some(commands) = self.machine.commands() else {
            return false;
        };
        let failure = answers.iter().find_map(|answer| match answer {
            Answer::Ok(_) => None,
            Answer::Err(error) => Some(error.code),
            Answer::Rows(_) => Some(0),
        });
        if failure.is_some() || answers.len() != expected || expected == 0 {
            tracing::debug!(code = failure, "writing the result table failed");
            // Once is enough to know: this session's calls are relayed from now on.
            commands.standing.barred = Some(Reason::WriteDenied);
            return false;
        }
        // How many rows a server-side read wrote is counted when it is needed.
        commands.tables.result = if pending.is_complete() {
            Rows::Counted(pending.total)
        } else {
            Rows::Unknown
        };
        if let Some(heads) = &pending.heads {
            commands.tables.heads = Rows::Counted(heads.len() as u64);
        }
        true
    }

    /// Runs the client's own call on the server, behind those that it came after.
    async fn redo(&mut self, pending: &Pending) -> Result<(), Ended> {
        self.shared.counts.add(Event::ProcedureRedone);
        let Some(commands) = self.machine.commands() else {
            return Ok(());
        };
        commands.tables.disturb();
        for (_, call) in &pending.before {
            self.run_aside(call).await?;
        }
        self.run_aside(&pending.call).await
    }

    /// Runs a command of the client's and swallows its reply.
    async fn run_aside(&mut self, payload: &[u8]) -> Result<(), Ended> {
        let Some(commands) = self.machine.commands() else {
            return Ok(());
        };
        let capabilities = commands.capabilities;
        let mut packet = Vec::new();
        frame::encode(0, payload, &mut packet);
        self.backend.send(&packet).await?;
        let mut reply = Reply::new(Command::Query, capabilities);
        let read = self.backend.read_reply(&mut reply, 0).await?;
        if let (Some(commands), Some(outcome)) = (self.machine.commands(), read.outcome) {
            commands.observe(&outcome);
        }
        Ok(())
    }
}
