//! How an owned call finds its ids: in memory, or by lookups: proofs and heads in one write, then the lists behind the heads.

use std::sync::Arc;

use super::counts::Event;
use super::driver::Session;
use super::owned::{DENIED, INTERRUPTED, Owned, Refusal, failed};
use super::probe;
use super::reason::Reason;
use super::result_table::{self, Pending};
use super::rights::Course;
use crate::backend::Batch;
use crate::feed::{Feed, Likely, Mark, Place};
use crate::shadow::Compared;
use crate::source::heads::Heads;
use crate::source::lists::Lists;
use crate::source::lookup::{Found, Lookup};
use crate::source::plan::{Next, Step};
use crate::source::proofs::{self, ResultTablesThere};
use crate::statement::Call;
use crate::timeline::Form;
use crate::timeline::check::{Facts, ParseWarnings, Procedure, Product};
use crate::timeline::definition::Definition;
use crate::wire::response::ErrPacket;
use crate::wire::resultset::{Answer, Rows};
use crate::wire::status;

/// Errors of a moment: locked tables (1099, 1100), a lock wait (1205), a deadlock (1213), a definition changed meanwhile (1412).
const PASSES: [u16; 5] = [1099, 1100, 1205, 1213, 1412];

/// What has to be proved before a call is owned.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    settings: bool,
    tables: bool,
    execute: bool,
    count_result: bool,
    count_heads: bool,
    /// The right to execute, behind all else.
    execute_last: bool,
}

impl Plan {
    pub(super) fn is_empty(self) -> bool {
        !(self.settings || self.tables || self.execute || self.count_result || self.count_heads)
    }
}

impl Session {
    pub(super) async fn look_up(
        &mut self,
        call: &Call,
        payload: Vec<u8>,
        definition: &Definition,
        facts: &Facts,
        database: &[u8],
    ) -> Result<Owned, Refusal> {
        let lookup = Lookup {
            definition,
            facts,
            database,
            call,
            most: self.shared.limits.pending_ids,
        };
        self.heed_parse_warnings(call, facts)?;
        let plan = self.plan(call, facts)?;
        let compared = self.compared(&lookup);
        let course = self.heed_definer(&lookup);
        let (found, told) = match course {
            Course::Relay => return Err(Reason::DefinerRights.into()),
            Course::Run => {
                let (found, warnings) = self.run_procedure(&lookup, plan).await?;
                (found, Some(warnings))
            }
            Course::Answer => {
                let found = match self.remembered(&lookup, plan).await? {
                    Some(found) => found,
                    None => self.by_lookups(&lookup).await?,
                };
                (found, None)
            }
        };
        if self.are_too_many(call.form, &found) {
            return Err(Reason::TooManyIds.into());
        }
        let warnings = match told {
            Some(warnings) => warnings,
            None if plan.execute_last => self.execute_last(&lookup).await?,
            None => 0,
        };
        if let (Some((place, mark)), Some(shadow)) = (compared, &self.shared.shadow) {
            shadow.compare(Compared {
                definition: call.definition,
                place,
                form: call.form,
                reader: call.reader,
                bound: call.bound,
                mark,
                answer: found.clone(),
            });
        }
        let mut owned = self.conclude(call, payload, facts, found)?;
        owned.pending.warnings = warnings;
        Ok(owned)
    }

    fn plan(&mut self, call: &Call, facts: &Facts) -> Result<Plan, Refusal> {
        let execute = self.execute_is_due(call, facts);
        let warns = facts.parse_warnings != ParseWarnings::None;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        // Only MariaDB's OK packet counts the rows that the call deletes.
        let counts = facts.product == Product::Mariadb;
        let unknown = |rows: result_table::Rows| counts && rows.known().is_none();
        let count_result = call.form.fills_result() && unknown(commands.tables.result);
        let count_heads = call.form.fills_heads() && unknown(commands.tables.heads);
        Ok(Plan {
            settings: !commands.standing.settings_proven,
            // What is counted must be the temporary table, not a permanent one of its name.
            tables: !commands.standing.tables_proven || count_result || count_heads,
            execute: execute && !warns,
            count_result,
            count_heads,
            execute_last: execute && warns,
        })
    }

