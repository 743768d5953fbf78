//! An owned call: what is asked of the server, in which order, and what the client is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::counts::Event;
use super::driver::{Ended, Session};
use super::probe;
use super::reason::Reason;
use super::result_table::{Pending, Rows};
use crate::backend::Batch;
use crate::source::pull::{self, Lookup};
use crate::statement::Call;
use crate::timeline::check::{self, Facts, Procedure, Product, Verdict};
use crate::timeline::definition::{Definition, Form};
use crate::wire::frame::{self, HEADER_BYTES};
use crate::wire::response::{ErrPacket, OkPacket};
use crate::wire::resultset::{Answer, Limits};
use crate::wire::status;

/// ER_QUERY_INTERRUPTED: KILL QUERY, or Ctrl-C at a prompt.
const INTERRUPTED: u16 = 1317;
/// ER_SP_WRONG_NO_OF_ARGS: the answer to a call that may be executed, but has no arguments.
const WRONG_ARGUMENT_COUNT: u16 = 1318;
/// ER_SP_DOES_NOT_EXIST.
const NO_PROCEDURE: u16 = 1305;
/// Denied: to the table, a column, the database, the command.
const DENIED: [u16; 5] = [1044, 1045, 1142, 1143, 1227];

/// How much the answer to an own question may hold: a table's description, a procedure's body.
pub(super) const ASK_LIMITS: Limits = Limits { max_rows: 10_000, max_bytes: 4 * 1024 * 1024 };

/// Why a call is not owned after all.
enum Refusal {
    Relay(Reason),
    /// The lookups were interrupted: the client is told, as it would be of the procedure.
    Interrupted(ErrPacket),
    Ended(Ended),
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Refusal::Relay(reason)
    }
}

impl<E: Into<Ended>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Ended(error.into())
    }
}

/// What an owned call found.
struct Owned {
    pending: Pending,
    affected_rows: u64,
    status: u16,
}

impl Session {
    /// Answers the call whose packet waits, or has the server's procedure answer it.
    pub(super) async fn call(&mut self, length: usize, call: &Call) -> Result<(), Ended> {
        let payload = self.client_in.get(HEADER_BYTES..length).unwrap_or_default().to_vec();
        match self.own(call, &payload).await {
            Ok(owned) => {
                self.client_in.drain(..length);
                self.shared.counts.add(Event::CallOwned);
                self.answer_call(owned)
            }
            Err(Refusal::Relay(reason)) => {
                self.shared.counts.relayed(reason);
                tracing::debug!(reason = reason.label(), "a call is relayed");
                self.settle_quietly().await?;
                if let Some(commands) = self.machine.commands() {
                    commands.relay_call();
                }
                self.pass_client(length)
            }
            Err(Refusal::Interrupted(error)) => {
                self.client_in.drain(..length);
                self.shared.counts.add(Event::CallInterrupted);
                if let Some(commands) = self.machine.commands() {
                    commands.standing.observe_error();
                }
                let (mut bytes, mut packet) = (Vec::new(), Vec::new());
                error.write(&mut bytes);
                frame::encode(1, &bytes, &mut packet);
                self.tell_client(&packet)
            }
            Err(Refusal::Ended(ended)) => Err(ended),
        }
    }

    fn answer_call(&mut self, owned: Owned) -> Result<(), Ended> {
        let ok = OkPacket {
            affected_rows: owned.affected_rows,
            status: owned.status,
            ..OkPacket::default()
        };
        let (mut bytes, mut packet) = (Vec::new(), Vec::new());
        if let Some(commands) = self.machine.commands() {
            commands.tables.pending = Some(Box::new(owned.pending));
            ok.write(commands.capabilities, &mut bytes);
        }
        frame::encode(1, &bytes, &mut packet);
        self.tell_client(&packet)
    }

    async fn own(&mut self, call: &Call, payload: &[u8]) -> Result<Owned, Refusal> {
        if !self.shared.accelerate {
            return Err(Reason::SwitchedOff.into());
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        if let Some(reason) = commands.standing.obstacle() {
            return Err(reason.into());
        }
        if commands.standing.must_ask_first() {
            self.ask_settings().await?;
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let database = commands.standing.database.clone().ok_or(Reason::OtherDatabase)?;
        if call.database.as_ref().is_some_and(|name| name.as_bytes() != database) {
            return Err(Reason::OtherDatabase.into());
        }
        let shared = Arc::clone(&self.shared);
        let definitions = shared.catalogue.definitions();
        let number = call.definition_in(definitions, &database).ok_or(Reason::OtherDatabase)?;
        let definition = definitions.get(number).ok_or(Reason::OtherDatabase)?;
        let verdict = self.verdict(number, definition, &database).await?;
        let Verdict::Accelerate(facts) = &*verdict else {
            return Err(Reason::Definition.into());
        };
        let call = Call { definition: number, ..call.clone() };
        if facts.form(call.form).is_err() {
            return Err(Reason::Definition.into());
        }
        self.look_up(&call, payload, definition, facts, &database).await
    }

    /// Asks for the settings alone, where reading a table could disturb the session.
    async fn ask_settings(&mut self) -> Result<(), Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let (capabilities, mariadb) = (commands.capabilities, commands.server.mariadb);
        let mut batch = Batch::new(capabilities);
        batch.query(probe::settings_query(mariadb));
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        self.take_settings(answers.first()).map(|_| ())
    }

    fn take_settings(&mut self, answer: Option<&Answer>) -> Result<(), Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let rows = match answer {
            Some(Answer::Rows(rows)) => rows,
            Some(Answer::Err(error)) => return Err(failed(error)),
            _ => return Err(Reason::Settings.into()),
        };
        commands.standing.observe(rows.end());
        let settings = probe::judge_settings(rows)?;
        commands.standing.database = settings.database;
        commands.standing.settings_proven = true;
        Ok(())
    }

