//! Where the statement is an execution of one that was prepared: so is the narrowed one, each id in it a parameter.
//!
//! Headwater prepares the narrowed text in the client's session, once for each text, form and size of list, and executes it with the
//! client's parameters and the ids. The reply has the client's rows in the binary form. The client's own statement is not executed
//! then: types of parameters that came with this execution are remembered, for the next one that the server gets.

use std::sync::Arc;

use headwater_feed::bind::{Parameter, ParameterType};
use headwater_feed::cost::Crowd;
use headwater_feed::narrow::Form;
use headwater_feed::variants::Columns;
use headwater_feed::words::Words;
use headwater_feed::{Refused, Template};
use headwater_timeline::Moment;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{self, Command, Execute, Value};
use headwater_wire::reply::Outcome;

use super::reply;
use super::{
    Candidates, Feeds, INTERRUPTED, Named, Need, Reply, Stage, Subject, Told, Turn, Why, Wishes,
    World,
};
use crate::commands::closing;
use crate::prepared::{Executed, KeptColumns, Made};

/// A text that is to be prepared.
#[derive(Debug)]
pub struct Prepare {
    /// Packets that go before it, and have no reply.
    pub before: Vec<u8>,
    /// The payload of its packet.
    pub payload: Vec<u8>,
}

/// What a narrowed statement that is prepared is to be executed with.
#[derive(Debug)]
pub(super) struct ToExecute {
    made: Made,
    ids: Vec<u64>,
    /// So many of the client's parameters come before the ids.
    before: usize,
    /// So many of them are left out.
    replaced: usize,
}

