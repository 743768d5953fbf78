//! Before anything else may look, pending ids are put on the server: what is sent for that, one thing after the other.
//!
//! They are written to the server's temporary tables. Where that is denied or fails, the real procedure runs in their place: its
//! tables are what the client would have had without Headwater, computed a moment later.

use std::collections::VecDeque;

use headwater_timeline::Definition;
use headwater_wire::command::query_payload;
use headwater_wire::reply::Outcome;
use headwater_wire::resultset::Answer;

use crate::commands::Commands;
use crate::ownership::{INTERRUPTED, NO_MORE_ROWS, utf8_is_an_alias};
use crate::reason::Reason;
use crate::result_table::{Pending, Rows};
use crate::write;

/// MySQL (9.7.4) remembers until the next commit that a MEMORY table was written, and has a warning
/// (6414) for a statement that then writes an InnoDB table; behind a procedure it forgets.
/// Nothing is open here that could be committed: the result table is only pending outside transactions.
const END_OF_WRITE: &str = "COMMIT AND NO CHAIN NO RELEASE";

/// So often a statement of ours may meet a KILL QUERY and is sent again.
pub const INTERRUPTIONS: u32 = 100;

/// What the waiting command looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// The tables.
    Tables,
    /// Counts and warnings as well, which only the real procedure, or the real tail behind it, and what the client had answered
    /// since leave behind. `found_rows`: that count outlives warnings, and not a statement that gives rise to some.
    Diagnostics {
        /// It may ask for FOUND_ROWS().
        found_rows: bool,
    },
    /// The tables, and it can be sent again: it goes along with what writes them.
    TablesAtOnce,
}

/// What is needed next.
#[derive(Debug, PartialEq, Eq)]
pub enum Need {
    /// These statements: [`Input::Written`].
    Write(Vec<String>),
    /// These, and the waiting command behind them: [`Input::Written`], without the reply to that.
    WriteAndPass(Vec<String>),
    /// The reply to the waiting command is nobody's: [`Input::Went`].
    Swallow,
    /// This command, whose reply is nobody's: [`Input::Ran`].
    Run(Vec<u8>),
    /// Nothing.
    Done(Settled),
    /// Nothing: somebody interrupts it each time.
    Interrupted,
}

/// What came of it.
#[derive(Debug)]
pub enum Input {
    /// Nothing yet.
    Begin,
    /// The answers to the statements.
    Written(Vec<Answer>),
    /// The reply was read.
    Went,
    /// How the command ended.
    Ran(Option<Outcome>),
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The tables were written.
    pub written: bool,
    /// The waiting command has gone to the server.
    pub passed: bool,
    /// The procedure ran.
    pub redone: bool,
    /// Writing failed with this error, or with 0 in another way.
    pub failed: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Writing,
    /// With the waiting command behind it.
    WritingAtOnce,
    Running,
}

/// Puts what is pending on the server.
#[derive(Debug)]
pub struct Settling {
    pending: Box<Pending>,
    asks: Asks,
    stage: Stage,
    /// So many statements write the tables.
    statements: usize,
    runs: VecDeque<Vec<u8>>,
    interruptions: u32,
    settled: Settled,
}

impl Settling {
    /// Takes what is pending; `None` where nothing is.
    pub fn begin(commands: &mut Commands, asks: Asks) -> Option<Settling> {
        let overrules = commands.overrules();
        let mut pending = commands.tables.pending.take()?;
        if overrules {
            pending.forget_overruled();
        }
        Some(Settling {
            pending,
            asks,
            stage: Stage::Running,
            statements: 0,
            runs: VecDeque::new(),
            interruptions: 0,
            settled: Settled::default(),
        })
    }

    /// Takes in what came of the last need, and says what is needed next.
    pub fn next(
        &mut self,
        input: Input,
        commands: &mut Commands,
        definitions: &[Definition],
    ) -> Need {
        match input {
            Input::Begin => match self.asks {
                Asks::TablesAtOnce => {
                    self.stage = Stage::WritingAtOnce;
                    Need::WriteAndPass(self.statements(commands, definitions))
                }
                Asks::Diagnostics { .. } if self.pending.tail.is_none() => self.redo(commands),
                _ => self.write(commands, definitions),
            },
            Input::Went => self.write(commands, definitions),
            Input::Written(answers) => self.take_written(&answers, commands, definitions),
            Input::Ran(outcome) => {
                if let Some(outcome) = outcome {
                    commands.observe(&outcome);
                    if let Outcome::Err(error) = outcome
                        && is_interruption(error.code)
                    {
                        return self.once_more(commands, definitions);
                    }
                }
                self.runs.pop_front();
                self.interruptions = 0;
                self.run()
            }
        }
    }

