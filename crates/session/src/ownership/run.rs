//! A call for which the server runs the procedure, which proves what the procedure's definer may do.
//!
//! Where it can be, the run is for a reader who follows nobody: it takes no locks and costs nothing. That proves all about the
//! newest page, whose cursor is over both tables; and about the bounded page with a run of the newest one beside it, where all
//! procedures have one definer. Elsewhere, and where the server warns of the text that a run has it parse, the run is for the
//! call's own reader, and the call is answered with what it leaves.
//! It comes behind all proofs about the session, so what runs is the known procedure, in the place where the client calls it.

use headwater_lookup::lookup::Found;
use headwater_timeline::check::{ParseWarnings, Procedure, Product};
use headwater_timeline::{Form, Head};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::{Answer, Rows};

use super::left::{Left, Run};
use super::plan::{NO_PROCEDURE, WRONG_ARGUMENT_COUNT};
use super::stage::{Refusal, Stage, Subject, Turn, World, ask, failed};
use super::{Ask, INTERRUPTED, Knowledge, Need, Source};
use crate::reason::Reason;
use crate::result_table::Rows as Count;
use crate::rights::{denies_definer, has_read_both};

/// ER_PROCACCESS_DENIED_ERROR: the caller may not execute the procedure, or the definer may not execute it or its helper.
const NO_EXECUTE: u16 = 1370;
/// ER_SP_FETCH_NO_DATA: to MariaDB's procedure, a KILL QUERY that met it at its cursor.
pub(crate) const NO_MORE_ROWS: u16 = 1329;