impl<K: Feeds> World<'_, K> {
    /// The words of the statement that is executed.
    pub(super) fn executed_words(&self, executed: &Executed) -> Result<Option<Words>, Why> {
        if !executed.plain || self.keeps_columns() && executed.told.is_none() {
            return Err(Why::Execution);
        }
        Ok(executed.feed.words().map(Words::executed))
    }

    /// The values that a statement is executed with: none, where it is a text.
    pub(super) fn parameters(&self, subject: &Subject) -> Result<Vec<Parameter>, Why> {
        let Some(executed) = self.executed else {
            let named = self.named.as_deref();
            return Ok(named.map_or(Vec::new(), Named::parameters));
        };
        self.with_each(executed, |each| {
            let all = each.len() == subject.words.parameters;
            all.then(|| each.iter().map(parameter).collect())
        })
    }

    /// The types that they were given: none, where it is a text.
    pub(super) fn parameter_types(&self) -> Result<Vec<ParameterType>, Why> {
        let Some(executed) = self.executed else {
            return Ok(Vec::new());
        };
        self.with_each(executed, |each| {
            let kind = |one: &command::Parameter<'_>| one.kind.first_chunk().copied();
            each.iter().map(kind).collect()
        })
    }

    /// Shows the client's parameters.
    fn with_each<T>(
        &self,
        executed: &Executed,
        show: impl FnOnce(&[command::Parameter<'_>]) -> Option<T>,
    ) -> Result<T, Why> {
        let statements = self.session.known_statements();
        let (count, types) = statements.types(executed.statement).ok_or(Why::Failed)?;
        let execute = Execute::parse(self.payload, count, self.session.capabilities);
        let each = execute.and_then(|execute| execute.each(types));
        let each = each.map_err(|_| Why::Execution)?;
        show(&each).ok_or(Why::Execution)
    }

    /// What is known of columns is what the client was told of its statement last, so that it need not be told again.
    pub(super) fn knows_columns(&self, template: &Template, crowd: Crowd) -> bool {
        if !self.keeps_columns() {
            return true;
        }
        let told = self.executed.and_then(|executed| executed.told.as_ref());
        told.is_some_and(|told| template.tells(crowd, self.under(), told))
    }

    /// The columns of a narrowed answer, be they told in it or before.
    pub(super) fn own_columns(
        &mut self,
        said: Option<Columns>,
        candidates: &Candidates,
    ) -> Option<Columns> {
        match candidates.own.filter(|_| self.keeps_columns()) {
            None => said,
            Some(own) => self.session.statements().own_columns(own, said),
        }
    }

    /// The client is told columns as it would be directly: not where it has them.
    pub(super) fn to_be_told(&self, bytes: Vec<u8>, columns: &Columns) -> Result<Vec<u8>, Why> {
        match self.executed.filter(|_| self.keeps_columns()) {
            None => Ok(bytes),
            Some(executed) if executed.told.as_ref() == Some(columns) => {
                Ok(reply::leave_out(bytes, self.session.capabilities))
            }
            Some(_) => Err(Why::Execution),
        }
    }

    /// The client keeps what it was told of its statement's columns.
    pub(super) fn keeps_columns(&self) -> bool {
        let capabilities = self.session.capabilities;
        self.executed.is_some() && capabilities.contains(Capabilities::MARIADB_CACHE_METADATA)
    }

    /// The payload that has the server do what the client wants.
    pub(super) fn as_it_is(&mut self) -> Vec<u8> {
        let own = self
            .executed
            .and_then(|executed| self.session.typed(executed.statement, self.payload));
        own.unwrap_or_else(|| self.payload.to_vec())
    }

    /// Runs the narrowed statement, prepared before or now.
    pub(super) fn run_prepared(
        &mut self,
        executed: &Executed,
        subject: Subject,
        wishes: Wishes,
        candidates: Candidates,
        mut ids: Vec<u64>,
        form: Form,
    ) -> Turn {
        let template = &subject.template;
        let size = size(ids.len(), self.policy.candidates);
        // One that comes twice is as one that comes once.
        let last = ids.last().copied().ok_or(Why::Failed)?;
        ids.resize(size, last);
        let (text, words, names) = (executed.feed.text(), &subject.words, &template.names);
        let open = template.shape.narrow_open(text, words, names, size, form);
        let open = open.ok_or(Refused::NotUnderstood)?;
        let plan = ToExecute {
            made: Made {
                of: Arc::clone(&executed.feed),
                template: Arc::clone(template),
                form,
                ids: size,
            },
            ids,
            before: open.before,
            replaced: open.replaced,
        };
        let statements = self.session.statements();
        if let Some(own) = statements.own(&plan.made) {
            return self.execute(executed, own, subject, wishes, candidates, &plan);
        }
        let before = closing(statements.make_room().ok_or(Why::Failed)?);
        let payload = [&[Command::StmtPrepare.byte()], &*open.text].concat();
        Ok((
            Stage::Preparing(subject, wishes, candidates, plan),
            Need::Prepare(Prepare { before, payload }),
        ))
    }

    /// It was prepared, or could not be.
    pub(super) fn prepared(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        candidates: Candidates,
        plan: ToExecute,
        reply: Reply,
    ) -> Turn {
        let executed = self.executed.ok_or(Why::Failed)?;
        let outcome = reply.outcome.ok_or(Why::Failed)?;
        let capabilities = self.session.capabilities;
        let statements = self.session.statements();
        let number = match &outcome {
            Outcome::Prepared(prepared) => Some(prepared.statement),
            _ => None,
        };
        let bytes = reply.bytes.as_deref().unwrap_or_default();
        let columns = KeptColumns::of_prepared(bytes, capabilities);
        statements.own_prepared(plan.made.clone(), number.map(|number| (number, columns)));
        match (number, &outcome) {
            (Some(own), _) => self.execute(executed, own, subject, wishes, candidates, &plan),
            (None, Outcome::Err(error)) if error.code == INTERRUPTED => {
                statements.owned(executed.statement);
                let told = Told::narrowed(reply.bytes.ok_or(Why::Failed)?, outcome);
                Ok((Stage::Ended, Need::Tell(told)))
            }
            _ => Err(Why::Failed),
        }
    }

    fn execute(
        &mut self,
        executed: &Executed,
        own: u32,
        subject: Subject,
        wishes: Wishes,
        candidates: Candidates,
        plan: &ToExecute,
    ) -> Turn {
        let candidates = Candidates {
            own: Some(own),
            ..candidates
        };
        let capabilities = self.session.capabilities;
        let kind = command::Parameter::kind_of_u64(subject.template.types.id.signed, capabilities);
        let ids: Vec<[u8; 8]> = plan.ids.iter().map(|id| id.to_le_bytes()).collect();
        let ids = ids.iter().map(|id| command::Parameter {
            kind,
            bytes: Some(id),
        });
        let payload = self.with_each(executed, |each| {
            let before = each.get(..plan.before)?;
            let behind = each.get(plan.before.checked_add(plan.replaced)?..)?;
            let all: Vec<_> = [before, &ids.collect::<Vec<_>>(), behind].concat();
            Some(command::execution(own, &all, capabilities))
        })?;
        self.session.statements().owned(executed.statement);
        Ok((
            Stage::Running(subject, wishes, candidates),
            Need::Run(payload),
        ))
    }
}

/// How many ids the narrowed text takes for so many: one of few numbers, so that it need not be prepared for each.
fn size(ids: usize, most: usize) -> usize {
    let power = ids.next_power_of_two();
    let between = power / 4 * 3;
    let size = match between >= ids && between >= 2 {
        true => between,
        false => power,
    };
    size.min(most).max(ids)
}

fn parameter(of: &command::Parameter<'_>) -> Parameter {
    match of.value() {
        Value::Null => Parameter::Null,
        Value::Integer(value) => Parameter::Integer(value),
        Value::Whole(value) => Parameter::Whole(value.into()),
        Value::Text(text) => Parameter::Text(text.to_vec()),
        Value::Moment {
            date,
            time,
            microseconds,
        } => Moment::parts(date, time, microseconds)
            // What is no date is compared by rules of its own.
            .filter(|moment| moment.days().is_some())
            .map_or(Parameter::Other, Parameter::Moment),
        Value::Other => Parameter::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn lists_have_few_sizes_and_room_for_all() {
        let mut sizes: Vec<usize> = (2..=900).map(|ids| size(ids, 900)).collect();
        assert!(
            (2..=900)
                .zip(&sizes)
                .all(|(ids, size)| ids <= *size && *size <= 900)
        );
        sizes.dedup();
        assert_eq!(
            sizes,
            [
                2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 900
            ]
        );
        assert_eq!(size(7, 5), 7);
    }
}
