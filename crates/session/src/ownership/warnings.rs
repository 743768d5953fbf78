//! MySQL's warnings of a procedure's text, which it gives when a session parses it: told to an owned call as to the real one.

use headwater_lookup::lookup::Found;
use headwater_timeline::Form;
use headwater_wire::resultset::Answer;

use super::plan::WRONG_ARGUMENT_COUNT;
use super::stage::{Stage, Subject, Turn, World, ask, failed, first};
use super::{INTERRUPTED, Knowledge, Source};
use crate::reason::Reason;

/// ER_DEPRECATED_UTF8_ALIAS.
const UTF8_IS_AN_ALIAS: u64 = 3719;

/// A statement that MySQL has this to say of (ER_DEPRECATED_UTF8_ALIAS), so many times, and does nothing about.
pub(crate) fn utf8_is_an_alias(times: u16) -> String {
    let names = vec!["_utf8''"; usize::from(times)].join(",");
    format!("DO {names}")
}

impl<K: Knowledge> World<'_, K> {
    /// Proves the right to execute where the server may warn of a text that it has to parse for that, as it would at the call itself.
    /// It has the warnings again behind this, in the place of those of the call.
    ///
    /// Last of all: a call that is relayed after all is told them by the server.
    pub(super) fn execute_last(&mut self, subject: Subject, found: Found, source: Source) -> Turn {
        let lookup = self.lookup(&subject)?;
        let mut queries = Vec::new();
        if lookup.call.form == Form::Bounded {
            // The call has the server parse its helper, of which it does not tell.
            queries.push(lookup.execute_probe(Form::Heads));
        }
        queries.push(lookup.execute_probe(lookup.call.form));
        queries.push("SHOW WARNINGS".into());
        queries.push("DO 0".into());
        Ok((Stage::ExecuteLast(subject, found, source), ask(queries)))
    }

    /// Takes in whether the account may execute, and what the server said of the text.
    pub(super) fn take_execute_last(
        &mut self,
        subject: Subject,
        found: Found,
        source: Source,
        answers: Vec<Answer>,
    ) -> Turn {
        let mut answers = answers.into_iter();
        if subject.call.form == Form::Bounded
            && let Some(Answer::Err(error)) = answers.next()
            && error.code == INTERRUPTED
        {
            return Err(failed(&error));
        }
        self.take_execute(answers.next(), &subject.call, &subject.facts)?;
        self.warn_of_text(subject, found, source, answers.next())
    }

    /// Has the server say again what it said of the text, by its answer to SHOW WARNINGS.
    pub(super) fn warn_of_text(
        &mut self,
        subject: Subject,
        found: Found,
        source: Source,
        said: Option<Answer>,
    ) -> Turn {
        let codes: Vec<_> = match said {
            Some(Answer::Rows(rows)) => rows.iter().map(|row| row.u64(1)).collect(),
            Some(Answer::Err(error)) => return Err(failed(&error)),
            _ => return Err(Reason::LookupFailed.into()),
        };
        let alias = Some(UTF8_IS_AN_ALIAS);
        let told = codes.iter().filter(|code| **code == alias).count();
        let known = [alias, Some(WRONG_ARGUMENT_COUNT.into())];
        let others = codes.iter().any(|code| !known.contains(code));
        if told == 0 {
            return Ok(self.warned(subject, found, source, others, 0));
        }
        let again = utf8_is_an_alias(u16::try_from(told).unwrap_or(u16::MAX));
        let stage = Stage::WarnAgain(subject, found, source, others);
        Ok((stage, ask(vec![again])))
    }

    /// Takes in how many warnings there are now.
    pub(super) fn warned_again(
        &mut self,
        subject: Subject,
        found: Found,
        source: Source,
        others: bool,
        answers: Vec<Answer>,
    ) -> Turn {
        match first(answers) {
            Some(Answer::Ok(ok)) => Ok(self.warned(subject, found, source, others, ok.warnings)),
            Some(Answer::Err(error)) => Err(failed(&error)),
            _ => Err(Reason::LookupFailed.into()),
        }
    }

    fn warned(
        &mut self,
        subject: Subject,
        found: Found,
        source: Source,
        others: bool,
        warnings: u16,
    ) -> (Stage, super::Need) {
        self.session.standing.leaves_conditions(warnings > 0);
        if others {
            // They cannot be had again: the next call has the server say what it says.
            self.session.standing.parse_anew();
        }
        self.conclude(subject, found, source, warnings)
    }
}
