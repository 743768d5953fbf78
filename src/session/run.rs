//! A call for which the server runs the procedure itself: it is answered with what that leaves, and the run proves what the
//! procedure's definer may do.
//!
//! The run comes behind all proofs about the session, so it is the call that the client asked for, run as it would have run.

use super::counts::Event;
use super::driver::Session;
use super::lookup::Plan;
use super::owned::{ASK_LIMITS, INTERRUPTED, Refusal, failed};
use super::proof::{NO_PROCEDURE, WRONG_ARGUMENT_COUNT};
use super::reason::Reason;
use super::result_table::Rows as Count;
use super::rights::{Course, denies_definer, has_read_both};
use crate::backend::Batch;
use crate::source::lookup::{Found, Lookup};
use crate::timeline::Head;
use crate::timeline::check::{ParseWarnings, Procedure, Product};
use crate::wire::response::ErrPacket;
use crate::wire::resultset::{Answer, Rows};

/// ER_PROCACCESS_DENIED_ERROR: the caller may not execute the procedure, or the definer may not execute it or its helper.
const NO_EXECUTE: u16 = 1370;
/// ER_SP_FETCH_NO_DATA: to MariaDB's procedure, a KILL QUERY that met it at its cursor.
const NO_MORE_ROWS: u16 = 1329;

/// Rows in the two tables.
type Rowcounts = [Count; 2];

impl Session {
    /// What this call is to do about the rights of the procedure's definer.
    pub(super) fn heed_definer(&mut self, lookup: &Lookup<'_>) -> Course {
        let (number, form) = (lookup.call.definition, lookup.call.form);
        // Where there is no procedure there is no definer: the tables themselves are asked.
        if lookup.facts.form(form) == &Ok(Procedure::Absent) {
            return Course::Answer;
        }
        let rights = match &self.definer_rights {
            Some(rights) if rights.is_of(number, lookup.database) => rights,
            _ => {
                let rights = self
                    .shared
                    .catalogue
                    .definer_rights(number, lookup.database);
                self.definer_rights.insert(rights)
            }
        };
        rights.call_came(form, self.shared.privileges_ttl)
    }

    /// Proves what is to be proved of the session, has the server run the procedure, and reads what it left. Returns also how many
    /// warnings the call is told.
    pub(super) async fn run_procedure(
        &mut self,
        lookup: &Lookup<'_>,
        plan: Plan,
    ) -> Result<(Found, u16), Refusal> {
        // From here on the tables are listened to, whatever answers this call.
        let _ = self.memory(lookup);
        self.sent = true;
        if !plan.is_empty() {
            self.prove(lookup, plan, None).await?;
        }
        let form = lookup.call.form;
        let rights = self.definer_rights.clone().ok_or(Reason::Unchecked)?;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let before = [commands.tables.result, commands.tables.heads];
        let most = lookup.most as u64;
        if before.iter().any(|count| count.known() > Some(most)) {
            return Err(Reason::TooManyIds.into());
        }
        let sent = rights.now();
        let warns = lookup.facts.parse_warnings != ParseWarnings::None;
        let mut answers = self.run_and_read(lookup, warns).await?.into_iter();
        match answers.next() {
            Some(Answer::Ok(_)) => self.put_back(lookup, before).await?,
            Some(Answer::Err(error)) => return Err(self.run_failed(lookup, before, &error).await),
            // It has become another one, which has rows to show.
            _ => {
                self.shared.catalogue.expire();
                return Err(Reason::Definition.into());
            }
        }
        let said = warns.then(|| answers.next()).flatten();
        let mut found = Found::default();
        if form.fills_result() {
            found.ids = read_ids(answers.next())?;
        }
        if form.fills_heads() {
            found.heads = read_heads(answers.next())?;
        }
        if has_read_both(form, found.ids.len(), found.heads.len()) {
            rights.run_succeeded(form, sent);
        }
        self.may_execute(lookup.call);
        let warnings = match warns {
            true => self.warn_of_text(said).await?,
            false => 0,
        };
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        commands.standing.conditions = warnings > 0;
        self.shared.counts.add(Event::CallRun);
        Ok((found, warnings))
    }