    /// The verdict on the definition; asks the service account, or this session, when it is due.
    async fn verdict(
        &mut self,
        number: usize,
        definition: &Definition,
        database: &[u8],
    ) -> Result<Arc<Verdict>, Refusal> {
        let shared = Arc::clone(&self.shared);
        if let Some(verdict) = shared.catalogue.verdict(number, database) {
            return Ok(verdict);
        }
        if shared.catalogue.service.is_some() {
            match shared.catalogue.check(number, database).await {
                Ok(verdict) => return Ok(verdict),
                Err(error) => tracing::warn!("{error}; a client session is asked instead"),
            }
        }
        self.check_here(number, definition, database).await
    }

    /// Checks the definition on this session's connection, with its account's eyes.
    async fn check_here(
        &mut self,
        number: usize,
        definition: &Definition,
        database: &[u8],
    ) -> Result<Arc<Verdict>, Refusal> {
        let lifetime = Duration::from_millis(self.shared.limits.recheck_ms);
        if self.checked_in_vain.is_some_and(|at| at.elapsed() < lifetime) {
            return Err(Reason::Unchecked.into());
        }
        let name = std::str::from_utf8(database).map_err(|_| Reason::OtherDatabase)?;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        for query in check::queries(definition, name) {
            batch.query(&query);
        }
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        let answered: Vec<_> = answers.into_iter().map(pull::answered).collect();
        let catalogue = &self.shared.catalogue;
        match check::evaluate(definition, name, &answered) {
            // Another account may see more: what this one does not see is no verdict.
            Verdict::Relay(reason) if reason.may_be_blindness() => {
                catalogue.say_unseen(number, &reason);
                self.checked_in_vain = Some(Instant::now());
                Err(Reason::Unchecked.into())
            }
            verdict => Ok(catalogue.record(number, database, verdict)),
        }
    }