    fn write(&mut self, commands: &Commands, definitions: &[Definition]) -> Need {
        self.stage = Stage::Writing;
        Need::Write(self.statements(commands, definitions))
    }

    /// The statements that write the tables; none when there is nothing to write them by.
    fn statements(&mut self, commands: &Commands, definitions: &[Definition]) -> Vec<String> {
        let Some(definition) = self.pending.definition.of(definitions) else {
            self.statements = 0;
            return Vec::new();
        };
        let tables = &commands.tables;
        let mut all = write::statements(definition, &self.pending, tables.result, tables.heads);
        if !commands.server.mariadb {
            all.push(END_OF_WRITE.to_owned());
        }
        self.statements = all.len();
        all
    }

    fn take_written(
        &mut self,
        answers: &[Answer],
        commands: &mut Commands,
        definitions: &[Definition],
    ) -> Need {
        let failure = answers.iter().find_map(|answer| match answer {
            Answer::Ok(_) => None,
            Answer::Err(error) => Some(error.code),
            Answer::Rows(_) => Some(0),
        });
        let whole = answers.len() == self.statements && self.statements > 0;
        match failure.or((!whole).then_some(0)) {
            None => {
                if let Some(ids) = &self.pending.ids {
                    commands.tables.result = Rows::Counted(ids.len() as u64);
                }
                if let Some(heads) = &self.pending.heads {
                    commands.tables.heads = Rows::Counted(heads.len() as u64);
                }
                self.settled.written = true;
                self.settled.passed = matches!(self.stage, Stage::WritingAtOnce);
                self.behind()
            }
            // A KILL QUERY that meets a statement of ours was meant for another one: it is as if it had come between two.
            Some(code) if is_interruption(code) => {
                commands.tables.disturb();
                match self.stage {
                    Stage::WritingAtOnce => Need::Swallow,
                    _ => self.once_more(commands, definitions),
                }
            }
            Some(code) => {
                // Once is enough to know: this session's calls are relayed from now on.
                commands.standing.bar(Reason::WriteDenied);
                self.settled.failed = Some(code);
                match self.stage {
                    Stage::WritingAtOnce => Need::Swallow,
                    _ => self.redo(commands),
                }
            }
        }
    }

    fn once_more(&mut self, commands: &Commands, definitions: &[Definition]) -> Need {
        self.interruptions += 1;
        if self.interruptions >= INTERRUPTIONS {
            return Need::Interrupted;
        }
        match self.stage {
            Stage::Running => self.run(),
            Stage::Writing | Stage::WritingAtOnce => self.write(commands, definitions),
        }
    }

    /// Runs the client's own call on the server, behind those that it came after.
    fn redo(&mut self, commands: &mut Commands) -> Need {
        self.settled.redone = true;
        commands.tables.disturb();
        let earlier = self.pending.before.iter().map(|(_, call)| call);
        self.runs
            .extend(earlier.chain([&self.pending.call]).cloned());
        // The server has parsed the text at the right's proof, and has nothing to say of it now.
        if let Asks::Diagnostics { found_rows: false } = self.asks
            && self.pending.warnings > 0
        {
            let again = utf8_is_an_alias(self.pending.warnings);
            let payload = query_payload(again.as_bytes(), commands.capabilities);
            self.runs.push_back(payload);
        }
        self.behind()
    }

    /// Behind the tables comes what left the counts and warnings that are asked for.
    fn behind(&mut self) -> Need {
        if let Asks::Diagnostics { .. } = self.asks {
            let spared = self.pending.spared.iter().map(|spared| &spared.packet);
            let answered = self.pending.tail.iter().chain(spared);
            self.runs
                .extend(answered.chain(&self.pending.aside).cloned());
        }
        self.stage = Stage::Running;
        self.interruptions = 0;
        self.run()
    }

    fn run(&self) -> Need {
        match self.runs.front() {
            Some(payload) => Need::Run(payload.clone()),
            None => Need::Done(self.settled),
        }
    }
}

/// KILL QUERY; MariaDB has another error where it met a procedure at its cursor.
fn is_interruption(code: u16) -> bool {
    code == INTERRUPTED || code == NO_MORE_ROWS
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