    /// The answer from memory, where it is likely to be there; what is to be proved is proved first.
    async fn remembered(
        &mut self,
        lookup: &Lookup<'_>,
        plan: Plan,
    ) -> Result<Option<Found>, Refusal> {
        // Where there is no procedure nothing says who may have its answers, but the tables themselves: they are asked.
        if lookup.facts.form(lookup.call.form) == &Ok(Procedure::Absent) {
            return Ok(None);
        }
        // From here on the tables are listened to, whatever answers this call.
        let Some((feed, place)) = self.memory(lookup) else {
            return Ok(None);
        };
        // A lookup ends what the last statement left behind, as the procedure would.
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        if commands.standing.conditions {
            return Ok(None);
        }
        let wanted = (lookup.call.reader, lookup.call.bound, lookup.n());
        let known = self.server();
        let likely = feed.may_have(&place, known.as_deref(), wanted).await;
        if likely == Likely::No {
            return Ok(None);
        }
        if !plan.is_empty() {
            self.prove(lookup, plan, None).await?;
        }
        let Some(server) = self.server() else {
            return Ok(None);
        };
        let page = feed.page(&place, Some(&server), wanted, self.sent, likely);
        let Some(page) = page.await else {
            return Ok(None);
        };
        self.sent = false;
        self.shared.counts.add(Event::CallFromMemory);
        Ok(Some(Found::from_page(page, lookup.call.form)))
    }

    /// The moment before the answer, if that is to be compared with the procedure's.
    fn compared(&mut self, lookup: &Lookup<'_>) -> Option<(Arc<Place>, Mark)> {
        if !self.shared.shadow.as_ref()?.chooses() {
            return None;
        }
        let (feed, place) = self.memory(lookup)?;
        Some((place, feed.mark()?))
    }

    /// Which server this session's connection leads to, once it was asked.
    fn server(&mut self) -> Option<Vec<u8>> {
        self.machine.commands()?.standing.server.clone()
    }

    /// The feed, and the timeline's place in it.
    pub(super) fn memory(&mut self, lookup: &Lookup<'_>) -> Option<(Arc<Feed>, Arc<Place>)> {
        let feed = self.shared.feed.clone()?;
        let number = lookup.call.definition;
        if let Some(place) = &self.place
            && place.is_of(number, lookup.database)
        {
            return Some((feed, Arc::clone(place)));
        }
        let database = std::str::from_utf8(lookup.database).ok()?;
        let place = feed.place(number, lookup.definition, database)?;
        self.place = Some(Arc::clone(&place));
        Some((feed, place))
    }

    async fn by_lookups(&mut self, lookup: &Lookup<'_>) -> Result<Found, Refusal> {
        // Proofs may have been given for a look into memory meanwhile.
        let plan = self.plan(lookup.call, lookup.facts)?;
        self.sent = true;
        let step = lookup.begin(&mut self.shared.catalogue.hints());
        let rows = self
            .prove(lookup, plan, Some(&step))
            .await?
            .ok_or(Reason::LookupFailed)?;
        let heads = self.heads(lookup, step, rows).await?;
        let found = self.lists(lookup, heads).await?;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        commands.standing.conditions = false;
        Ok(found)
    }

