//! Proofs before a call is owned: the session's settings, the definition, the right to execute.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::Session;
use super::owned::{ASK_LIMITS, INTERRUPTED, Refusal, failed};
use super::probe;
use super::reason::Reason;
use crate::backend::{Batch, query_payload};
use crate::catalogue::ServiceError;
use crate::source::lookup::Lookup;
use crate::source::proofs;
use crate::statement::Call;
use crate::timeline::Form;
use crate::timeline::check::{self, Facts, ParseWarnings, Procedure, Verdict};
use crate::timeline::definition::Definition;
use crate::wire::reply::Outcome;
use crate::wire::resultset::Answer;

/// ER_SP_WRONG_NO_OF_ARGS: the answer to a call that may be executed, but has no arguments.
pub(super) const WRONG_ARGUMENT_COUNT: u16 = 1318;
/// So many times within its `wait_timeout` a session is heard of by the server while it makes calls.
const HEARD_OF: u32 = 50;
/// ER_DEPRECATED_UTF8_ALIAS.
const UTF8_IS_AN_ALIAS: u64 = 3719;
/// ER_SP_DOES_NOT_EXIST.
pub(super) const NO_PROCEDURE: u16 = 1305;

/// A statement that MySQL has this to say of (ER_DEPRECATED_UTF8_ALIAS), so many times, and does nothing about.
pub(super) fn utf8_is_an_alias(times: u16) -> String {
    let names = vec!["_utf8''"; usize::from(times)].join(",");
    format!("DO {names}")
}

