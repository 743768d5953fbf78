//! From a packet to a call of a definition in a database: values, settings, place.

use headwater_statement::{Call, CallStatement};
use headwater_timeline::check::Verdict;
use headwater_wire::command::digits;
use headwater_wire::resultset::{Answer, Rows};

use super::procedure::true_reason;
use super::stage::{Placed, Refusal, Stage, Turn, World, ask, failed, first};
use super::{Knowledge, Need};
use crate::asked::{Values, Wanted};
use crate::probe;
use crate::reason::Reason;

impl<K: Knowledge> World<'_, K> {
    /// What can be said without a question, and then the call's values.
    pub(super) fn begin(&mut self) -> Turn {
        if !self.policy.accelerate {
            return Err(Reason::SwitchedOff.into());
        }
        if let Some(reason) = self.session.standing.obstacle() {
            let (wanted, standing) = (&self.asked.wanted, &self.session.standing);
            return Err(true_reason(reason, wanted, standing, self.known).into());
        }
        match &self.asked.wanted {
            Wanted::Call(call) => self.bound(call.clone()),
            Wanted::Statement(statement, Values::Given(values)) => {
                let call = self.bind(statement, values)?;
                self.bound(call)
            }
            Wanted::Statement(statement, Values::Expressions(asked)) if asked.is_empty() => {
                let call = self.bind(statement, &[])?;
                self.bound(call)
            }
            Wanted::Statement(statement, Values::Expressions(asked)) => {
                let query = format!("SELECT {}", asked.join(","));
                Ok((Stage::Values(statement.clone()), ask(vec![query])))
            }
            Wanted::Statement(_, Values::Unfit) => Err(Reason::Arguments.into()),
            Wanted::Astray => Err(Reason::OtherDatabase.into()),
        }
    }

    /// Takes in what the session says of variables and quotes: numbers, or strings of digits.
    pub(super) fn take_values(&mut self, statement: &CallStatement, answers: Vec<Answer>) -> Turn {
        let count = match &self.asked.wanted {
            Wanted::Statement(_, Values::Expressions(asked)) => asked.len(),
            _ => 0,
        };
        let values = match first(answers) {
            Some(Answer::Rows(rows)) => {
                self.session.standing.observe(rows.end());
                numbers(&rows, count).ok_or(Reason::Arguments)?
            }
            Some(Answer::Err(error)) => return Err(failed(&error)),
            _ => return Err(Reason::Arguments.into()),
        };
        let call = self.bind(statement, &values)?;
        self.bound(call)
    }

    fn bind(&self, statement: &CallStatement, values: &[u64]) -> Result<Call, Refusal> {
        let call = statement.bind(self.known.definitions(), values);
        call.ok_or_else(|| Reason::Arguments.into())
    }

    /// With its values, the call needs to know where the session is. The settings are asked for alone where reading a table could
    /// disturb the session.
    fn bound(&mut self, call: Call) -> Turn {
        if self.session.standing.must_ask_first() || self.may_be_elsewhere(&call) {
            let query = probe::settings_query(self.session.asked(self.known.is_galera()));
            return Ok((Stage::Settings(call), ask(vec![query])));
        }
        self.place(call)
    }

    /// True when the database that this session was last heard to be in serves no such call, while a
    /// statement since may have chosen another one: not every client is told which.
    fn may_be_elsewhere(&self, call: &Call) -> bool {
        let standing = &self.session.standing;
        if standing.are_settings_proven() {
            return false;
        }
        let Some(database) = standing.database() else {
            return false;
        };
        let verdict = call
            .definition_in(self.known.definitions(), database)
            .and_then(|number| self.known.last_verdict(number, database));
        // One that is due again says no less of where the session is.
        !verdict.is_some_and(|(verdict, _)| matches!(&*verdict, Verdict::Accelerate(_)))
    }

    /// Which definition the call is of, in which database.
    pub(super) fn place(&mut self, call: Call) -> Turn {
        let database = self.session.standing.database();
        let database = database.map(<[u8]>::to_vec).ok_or(Reason::OtherDatabase)?;
        // Such a name's bytes depend on the session's character set, and verdicts go by bytes.
        if !database.is_ascii() {
            return Err(Reason::OtherDatabase.into());
        }
        let case = self.policy.case;
        let elsewhere = |name: &String| *case.fold(name.as_bytes()) != database;
        if call.database.as_ref().is_some_and(elsewhere) {
            return Err(Reason::OtherDatabase.into());
        }
        let number = call.definition_in(self.known.definitions(), &database);
        let number = number.ok_or(Reason::OtherDatabase)?;
        if self.known.distrusts(number) {
            return Err(Reason::Distrusted.into());
        }
        let call = Call {
            definition: number,
            ..call
        };
        let placed = Placed { call, database };
        let pending = self.session.tables.pending.as_ref();
        if pending.is_some_and(|pending| pending.definition != number) {
            return Ok((Stage::Settling(placed), Need::Settle));
        }
        self.turn(placed)
    }

    /// Another definition, or another database, has result tables of its own.
    pub(super) fn turn(&mut self, placed: Placed) -> Turn {
        let number = placed.call.definition;
        if self.session.tables.turn_to(number, &placed.database) {
            self.session.standing.tables_change();
        }
        self.verdict(placed)
    }

    /// Takes in the answer to [`probe::settings_query`].
    pub(super) fn take_settings(&mut self, answer: Option<&Answer>) -> Result<(), Refusal> {
        let rows = match answer {
            Some(Answer::Rows(rows)) => rows,
            Some(Answer::Err(error)) => return Err(failed(error)),
            _ => return Err(Reason::Settings.into()),
        };
        let flags = probe::judge_flags(rows);
        self.session.settings_told(rows)?;
        if self.session.standing.bars_calls() {
            return Err(Reason::Settings.into());
        }
        Ok(flags?)
    }
}

/// The row's values, which say the same number whatever type they have.
fn numbers(rows: &Rows, count: usize) -> Option<Vec<u64>> {
    let row = rows.iter().next()?;
    (0..count)
        .map(|column| row.cell(column).and_then(digits))
        .collect()
}