    async fn look_up(
        &mut self,
        call: &Call,
        payload: &[u8],
        definition: &Definition,
        facts: &Facts,
        database: &[u8],
    ) -> Result<Owned, Refusal> {
        let limits = self.shared.limits;
        let lookup = Lookup { definition, facts, database, call, most: limits.pending_ids };
        let prove_execute = self.execute_is_due(call);
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let plan = Plan {
            settings: !commands.standing.settings_proven,
            tables: !commands.standing.tables_proven,
            execute: prove_execute,
        };
        // Only MariaDB's OK packet counts the rows that the call deletes.
        let counts = facts.product == Product::Mariadb;
        let count_result = counts && commands.tables.result.known().is_none();
        let count_heads = counts && commands.tables.heads.known().is_none();

        let mut batch = Batch::new(capabilities);
        if plan.settings {
            batch.query(probe::settings_query(commands.server.mariadb));
        }
        if plan.tables {
            for query in lookup.shadow_queries() {
                batch.query(&query);
            }
        }
        if plan.execute {
            batch.query(&lookup.execute_probe());
        }
        if count_result {
            batch.query(&lookup.count_query(&definition.result.table));
        }
        if count_heads {
            batch.query(&lookup.count_query(&definition.heads.table));
        }
        batch.query(&lookup.heads_query());
        let answers = self.backend.ask(&batch, capabilities, lookup.collect_limits()).await?;
        let mut answers = answers.into_iter();

        if plan.settings {
            self.take_settings(answers.next().as_ref())?;
            let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
            if commands.standing.database.as_deref() != Some(database) {
                return Err(Reason::OtherDatabase.into());
            }
        }
        if plan.tables {
            let shadows: Vec<Answer> = answers.by_ref().take(lookup.shadow_queries().len()).collect();
            lookup.judge_shadows(&shadows)?;
        }
        if plan.execute {
            self.take_execute(answers.next(), call, facts)?;
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        commands.standing.tables_proven = true;
        if count_result {
            commands.tables.result = counted(answers.next())?;
        }
        if count_heads {
            commands.tables.heads = counted(answers.next())?;
        }
        let heads = match answers.next() {
            Some(Answer::Rows(rows)) => lookup.read_heads(&rows)?,
            Some(Answer::Err(error)) => return Err(self.lookup_failed(&error)),
            _ => return Err(Reason::LookupFailed.into()),
        };

        let mut batch = Batch::new(capabilities);
        for query in lookup.page_queries(&heads) {
            batch.query(&query);
        }
        let mut pages = Vec::new();
        if batch.count() > 0 {
            let answers = self.backend.ask(&batch, capabilities, lookup.collect_limits()).await?;
            for answer in answers {
                match answer {
                    Answer::Rows(rows) => pages.push(rows),
                    Answer::Err(error) => return Err(self.lookup_failed(&error)),
                    Answer::Ok(_) => return Err(Reason::LookupFailed.into()),
                }
            }
        }
        let found = lookup.found(heads, pages.first(), pages.get(1))?;
        self.conclude(call, payload, facts, found)
    }

    fn conclude(
        &mut self,
        call: &Call,
        payload: &[u8],
        facts: &Facts,
        found: pull::Found,
    ) -> Result<Owned, Refusal> {
        if found.ids.len() + found.heads.len() > self.shared.limits.pending_ids {
            return Err(Reason::TooManyIds.into());
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let before = commands.tables.pending.take();
        let mut rows_before = match &before {
            Some(pending) => pending.total,
            None => commands.tables.result.known().unwrap_or(0),
        };
        let heads = match call.form {
            Form::Newest => before.and_then(|pending| pending.heads),
            Form::Bounded => {
                let pending = before.and_then(|pending| pending.heads);
                rows_before += pending.map_or_else(
                    || commands.tables.heads.known().unwrap_or(0),
                    |heads| heads.len() as u64,
                );
                Some(found.heads)
            }
        };
        let new_heads = if call.form == Form::Bounded { heads.as_ref().map_or(0, Vec::len) } else { 0 };
        let affected_rows = match facts.product {
            Product::Mariadb => rows_before + found.total + new_heads as u64,
            Product::Mysql => 0,
        };
        let flags = commands.standing.status.unwrap_or(status::AUTOCOMMIT);
        let kept = flags & (status::AUTOCOMMIT | status::NO_BACKSLASH_ESCAPES);
        let noise = match facts.product {
            Product::Mariadb => status::NO_INDEX,
            Product::Mysql => {
                status::NO_INDEX | status::CURSOR_EXISTS | status::LAST_ROW_SENT
            }
        };
        Ok(Owned {
            pending: Pending {
                definition: call.definition,
                call: payload.to_vec(),
                ids: found.ids,
                total: found.total,
                rest: found.rest,
                heads,
            },
            affected_rows,
            status: kept | noise,
        })
    }

    /// True when the right to execute is not proven for this account, or was so too long ago.
    fn execute_is_due(&mut self, call: &Call) -> bool {
        let lifetime = Duration::from_millis(self.shared.limits.privilege_ms);
        let recent = self.execute_proven.is_some_and(|at| at.elapsed() < lifetime);
        let proven = self.machine.commands().and_then(|commands| commands.standing.may_execute);
        !(recent && proven == Some((call.definition, call.form)))
    }

    /// Judges the answer to a call without arguments: only who may execute it is told of those.
    fn take_execute(
        &mut self,
        answer: Option<Answer>,
        call: &Call,
        facts: &Facts,
    ) -> Result<(), Refusal> {
        match answer {
            Some(Answer::Err(error)) if error.code == WRONG_ARGUMENT_COUNT => {}
            Some(Answer::Err(error)) if error.code == INTERRUPTED => return Err(failed(&error)),
            // A server that never had the procedure is served from the definition.
            Some(Answer::Err(_)) if facts.form(call.form) == &Ok(Procedure::Absent) => {}
            Some(Answer::Err(error)) if error.code == NO_PROCEDURE => {
                self.shared.catalogue.expire();
                return Err(Reason::Definition.into());
            }
            _ => return Err(Reason::NoExecute.into()),
        }
        self.execute_proven = Some(Instant::now());
        if let Some(commands) = self.machine.commands() {
            commands.standing.may_execute = Some((call.definition, call.form));
        }
        Ok(())
    }

    fn lookup_failed(&mut self, error: &ErrPacket) -> Refusal {
        if DENIED.contains(&error.code) {
            if let Some(commands) = self.machine.commands() {
                commands.standing.barred = Some(Reason::LookupDenied);
            }
            return Reason::LookupDenied.into();
        }
        failed(error)
    }
}

/// What goes into the first write of an owned call besides the heads.
struct Plan {
    settings: bool,
    tables: bool,
    execute: bool,
}

fn failed(error: &ErrPacket) -> Refusal {
    if error.code == INTERRUPTED {
        return Refusal::Interrupted(error.clone());
    }
    tracing::debug!(code = error.code, "a lookup failed");
    Reason::LookupFailed.into()
}

/// The rows of a table that may not exist.
fn counted(answer: Option<Answer>) -> Result<Rows, Refusal> {
    match answer {
        Some(Answer::Rows(rows)) => {
            let count = rows.iter().next().and_then(|row| row.u64(0));
            Ok(count.map_or(Rows::Unknown, Rows::Counted))
        }
        Some(Answer::Err(error)) if error.code == INTERRUPTED => Err(failed(&error)),
        Some(Answer::Err(_)) => Ok(Rows::Absent),
        _ => Err(Reason::LookupFailed.into()),
    }
}