    /// Proves what is to be proved, and takes the first step of a lookup in the same write.
    pub(super) async fn prove(
        &mut self,
        lookup: &Lookup<'_>,
        plan: Plan,
        step: Option<&Step>,
    ) -> Result<Option<Rows>, Refusal> {
        let definition = lookup.definition;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        if plan.settings {
            batch.query(&probe::settings_query(commands.server.mariadb));
        }
        if plan.tables {
            for query in lookup.shadow_queries() {
                batch.query(&query);
            }
        }
        if plan.execute {
            batch.query(&lookup.execute_probe(lookup.call.form));
        }
        if plan.count_result {
            batch.query(&lookup.count_query(&definition.result.table));
        }
        if plan.count_heads {
            batch.query(&lookup.count_query(&definition.heads.table));
        }
        // A denied or refused question leaves an error behind, which the reply to a COM_PING counts.
        batch.query(step.map_or("DO 0", Step::query));
        let answers = self
            .backend
            .ask(&batch, capabilities, lookup.collect_limits())
            .await?;
        let mut answers = answers.into_iter();

        if plan.settings {
            self.take_settings(answers.next().as_ref())?;
            let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
            if commands.standing.database.as_deref() != Some(lookup.database) {
                return Err(Reason::OtherDatabase.into());
            }
        }
        let mut there = ResultTablesThere::default();
        if plan.tables {
            let shadows: Vec<Answer> = answers
                .by_ref()
                .take(lookup.shadow_queries().len())
                .collect();
            if let Some(error) = shadows.iter().find_map(interruption) {
                return Err(failed(error));
            }
            there = lookup.judge_shadows(&shadows).map_err(Reason::from)?;
        }
        if plan.execute {
            self.take_execute(answers.next(), lookup.call, lookup.facts)?;
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        commands.standing.tables_proven = true;
        if plan.count_result {
            commands.tables.result = counted(answers.next(), there.result)?;
        }
        if plan.count_heads {
            commands.tables.heads = counted(answers.next(), there.heads)?;
        }
        if step.is_none() {
            return Ok(None);
        }
        Ok(self.rows(answers)?.pop())
    }

    /// The heads, from the answer to the first step on.
    async fn heads(
        &mut self,
        lookup: &Lookup<'_>,
        mut step: Step,
        mut rows: Rows,
    ) -> Result<Heads, Refusal> {
        let shared = Arc::clone(&self.shared);
        loop {
            let next = lookup.go_on(&step, &rows, &mut shared.catalogue.hints());
            let next = next.map_err(Reason::from)?;
            step = match next {
                Next::Heads(heads) => return Ok(heads),
                Next::Ask(step) => step,
            };
            let mut answers = self.read(lookup, &[step.query()]).await?;
            rows = answers.pop().ok_or(Reason::LookupFailed)?;
        }
    }

    /// The lists behind their heads, where those did not bring them along.
    async fn lists(&mut self, lookup: &Lookup<'_>, heads: Heads) -> Result<Found, Refusal> {
        let shared = Arc::clone(&self.shared);
        let mut lists = Lists::new(lookup, heads, &mut shared.catalogue.hints().marks);
        loop {
            let queries = lists.queries(lookup);
            if queries.is_empty() {
                return Ok(lists.found(lookup, &mut shared.catalogue.hints().marks));
            }
            let answers = self.read(lookup, &queries).await?;
            lists.read(lookup, &answers).map_err(Reason::from)?;
        }
    }

    /// The rows of lookups, sent in one write.
    async fn read(
        &mut self,
        lookup: &Lookup<'_>,
        queries: &[impl AsRef<str>],
    ) -> Result<Vec<Rows>, Refusal> {
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let capabilities = commands.capabilities;
        let mut batch = Batch::new(capabilities);
        for query in queries {
            batch.query(query.as_ref());
        }
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let limits = lookup.collect_limits();
        let answers = self.backend.ask(&batch, capabilities, limits).await?;
        self.rows(answers)
    }

    /// The answers to lookups, which are rows.
    fn rows(&mut self, answers: impl IntoIterator<Item = Answer>) -> Result<Vec<Rows>, Refusal> {
        let mut all = Vec::new();
        for answer in answers {
            match answer {
                Answer::Rows(rows) => all.push(rows),
                Answer::Err(error) => return Err(self.lookup_failed(&error)),
                Answer::Ok(_) => return Err(Reason::LookupFailed.into()),
            }
        }
        Ok(all)
    }

    /// More than a session may have pending, with what stays so of the calls before.
    fn are_too_many(&mut self, form: Form, found: &Found) -> bool {
        let most = self.shared.limits.pending_ids;
        let pending = self
            .machine
            .commands()
            .and_then(|commands| commands.tables.pending.as_ref());
        let kept = pending.map_or(0, |pending| {
            let ids = pending.ids.as_ref().filter(|_| !form.fills_result());
            let heads = pending.heads.as_ref().filter(|_| !form.fills_heads());
            ids.map_or(0, Vec::len) + heads.map_or(0, Vec::len)
        });
        found.ids.len() + found.heads.len() + kept > most
    }

    fn conclude(
        &mut self,
        call: &Call,
        payload: Vec<u8>,
        facts: &Facts,
        found: Found,
    ) -> Result<Owned, Refusal> {
        let Found { ids, mut heads } = found;
        let form = call.form;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let tables = &mut commands.tables;
        let (ids_before, heads_before, before) = match tables.pending.take() {
            Some(mut pending) => (pending.ids.take(), pending.heads.take(), pending.history()),
            None => (None, None, Vec::new()),
        };
        let mut rows = 0;
        let ids = if form.fills_result() {
            rows += rows_before(ids_before.as_deref(), tables.result) + ids.len() as u64;
            Some(ids)
        } else {
            ids_before
        };
        let heads = if form.fills_heads() {
            rows += rows_before(heads_before.as_deref(), tables.heads) + heads.len() as u64;
            // As the procedure finds them, by the follower table's key.
            heads.sort_unstable_by_key(|head| head.author);
            Some(heads)
        } else {
            heads_before
        };
        let affected_rows = match facts.product {
            Product::Mariadb => rows,
            Product::Mysql => 0,
        };
        let flags = commands.standing.status.unwrap_or(status::AUTOCOMMIT);
        let kept =
            flags & (status::AUTOCOMMIT | status::NO_BACKSLASH_ESCAPES | status::ANSI_QUOTES);
        let noise = match facts.product {
            Product::Mariadb => status::NO_INDEX,
            Product::Mysql => status::NO_INDEX | status::CURSOR_EXISTS | status::LAST_ROW_SENT,
        };
        Ok(Owned {
            pending: Pending {
                definition: call.definition,
                options: Arc::clone(&facts.options),
                form: call.form,
                call: payload,
                ids,
                heads,
                before,
                tail: None,
                spared: Vec::new(),
                warnings: 0,
                aside: None,
            },
            affected_rows,
            status: kept | noise,
        })
    }

    pub(super) fn lookup_failed(&mut self, error: &ErrPacket) -> Refusal {
        if DENIED.contains(&error.code) {
            if let Some(commands) = self.machine.commands() {
                commands.standing.barred = Some(Reason::LookupDenied);
            }
            return Reason::LookupDenied.into();
        }
        // What fails now fails at the next call as well, and costs that a second try.
        let refusal = failed(error);
        if !PASSES.contains(&error.code)
            && let Refusal::Relay(reason) = refusal
            && let Some(commands) = self.machine.commands()
        {
            commands.standing.barred = Some(reason);
        }
        refusal
    }
}

/// The rows that a call deletes from a table which it fills anew: those that are pending, or else the server's.
fn rows_before<T>(pending: Option<&[T]>, there: result_table::Rows) -> u64 {
    match pending {
        Some(rows) => rows.len() as u64,
        None => there.known().unwrap_or(0),
    }
}

fn interruption(answer: &Answer) -> Option<&ErrPacket> {
    match answer {
        Answer::Err(error) if error.code == INTERRUPTED => Some(error),
        _ => None,
    }
}

/// The rows of a table that may not be there.
fn counted(answer: Option<Answer>, there: bool) -> Result<result_table::Rows, Refusal> {
    match answer {
        Some(Answer::Rows(_)) if !there => Ok(result_table::Rows::Absent),
        Some(Answer::Rows(rows)) => {
            let count = rows.iter().next().and_then(|row| row.u64(0));
            Ok(count.map_or(result_table::Rows::Unknown, result_table::Rows::Counted))
        }
        Some(Answer::Err(error)) if proofs::is_absent(&error) => Ok(result_table::Rows::Absent),
        Some(Answer::Err(error)) => Err(failed(&error)),
        _ => Err(Reason::LookupFailed.into()),
    }
}
