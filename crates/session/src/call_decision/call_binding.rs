//! From a packet to a call of a definition in a database: values, settings, database.

use headwater_statement::{CallStatement, TimelineCall};
use headwater_timeline::check::DefinitionVerdict;
use headwater_wire::command::parse_digits;
use headwater_wire::resultset::{QueryReply, ResultSet};

use super::call_stage::{
    CallContext, CallRefusal, CallStage, CallTransition, LocatedCall, first_answer, query_error,
    query_session,
};
use super::relayed_call::actual_reason;
use super::{CallAction, CallKnowledge};
use crate::call_relay_reason::CallRelayReason;
use crate::call_request::{CallValues, RequestedCall};
use crate::settings_probe;

impl<K: CallKnowledge> CallContext<'_, K> {
    /// Decides what needs no query, then reads the call's values.
    pub(super) fn begin(&mut self) -> CallTransition {
        if !self.policy.accelerate {
            return Err(CallRelayReason::SwitchedOff.into());
        }
        if let Some(reason) = self.session.state.obstacle() {
            let (wanted, standing) = (&self.request.call, &self.session.state);
            return Err(actual_reason(reason, wanted, standing, self.knowledge).into());
        }
        match &self.request.call {
            RequestedCall::Call(call) => self.call_bound(call.clone()),
            RequestedCall::Statement(statement, CallValues::Given(values)) => {
                let call = self.bind(statement, values)?;
                self.call_bound(call)
            }
            RequestedCall::Statement(statement, CallValues::Expressions(asked))
                if asked.is_empty() =>
            {
                let call = self.bind(statement, &[])?;
                self.call_bound(call)
            }
            RequestedCall::Statement(statement, CallValues::Expressions(asked)) => {
                let query = format!("SELECT {}", asked.join(","));
                Ok((
                    CallStage::Values(statement.clone()),
                    query_session(vec![query]),
                ))
            }
            RequestedCall::Statement(_, CallValues::Invalid) => {
                Err(CallRelayReason::Arguments.into())
            }
            RequestedCall::Unresolvable => Err(CallRelayReason::OtherDatabase.into()),
        }
    }

    /// Takes the session's values of variables and quoted strings: numbers, or strings of digits.
    pub(super) fn take_values(
        &mut self,
        statement: &CallStatement,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let count = match &self.request.call {
            RequestedCall::Statement(_, CallValues::Expressions(asked)) => asked.len(),
            _ => 0,
        };
        let values = match first_answer(answers) {
            Some(QueryReply::Rows(rows)) => {
                self.session.state.observe(rows.end());
                numbers(&rows, count).ok_or(CallRelayReason::Arguments)?
            }
            Some(QueryReply::Err(error)) => return Err(query_error(&error)),
            _ => return Err(CallRelayReason::Arguments.into()),
        };
        let call = self.bind(statement, &values)?;
        self.call_bound(call)
    }

    fn bind(&self, statement: &CallStatement, values: &[u64]) -> Result<TimelineCall, CallRefusal> {
        let call = statement.bind(self.knowledge.definitions(), values);
        call.ok_or_else(|| CallRelayReason::Arguments.into())
    }

    /// With its values known, the call needs the current database. Settings are queried on their own where reading a table could disturb
    /// the session.
    fn call_bound(&mut self, call: TimelineCall) -> CallTransition {
        if self.session.state.must_probe_first() || self.may_be_in_other_database(&call) {
            let query = settings_probe::settings_query(
                self.session.probed_server(self.knowledge.is_galera()),
            );
            return Ok((CallStage::Settings(call), query_session(vec![query])));
        }
        self.locate(call)
    }

    /// True when the last known database serves no such call, but a statement since may have chosen another one: not every client is
    /// notified of the change.
    fn may_be_in_other_database(&self, call: &TimelineCall) -> bool {
        let state = &self.session.state;
        if state.are_settings_proven() {
            return false;
        }
        let Some(database) = state.database() else {
            return false;
        };
        let verdict = call
            .definition_in(self.knowledge.definitions(), database)
            .and_then(|number| self.knowledge.last_verdict(number, database));
        // An expired verdict still proves the database.
        !verdict.is_some_and(|(verdict, _)| matches!(&*verdict, DefinitionVerdict::Accelerate(_)))
    }

    pub(super) fn locate(&mut self, call: TimelineCall) -> CallTransition {
        let database = self.session.state.database();
        let database = database
            .map(<[u8]>::to_vec)
            .ok_or(CallRelayReason::OtherDatabase)?;
        // The bytes of such a name depend on the session's character set, and verdicts are looked up by bytes.
        if !database.is_ascii() {
            return Err(CallRelayReason::OtherDatabase.into());
        }
        let case = self.policy.case;
        let elsewhere = |name: &String| *case.fold(name.as_bytes()) != database;
        if call.database.as_ref().is_some_and(elsewhere) {
            return Err(CallRelayReason::OtherDatabase.into());
        }
        let number = call.definition_in(self.knowledge.definitions(), &database);
        let number = number.ok_or(CallRelayReason::OtherDatabase)?;
        if self.knowledge.is_distrusted(number) {
            return Err(CallRelayReason::Distrusted.into());
        }
        let call = TimelineCall {
            definition: number,
            ..call
        };
        let located = LocatedCall { call, database };
        let pending = self.session.tables.pending.as_ref();
        if pending.is_some_and(|pending| pending.definition != number) {
            return Ok((CallStage::Flushing(located), CallAction::Flush));
        }
        self.switch_tables(located)
    }

    /// Switches to the result tables of another definition or database.
    pub(super) fn switch_tables(&mut self, located: LocatedCall) -> CallTransition {
        let number = located.call.definition;
        if self.session.tables.switch_to(number, &located.database) {
            self.session.state.invalidate_tables();
        }
        self.verdict(located)
    }

    /// Takes the reply to [`settings_probe::settings_query`].
    pub(super) fn take_settings(&mut self, answer: Option<&QueryReply>) -> Result<(), CallRefusal> {
        let rows = match answer {
            Some(QueryReply::Rows(rows)) => rows,
            Some(QueryReply::Err(error)) => return Err(query_error(error)),
            _ => return Err(CallRelayReason::Settings.into()),
        };
        let flags = settings_probe::judge_flags(rows);
        self.session.apply_settings(rows)?;
        if self.session.state.bars_calls() {
            return Err(CallRelayReason::Settings.into());
        }
        Ok(flags?)
    }
}

/// The row's values as numbers, whatever their column types.
fn numbers(rows: &ResultSet, count: usize) -> Option<Vec<u64>> {
    let row = rows.iter().next()?;
    (0..count)
        .map(|column| row.cell(column).and_then(parse_digits))
        .collect()
}
