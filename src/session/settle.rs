//! Carries out what [`Settling`] needs.

use std::io;

use super::commands::that_finds;
use super::counts::Event;
use super::ownership::{ASK_LIMITS, INTERRUPTED};
use super::settling::{Asks, INTERRUPTIONS, Input, Need, Settled, Settling};
use super::state::{Ended, Session};
use super::who::log_in;
use crate::backend::Batch;
use crate::sql::holds;
use crate::wire::capability::Capabilities;
use crate::wire::command::{Command, query_payload};
use crate::wire::reply::{Outcome, Reply};

impl Session {
    /// Puts what is pending on the server; with `diagnostics`, so that the counts and warnings are there for which the waiting command
    /// asks.
    pub(super) async fn settle(&mut self, diagnostics: bool) -> Result<(), Ended> {
        self.tell_of_aside().await?;
        let asks = match diagnostics {
            true => Asks::Diagnostics {
                found_rows: holds(&self.client_in, "FOUND_ROWS"),
            },
            false => Asks::Tables,
        };
        if let Some(settled) = self.carry_out(asks, 0).await?
            && settled.written
        {
            self.shared.counts.add(Event::TableWritten);
        }
        Ok(())
    }

    /// Has the server run a SELECT that leaves what the one would have that it does not know of.
    async fn tell_of_aside(&mut self) -> Result<(), Ended> {
        let Some(commands) = self.machine.commands() else {
            return Ok(());
        };
        let Some(found) = commands.take_aside() else {
            return Ok(());
        };
        let capabilities = commands.capabilities;
        let payload = query_payload(that_finds(found).as_bytes(), capabilities);
        self.sent = true;
        // A KILL QUERY that meets it was meant for another one: it is as if it had come between two.
        for _ in 0..INTERRUPTIONS {
            let read = self.backend.run(&payload, capabilities, 0).await?;
            let (Some(outcome), Some(commands)) = (read.outcome, self.machine.commands()) else {
                break;
            };
            commands.observe(&outcome);
            match outcome {
                Outcome::Err(error) if error.code == INTERRUPTED => {}
                Outcome::Ok(_) => {
                    commands.standing.ends_conditions();
                    break;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Writes the tables and passes the waiting packet on, in one write where that goes well.
    ///
    /// Only for a statement that can be sent again.
    pub(super) async fn settle_and_pass(&mut self, length: usize) -> Result<(), Ended> {
        let settled = self.carry_out(Asks::TablesAtOnce, length).await?;
        match settled {
            Some(Settled { passed: true, .. }) => {
                self.shared.counts.add(Event::TailWritten);
                self.client_in.drain(..length);
            }
            _ => self.pass_client(length)?,
        }
        if settled.is_some()
            && let Some(commands) = self.machine.commands()
        {
            commands.relay_tail();
            self.note_sent();
            self.note_relayed("tail", "", (None, None));
        }
        Ok(())
    }

    /// Has what is pending put on the server; `length`: of the waiting packet. `None` where nothing is.
    async fn carry_out(&mut self, asks: Asks, length: usize) -> Result<Option<Settled>, Ended> {
        let settling = self
            .machine
            .commands()
            .and_then(|commands| Settling::begin(commands, asks));
        let Some(mut settling) = settling else {
            return Ok(None);
        };
        let mut input = Input::Begin;
        let asked = self.note_asks();
        loop {
            let Some(commands) = self.machine.commands() else {
                return Ok(None);
            };
            let capabilities = commands.capabilities;
            let need = settling.next(input, commands, self.shared.catalogue.definitions());
            let backend = &mut self.backend;
            input = match need {
                Need::Write(statements) => {
                    let batch = batch(&statements, capabilities);
                    Input::Written(backend.ask(&batch, capabilities, ASK_LIMITS).await?)
                }
                Need::WriteAndPass(statements) => {
                    let packet = self.client_in.get(..length).unwrap_or_default();
                    self.sent = true;
                    let batch = batch(&statements, capabilities);
                    let answers = backend.ask_before(&batch, packet, capabilities, ASK_LIMITS);
                    Input::Written(answers.await?)
                }
                Need::Swallow => {
                    let mut reply = Reply::new(Command::Query, capabilities);
                    backend.read_reply(&mut reply, 0).await?;
                    Input::Went
                }
                Need::Run(payload) => {
                    Input::Ran(backend.run(&payload, capabilities, 0).await?.outcome)
                }
                Need::Done(settled) => {
                    self.note_heard(asked);
                    if settled.redone {
                        self.shared.counts.add(Event::ProcedureRedone);
                    }
                    if let Some(code) = settled.failed {
                        log_in!(self.span(), DEBUG, code, "writing the result table failed");
                    }
                    return Ok(Some(settled));
                }
                Need::Interrupted => {
                    let error =
                        io::Error::other("the result table's write was interrupted each time");
                    return Err(Ended::Server(error));
                }
            };
        }
    }
}

fn batch(statements: &[String], capabilities: Capabilities) -> Batch {
    let mut batch = Batch::new(capabilities);
    for statement in statements {
        batch.query(statement);
    }
    batch
}