    /// MariaDB counts the rows that a call deletes. Should the procedure run once more for this call, it has to find as many as
    /// it would have found.
    async fn put_back(
        &mut self,
        lookup: &Lookup<'_>,
        [result, heads]: Rowcounts,
    ) -> Result<(), Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let form = lookup.call.form;
        commands.tables.disturb();
        if lookup.facts.product != Product::Mariadb {
            return Ok(());
        }
        let rows = |count: Count| count.known().unwrap_or_default();
        let mut statements = Vec::new();
        if form.fills_result() {
            statements.extend(lookup.ids_put_back(rows(result)));
        }
        if form.fills_heads() {
            statements.extend(lookup.heads_put_back(rows(heads)));
        }
        let mut batch = Batch::new(commands.capabilities);
        for statement in &statements {
            batch.query(statement);
        }
        let capabilities = commands.capabilities;
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        for answer in answers {
            match answer {
                Answer::Ok(_) => {}
                Answer::Err(error) => return Err(failed(&error)),
                Answer::Rows(_) => return Err(Reason::LookupFailed.into()),
            }
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let there = |filled, count| match filled {
            true => Count::Counted(rows(count)),
            false => count,
        };
        commands.tables.result = there(form.fills_result(), result);
        commands.tables.heads = there(form.fills_heads(), heads);
        Ok(())
    }

    async fn run_and_read(
        &mut self,
        lookup: &Lookup<'_>,
        warns: bool,
    ) -> Result<Vec<Answer>, Refusal> {
        let form = lookup.call.form;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        batch.query(&lookup.run());
        if warns {
            batch.query("SHOW WARNINGS");
        }
        if form.fills_result() {
            batch.query(&lookup.ids_left());
        }
        if form.fills_heads() {
            batch.query(&lookup.heads_left());
        }
        // A question that failed leaves an error behind, which the reply to a COM_PING counts.
        batch.query("DO 0");
        let limits = lookup.collect_limits();
        Ok(self.backend.ask(&batch, capabilities, limits).await?)
    }

    /// What the server's error to a run means: the client's own call goes on, and is told it.
    async fn run_failed(
        &mut self,
        lookup: &Lookup<'_>,
        before: Rowcounts,
        error: &ErrPacket,
    ) -> Refusal {
        if let Some(commands) = self.machine.commands() {
            commands.tables.disturb();
        }
        let denied = match error.code {
            NO_EXECUTE => match self.may_call(lookup).await {
                Ok(may) => may,
                Err(refusal) => return refusal,
            },
            code => denies_definer(code),
        };
        match error.code {
            _ if denied => {
                if let Some(rights) = &self.definer_rights {
                    rights.run_was_denied(lookup.call.form);
                }
                Reason::DefinerRights.into()
            }
            NO_EXECUTE => Reason::NoExecute.into(),
            NO_PROCEDURE => {
                self.shared.catalogue.expire();
                Reason::Definition.into()
            }
            INTERRUPTED => failed(error),
            // The tables were there by then.
            NO_MORE_ROWS => match self.put_back(lookup, before).await {
                Ok(()) => Reason::LookupFailed.into(),
                Err(refusal) => refusal,
            },
            _ => self.lookup_failed(error),
        }
    }

    /// Whether this account may execute the procedure: then it is the definer who may not execute it, or its helper.
    async fn may_call(&mut self, lookup: &Lookup<'_>) -> Result<bool, Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        batch.query(&lookup.execute_probe(lookup.call.form));
        batch.query("DO 0");
        let limits = lookup.collect_limits();
        let answers = self.backend.ask(&batch, capabilities, limits).await?;
        let may = |error: &ErrPacket| error.code == WRONG_ARGUMENT_COUNT;
        Ok(matches!(answers.first(), Some(Answer::Err(error)) if may(error)))
    }
}

fn read_ids(answer: Option<Answer>) -> Result<Vec<u64>, Refusal> {
    let rows = rows_left(answer)?;
    let ids: Option<Vec<u64>> = rows.iter().map(|row| row.u64(0)).collect();
    let mut ids = ids.ok_or(Reason::LookupFailed)?;
    ids.sort_unstable_by(|a, b| b.cmp(a));
    Ok(ids)
}

fn read_heads(answer: Option<Answer>) -> Result<Vec<Head>, Refusal> {
    let rows = rows_left(answer)?;
    let head = |author: Option<u64>, id: Option<u64>| author.zip(id);
    let heads: Option<Vec<_>> = rows
        .iter()
        .map(|row| head(row.u64(0), row.u64(1)))
        .collect();
    let heads = heads.ok_or(Reason::LookupFailed)?.into_iter();
    Ok(heads.map(|(author, id)| Head { author, id }).collect())
}

fn rows_left(answer: Option<Answer>) -> Result<Rows, Refusal> {
    match answer {
        Some(Answer::Rows(rows)) => Ok(rows),
        Some(Answer::Err(error)) => Err(failed(&error)),
        _ => Err(Reason::LookupFailed.into()),
    }
}