impl Session {
    /// Asks for the settings alone, where reading a table could disturb the session.
    pub(super) async fn ask_settings(&mut self) -> Result<(), Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let (capabilities, mariadb) = (commands.capabilities, commands.server.mariadb);
        let mut batch = Batch::new(capabilities);
        batch.query(&probe::settings_query(mariadb));
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        self.take_settings(answers.first()).map(|_| ())
    }

    pub(super) fn take_settings(&mut self, answer: Option<&Answer>) -> Result<(), Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let rows = match answer {
            Some(Answer::Rows(rows)) => rows,
            Some(Answer::Err(error)) => return Err(failed(error)),
            _ => return Err(Reason::Settings.into()),
        };
        commands.standing.observe(rows.end());
        let settings = probe::judge_settings(commands.server.mariadb, rows)?;
        commands.standing.enter(settings.database);
        commands.standing.server = Some(settings.server);
        commands.standing.wait_timeout = settings.wait_timeout;
        commands.standing.settings_proven = true;
        Ok(())
    }

    /// The verdict on the definition; asks the service account, or this session, when it is due.
    pub(super) async fn verdict(
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
            match shared.catalogue.check_due(number, database).await {
                Ok(verdict) => return Ok(verdict),
                // Whatever holds it up would hold this session up as well.
                Err(ServiceError::Slow(_)) => return Err(Reason::Unchecked.into()),
                Err(error) if error.was_said() => {}
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
        if self
            .checked_in_vain
            .as_ref()
            .is_some_and(|(at, place)| place == database && at.elapsed() < lifetime)
        {
            return Err(Reason::Unchecked.into());
        }
        let name = std::str::from_utf8(database).map_err(|_| Reason::OtherDatabase)?;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        for query in check::queries(definition, name) {
            batch.query(&query);
        }
        let epoch = self.shared.catalogue.epoch();
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        let answered: Vec<_> = answers.into_iter().map(proofs::answered).collect();
        let catalogue = &self.shared.catalogue;
        match check::evaluate(definition, name, &answered) {
            // Another account may see more: what this one does not see is no verdict.
            Verdict::Relay(reason) if reason.may_be_blindness() => {
                catalogue.say_unseen(number, &reason);
                self.checked_in_vain = Some((Instant::now(), database.to_vec()));
                Err(Reason::Unchecked.into())
            }
            verdict => Ok(catalogue.record(number, database, verdict, epoch)),
        }
    }

    /// True when the right to execute is not proven for this account, or was so too long ago; where the server warns of texts that it
    /// parses, also when a routine may have changed since.
    pub(super) fn execute_is_due(&mut self, call: &Call, facts: &Facts) -> bool {
        let standing = self.machine.commands().map(|commands| &commands.standing);
        let wait_timeout = standing.map_or(Duration::MAX, |standing| standing.wait_timeout);
        // It has the server hear of a session that is answered from memory, before it would end that.
        let lifetime = self.shared.privileges_ttl.min(wait_timeout / HEARD_OF);
        let (warns, now) = (
            facts.parse_warnings != ParseWarnings::None,
            self.shared.catalogue.epoch(),
        );
        let recent = self
            .execute_proven
            .is_some_and(|(at, epoch)| at.elapsed() < lifetime && (epoch == now || !warns));
        let proven = self
            .machine
            .commands()
            .and_then(|commands| commands.standing.may_execute);
        !(recent && proven == Some((call.definition, call.form)))
    }

    /// A procedure of whose text the server says what cannot be said again is relayed once in a session.
    pub(super) fn heed_parse_warnings(&mut self, call: &Call, facts: &Facts) -> Result<(), Reason> {
        if facts.parse_warnings != ParseWarnings::Others {
            return Ok(());
        }
        let epoch = self.shared.catalogue.epoch().count();
        let this = (call.definition, call.form, epoch);
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let parsed = &mut commands.standing.parsed;
        if parsed.contains(&this) {
            return Ok(());
        }
        parsed.retain(|(.., then)| *then == epoch);
        parsed.push(this);
        Err(Reason::ParseWarnings)
    }

    /// Proves the right to execute where the server may warn of a text that it has to parse for that, as it would at the call itself.
    /// It has the warnings again behind this, in the place of those of the call; returns how many.
    ///
    /// Last of all: a call that is relayed after all is told them by the server.
    pub(super) async fn execute_last(&mut self, lookup: &Lookup<'_>) -> Result<u16, Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        if lookup.call.form == Form::Bounded {
            // The call has the server parse its helper, of which it does not tell.
            batch.query(&lookup.execute_probe(Form::Heads));
        }
        batch.query(&lookup.execute_probe(lookup.call.form));
        batch.query("SHOW WARNINGS");
        batch.query("DO 0");
        let answers = self.backend.ask(&batch, capabilities, ASK_LIMITS).await?;
        let mut answers = answers.into_iter();
        if lookup.call.form == Form::Bounded
            && let Some(Answer::Err(error)) = answers.next()
            && error.code == INTERRUPTED
        {
            return Err(failed(&error));
        }
        self.take_execute(answers.next(), lookup.call, lookup.facts)?;
        self.warn_of_text(answers.next()).await
    }

    /// Has the server say again what it said of a procedure's text, by its answer to SHOW WARNINGS; returns how many warnings
    /// that are.
    pub(super) async fn warn_of_text(&mut self, said: Option<Answer>) -> Result<u16, Refusal> {
        let codes: Vec<_> = match said {
            Some(Answer::Rows(rows)) => rows.iter().map(|row| row.u64(1)).collect(),
            Some(Answer::Err(error)) => return Err(failed(&error)),
            _ => return Err(Reason::LookupFailed.into()),
        };
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let alias = Some(UTF8_IS_AN_ALIAS);
        let told = codes.iter().filter(|code| **code == alias).count();
        let known = [alias, Some(WRONG_ARGUMENT_COUNT.into())];
        let others = codes.iter().any(|code| !known.contains(code));
        let mut warnings = 0;
        if told > 0 {
            let again = utf8_is_an_alias(u16::try_from(told).unwrap_or(u16::MAX));
            let again = query_payload(again.as_bytes(), capabilities);
            let read = self.backend.run(&again, capabilities, 0).await?;
            warnings = match read.outcome {
                Some(Outcome::Ok(ok)) => ok.warnings,
                Some(Outcome::Err(error)) => return Err(failed(&error)),
                _ => return Err(Reason::LookupFailed.into()),
            };
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        commands.standing.conditions = warnings > 0;
        if others {
            // They cannot be had again: the next call has the server say what it says.
            commands.standing.parsed.clear();
        }
        Ok(warnings)
    }

    /// Judges the answer to a call without arguments: only who may execute it is told of those.
    pub(super) fn take_execute(
        &mut self,
        answer: Option<Answer>,
        call: &Call,
        facts: &Facts,
    ) -> Result<(), Refusal> {
        let absent = facts.form(call.form) == &Ok(Procedure::Absent);
        match answer {
            Some(Answer::Err(error)) if error.code == INTERRUPTED => return Err(failed(&error)),
            Some(Answer::Err(error)) if error.code == WRONG_ARGUMENT_COUNT && !absent => {}
            // A server that never had the procedure is served from the definition.
            Some(Answer::Err(error)) if error.code != WRONG_ARGUMENT_COUNT && absent => {}
            // It is there now, or gone: whose rights count is another matter then.
            Some(Answer::Err(error))
                if [NO_PROCEDURE, WRONG_ARGUMENT_COUNT].contains(&error.code) =>
            {
                self.shared.catalogue.expire();
                return Err(Reason::Definition.into());
            }
            _ => return Err(Reason::NoExecute.into()),
        }
        self.may_execute(call);
        Ok(())
    }

    /// The server has let this account execute the procedure.
    pub(super) fn may_execute(&mut self, call: &Call) {
        // What changed while it was asked for counts as a change since.
        self.execute_proven = Some((Instant::now(), self.shared.catalogue.epoch()));
        if let Some(commands) = self.machine.commands() {
            commands.standing.may_execute = Some((call.definition, call.form));
        }
    }
}