impl<K: Knowledge> World<'_, K> {
    /// What is to be proved of the session is proved before the procedure runs.
    pub(super) fn prove_and_run(&mut self, subject: Subject) -> Turn {
        let plan = self.plan(&subject);
        if plan.is_empty() {
            return self.run_for_nobody(subject);
        }
        let need = self.proving(&subject, plan)?;
        Ok((Stage::ProvingRun(subject, plan), need))
    }

    /// Has the server run the procedure for a reader who follows nobody, and the one for the newest page beside it.
    pub(super) fn run_for_nobody(&mut self, subject: Subject) -> Turn {
        let form = subject.call.form;
        let known = subject.facts.form(Form::Newest) == &Ok(Procedure::Known);
        let beside = form == Form::Bounded && known;
        // Of a text that is parsed here nothing would be said to the call, should it be relayed after all.
        let warns = subject.facts.parse_warnings != ParseWarnings::None;
        if warns || form != Form::Newest && !beside {
            return self.run_for_itself(subject);
        }
        let run = self.begin_run()?;
        let lookup = self.lookup(&subject)?;
        let mut queries = Vec::new();
        if beside {
            queries.push(lookup.run_for_nobody(Form::Newest));
            queries.push(lookup.one_definer_query());
        }
        queries.push(lookup.run_for_nobody(form));
        queries.push("DO 0".into());
        Ok((Stage::RunningForNobody(subject, run, beside), ask(queries)))
    }

    /// Takes in how that ended.
    pub(super) fn ran_for_nobody(
        &mut self,
        subject: Subject,
        run: Run,
        beside: bool,
        answers: Vec<Answer>,
    ) -> Turn {
        let mut answers = answers.into_iter();
        let mut proved = true;
        if beside {
            proved &= matches!(answers.next(), Some(Answer::Ok(_)));
            proved &= is_one(answers.next().as_ref());
        }
        self.ended(subject, run, answers.next(), Left::Nobodys(proved))
    }

    /// From here on the timeline is listened to, whatever answers this call; the procedure runs for its own reader.
    fn run_for_itself(&mut self, subject: Subject) -> Turn {
        if subject.facts.are_spread() {
            return self.run(subject);
        }
        let want = self.want(&subject, false)?;
        Ok((Stage::Listening(subject), Need::Memory(want)))
    }

    fn begin_run(&self) -> Result<Run, Refusal> {
        let tables = &self.session.tables;
        let before = [tables.result, tables.heads];
        let most = self.policy.pending_ids as u64;
        match before.iter().any(|count| count.known() > Some(most)) {
            true => Err(Reason::TooManyIds.into()),
            false => Ok(Run {
                sent: self.now,
                before,
            }),
        }
    }

    /// Has the server run the procedure, and reads what it left.
    pub(super) fn run(&mut self, subject: Subject) -> Turn {
        let run = self.begin_run()?;
        let lookup = self.lookup(&subject)?;
        let form = subject.call.form;
        let mut queries = vec![lookup.run()];
        if subject.facts.parse_warnings != ParseWarnings::None {
            queries.push("SHOW WARNINGS".into());
        }
        if form.fills_result() {
            queries.push(lookup.ids_left());
        }
        if form.fills_heads() {
            queries.push(lookup.heads_left());
        }
        // A question that failed leaves an error behind, which the reply to a COM_PING counts.
        queries.push("DO 0".into());
        let need = Need::Ask(Ask {
            queries,
            limits: lookup.collect_limits(),
            reads: true,
        });
        Ok((Stage::Running(subject, run), need))
    }

    /// Takes in how the run ended. What it left is read behind putting the tables back.
    pub(super) fn ran(&mut self, subject: Subject, run: Run, answers: Vec<Answer>) -> Turn {
        let mut answers = answers.into_iter();
        let ended = answers.next();
        self.ended(subject, run, ended, Left::Own(answers.collect()))
    }

    fn ended(&mut self, subject: Subject, run: Run, ended: Option<Answer>, left: Left) -> Turn {
        self.session.tables.disturb();
        match ended {
            Some(Answer::Ok(_)) => {
                self.may_execute(&subject.call);
                self.session.standing.leaves_conditions(false);
                self.put_back(subject, run, left)
            }
            Some(Answer::Err(error)) => self.run_failed(subject, run, &error),
            // It has become another one, which has rows to show.
            _ => {
                self.known.expire();
                Err(Reason::Definition.into())
            }
        }
    }

    /// MariaDB counts the rows that a call deletes. Should the procedure run once more for this call, it has to find as many as
    /// it would have found.
    fn put_back(&mut self, subject: Subject, run: Run, left: Left) -> Turn {
        if subject.facts.product != Product::Mariadb {
            return self.take_left(subject, &run, left);
        }
        let form = subject.call.form;
        let lookup = self.lookup(&subject)?;
        let [result, heads] = run.before.map(|count| count.known().unwrap_or_default());
        let mut statements = Vec::new();
        if form.fills_result() {
            statements.extend(lookup.ids_put_back(result));
        }
        if form.fills_heads() {
            statements.extend(lookup.heads_put_back(heads));
        }
        Ok((Stage::PuttingBack(subject, run, left), ask(statements)))
    }

    /// The tables are as they were before the run, but that they are there.
    pub(super) fn was_put_back(
        &mut self,
        subject: Subject,
        run: Run,
        left: Left,
        answers: Vec<Answer>,
    ) -> Turn {
        for answer in answers {
            match answer {
                Answer::Ok(_) => {}
                Answer::Err(error) => return Err(failed(&error)),
                Answer::Rows(_) => return Err(Reason::LookupFailed.into()),
            }
        }
        let form = subject.call.form;
        let [result, heads] = run.before;
        let there = |filled, count: Count| match filled {
            true => Count::Counted(count.known().unwrap_or_default()),
            false => count,
        };
        self.session.tables.result = there(form.fills_result(), result);
        self.session.tables.heads = there(form.fills_heads(), heads);
        self.take_left(subject, &run, left)
    }

    /// Takes in what the run left.
    fn take_left(&mut self, mut subject: Subject, run: &Run, left: Left) -> Turn {
        let mut answers = match left {
            Left::Interrupted => return Err(Reason::LookupFailed.into()),
            Left::Nobodys(false) => return self.run_for_itself(subject),
            Left::Nobodys(true) => {
                self.proved(&subject, run);
                subject.ran = true;
                return self.ask_memory(subject);
            }
            Left::Own(answers) => answers.into_iter(),
        };
        subject.ran = true;
        let warns = subject.facts.parse_warnings != ParseWarnings::None;
        let said = warns.then(|| answers.next()).flatten();
        let form = subject.call.form;
        let mut found = Found::default();
        if form.fills_result() {
            found.ids = read_ids(answers.next())?;
        }
        if form.fills_heads() {
            found.heads = read_heads(answers.next())?;
        }
        if has_read_both(form, found.ids.len(), found.heads.len()) {
            self.proved(&subject, run);
        }
        if self.are_too_many(form, &found) {
            return Err(Reason::TooManyIds.into());
        }
        match warns {
            true => self.warn_of_text(subject, found, Source::Procedure, said),
            false => Ok(self.conclude(subject, found, Source::Procedure, 0)),
        }
    }

    /// What the server's error to a run means: the client's own call goes on, and is told it.
    fn run_failed(&mut self, subject: Subject, run: Run, error: &ErrPacket) -> Turn {
        match error.code {
            NO_EXECUTE => {
                let lookup = self.lookup(&subject)?;
                let queries = vec![lookup.execute_probe(subject.call.form), "DO 0".into()];
                Ok((Stage::Denied(subject), ask(queries)))
            }
            code if denies_definer(code) => Err(self.denied(&subject)),
            NO_PROCEDURE => {
                self.known.expire();
                Err(Reason::Definition.into())
            }
            INTERRUPTED => Err(failed(error)),
            // The tables were there by then.
            NO_MORE_ROWS => self.put_back(subject, run, Left::Interrupted),
            _ => Err(self.lookup_failed(&subject, error)),
        }
    }

    /// If this account may execute the procedure, it is the definer who may not execute it, or its helper.
    pub(super) fn who_is_denied(&mut self, subject: &Subject, answers: &[Answer]) -> Refusal {
        match answers.first() {
            Some(Answer::Err(error)) if error.code == WRONG_ARGUMENT_COUNT => self.denied(subject),
            _ => Reason::NoExecute.into(),
        }
    }

    fn proved(&self, subject: &Subject, run: &Run) {
        let Subject { call, database, .. } = subject;
        self.known
            .run_succeeded(call.definition, database, call.form, run.sent);
    }

    fn denied(&self, subject: &Subject) -> Refusal {
        let Subject { call, database, .. } = subject;
        self.known
            .run_was_denied(call.definition, database, call.form);
        Reason::DefinerRights.into()
    }
}

/// True for the answer to [`headwater_lookup::Lookup::one_definer_query`] that says so.
fn is_one(answer: Option<&Answer>) -> bool {
    let Some(Answer::Rows(rows)) = answer else {
        return false;
    };
    rows.iter().next().and_then(|row| row.u64(0)) == Some(1)
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
    let heads: Option<Vec<Head>> = rows
        .iter()
        .map(|row| {
            let (author, id) = row.u64(0).zip(row.u64(1))?;
            Some(Head { author, id })
        })
        .collect();
    heads.ok_or_else(|| Reason::LookupFailed.into())
}

fn rows_left(answer: Option<Answer>) -> Result<Rows, Refusal> {
    match answer {
        Some(Answer::Rows(rows)) => Ok(rows),
        Some(Answer::Err(error)) => Err(failed(&error)),
        _ => Err(Reason::LookupFailed.into()),
    }
}
