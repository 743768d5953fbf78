//! How an owned call finds its ids: in memory, or by lookups: proofs and heads in one write, then the lists behind the heads.

use headwater_lookup::lists::Lists;
use headwater_lookup::lookup::Found;
use headwater_lookup::plan::{Next, Step};
use headwater_timeline::index::Page;
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{Answer, Rows};

use super::plan::Plan;
use super::stage::{Refusal, Stage, Subject, Turn, World, failed};
use super::{Ask, Knowledge, Need, Source};
use crate::reason::Reason;

/// Denied: to the table, a column, the database, the command.
const DENIED: [u16; 5] = [1044, 1045, 1142, 1143, 1227];
/// Errors of a moment: locked tables (1099, 1100), a lock wait (1205), a deadlock (1213), a definition changed meanwhile (1412).
const PASSES: [u16; 5] = [1099, 1100, 1205, 1213, 1412];

impl<K: Knowledge> World<'_, K> {
    /// Memory has the page likely, or not: what is to be proved is proved first.
    pub(super) fn looked(&mut self, subject: Subject, likely: bool) -> Turn {
        if !likely {
            return self.look_up(subject);
        }
        let plan = self.plan(&subject);
        if plan.is_empty() {
            return self.remember(subject);
        }
        let need = self.proving(&subject, plan)?;
        Ok((Stage::Proving(subject, plan), need))
    }

    /// The questions of a plan alone.
    pub(super) fn proving(&self, subject: &Subject, plan: Plan) -> Result<Need, Refusal> {
        let lookup = self.lookup(subject)?;
        let mut queries = plan.queries(&lookup, self.session.asked(self.known.is_galera()));
        // A denied or refused question leaves an error behind, which the reply to a COM_PING counts.
        queries.push("DO 0".into());
        Ok(Need::Ask(Ask {
            queries,
            limits: lookup.collect_limits(),
            reads: false,
        }))
    }

    /// Nothing is in the way of an answer from memory, but that it is another server's.
    pub(super) fn remember(&mut self, subject: Subject) -> Turn {
        match self.session.standing.server() {
            Some(_) => Ok((Stage::Remembering(subject), Need::Page)),
            None => self.look_up(subject),
        }
    }

    /// Takes in memory's page.
    pub(super) fn remembered(&mut self, subject: Subject, page: Option<Page>) -> Turn {
        match page {
            Some(page) => {
                let found = Found::from_page(page, subject.call.form);
                self.found(subject, found, Source::Memory)
            }
            // What was proved is doubted since, which happens once: it is proved anew.
            None if !self.session.standing.are_tables_proven() => self.looked(subject, true),
            None => self.look_up(subject),
        }
    }

    /// Proves what is to be proved, and takes the first step of a lookup in the same write.
    pub(super) fn look_up(&mut self, subject: Subject) -> Turn {
        // Proofs may have been given for a look into memory meanwhile.
        let plan = self.plan(&subject);
        let lookup = self.lookup(&subject)?;
        let step = lookup.begin(&mut self.known.hints());
        let mut queries = plan.queries(&lookup, self.session.asked(self.known.is_galera()));
        queries.push(step.query().to_owned());
        let need = reading(queries, &lookup);
        Ok((Stage::FirstStep(subject, plan, step), need))
    }

    /// Takes in the proofs, and the answer to the first step behind them.
    pub(super) fn first_step(
        &mut self,
        subject: Subject,
        plan: Plan,
        step: &Step,
        answers: Vec<Answer>,
    ) -> Turn {
        let mut answers = answers.into_iter();
        self.take_proofs(&subject, plan, &mut answers)?;
        self.heads(subject, step, answers.collect())
    }

    /// Takes in the answer to a step on the way to the heads.
    pub(super) fn heads(&mut self, subject: Subject, step: &Step, answers: Vec<Answer>) -> Turn {
        let rows = self
            .rows(&subject, answers)?
            .pop()
            .ok_or(Reason::LookupFailed)?;
        let lookup = self.lookup(&subject)?;
        let next = lookup.go_on(step, &rows, &mut self.known.hints())?;
        match next {
            Next::Ask(step) => {
                let need = reading(vec![step.query().to_owned()], &lookup);
                Ok((Stage::Heads(subject, step), need))
            }
            Next::Heads(heads) => {
                let lists = Lists::new(&lookup, heads, &mut self.known.hints().marks);
                self.read_lists(subject, lists)
            }
        }
    }

    /// Takes in lists behind their heads.
    pub(super) fn lists(
        &mut self,
        subject: Subject,
        mut lists: Lists,
        answers: Vec<Answer>,
    ) -> Turn {
        let rows = self.rows(&subject, answers)?;
        lists.read(&self.lookup(&subject)?, &rows)?;
        self.read_lists(subject, lists)
    }

    /// Asks for lists that the heads did not bring along.
    fn read_lists(&mut self, subject: Subject, lists: Lists) -> Turn {
        let lookup = self.lookup(&subject)?;
        let queries = lists.queries(&lookup);
        if !queries.is_empty() {
            let need = reading(queries, &lookup);
            return Ok((Stage::Lists(subject, lists), need));
        }
        let found = lists.found(&lookup, &mut self.known.hints().marks)?;
        self.session.standing.leaves_conditions(false);
        self.found(subject, found, Source::Lookups)
    }

    /// The answers to lookups, which are rows.
    fn rows(&mut self, subject: &Subject, answers: Vec<Answer>) -> Result<Vec<Rows>, Refusal> {
        let mut all = Vec::new();
        for answer in answers {
            match answer {
                Answer::Rows(rows) => all.push(rows),
                Answer::Err(error) => return Err(self.lookup_failed(subject, &error)),
                Answer::Ok(_) => return Err(Reason::LookupFailed.into()),
            }
        }
        Ok(all)
    }

    pub(super) fn lookup_failed(&mut self, subject: &Subject, error: &ErrPacket) -> Refusal {
        if DENIED.contains(&error.code) {
            self.session.standing.bar(Reason::LookupDenied);
            return Reason::LookupDenied.into();
        }
        // What fails now fails at the next call as well, and costs that a second try; but for a data node, which comes back.
        let refusal = failed(error);
        if !subject.facts.are_spread()
            && !PASSES.contains(&error.code)
            && let Refusal::Relay(reason) = refusal
        {
            self.session.standing.bar(reason);
        }
        refusal
    }
}

/// Questions that read the tables.
fn reading(queries: Vec<String>, lookup: &headwater_lookup::Lookup<'_>) -> Need {
    Need::Ask(Ask {
        queries,
        limits: lookup.collect_limits(),
        reads: true,
    })
}
