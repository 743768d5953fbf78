//! MySQL's warnings about a procedure's text, given when a session parses it: a served call reports them too.

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

/// A statement without effects for which MySQL warns this many times (ER_DEPRECATED_UTF8_ALIAS).
pub(crate) fn utf8_is_an_alias(times: u16) -> String {
    let names = vec!["_utf8''"; usize::from(times)].join(",");
    format!("DO {names}")
}

impl<K: CallKnowledge> CallContext<'_, K> {
    /// Proves the right to execute where the server may have to parse the text for that, and so warn as at the call itself. Has it repeat
    /// the warnings afterwards, in place of the call's own.
    ///
    /// Last of all steps: for a call that is relayed after all, the server itself sends them.
    pub(super) fn execute_last(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
        source: ServedCallSource,
    ) -> CallTransition {
        let lookup = self.lookup(&subject)?;
        let mut queries = Vec::new();
        if lookup.call.form == ProcedureForm::Bounded {
            // The call has the server parse its helper, which it does not mention.
            queries.push(lookup.execute_probe(ProcedureForm::Heads));
        }
        queries.push(lookup.execute_probe(lookup.call.form));
        queries.push("SHOW WARNINGS".into());
        queries.push("DO 0".into());
        Ok((
            CallStage::ExecuteLast(subject, result, source),
            query_session(queries),
        ))
    }

    /// Takes the proof that the account may execute, and the server's warnings about the text.
    pub(super) fn take_last_execute(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
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
        self.warn_of_text(subject, result, source, answers.next())
    }

    /// Has the server repeat its warnings, from its reply to SHOW WARNINGS.
    pub(super) fn warn_of_text(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
        source: ServedCallSource,
        warnings: Option<QueryReply>,
    ) -> CallTransition {
        let codes: Vec<_> = match warnings {
            Some(QueryReply::Rows(rows)) => rows.iter().map(|row| row.u64(1)).collect(),
            Some(QueryReply::Err(error)) => return Err(query_error(&error)),
            _ => return Err(CallRelayReason::LookupFailed.into()),
        };
        let alias = Some(UTF8_IS_AN_ALIAS);
        let alias_warnings = codes.iter().filter(|code| **code == alias).count();
        let known = [alias, Some(WRONG_ARGUMENT_COUNT.into())];
        let has_other_warnings = codes.iter().any(|code| !known.contains(code));
        if alias_warnings == 0 {
            return Ok(self.conclude_with_warnings(subject, result, source, has_other_warnings, 0));
        }
        let again = utf8_is_an_alias(u16::try_from(alias_warnings).unwrap_or(u16::MAX));
        let stage = CallStage::WarnAgain(subject, result, source, has_other_warnings);
        Ok((stage, query_session(vec![again])))
    }

    pub(super) fn take_repeated_warnings(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
        source: ServedCallSource,
        has_other_warnings: bool,
        answers: Vec<QueryReply>,
    ) -> CallTransition {
        match first_answer(answers) {
            Some(QueryReply::Ok(ok)) => Ok(self.conclude_with_warnings(
                subject,
                result,
                source,
                has_other_warnings,
                ok.warnings,
            )),
            Some(QueryReply::Err(error)) => Err(query_error(&error)),
            _ => Err(CallRelayReason::LookupFailed.into()),
        }
    }

    fn conclude_with_warnings(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
        source: ServedCallSource,
        has_other_warnings: bool,
        warnings: u16,
    ) -> (CallStage, super::CallAction) {
        self.session.state.set_conditions(warnings > 0);
        if has_other_warnings {
            // They cannot be repeated: at the next call the server itself warns.
            self.session.state.forget_parsed();
        }
        self.conclude(subject, result, source, warnings)
    }
}
