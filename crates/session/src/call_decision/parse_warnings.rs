//! MySQL's warnings of a procedure's text, which it gives when a session parses it: told to an owned call as to the real one.

use headwater_lookup::lookup::LookupResult;
use headwater_timeline::ProcedureForm;
use headwater_wire::resultset::QueryReply;

use super::call_stage::{
    CallContext, CallStage, CallTransition, EligibleCall, first_answer, query_error, query_session,
};
use super::proof_plan::WRONG_ARGUMENT_COUNT;
use super::{CallKnowledge, INTERRUPTED, ServedCallSource};
use crate::call_relay_reason::CallRelayReason;

/// ER_DEPRECATED_UTF8_ALIAS.
const UTF8_IS_AN_ALIAS: u64 = 3719;

/// A statement that MySQL has this to say of (ER_DEPRECATED_UTF8_ALIAS), so many times, and does nothing about.
pub(crate) fn utf8_is_an_alias(times: u16) -> String {
    let names = vec!["_utf8''"; usize::from(times)].join(",");
    format!("DO {names}")
}

impl<K: CallKnowledge> CallContext<'_, K> {
    /// Proves the right to execute where the server may warn of a text that it has to parse for that, as it would at the call itself.
    /// It has the warnings again behind this, in the place of those of the call.
    ///
    /// Last of all: a call that is relayed after all is told them by the server.
    pub(super) fn execute_last(
        &mut self,
        subject: EligibleCall,
        found: LookupResult,
        source: ServedCallSource,
    ) -> CallTransition {
        let lookup = self.lookup(&subject)?;
        let mut queries = Vec::new();
        if lookup.call.form == ProcedureForm::Bounded {
            // The call has the server parse its helper, of which it does not tell.
            queries.push(lookup.execute_probe(ProcedureForm::Heads));
        }
        queries.push(lookup.execute_probe(lookup.call.form));
        queries.push("SHOW WARNINGS".into());
        queries.push("DO 0".into());
        Ok((
            CallStage::ExecuteLast(subject, found, source),
            query_session(queries),
        ))
    }

    /// Takes in whether the account may execute, and what the server said of the text.
    pub(super) fn take_last_execute(
        &mut self,
        subject: EligibleCall,
        found: LookupResult,
        source: ServedCallSource,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        let mut answers = answers.into_iter();
        if subject.call.form == ProcedureForm::Bounded
            && let Some(QueryReply::Err(error)) = answers.next()
            && error.code == INTERRUPTED
        {
            return Err(query_error(&error));
        }
        self.take_execute(answers.next(), &subject.call, &subject.facts)?;
        self.warn_of_text(subject, found, source, answers.next())
    }

    /// Has the server say again what it said of the text, by its answer to SHOW WARNINGS.
    pub(super) fn warn_of_text(
        &mut self,
        subject: EligibleCall,
        found: LookupResult,
        source: ServedCallSource,
        said: Option<QueryReply>,
    ) -> CallTransition {
        let codes: Vec<_> = match said {
            Some(QueryReply::Rows(rows)) => rows.iter().map(|row| row.u64(1)).collect(),
            Some(QueryReply::Err(error)) => return Err(query_error(&error)),
            _ => return Err(CallRelayReason::LookupFailed.into()),
        };
        let alias = Some(UTF8_IS_AN_ALIAS);
        let told = codes.iter().filter(|code| **code == alias).count();
        let known = [alias, Some(WRONG_ARGUMENT_COUNT.into())];
        let others = codes.iter().any(|code| !known.contains(code));
        if told == 0 {
            return Ok(self.conclude_with_warnings(subject, found, source, others, 0));
        }
        let again = utf8_is_an_alias(u16::try_from(told).unwrap_or(u16::MAX));
        let stage = CallStage::WarnAgain(subject, found, source, others);
        Ok((stage, query_session(vec![again])))
    }

    /// Takes in how many warnings there are now.
    pub(super) fn take_repeated_warnings(
        &mut self,
        subject: EligibleCall,
        found: LookupResult,
        source: ServedCallSource,
        others: bool,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        match first_answer(answers) {
            Some(QueryReply::Ok(ok)) => {
                Ok(self.conclude_with_warnings(subject, found, source, others, ok.warnings))
            }
            Some(QueryReply::Err(error)) => Err(query_error(&error)),
            _ => Err(CallRelayReason::LookupFailed.into()),
        }
    }

    fn conclude_with_warnings(
        &mut self,
        subject: EligibleCall,
        found: LookupResult,
        source: ServedCallSource,
        others: bool,
        warnings: u16,
    ) -> (CallStage, super::CallAction) {
        self.session.state.set_conditions(warnings > 0);
        if others {
            // They cannot be had again: the next call has the server say what it says.
            self.session.state.forget_parsed();
        }
        self.conclude(subject, found, source, warnings)
    }
}
